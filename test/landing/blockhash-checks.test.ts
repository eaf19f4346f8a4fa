import { describe, expect, it } from "vitest";
import { NS_PER_MS, NS_PER_S } from "../../src/core/clock.ts";
import { BLOCKHASH_AGE_MAX } from "../../src/core/limits.ts";
import { BlockhashChecks } from "../../src/landing/blockhash-checks.ts";
import { UNKNOWN } from "../../src/landing/in-flight-table.ts";
import { LandCounters } from "../../src/landing/land-counters.ts";
import {
  BLOCKHASH_CHECK_GAP_MS,
  BLOCKHASH_MARGIN_SLOTS,
  BLOCKHASHES_CHECKED_MAX,
  BLOCKHASHES_PER_REQUEST,
} from "../../src/landing/limits.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { expectBalance } from "../support/landing-balance.ts";
import { bytesOf, startFixture } from "./fixture.ts";

/** A blockhash that no block of the fixture has. */
const FOREIGN = 9;

function startedFixture(over: Parameters<typeof startFixture>[0] = {}) {
  const fixture = startFixture(over);
  fixture.landing.start();
  fixture.plan("a", "b");
  fixture.cluster.knows = (hash) => hash !== FOREIGN;
  return fixture;
}

type Fixture = ReturnType<typeof startedFixture>;

/** Slots of 250 ms, each with other leaders, while the node reports no status. */
async function pass(fixture: Fixture, slots: number): Promise<void> {
  for (let slot = 0; slot < slots; slot += 1) {
    fixture.slots(1);
    if (slot % 4 === 0) fixture.plan(`a${(fixture.cluster.slot ?? 0) % 40}`);
    await fixture.answerAll();
  }
}

/** Lets slots pass until the node was asked that often, at most 80. */
async function untilChecked(fixture: Fixture, requests: number): Promise<void> {
  for (let slot = 0; slot < 80 && fixture.checked.length < requests; slot += 1) {
    await pass(fixture, 1);
  }
  expect(fixture.checked).toHaveLength(requests);
}

