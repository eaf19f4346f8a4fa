import { describe, expect, it } from "vitest";
import type { TxStatus } from "../../src/landing/ports.ts";
import { expectBalance } from "../support/landing-balance.ts";
import { fc } from "../support/properties.ts";
import { bytesOf, outcomeOf, startFixture } from "./fixture.ts";

const signatureOf = (id: number): Uint8Array => bytesOf(id).subarray(1, 65);
const processed = (slot: number): TxStatus => ({ slot, confirmed: false, error: null });
const confirmed = (slot: number): TxStatus => ({ slot, confirmed: true, error: null });

function startedFixture(over: Parameters<typeof startFixture>[0] = {}) {
  const fixture = startFixture(over);
  fixture.landing.start();
  fixture.plan("a", "b");
  return fixture;
}

describe("a transaction that lands", () => {
  it("is found in a processed block and ends once that is confirmed", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, processed(5_001)]]));
    const atNs = fixture.clock.nowNs();
    expect(fixture.processedEvents).toEqual([
      { packetId: 1, slot: 5_001, slotDelta: 1, error: null, atNs },
    ]);
    expect(fixture.finalStates).toEqual([]);
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, confirmed(5_001)]]));
    expect(fixture.finalStates).toEqual([
      {
        packetId: 1,
        kind: "landed",
        slot: 5_001,
        slotDelta: 1,
        error: null,
        reason: null,
        atNs: fixture.clock.nowNs(),
      },
    ]);
    expect(fixture.landing.inFlight).toBe(0);
    expect(fixture.landing.slotDeltas.counts[1]).toBe(1);
    expectBalance(fixture.landing);
  });

  it("counts its tip for its plan, accepted and again if it landed without an error", async () => {
    const fixture = startedFixture();
    fixture.track(1, { planName: "Beta", accepted: { tipLamports: 5_000 } });
    fixture.track(2, { planName: "Beta", accepted: { tipLamports: 700 } });
    fixture.track(3, { planName: "Pro", accepted: { tipLamports: 90 } });
    fixture.track(4, { planName: "Pro", accepted: { tipLamports: -1 } });
    fixture.slots(2);
    const failed: TxStatus = { ...confirmed(5_001), error: "{}" };
    const statuses = [confirmed(5_001), failed, processed(5_001), confirmed(5_001)];
    await fixture.answerAll(new Map(statuses.map((status, index) => [index + 1, status])));
    expect([...fixture.landing.tips]).toEqual([
      ["Beta", { accepted: 5_700, landed: 5_000 }],
      ["Pro", { accepted: 90, landed: 0 }],
    ]);
  });

  it("reports a processed block once, and again if it is in another block", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    for (const slot of [5_001, 5_001, 5_002]) {
      fixture.slots(2);
      await fixture.answerAll(new Map([[1, processed(slot)]]));
    }
    expect(fixture.processedEvents.map(({ slot }) => slot)).toEqual([5_001, 5_002]);
  });

  it("is in flight again when its block vanishes, and is sent again", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, processed(5_001)]]));
    fixture.slots(2);
    // A response from a node at an earlier slot does not count.
    await fixture.answerAll(new Map(), 5_001);
    expect(fixture.rolledBack).toEqual([]);
    fixture.slots(2);
    await fixture.answerAll();
    expect(fixture.rolledBack).toEqual([1]);
    fixture.plan("c");
    fixture.clock.advance(20);
    expect(fixture.resent.map(({ address }) => address)).toEqual(["c:8009"]);
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, confirmed(5_007)]]));
    expect(fixture.finalStates).toMatchObject([{ kind: "landed", slot: 5_007, slotDelta: 7 }]);
    expectBalance(fixture.landing);
  });

  it("is in flight again when its block was deleted and the slot went back", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, processed(5_001)]]));
    fixture.slots(1);
    fixture.landing.slotWentBack();
    fixture.cluster.slot = 4_960;
    fixture.slots(2);
    await fixture.answerAll();
    expect(fixture.rolledBack).toEqual([1]);
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, confirmed(4_964)]]));
    expect(fixture.finalStates).toMatchObject([{ kind: "landed", slot: 4_964 }]);
    expectBalance(fixture.landing);
  });

  it("does not land by a node that stays on deleted blocks", async () => {
    const fixture = startedFixture();
    fixture.cluster.slot = 5_040;
    fixture.track(1);
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, processed(5_041)]]));
    fixture.cluster.slot = 5_002;
    fixture.landing.slotWentBack();
    expect(fixture.rolledBack).toEqual([1]);
    // The node stays there, and reports its block as confirmed, also once the cluster is past it.
    for (let count = 0; count < 30; count += 1) {
      fixture.slots(2);
      const nodeSlot = Math.min(5_046, 5_043 + count);
      await fixture.answerAll(new Map([[1, confirmed(5_041)]]), nodeSlot);
    }
    expect(fixture.finalStates).toEqual([]);
    // It goes back as well.
    fixture.cluster.slot = 5_010;
    await fixture.answerAll();
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, confirmed(5_011)]]));
    expect(fixture.finalStates).toMatchObject([{ kind: "landed", slot: 5_011 }]);
    expectBalance(fixture.landing);
  });

  it("is not expired by a node that stays on deleted blocks", async () => {
    const fixture = startedFixture();
    fixture.cluster.slot = 5_040;
    fixture.track(1, { sent: ["a"] });
    fixture.slots(2);
    await fixture.answerAll();
    fixture.cluster.slot = 5_002;
    fixture.landing.slotWentBack();
    fixture.cluster.height = 2_000;
    for (let count = 0; count < 10; count += 1) {
      fixture.slots(4);
      await fixture.answerAll(new Map(), 5_045);
    }
    expect(fixture.finalStates).toEqual([]);
  });

  it("is sent again if its block is deleted, also if the node reports no statuses", () => {
    for (const reporting of ["yes", "no", "unknown"] as const) {
      const fixture = startedFixture();
      fixture.cluster.reporting = reporting;
      fixture.track(1, { sent: ["a"] });
      fixture.landing.seen(signatureOf(1), processed(5_050));
      fixture.clock.advance(100);
      fixture.cluster.slot = 5_010;
      fixture.landing.slotWentBack();
      expect(fixture.rolledBack).toEqual([1]);
      fixture.clock.advance(500);
      fixture.plan("c");
      fixture.clock.advance(100);
      expect(fixture.resent.length).toBeGreaterThan(0);
    }
  });

  it("has the error of the slot's later block if that slot was used again", () => {
    const fixture = startedFixture();
    fixture.track(1, { sent: ["a"] });
    fixture.landing.seen(signatureOf(1), { slot: 5_001, confirmed: false, error: '"Old"' });
    fixture.clock.advance(100);
    fixture.cluster.slot = 5_001;
    fixture.landing.slotWentBack();
    fixture.clock.advance(100);
    fixture.landing.seen(signatureOf(1), processed(5_001));
    fixture.landing.confirmed(5_001);
    fixture.clock.advance(1);
    expect(fixture.finalStates).toMatchObject([{ kind: "landed", slot: 5_001, error: null }]);
  });

  it("is not expired by slot numbers from before the slot went back", async () => {
    const fixture = startedFixture({ trackForMs: 600_000 });
    fixture.cluster.reporting = "no";
    fixture.cluster.slot = 8_000;
    fixture.cluster.slotShown = null;
    fixture.cluster.quietFrom = 5_003;
    fixture.cluster.quietTo = 9_000;
    fixture.track(1, { sent: ["a"] });
    fixture.clock.advance(1_000);
    fixture.cluster.slot = 5_001;
    fixture.landing.slotWentBack();
    fixture.cluster.height = 10_000;
    for (let count = 0; count < 20; count += 1) {
      fixture.slots(20);
      await fixture.answerAll();
    }
    expect(fixture.finalStates.filter(({ kind }) => kind === "expired")).toEqual([]);
  });

  it("expires if the slot went back after its blockhash was too old", async () => {
    const fixture = startedFixture({ trackForMs: 600_000 });
    fixture.track(1, { sent: ["a"] });
    fixture.slots(12);
    await fixture.answerAll();
    fixture.cluster.slot = 5_200;
    fixture.cluster.height = 10_000;
    // No status is answered until the slot went back.
    fixture.slots(8);
    fixture.cluster.slot = 5_020;
    fixture.landing.slotWentBack();
    await fixture.answerAll();
    for (let count = 0; count < 4; count += 1) {
      fixture.slots(8);
      await fixture.answerAll();
    }
    expect(fixture.finalStates).toMatchObject([{ kind: "expired", reason: "blockhash_expired" }]);
  });

  it("with an error has landed all the same, with the network's words", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    fixture.slots(2);
    const error = '{"InstructionError":[2,{"Custom":6001}]}';
    await fixture.answerAll(new Map([[1, { slot: 5_002, confirmed: true, error }]]));
    expect(fixture.finalStates).toMatchObject([{ kind: "landed", slot: 5_002, error }]);
    expect(fixture.landing.counters).toMatchObject({ landed: 1, landedFailed: 1 });
  });

  it("may be reported by a watcher before any request", () => {
    const fixture = startedFixture();
    fixture.track(1);
    const signature = bytesOf(1).subarray(1, 65);
    fixture.landing.seen(signature, processed(5_001));
    expect(fixture.processedEvents).toMatchObject([{ packetId: 1, slot: 5_001 }]);
    fixture.landing.seen(signature, confirmed(5_001));
    fixture.landing.seen(signature, confirmed(5_001));
    fixture.landing.seen(bytesOf(9).subarray(1, 65), confirmed(5_001));
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, kind: "landed" }]);
  });

  it("may be reported by a watcher before the record of its send arrives", () => {
    const fixture = startedFixture();
    fixture.unread.push(() => fixture.track(1));
    fixture.landing.seen(bytesOf(1).subarray(1, 65), processed(5_001));
    fixture.landing.seen(bytesOf(9).subarray(1, 65), processed(5_001));
    expect(fixture.processedEvents).toMatchObject([{ packetId: 1, slot: 5_001 }]);
  });

  it("has landed once a watcher reports its block as confirmed, without a request", () => {
    const fixture = startedFixture();
    for (const id of [1, 2, 3]) fixture.track(id);
    fixture.landing.seen(bytesOf(1).subarray(1), { ...processed(5_001), error: '"AccountInUse"' });
    fixture.landing.seen(bytesOf(2).subarray(1), processed(5_002));
    fixture.landing.confirmed(5_000);
    expect(fixture.finalStates).toEqual([]);
    fixture.landing.confirmed(5_001);
    fixture.landing.confirmed(5_001);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "landed", slot: 5_001, slotDelta: 1, error: '"AccountInUse"' },
    ]);
    fixture.landing.confirmed(5_002);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1 },
      { packetId: 2, kind: "landed", error: null },
    ]);
    expect(fixture.landing.inFlight).toBe(1);
    expectBalance(fixture.landing);
  });

  it("has no slot delta where the slot at receipt is not known", async () => {
    const fixture = startedFixture();
    fixture.cluster.slot = null;
    fixture.track(1);
    fixture.cluster.slot = 5_000;
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, confirmed(5_001)]]));
    expect(fixture.finalStates).toMatchObject([{ slot: 5_001, slotDelta: null }]);
  });

  it("counts its slots from what announcements show where the estimate ran ahead", async () => {
    const fixture = startedFixture();
    fixture.cluster.slot = 5_003;
    fixture.track(1);
    fixture.cluster.slotShown = 5_001;
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, confirmed(5_002)]]));
    expect(fixture.finalStates).toMatchObject([{ slot: 5_002, slotDelta: 1 }]);
  });

  it("in a slot before the estimated one counts as 0 slots", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, confirmed(4_999)]]));
    expect(fixture.finalStates).toMatchObject([{ slot: 4_999, slotDelta: 0 }]);
  });
});

