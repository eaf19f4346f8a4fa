import { describe, expect, it } from "vitest";
import type { TxStatus } from "../../src/landing/ports.ts";
import { expectBalance } from "../support/landing-balance.ts";
import { fc } from "../support/properties.ts";
import { bytesOf, outcomeOf, startRig } from "./rig.ts";

const processed = (slot: number): TxStatus => ({ slot, confirmed: false, error: null });
const confirmed = (slot: number): TxStatus => ({ slot, confirmed: true, error: null });

function startedRig(over: Parameters<typeof startRig>[0] = {}) {
  const rig = startRig(over);
  rig.landing.start();
  rig.plan("a", "b");
  return rig;
}

describe("a transaction that lands", () => {
  it("is found in a processed block and ends once that is confirmed", async () => {
    const rig = startedRig();
    rig.track(1);
    rig.slots(2);
    await rig.answerAll(new Map([[1, processed(5_001)]]));
    const atNs = rig.clock.nowNs();
    expect(rig.processedEvents).toEqual([
      { packetId: 1, slot: 5_001, slotDelta: 1, error: null, atNs },
    ]);
    expect(rig.finalStates).toEqual([]);
    rig.slots(2);
    await rig.answerAll(new Map([[1, confirmed(5_001)]]));
    expect(rig.finalStates).toEqual([
      {
        packetId: 1,
        kind: "landed",
        slot: 5_001,
        slotDelta: 1,
        error: null,
        reason: null,
        atNs: rig.clock.nowNs(),
      },
    ]);
    expect(rig.landing.inFlight).toBe(0);
    expect(rig.landing.slotDeltas.counts[1]).toBe(1);
    expectBalance(rig.landing);
  });

  it("reports a processed block once, and again if it is in another block", async () => {
    const rig = startedRig();
    rig.track(1);
    for (const slot of [5_001, 5_001, 5_002]) {
      rig.slots(2);
      await rig.answerAll(new Map([[1, processed(slot)]]));
    }
    expect(rig.processedEvents.map(({ slot }) => slot)).toEqual([5_001, 5_002]);
  });

  it("is in flight again when its block vanishes, and is sent again", async () => {
    const rig = startedRig();
    rig.track(1);
    rig.slots(2);
    await rig.answerAll(new Map([[1, processed(5_001)]]));
    rig.slots(2);
    // A response from a node at an earlier slot does not count.
    await rig.answerAll(new Map(), 5_001);
    expect(rig.rolledBack).toEqual([]);
    rig.slots(2);
    await rig.answerAll();
    expect(rig.rolledBack).toEqual([1]);
    rig.plan("c");
    rig.clock.advance(20);
    expect(rig.resent.map(({ address }) => address)).toEqual(["c:8009"]);
    rig.slots(2);
    await rig.answerAll(new Map([[1, confirmed(5_007)]]));
    expect(rig.finalStates).toMatchObject([{ kind: "landed", slot: 5_007, slotDelta: 7 }]);
    expectBalance(rig.landing);
  });

  it("with an error has landed all the same, with the network's words", async () => {
    const rig = startedRig();
    rig.track(1);
    rig.slots(2);
    const error = '{"InstructionError":[2,{"Custom":6001}]}';
    await rig.answerAll(new Map([[1, { slot: 5_002, confirmed: true, error }]]));
    expect(rig.finalStates).toMatchObject([{ kind: "landed", slot: 5_002, error }]);
    expect(rig.landing.counters).toMatchObject({ landed: 1, landedFailed: 1 });
  });

  it("may be reported by a watcher before any request", () => {
    const rig = startedRig();
    rig.track(1);
    const signature = bytesOf(1).subarray(1, 65);
    rig.landing.seen(signature, processed(5_001));
    expect(rig.processedEvents).toMatchObject([{ packetId: 1, slot: 5_001 }]);
    rig.landing.seen(signature, confirmed(5_001));
    rig.landing.seen(signature, confirmed(5_001));
    rig.landing.seen(bytesOf(9).subarray(1, 65), confirmed(5_001));
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "landed" }]);
  });

  it("may be reported by a watcher before the record of its send arrives", () => {
    const rig = startedRig();
    rig.unadopted.push(() => rig.track(1));
    rig.landing.seen(bytesOf(1).subarray(1, 65), processed(5_001));
    rig.landing.seen(bytesOf(9).subarray(1, 65), processed(5_001));
    expect(rig.processedEvents).toMatchObject([{ packetId: 1, slot: 5_001 }]);
  });

  it("has landed once a watcher reports its block as confirmed, without a request", () => {
    const rig = startedRig();
    for (const id of [1, 2, 3]) rig.track(id);
    rig.landing.seen(bytesOf(1).subarray(1), { ...processed(5_001), error: '"AccountInUse"' });
    rig.landing.seen(bytesOf(2).subarray(1), processed(5_002));
    rig.landing.confirmed(5_000);
    expect(rig.finalStates).toEqual([]);
    rig.landing.confirmed(5_001);
    rig.landing.confirmed(5_001);
    expect(rig.finalStates).toMatchObject([
      { packetId: 1, kind: "landed", slot: 5_001, slotDelta: 1, error: '"AccountInUse"' },
    ]);
    rig.landing.confirmed(5_002);
    expect(rig.finalStates).toMatchObject([
      { packetId: 1 },
      { packetId: 2, kind: "landed", error: null },
    ]);
    expect(rig.landing.inFlight).toBe(1);
    expectBalance(rig.landing);
  });

  it("has no slot delta where the slot at receipt is not known", async () => {
    const rig = startedRig();
    rig.cluster.slot = null;
    rig.track(1);
    rig.cluster.slot = 5_000;
    rig.slots(2);
    await rig.answerAll(new Map([[1, confirmed(5_001)]]));
    expect(rig.finalStates).toMatchObject([{ slot: 5_001, slotDelta: null }]);
  });

  it("counts its slots from what announcements show where the estimate ran ahead", async () => {
    const rig = startedRig();
    rig.cluster.slot = 5_003;
    rig.track(1);
    rig.cluster.slotShown = 5_001;
    rig.slots(2);
    await rig.answerAll(new Map([[1, confirmed(5_002)]]));
    expect(rig.finalStates).toMatchObject([{ slot: 5_002, slotDelta: 1 }]);
  });

  it("in a slot before the estimated one counts as 0 slots", async () => {
    const rig = startedRig();
    rig.track(1);
    rig.slots(2);
    await rig.answerAll(new Map([[1, confirmed(4_999)]]));
    expect(rig.finalStates).toMatchObject([{ slot: 4_999, slotDelta: 0 }]);
  });
});