describe("a transaction whose blockhash the cluster does not know", () => {
  it("is dropped some seconds after it arrived, and not sent again", async () => {
    const fixture = startedFixture();
    fixture.track(1, { hash: FOREIGN });
    await pass(fixture, 16);
    expect(fixture.finalStates).toEqual([]);
    await pass(fixture, 16);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "blockhash_unknown", slot: 0 },
    ]);
    const sends = fixture.resent.length;
    expect(sends).toBeLessThan(10);
    await pass(fixture, 180);
    expect(fixture.resent).toHaveLength(sends);
    expect(fixture.landing.counters).toMatchObject({ dropped: 1, blockhashesUnknown: 2 });
    expectBalance(fixture.landing);
  });

  it("is sent until it expires if the node does not respond", async () => {
    const fixture = startedFixture();
    fixture.cluster.knows = () => null;
    fixture.track(1, { hash: FOREIGN });
    await pass(fixture, 200);
    expect(fixture.finalStates).toMatchObject([{ kind: "expired", reason: "blockhash_expired" }]);
    expect(fixture.resent.length).toBeGreaterThan(30);
    expect(fixture.landing.counters.blockhashChecksFailed).toBeGreaterThan(5);
  });

  it("is kept while the node lags behind the slot of its arrival", async () => {
    const fixture = startedFixture();
    fixture.track(1, { hash: FOREIGN });
    fixture.cluster.checkSlot = 5_000 + BLOCKHASH_MARGIN_SLOTS - 1;
    await pass(fixture, 60);
    expect(fixture.finalStates).toEqual([]);
    fixture.cluster.checkSlot += 1;
    await pass(fixture, 20);
    expect(fixture.finalStates).toMatchObject([{ reason: "blockhash_unknown" }]);
  });

  it("is kept without the slot in which it arrived", async () => {
    const fixture = startedFixture();
    fixture.cluster.slot = null;
    fixture.track(1, { hash: FOREIGN });
    fixture.cluster.slot = 5_000;
    await pass(fixture, 60);
    expect(fixture.finalStates).toEqual([]);
  });

  it("is kept if only one of two responses is past its arrival", async () => {
    const fixture = startedFixture();
    fixture.track(1, { hash: FOREIGN });
    await untilChecked(fixture, 1);
    fixture.cluster.checkSlot = 5_001;
    await untilChecked(fixture, 2);
    await pass(fixture, 4);
    expect(fixture.finalStates).toEqual([]);
  });

  it("is kept if the second response knows it", async () => {
    const fixture = startedFixture();
    fixture.track(1, { hash: FOREIGN });
    await untilChecked(fixture, 1);
    fixture.cluster.knows = () => true;
    await pass(fixture, 60);
    expect(fixture.finalStates).toEqual([]);
    expect(fixture.checked).toHaveLength(2);
  });

  it("is not asked about if a block had it, or if it is a durable nonce", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    fixture.track(2, { hash: FOREIGN, accepted: { durableNonce: true } });
    await pass(fixture, 60);
    expect(fixture.checked).toEqual([]);
    expect(fixture.finalStates).toEqual([]);
  });

  it("is not asked about if the last lookup finds it in a block", async () => {
    const fixture = startedFixture();
    let lookups = 0;
    fixture.cluster.lastValid.get = () => {
      lookups += 1;
      return lookups < 4 ? undefined : 1_150;
    };
    fixture.track(1, { hash: FOREIGN });
    await pass(fixture, 60);
    expect(lookups).toBe(4);
    expect(fixture.checked).toEqual([]);
  });

  it("ends only once a status of a later slot shows that it did not land before", async () => {
    const fixture = startedFixture();
    fixture.track(1, { hash: FOREIGN });
    for (let slot = 0; slot < 40; slot += 1) {
      fixture.slots(1);
      await fixture.answerAll(new Map(), 5_001);
    }
    expect(fixture.finalStates).toEqual([]);
    const sends = fixture.resent.length;
    fixture.plan("other");
    fixture.slots(8);
    expect(fixture.resent).toHaveLength(sends);
    await fixture.answerAll(new Map([[1, { slot: 5_002, confirmed: true, error: null }]]));
    expect(fixture.finalStates).toMatchObject([{ kind: "landed", slot: 5_002 }]);
  });

  it("is kept while a block holds it", async () => {
    const fixture = startedFixture();
    fixture.track(1, { hash: FOREIGN });
    const status = { slot: 5_001, confirmed: false, error: null };
    fixture.landing.seen(bytesOf(1).subarray(1, 65), status);
    for (let slot = 0; slot < 60; slot += 1) {
      fixture.slots(1);
      await fixture.answerAll(new Map([[1, status]]));
    }
    expect(fixture.checked).toEqual([]);
    expect(fixture.finalStates).toEqual([]);
  });

  it("is dropped also if its slots are used again after the node's word", async () => {
    const fixture = startedFixture();
    fixture.track(1, { hash: FOREIGN });
    const { landing, cluster, clock, finalStates, slots, answerAll } = fixture;
    // No status is answered meanwhile.
    for (let count = 0; count < 80 && landing.counters.blockhashesUnknown < 2; count += 1) {
      slots(1);
      for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
    }
    clock.advance(1_000);
    cluster.slot = 5_004;
    landing.slotWentBack();
    await answerAll();
    expect(finalStates).toMatchObject([{ kind: "dropped", reason: "blockhash_unknown" }]);
  });

  it.each(["yes", "no"] as const)(
    "may have been known on arrival if no response came in a blockhash's lifetime (%s)",
    async (reporting) => {
      const fixture = startedFixture({ trackForMs: 600_000 });
      fixture.cluster.reporting = reporting;
      const { cluster } = fixture;
      cluster.knows = () => null;
      // The node is down for 100 s, and so long that the height at receipt is not known.
      fixture.clock.advance(3_000);
      fixture.track(1, { hash: FOREIGN });
      for (let slot = 5_001; slot <= 5_400; slot += 1) {
        cluster.slot = slot;
        fixture.clock.advance(250);
        for (const request of fixture.asked.splice(0)) request.fail();
        await fixture.settle();
      }
      expect(fixture.finalStates).toEqual([]);
      cluster.height = 1_400;
      cluster.knows = () => false;
      await pass(fixture, 200);
      const reason = reporting === "yes" ? "tracking_ended" : "status_unknown";
      expect(fixture.finalStates).toMatchObject([{ kind: "dropped", reason }]);
    },
  );

  it("is not said to be unknown if a gap between statuses may hide where it landed", async () => {
    const fixture = startedFixture({ trackForMs: 600_000 });
    fixture.track(1, { hash: FOREIGN });
    for (let slot = 0; slot < 300; slot += 1) {
      fixture.slots(1);
      for (const request of fixture.asked.splice(0)) request.fail();
      await fixture.settle();
    }
    expect(fixture.landing.counters.blockhashesUnknown).toBe(2);
    await pass(fixture, 40);
    expect(fixture.finalStates).toMatchObject([{ reason: "tracking_ended" }]);
  });

  it("is dropped if the node reports no statuses", async () => {
    const fixture = startedFixture();
    fixture.cluster.reporting = "no";
    fixture.track(1, { hash: FOREIGN });
    await pass(fixture, 40);
    expect(fixture.finalStates).toMatchObject([{ kind: "dropped", reason: "blockhash_unknown" }]);
  });
});

