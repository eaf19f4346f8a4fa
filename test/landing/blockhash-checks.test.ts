import { describe, expect, it } from "vitest";
import {
  BLOCKHASH_MARGIN_SLOTS,
  BLOCKHASHES_CHECKED_MAX,
  BLOCKHASHES_PER_REQUEST,
} from "../../src/landing/limits.ts";
import { expectBalance } from "../support/landing-balance.ts";
import { bytesOf, startRig } from "./rig.ts";

/** A blockhash that no block of the rig has. */
const FOREIGN = 9;

function startedRig(over: Parameters<typeof startRig>[0] = {}) {
  const rig = startRig(over);
  rig.landing.start();
  rig.plan("a", "b");
  rig.cluster.knows = (hash) => hash !== FOREIGN;
  return rig;
}

type Rig = ReturnType<typeof startedRig>;

/** Slots of 250 ms, each with other leaders, while the node reports no status. */
async function pass(rig: Rig, slots: number): Promise<void> {
  for (let slot = 0; slot < slots; slot += 1) {
    rig.slots(1);
    if (slot % 4 === 0) rig.plan(`a${(rig.cluster.slot ?? 0) % 40}`);
    await rig.answerAll();
  }
}

/** Lets slots pass until the node was asked that often, at most 80. */
async function untilChecked(rig: Rig, requests: number): Promise<void> {
  for (let slot = 0; slot < 80 && rig.checked.length < requests; slot += 1) await pass(rig, 1);
  expect(rig.checked).toHaveLength(requests);
}

describe("a transaction whose blockhash the cluster does not know", () => {
  it("is dropped some seconds after it arrived, and not sent again", async () => {
    const rig = startedRig();
    rig.track(1, { hash: FOREIGN });
    await pass(rig, 16);
    expect(rig.finalStates).toEqual([]);
    await pass(rig, 16);
    expect(rig.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "blockhash_unknown", slot: 0 },
    ]);
    const sends = rig.resent.length;
    expect(sends).toBeLessThan(10);
    await pass(rig, 180);
    expect(rig.resent).toHaveLength(sends);
    expect(rig.landing.counters).toMatchObject({ dropped: 1, blockhashesUnknown: 2 });
    expectBalance(rig.landing);
  });

  it("is sent until it expires if the node does not respond", async () => {
    const rig = startedRig();
    rig.cluster.knows = () => null;
    rig.track(1, { hash: FOREIGN });
    await pass(rig, 200);
    expect(rig.finalStates).toMatchObject([{ kind: "expired", reason: "blockhash_expired" }]);
    expect(rig.resent.length).toBeGreaterThan(30);
    expect(rig.landing.counters.blockhashChecksFailed).toBeGreaterThan(5);
  });

  it("is kept while the node lags behind the slot of its arrival", async () => {
    const rig = startedRig();
    rig.track(1, { hash: FOREIGN });
    rig.cluster.checkSlot = 5_000 + BLOCKHASH_MARGIN_SLOTS - 1;
    await pass(rig, 60);
    expect(rig.finalStates).toEqual([]);
    rig.cluster.checkSlot += 1;
    await pass(rig, 20);
    expect(rig.finalStates).toMatchObject([{ reason: "blockhash_unknown" }]);
  });

  it("is kept without the slot in which it arrived", async () => {
    const rig = startedRig();
    rig.cluster.slot = null;
    rig.track(1, { hash: FOREIGN });
    rig.cluster.slot = 5_000;
    await pass(rig, 60);
    expect(rig.finalStates).toEqual([]);
  });

  it("is kept if only one of two responses is past its arrival", async () => {
    const rig = startedRig();
    rig.track(1, { hash: FOREIGN });
    await untilChecked(rig, 1);
    rig.cluster.checkSlot = 5_001;
    await untilChecked(rig, 2);
    await pass(rig, 4);
    expect(rig.finalStates).toEqual([]);
  });

  it("is kept if the second response knows it", async () => {
    const rig = startedRig();
    rig.track(1, { hash: FOREIGN });
    await untilChecked(rig, 1);
    rig.cluster.knows = () => true;
    await pass(rig, 60);
    expect(rig.finalStates).toEqual([]);
    expect(rig.checked).toHaveLength(2);
  });

  it("is not asked about if a block had it, or if it is a durable nonce", async () => {
    const rig = startedRig();
    rig.track(1);
    rig.track(2, { hash: FOREIGN, accepted: { durableNonce: true } });
    await pass(rig, 60);
    expect(rig.checked).toEqual([]);
    expect(rig.finalStates).toEqual([]);
  });

  it("ends only once a status of a later slot shows that it did not land before", async () => {
    const rig = startedRig();
    rig.track(1, { hash: FOREIGN });
    for (let slot = 0; slot < 40; slot += 1) {
      rig.slots(1);
      await rig.answerAll(new Map(), 5_001);
    }
    expect(rig.finalStates).toEqual([]);
    const sends = rig.resent.length;
    rig.plan("other");
    rig.slots(8);
    expect(rig.resent).toHaveLength(sends);
    await rig.answerAll(new Map([[1, { slot: 5_002, confirmed: true, error: null }]]));
    expect(rig.finalStates).toMatchObject([{ kind: "landed", slot: 5_002 }]);
  });

  it("is kept while a block holds it", async () => {
    const rig = startedRig();
    rig.track(1, { hash: FOREIGN });
    const status = { slot: 5_001, confirmed: false, error: null };
    rig.landing.seen(bytesOf(1).subarray(1, 65), status);
    for (let slot = 0; slot < 60; slot += 1) {
      rig.slots(1);
      await rig.answerAll(new Map([[1, status]]));
    }
    expect(rig.checked).toEqual([]);
    expect(rig.finalStates).toEqual([]);
  });

  it("is dropped if the node reports no statuses", async () => {
    const rig = startedRig();
    rig.cluster.reporting = "no";
    rig.track(1, { hash: FOREIGN });
    await pass(rig, 40);
    expect(rig.finalStates).toMatchObject([{ kind: "dropped", reason: "blockhash_unknown" }]);
  });
});