describe("a transaction that was posted again after it had landed", () => {
  it("reports no landing time", async () => {
    const rig = startedRig();
    rig.track(1);
    rig.slots(2);
    await rig.answerAll(new Map([[1, confirmed(5_001)]]));
    rig.slots(10);
    rig.track(2);
    rig.landing.seen(bytesOf(2).subarray(1, 65), confirmed(5_001));
    expect(rig.finalStates).toMatchObject([{ slotDelta: 1 }, { slot: 5_001, slotDelta: null }]);
    expect(rig.landing.slotDeltas.count).toBe(1);
  });
});

describe("a transaction that is dropped", () => {
  it("is the oldest one when too many are in flight", () => {
    const rig = startedRig({ countMax: 3 });
    for (const id of [1, 2, 3, 4, 5]) rig.track(id);
    expect(rig.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "table_full" },
      { packetId: 2, kind: "dropped", reason: "table_full" },
    ]);
    expect(rig.landing.counters.reasons.table_full).toBe(2);
    expectBalance(rig.landing);
  });

  it("was never sent, when no leader got it and it may not be sent again", () => {
    const rig = startedRig();
    rig.track(1, { sent: [], maxRetries: 0 });
    rig.track(2, { sent: [] });
    for (const leader of ["a", "b"]) {
      rig.landing.outcome(outcomeOf(1, leader, "dropped", rig.clock.nowNs()));
    }
    rig.clock.advance(1_900);
    expect(rig.finalStates).toEqual([]);
    rig.clock.advance(600);
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "dropped", reason: "never_sent" }]);
  });

  it("was in a block that was not confirmed while it was tracked", async () => {
    const rig = startedRig({ trackForMs: 30_000 });
    rig.track(1);
    rig.track(2);
    rig.slots(2);
    await rig.answerAll(new Map([[1, processed(5_001)]]));
    rig.clock.advance(30_400);
    expect(rig.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "unconfirmed", slot: 5_001, slotDelta: null },
      { packetId: 2, kind: "dropped", reason: "tracking_ended", slot: 0 },
    ]);
    expectBalance(rig.landing);
  });

  it("was in flight when the edge stopped", () => {
    const rig = startedRig();
    for (const id of [1, 2, 3]) rig.track(id);
    rig.landing.stop();
    expect(rig.finalStates.map(({ packetId, reason }) => [packetId, reason])).toEqual([
      [1, "shutting_down"],
      [2, "shutting_down"],
      [3, "shutting_down"],
    ]);
    expect(rig.landing.inFlight).toBe(0);
    expectBalance(rig.landing);
  });
});