describe("the questions about blockhashes", () => {
  it("are one per blockhash, and a known one is asked for once", async () => {
    const fixture = startedFixture();
    for (let id = 1; id <= 50; id += 1) fixture.track(id, { hash: id % 2 === 0 ? FOREIGN : 7 });
    await pass(fixture, 40);
    expect(fixture.checked.flat().filter((hash) => hash === 7)).toHaveLength(1);
    expect(fixture.checked.flat().filter((hash) => hash === FOREIGN)).toHaveLength(2);
    expect(fixture.landing.counters.reasons.blockhash_unknown).toBe(25);
  });

  it("are bounded per request, per second and in memory", async () => {
    const fixture = startedFixture({ countMax: 2_000 });
    fixture.cluster.knows = () => false;
    for (let id = 1; id <= 1_500; id += 1) fixture.track(id, { hash: 100 + id });
    await pass(fixture, 40);
    expect(fixture.checked.length).toBeLessThanOrEqual(10);
    for (const hashes of fixture.checked) {
      expect(hashes.length).toBeLessThanOrEqual(BLOCKHASHES_PER_REQUEST);
    }
    expect(new Set(fixture.checked.flat()).size).toBeLessThanOrEqual(BLOCKHASHES_CHECKED_MAX);
    expect(fixture.landing.counters.reasons.blockhash_unknown).toBeGreaterThan(100);
    expectBalance(fixture.landing);
  });
});

describe("the cache of blockhashes", () => {
  const hashOf = (number: number): Uint8Array => {
    const hash = new Uint8Array(32);
    new DataView(hash.buffer).setUint32(0, number);
    return hash;
  };

  /** Checks that a node answers from these slots, one a request; fails where there is none. */
  function newChecks(...slots: readonly number[]) {
    const clock = createFakeClock();
    const askedNs: number[] = [];
    const checkBlockhashes = async (hashes: readonly Uint8Array[]) => {
      askedNs.push(clock.nowNs());
      const slot = slots[askedNs.length - 1];
      if (slot === undefined) throw new Error("no answer");
      return hashes.map(() => ({ slot, isValid: false }));
    };
    const counters = new LandCounters();
    const checks = new BlockhashChecks({ clock, counters, cluster: { checkBlockhashes } });
    /** Checks the blockhash 1 every 100 ms, and asks if it is time to. */
    const pollFor = async (ms: number): Promise<string> => {
      for (let at = 0; at < ms; at += 100) {
        checks.check(hashOf(1), "a", 10, clock.nowNs());
        checks.ask(clock.nowNs());
        await Promise.resolve();
        await Promise.resolve();
        clock.advance(100);
      }
      return checks.check(hashOf(1), "a", 10, clock.nowNs());
    };
    return { clock, checks, counters, askedNs, pollFor };
  }

  it.each([
    [110, 120],
    [120, 110],
  ])("asks twice, with a gap, and proves as of the later slot: %d, %d", async (...slots) => {
    const { checks, askedNs, pollFor } = newChecks(...slots);
    expect(checks.slotOf(hashOf(1))).toBe(UNKNOWN);
    expect(await pollFor(10_000)).toBe("unknown");
    const [first = 0, second = 0, ...more] = askedNs;
    expect(second - first).toBe(BLOCKHASH_CHECK_GAP_MS * NS_PER_MS);
    expect(more).toEqual([]);
    expect(checks.slotOf(hashOf(1))).toBe(120);
  });

  it.each([
    [110, 10 + BLOCKHASH_AGE_MAX, "unknown"],
    [110, 11 + BLOCKHASH_AGE_MAX, "open"],
    [11 + BLOCKHASH_AGE_MAX, 110, "open"],
  ])("proves within a blockhash's lifetime alone: %d, %d: %s", async (first, second, result) => {
    const { askedNs, pollFor } = newChecks(first, second);
    expect(await pollFor(10_000)).toBe(result);
    // A later response would prove nothing either.
    expect(askedNs.length).toBeLessThanOrEqual(2);
  });

  it("pauses for 5 s after a failed request", async () => {
    const { askedNs, counters, pollFor } = newChecks();
    expect(await pollFor(11_000)).toBe("open");
    expect(askedNs.map((atNs) => (atNs - (askedNs[0] ?? 0)) / NS_PER_S)).toEqual([0, 5, 10]);
    expect(counters.blockhashChecksFailed).toBe(3);
  });

  it("is bounded, and replaces one from 15 s ago, the oldest first", () => {
    const { clock, checks } = newChecks();
    const half = BLOCKHASHES_CHECKED_MAX / 2;
    const add = (from: number, count: number, account: string): void => {
      for (let number = from; number < from + count; number += 1) {
        expect(checks.check(hashOf(number), account, 10, clock.nowNs())).toBe("open");
      }
    };
    const counts = () => [checks.countOf("a"), checks.countOf("b"), checks.size];
    add(0, half, "a");
    add(half, half + 5, "b");
    expect(counts()).toEqual([half, half, BLOCKHASHES_CHECKED_MAX]);
    clock.advance(14_999);
    add(9_000, 1, "b");
    expect(counts()).toEqual([half, half, BLOCKHASHES_CHECKED_MAX]);
    clock.advance(1);
    add(9_001, 1, "b");
    expect(counts()).toEqual([half - 1, half + 1, BLOCKHASHES_CHECKED_MAX]);
  });

  it("serves an account at once beside one with more blockhashes than it holds", async () => {
    const { clock, checks, askedNs } = newChecks(110, 120, 130, 140, 150);
    const wantAll = (): void => {
      for (let number = 0; number < 2 * BLOCKHASHES_CHECKED_MAX; number += 1) {
        checks.check(hashOf(number), "many", 10, clock.nowNs());
      }
    };
    wantAll();
    const results: string[] = [];
    for (let second = 0; second < 5; second += 1) {
      results.push(checks.check(hashOf(9_999), "one", 10, clock.nowNs()));
      checks.ask(clock.nowNs());
      await Promise.resolve();
      await Promise.resolve();
      clock.advance(1_000);
      wantAll();
    }
    expect(askedNs).toHaveLength(5);
    expect(results).toEqual(["open", "open", "open", "unknown", "unknown"]);
    expect(checks.size).toBe(BLOCKHASHES_CHECKED_MAX);
  });

  it("gives accounts the same room, and takes it from the one that has most", () => {
    const { clock, checks } = newChecks();
    const shareOf = (account: string, from: number): number => {
      for (let number = from; number < from + BLOCKHASHES_CHECKED_MAX; number += 1) {
        checks.check(hashOf(number), account, 10, clock.nowNs());
      }
      return checks.countOf(account);
    };
    expect(shareOf("a", 0)).toBe(BLOCKHASHES_CHECKED_MAX);
    expect(shareOf("b", 10_000)).toBe(BLOCKHASHES_CHECKED_MAX / 2);
    expect(shareOf("c", 20_000)).toBe(Math.floor(BLOCKHASHES_CHECKED_MAX / 3));
    expect(checks.countOf("a") + checks.countOf("b") + checks.countOf("c")).toBe(checks.size);
  });
});