describe("a transaction that was posted again after it had landed", () => {
  it("reports no landing time", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, confirmed(5_001)]]));
    fixture.slots(10);
    fixture.track(2);
    fixture.landing.seen(bytesOf(2).subarray(1, 65), confirmed(5_001));
    expect(fixture.finalStates).toMatchObject([{ slotDelta: 1 }, { slot: 5_001, slotDelta: null }]);
    expect(fixture.landing.slotDeltas.count).toBe(1);
  });

  it("adds nothing to landed tips, and nothing to its account's share", () => {
    const fixture = startedFixture();
    fixture.slots(10);
    const before = fixture.shares.shareOf("replays");
    for (let id = 1; id <= 20; id += 1) {
      fixture.track(id, { account: "replays" });
      fixture.landing.seen(signatureOf(id), confirmed(5_001));
    }
    fixture.shares.renew();
    expect(fixture.landing.counters.landed).toBe(20);
    expect(fixture.landing.tips.get("Beta")).toMatchObject({ landed: 0 });
    expect(fixture.shares.shareOf("replays")).toBe(before);
  });

  it("is not taken for one that was received while the slot was unknown", () => {
    const fixture = startedFixture();
    const before = fixture.shares.shareOf("early");
    fixture.cluster.slot = null;
    fixture.track(1, { account: "early", accepted: { tipLamports: 7 } });
    fixture.cluster.slot = 5_001;
    fixture.landing.seen(signatureOf(1), confirmed(5_001));
    fixture.shares.renew();
    expect(fixture.finalStates).toMatchObject([{ kind: "landed", slotDelta: null }]);
    expect(fixture.landing.tips.get("Beta")).toMatchObject({ landed: 7 });
    expect(fixture.shares.shareOf("early")).toBeGreaterThan(before);
  });
});