describe("the questions about blockhashes", () => {
  it("are one per blockhash, and a known one is asked for once", async () => {
    const rig = startedRig();
    for (let id = 1; id <= 50; id += 1) rig.track(id, { hash: id % 2 === 0 ? FOREIGN : 7 });
    await pass(rig, 40);
    expect(rig.checked.flat().filter((hash) => hash === 7)).toHaveLength(1);
    expect(rig.checked.flat().filter((hash) => hash === FOREIGN)).toHaveLength(2);
    expect(rig.landing.counters.reasons.blockhash_unknown).toBe(25);
  });

  it("are bounded per request, per second and in memory", async () => {
    const rig = startedRig({ countMax: 2_000 });
    rig.cluster.knows = () => false;
    for (let id = 1; id <= 1_500; id += 1) rig.track(id, { hash: 100 + id });
    await pass(rig, 40);
    expect(rig.checked.length).toBeLessThanOrEqual(10);
    for (const hashes of rig.checked) {
      expect(hashes.length).toBeLessThanOrEqual(BLOCKHASHES_PER_REQUEST);
    }
    expect(new Set(rig.checked.flat()).size).toBeLessThanOrEqual(BLOCKHASHES_CHECKED_MAX);
    expect(rig.landing.counters.reasons.blockhash_unknown).toBeGreaterThan(100);
    expectBalance(rig.landing);
  });
});

describe("the share of an account's transactions that landed", () => {
  it("falls with an unknown blockhash, and rises with a landing", async () => {
    const rig = startedRig();
    const before = rig.shares.shareOf("a");
    rig.track(1, { hash: FOREIGN });
    await pass(rig, 40);
    const after = rig.shares.shareOf("a");
    expect(after).toBeLessThan(before);
    rig.track(2);
    rig.landing.seen(bytesOf(2).subarray(1, 65), { slot: 5_050, confirmed: true, error: null });
    expect(rig.shares.shareOf("a")).toBeGreaterThan(after);
  });

  it("stays when this edge ends a transaction", () => {
    const rig = startedRig();
    const before = rig.shares.shareOf("a");
    rig.track(1);
    rig.landing.stop();
    expect(rig.finalStates).toMatchObject([{ reason: "shutting_down" }]);
    expect(rig.shares.shareOf("a")).toBe(before);
  });
});