describe("a transaction that is submitted again", () => {
  it("joins the one in flight, and goes to leaders that did not have it", () => {
    const rig = startedRig();
    rig.track(1);
    expect(rig.landing.mergeDuplicate(bytesOf(1), 1, null)).toBe(true);
    rig.plan("b", "c");
    expect(rig.landing.mergeDuplicate(bytesOf(1), 1, null)).toBe(true);
    expect(rig.resent).toEqual([]);
    rig.clock.advance(600);
    expect(rig.landing.mergeDuplicate(bytesOf(1), 1, null)).toBe(true);
    expect(rig.resent).toMatchObject([{ id: 1, address: "c:8009" }]);
    rig.plan("b", "c");
    rig.clock.advance(20);
    expect(rig.resent).toHaveLength(1);
    expect(rig.landing.counters).toMatchObject({ accepted: 1, duplicatesMerged: 3 });
  });

  it("is its sender's own resend where it wants no others", () => {
    const rig = startedRig();
    rig.track(1, { maxRetries: 0 });
    rig.clock.advance(2_100);
    expect(rig.landing.mergeDuplicate(bytesOf(1), 1, 0)).toBe(true);
    expect(rig.resent.map(({ address }) => address)).toEqual(["a:8009", "b:8009"]);
    rig.clock.advance(600);
    rig.plan("c");
    rig.clock.advance(20);
    expect(rig.resent).toHaveLength(2);
  });

  it("may allow more resends than the first", () => {
    const rig = startedRig();
    rig.track(1, { maxRetries: 0 });
    rig.landing.mergeDuplicate(bytesOf(1), 1, 1);
    rig.clock.advance(600);
    rig.plan("c");
    rig.clock.advance(20);
    expect(rig.resent).toMatchObject([{ address: "c:8009" }]);
  });

  it("does not join what has ended or was never there", async () => {
    const rig = startedRig();
    expect(rig.landing.mergeDuplicate(bytesOf(1), 1, null)).toBe(false);
    rig.track(1);
    rig.slots(2);
    await rig.answerAll(new Map([[1, confirmed(5_001)]]));
    expect(rig.landing.mergeDuplicate(bytesOf(1), 1, null)).toBe(false);
  });
});

describe("the balance", () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("track"), n: fc.nat({ max: 7 }) }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("outcome"), n: fc.nat({ max: 200 }) }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("join"), n: fc.nat({ max: 60 }) }) },
    { weight: 6, arbitrary: fc.record({ do: fc.constant("wait"), n: fc.nat({ max: 3_000 }) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("height"), n: fc.nat({ max: 120 }) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("plan"), n: fc.nat({ max: 5 }) }) },
    { weight: 6, arbitrary: fc.record({ do: fc.constant("answer"), n: fc.nat({ max: 255 }) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("fail"), n: fc.constant(0) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("feed"), n: fc.nat({ max: 60 }) }) },
  );

  it("ends each transaction exactly once, in any order of events", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const rig = startedRig({ countMax: 12, trackForMs: 90_000 });
        const taken = await play(rig, steps);
        rig.landing.stop();
        expectBalance(rig.landing);
        expect(rig.landing.inFlight).toBe(0);
        expect(rig.clock.pending).toBe(0);
        const ended = rig.finalStates.map(({ packetId }) => packetId);
        expect(ended.toSorted((a, b) => a - b)).toEqual(taken);
        for (const end of rig.finalStates) {
          expect(end.reason === null).toBe(end.kind === "landed");
        }
      }),
      { numRuns: 300 },
    );
  });
});