describe("a transaction that is dropped", () => {
  it("is the oldest one when too many are in flight", () => {
    const fixture = startedFixture({ countMax: 3 });
    for (const id of [1, 2, 3, 4, 5]) fixture.track(id);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "table_full" },
      { packetId: 2, kind: "dropped", reason: "table_full" },
    ]);
    expect(fixture.landing.counters.reasons.table_full).toBe(2);
    expectBalance(fixture.landing);
  });

  it("is forgotten by the dedup cache, and its next submission is sent and tracked", async () => {
    const fixture = startedFixture({ countMax: 2 });
    fixture.clock.advance(100);
    for (const id of [1, 2, 3]) fixture.track(id);
    // One that landed would only land again.
    await fixture.answerAll();
    fixture.landing.seen(signatureOf(2), confirmed(5_001));
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped" },
      { packetId: 2, kind: "landed" },
    ]);
    expect(fixture.gate.forgotten).toEqual([{ id: 1, sinceMs: 100 }]);
  });

  it("was never sent only once the copies of a later submission have had their time", () => {
    const fixture = startedFixture({ deliveryTtlMs: 2_000 });
    const { clock, landing } = fixture;
    fixture.track(1, { maxRetries: 0, sent: [] });
    clock.advance(2_100);
    const again = { id: 7, bytes: bytesOf(1), account: "a", maxRetries: 0, offeredLamports: 0 };
    const receivedNs = clock.nowNs();
    expect(landing.mergeSend({ ...again, receivedNs }, 1, receivedNs)).toBe(true);
    clock.advance(3_000);
    expect(fixture.finalStates).toEqual([]);
    clock.advance(1_000);
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, reason: "never_sent" }]);
  });

  it("was never sent, when no leader got it and it may not be sent again", () => {
    const fixture = startedFixture();
    fixture.track(1, { sent: [], maxRetries: 0 });
    fixture.track(2, { sent: [] });
    for (const leader of ["a", "b"]) {
      fixture.landing.outcome(outcomeOf(1, leader, "dropped", fixture.clock.nowNs()));
    }
    fixture.clock.advance(1_900);
    expect(fixture.finalStates).toEqual([]);
    fixture.clock.advance(600);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "never_sent" },
    ]);
  });

  it("was in a block that was not confirmed while it was tracked", async () => {
    const fixture = startedFixture({ trackForMs: 30_000 });
    fixture.track(1);
    fixture.track(2);
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, processed(5_001)]]));
    fixture.clock.advance(30_400);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "unconfirmed", slot: 5_001, slotDelta: null },
      { packetId: 2, kind: "dropped", reason: "tracking_ended", slot: 0 },
    ]);
    expectBalance(fixture.landing);
  });

  it("was in flight when the edge stopped", () => {
    const fixture = startedFixture();
    for (const id of [1, 2, 3]) fixture.track(id);
    fixture.landing.stop();
    expect(fixture.finalStates.map(({ packetId, reason }) => [packetId, reason])).toEqual([
      [1, "shutting_down"],
      [2, "shutting_down"],
      [3, "shutting_down"],
    ]);
    expect(fixture.landing.inFlight).toBe(0);
    expectBalance(fixture.landing);
  });
});

