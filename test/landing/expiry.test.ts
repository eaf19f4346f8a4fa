import { describe, expect, it } from "vitest";
import { BLOCKHASH_AGE_MAX, STATUSES_PER_REQUEST } from "../../src/core/limits.ts";
import { EXPIRY_MARGIN_BLOCKS } from "../../src/landing/limits.ts";
import { startRig } from "./rig.ts";

type Rig = ReturnType<typeof startRig>;

function startedRig(): Rig {
  const rig = startRig({ trackForMs: 600_000 });
  rig.landing.start();
  return rig;
}

/** Advances slots and blocks; every status response is "not there". */
async function pass(rig: Rig, slots: number, answers = true): Promise<void> {
  for (let step = 0; step < slots; step += 1) {
    rig.slots(1);
    if (answers) await rig.answerAll();
    else for (const request of rig.asked.splice(0)) request.fail();
    await rig.settle();
  }
}

describe("a transaction expires", () => {
  it("once the chain is past its last height, forks and all, and not a block before", async () => {
    const rig = startedRig();
    rig.track(1);
    await pass(rig, BLOCKHASH_AGE_MAX + EXPIRY_MARGIN_BLOCKS);
    expect(rig.finalStates).toEqual([]);
    await pass(rig, 4);
    expect(rig.finalStates).toMatchObject([
      { packetId: 1, kind: "expired", reason: "blockhash_expired", slot: 0, slotDelta: null },
    ]);
  });

  it("by the height at receipt where the chain never saw its blockhash", async () => {
    const rig = startedRig();
    rig.clock.advance(400);
    rig.track(1, { hash: 77 });
    await pass(rig, BLOCKHASH_AGE_MAX + EXPIRY_MARGIN_BLOCKS + 16);
    expect(rig.finalStates).toEqual([]);
    await pass(rig, 4);
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("never by a height from before the feed fell silent", async () => {
    const rig = startedRig();
    rig.clock.advance(400);
    rig.cluster.height = 1_000;
    rig.clock.advance(10_000);
    rig.track(1, { hash: 77 });
    rig.clock.advance(400);
    await rig.answerAll();
    // The subscription is back; the cluster advanced meanwhile.
    rig.cluster.height = 1_140;
    await pass(rig, 150);
    expect(rig.finalStates).toEqual([]);
    await pass(rig, 60);
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("by the height as it is, where it was set back for having been wrong", async () => {
    const rig = startedRig();
    rig.track(1);
    await pass(rig, 10);
    rig.cluster.height = 9_000_000;
    // No responses while the wrong height is accepted.
    await pass(rig, 10, false);
    rig.cluster.height = 1_030;
    const slotThen = rig.cluster.slot ?? 0;
    await pass(rig, 100);
    expect(rig.finalStates).toEqual([]);
    await pass(rig, 60, false);
    // From a node that is at that earlier slot.
    rig.clock.advance(1_000);
    await rig.answerAll(new Map(), slotThen);
    expect(rig.finalStates).toEqual([]);
    await pass(rig, 8);
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("only by a response that was requested after the height had passed", async () => {
    const rig = startedRig();
    rig.track(1);
    await pass(rig, 10);
    rig.clock.advance(1_000);
    const [early] = rig.asked.splice(0);
    expect(early?.ids).toEqual([1]);
    rig.cluster.height = 1_200;
    rig.cluster.slot = 5_200;
    rig.clock.advance(400);
    early?.answer(new Map());
    await rig.settle();
    expect(rig.finalStates).toEqual([]);
    rig.clock.advance(800);
    await rig.answerAll();
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("not by the answer of a node that lags behind", async () => {
    const rig = startedRig();
    rig.track(1);
    await pass(rig, 10);
    rig.cluster.height = 1_200;
    rig.cluster.slot = 5_200;
    for (let tick = 0; tick < 5; tick += 1) {
      rig.clock.advance(400);
      await rig.answerAll(new Map(), 5_150);
    }
    expect(rig.finalStates).toEqual([]);
    rig.clock.advance(400);
    await rig.answerAll(new Map([[1, { slot: 5_149, confirmed: true, error: null }]]));
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "landed", slot: 5_149 }]);
  });

  it("nor where the height passed between the look at it and the question", async () => {
    const rig = startRig({ trackForMs: 600_000, countMax: 300 });
    rig.landing.start();
    for (let id = 1; id <= 300; id += 1) rig.track(id);
    await pass(rig, 10);
    // The second request of a tick is sent later than the first.
    while (rig.asked.at(-1)?.ids.length !== STATUSES_PER_REQUEST) rig.clock.advance(10);
    rig.asked.splice(0);
    rig.cluster.height = 1_200;
    rig.cluster.slot = 5_200;
    rig.plan("a");
    rig.clock.advance(50);
    expect(rig.asked).toHaveLength(1);
    await rig.answerAll(new Map(), 5_150);
    expect(rig.finalStates).toEqual([]);
  });

  it("nor while the slot in progress is unknown, so that no lag is visible", async () => {
    const rig = startedRig();
    rig.track(1);
    await pass(rig, 10);
    const slot = rig.cluster.slot ?? 0;
    rig.cluster.slot = null;
    rig.cluster.height = 1_200;
    for (let tick = 0; tick < 5; tick += 1) {
      rig.clock.advance(400);
      await rig.answerAll(new Map(), slot);
    }
    expect(rig.finalStates).toEqual([]);
    rig.cluster.slot = slot + 200;
    await pass(rig, 8);
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("not by a height that turned out to be wrong before the response came", async () => {
    const rig = startedRig();
    rig.track(1);
    await pass(rig, 10);
    rig.asked.splice(0);
    const height = rig.cluster.height;
    rig.cluster.height = 9_000_000;
    rig.clock.advance(400);
    const asked = rig.asked.splice(0);
    expect(asked).toHaveLength(1);
    rig.cluster.height = height;
    rig.clock.advance(400);
    asked[0]?.answer(new Map());
    await rig.settle();
    expect(rig.finalStates).toEqual([]);
  });

  it("not by failed requests; after a long silence the outcome is unknown", async () => {
    const rig = startedRig();
    rig.track(1);
    await pass(rig, 300, false);
    expect(rig.finalStates).toEqual([]);
    // The node no longer has the statuses of the first slots.
    await pass(rig, 40);
    expect(rig.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "tracking_ended" },
    ]);
  });

  it("surely after a shorter silence", async () => {
    const rig = startedRig();
    rig.track(1);
    await pass(rig, 100);
    await pass(rig, 200, false);
    await pass(rig, 40);
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("never with a durable nonce, which is watched for a bounded time", async () => {
    const rig = startRig({ trackForMs: 60_000 });
    rig.landing.start();
    rig.track(1, { accepted: { durableNonce: true } });
    await pass(rig, 239);
    expect(rig.finalStates).toEqual([]);
    await pass(rig, 3);
    expect(rig.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "tracking_ended" },
    ]);
  });

  it("as never sent when no copy was ever on the wire", async () => {
    const rig = startedRig();
    rig.track(1, { sent: [] });
    await pass(rig, 170);
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "dropped", reason: "never_sent" }]);
  });

  it("not without a height, but its watch ends", async () => {
    const rig = startRig({ trackForMs: 60_000 });
    rig.cluster.height = null;
    rig.landing.start();
    rig.track(1);
    await pass(rig, 300);
    expect(rig.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "tracking_ended" },
    ]);
  });
});