describe("the share of an account's transactions that landed", () => {
  it("falls with an unknown blockhash, and rises with a landing", async () => {
    const fixture = startedFixture();
    const before = fixture.shares.shareOf("a");
    fixture.track(1, { hash: FOREIGN });
    await pass(fixture, 40);
    fixture.shares.renew();
    const after = fixture.shares.shareOf("a");
    expect(after).toBeLessThan(before);
    fixture.track(2);
    fixture.landing.seen(bytesOf(2).subarray(1, 65), { slot: 5_050, confirmed: true, error: null });
    fixture.shares.renew();
    expect(fixture.shares.shareOf("a")).toBeGreaterThan(after);
  });

  it("falls with a transaction that lands and fails", () => {
    const fixture = startedFixture();
    const before = fixture.shares.shareOf("a");
    fixture.track(1);
    const failed = { slot: 5_050, confirmed: true, error: "InstructionError" };
    fixture.landing.seen(bytesOf(1).subarray(1, 65), failed);
    fixture.shares.renew();
    expect(fixture.shares.shareOf("a")).toBeLessThan(before);
  });

  it.each([
    ["falls", "yes"],
    ["stays", "no"],
  ] as const)(
    "%s with an unused nonce when the node reports landings: %s",
    async (what, reporting) => {
      const fixture = startFixture({ trackForMs: 60_000 });
      const before = fixture.shares.shareOf("a");
      fixture.cluster.reporting = reporting;
      fixture.landing.start();
      fixture.track(1, { accepted: { durableNonce: true } });
      await pass(fixture, 242);
      fixture.shares.renew();
      expect(fixture.finalStates).toMatchObject([{ reason: "tracking_ended" }]);
      expect(fixture.shares.shareOf("a") < before).toBe(what === "falls");
    },
  );

  it("stays when this edge ends a transaction", () => {
    const fixture = startedFixture();
    const before = fixture.shares.shareOf("a");
    fixture.track(1);
    fixture.landing.stop();
    fixture.shares.renew();
    expect(fixture.finalStates).toMatchObject([{ reason: "shutting_down" }]);
    expect(fixture.shares.shareOf("a")).toBe(before);
  });
});