describe("a transaction that is submitted again", () => {
  it("joins the one in flight, and goes to leaders that did not have it", () => {
    const fixture = startedFixture();
    fixture.track(1);
    expect(fixture.landing.mergeDuplicate(bytesOf(1), 1, null)).toBe(true);
    fixture.plan("b", "c");
    expect(fixture.landing.mergeDuplicate(bytesOf(1), 1, null)).toBe(true);
    expect(fixture.resent).toEqual([]);
    fixture.clock.advance(600);
    expect(fixture.landing.mergeDuplicate(bytesOf(1), 1, null)).toBe(true);
    expect(fixture.resent).toMatchObject([{ id: 1, address: "c:8009" }]);
    fixture.plan("b", "c");
    fixture.clock.advance(20);
    expect(fixture.resent).toHaveLength(1);
    expect(fixture.landing.counters).toMatchObject({ accepted: 1, duplicatesMerged: 3 });
  });

  it("is its sender's own resend where it wants no others", () => {
    const fixture = startedFixture();
    fixture.track(1, { maxRetries: 0 });
    fixture.clock.advance(2_100);
    expect(fixture.landing.mergeDuplicate(bytesOf(1), 1, 0)).toBe(true);
    expect(fixture.resent.map(({ address }) => address)).toEqual(["a:8009", "b:8009"]);
    fixture.clock.advance(600);
    fixture.plan("c");
    fixture.clock.advance(20);
    expect(fixture.resent).toHaveLength(2);
  });

  it("may allow more resends than the first", () => {
    const fixture = startedFixture();
    fixture.track(1, { maxRetries: 0 });
    fixture.landing.mergeDuplicate(bytesOf(1), 1, 1);
    fixture.clock.advance(600);
    fixture.plan("c");
    fixture.clock.advance(20);
    expect(fixture.resent).toMatchObject([{ address: "c:8009" }]);
  });

  it("does not join what has ended or was never there", async () => {
    const fixture = startedFixture();
    expect(fixture.landing.mergeDuplicate(bytesOf(1), 1, null)).toBe(false);
    fixture.track(1);
    fixture.slots(2);
    await fixture.answerAll(new Map([[1, confirmed(5_001)]]));
    expect(fixture.landing.mergeDuplicate(bytesOf(1), 1, null)).toBe(false);
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
    { weight: 4, arbitrary: fc.record({ do: fc.constant("see"), n: fc.nat({ max: 255 }) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("confirm"), n: fc.nat({ max: 8 }) }) },
  );

  it("ends each transaction exactly once, in any order of events", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const fixture = startedFixture({ countMax: 12, trackForMs: 90_000 });
        const taken = await play(fixture, steps);
        fixture.landing.stop();
        expectBalance(fixture.landing);
        expect(fixture.landing.inFlight).toBe(0);
        expect(fixture.clock.pending).toBe(0);
        const ended = fixture.finalStates.map(({ packetId }) => packetId);
        expect(ended.toSorted((a, b) => a - b)).toEqual(taken);
        for (const end of fixture.finalStates) {
          expect(end.reason === null).toBe(end.kind === "landed");
        }
      }),
      { numRuns: 300 },
    );
  });
});