/** Executes the steps; returns the ids of accepted transactions, in order. */
async function play(
  rig: ReturnType<typeof startRig>,
  steps: readonly { readonly do: string; readonly n: number }[],
): Promise<readonly number[]> {
  const taken: number[] = [];
  let id = 0;
  for (const { do: what, n } of steps) {
    if (what === "track") {
      id += 1;
      const maxRetries = n % 3 === 0 ? n : null;
      const accepted = { durableNonce: n === 5 };
      rig.track(id, { hash: n % 3, maxRetries, accepted, sent: n % 2 === 0 ? ["a"] : [] });
      taken.push(id);
    } else if (what === "outcome") {
      const kinds = ["sent", "acked", "failed", "dropped"] as const;
      const kind = kinds[n % 4] ?? "sent";
      rig.landing.outcome(outcomeOf(n >> 2, n % 3 === 0 ? "a" : "b", kind, rig.clock.nowNs()));
    } else if (what === "join") rig.landing.mergeDuplicate(bytesOf(n), 1, n % 2 === 0 ? null : 1);
    else if (what === "wait") rig.clock.advance(n);
    else if (what === "height") {
      rig.cluster.height = (rig.cluster.height ?? 0) + n;
      rig.cluster.slot = (rig.cluster.slot ?? 0) + n;
    } else if (what === "plan") rig.plan(...["a", "b", "c", "d", "e"].slice(n));
    else if (what === "answer") await answer(rig, n);
    else if (what === "feed") {
      rig.landing.seen(bytesOf(n).subarray(1, 65), n % 2 === 0 ? processed(n) : confirmed(n));
    } else {
      for (const request of rig.asked.splice(0)) request.fail();
      await rig.settle();
    }
    expectBalance(rig.landing);
  }
  return taken;
}

/** Responds to all open requests, with absent, processed and confirmed statuses. */
async function answer(rig: ReturnType<typeof startRig>, seed: number): Promise<void> {
  const statuses = new Map<number, TxStatus>();
  for (const id of rig.asked.flatMap(({ ids }) => ids)) {
    const fate = (id * 31 + seed) % 5;
    if (fate === 0) statuses.set(id, confirmed(5_000 + seed));
    else if (fate === 1) statuses.set(id, processed(5_000 + seed));
  }
  await rig.answerAll(statuses);
}

describe("where the node reports no statuses", () => {
  /** Past the blockhash's last height and the margin for forks. */
  const BLOCKS = 170;

  it.each(["no", "unknown"] as const)(
    "nobody could say what became of it (%s)",
    async (reporting) => {
      const rig = startedRig();
      rig.cluster.reporting = reporting;
      rig.track(1);
      rig.track(2, { sent: [] });
      rig.track(3);
      rig.landing.seen(bytesOf(3).subarray(1), processed(5_001));
      for (let block = 0; block < BLOCKS; block += 1) {
        rig.slots(1);
        await rig.answerAll();
      }
      const reasons = rig.finalStates.map(
        ({ packetId, kind, reason }) => `${packetId} ${kind} ${reason}`,
      );
      expect(reasons.sort()).toEqual(["1 dropped status_unknown", "2 dropped never_sent"]);
      // A null of such a node does not undo an event of a subscription.
      expect(rig.rolledBack).toEqual([]);
      rig.landing.confirmed(5_001);
      expect(rig.finalStates.at(-1)).toMatchObject({ packetId: 3, kind: "landed" });
      expectBalance(rig.landing);
    },
  );

  it("it ends also where the question itself is refused", async () => {
    const rig = startedRig();
    rig.cluster.reporting = "no";
    rig.track(1);
    for (let block = 0; block < BLOCKS; block += 1) {
      rig.slots(1);
      for (const request of rig.asked.splice(0)) request.fail();
      await rig.settle();
    }
    expect(rig.finalStates).toMatchObject([{ kind: "dropped", reason: "status_unknown" }]);
    expectBalance(rig.landing);
  });
});