const bankOf = (n: number): number | null => (n === 0 ? null : n);

/** Executes the steps; returns the ids of accepted transactions, in order. */
async function play(
  fixture: ReturnType<typeof startFixture>,
  steps: readonly { readonly do: string; readonly n: number }[],
): Promise<readonly number[]> {
  const taken: number[] = [];
  let id = 0;
  for (const { do: what, n } of steps) {
    if (what === "track") {
      id += 1;
      const maxRetries = n % 3 === 0 ? n : null;
      const accepted = { durableNonce: n === 5 };
      fixture.track(id, { hash: n % 3, maxRetries, accepted, sent: n % 2 === 0 ? ["a"] : [] });
      taken.push(id);
    } else if (what === "outcome") {
      const kinds = ["sent", "acked", "failed", "dropped"] as const;
      const kind = kinds[n % 4] ?? "sent";
      fixture.landing.outcome(
        outcomeOf(n >> 2, n % 3 === 0 ? "a" : "b", kind, fixture.clock.nowNs()),
      );
    } else if (what === "join")
      fixture.landing.mergeDuplicate(bytesOf(n), 1, n % 2 === 0 ? null : 1);
    else if (what === "wait") fixture.clock.advance(n);
    else if (what === "height") {
      fixture.cluster.height = (fixture.cluster.height ?? 0) + n;
      fixture.cluster.slot = (fixture.cluster.slot ?? 0) + n;
    } else if (what === "plan") fixture.plan(...["a", "b", "c", "d", "e"].slice(n));
    else if (what === "answer") await answer(fixture, n);
    else if (what === "feed") {
      fixture.landing.seen(bytesOf(n).subarray(1, 65), n % 2 === 0 ? processed(n) : confirmed(n));
    } else if (what === "see") {
      const error = n % 3 === 0 ? '"AccountInUse"' : null;
      const status = { ...processed(5_000 + (n % 2)), error };
      fixture.landing.seen(bytesOf(n >> 3).subarray(1, 65), status, bankOf(n % 4));
    } else if (what === "confirm") {
      if (n === 8) fixture.landing.forgetBanks();
      else fixture.landing.confirmed(5_000 + (n % 2), bankOf(n >> 1));
    } else {
      for (const request of fixture.asked.splice(0)) request.fail();
      await fixture.settle();
    }
    expectBalance(fixture.landing);
  }
  return taken;
}

/** Responds to all open requests, with absent, processed and confirmed statuses. */
async function answer(fixture: ReturnType<typeof startFixture>, seed: number): Promise<void> {
  const statuses = new Map<number, TxStatus>();
  for (const id of fixture.asked.flatMap(({ ids }) => ids)) {
    const fate = (id * 31 + seed) % 5;
    if (fate === 0) statuses.set(id, confirmed(5_000 + seed));
    else if (fate === 1) statuses.set(id, processed(5_000 + seed));
  }
  await fixture.answerAll(statuses);
}

describe("where the node reports no statuses", () => {
  /** Past the blockhash's last height and the margin for forks. */
  const BLOCKS = 170;

  it.each(["no", "unknown"] as const)(
    "drops a transaction whose final state is unknown (%s)",
    async (reporting) => {
      const fixture = startedFixture();
      fixture.cluster.reporting = reporting;
      fixture.track(1);
      fixture.track(2, { sent: [] });
      fixture.track(3);
      fixture.landing.seen(bytesOf(3).subarray(1), processed(5_001));
      for (let block = 0; block < BLOCKS; block += 1) {
        fixture.slots(1);
        await fixture.answerAll();
      }
      const reasons = fixture.finalStates.map(
        ({ packetId, kind, reason }) => `${packetId} ${kind} ${reason}`,
      );
      expect(reasons.sort()).toEqual(["1 dropped status_unknown", "2 dropped never_sent"]);
      // A null of such a node does not undo an event of a subscription.
      expect(fixture.rolledBack).toEqual([]);
      fixture.landing.confirmed(5_001);
      expect(fixture.finalStates.at(-1)).toMatchObject({ packetId: 3, kind: "landed" });
      expectBalance(fixture.landing);
    },
  );

  it.each(["no", "unknown"] as const)(
    "proves by blocks without transactions that a transaction expired (%s)",
    async (reporting) => {
      const fixture = startedFixture();
      fixture.cluster.reporting = reporting;
      fixture.cluster.quietFrom = 5_000;
      fixture.track(1);
      for (let block = 0; block < BLOCKS; block += 1) {
        fixture.slots(1);
        await fixture.answerAll();
      }
      // The last blocks are not known yet.
      expect(fixture.finalStates).toEqual([]);
      fixture.cluster.quietTo = fixture.cluster.slot ?? 0;
      for (let block = 0; block < 8; block += 1) {
        fixture.slots(1);
        await fixture.answerAll();
      }
      expect(fixture.finalStates).toMatchObject([
        { packetId: 1, kind: "expired", reason: "blockhash_expired" },
      ]);
      expectBalance(fixture.landing);
    },
  );

  it.each([
    [5_001, null, "status_unknown"],
    [4_990, 4_990, "blockhash_expired"],
    [5_000, 4_990, "status_unknown"],
  ])(
    "counts blocks from the slot that announcements show (quiet from %i, shown %s: %s)",
    async (quietFrom, slotShown, reason) => {
      const fixture = startedFixture();
      fixture.cluster.reporting = "unknown";
      fixture.cluster.quietFrom = quietFrom;
      fixture.cluster.quietTo = 9_000;
      fixture.cluster.slotShown = slotShown;
      fixture.track(1);
      for (let block = 0; block < BLOCKS; block += 1) {
        fixture.slots(1);
        await fixture.answerAll();
      }
      expect(fixture.finalStates).toMatchObject([{ packetId: 1, reason }]);
    },
  );

  it("drops it also if the node rejects the request", async () => {
    const fixture = startedFixture();
    fixture.cluster.reporting = "no";
    fixture.track(1);
    for (let block = 0; block < BLOCKS; block += 1) {
      fixture.slots(1);
      for (const request of fixture.asked.splice(0)) request.fail();
      await fixture.settle();
    }
    expect(fixture.finalStates).toMatchObject([{ kind: "dropped", reason: "status_unknown" }]);
    expectBalance(fixture.landing);
  });
});
