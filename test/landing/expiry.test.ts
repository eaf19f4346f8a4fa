import { describe, expect, it } from "vitest";
import { BLOCKHASH_AGE_MAX, STATUSES_PER_REQUEST } from "../../src/core/limits.ts";
import { EXPIRY_MARGIN_BLOCKS } from "../../src/landing/limits.ts";
import { startFixture } from "./fixture.ts";

type Fixture = ReturnType<typeof startFixture>;

function startedFixture(): Fixture {
  const fixture = startFixture({ trackForMs: 600_000 });
  fixture.landing.start();
  return fixture;
}

/** Advances slots and blocks; every status response is "not there". */
async function pass(fixture: Fixture, slots: number, answers = true): Promise<void> {
  for (let step = 0; step < slots; step += 1) {
    fixture.slots(1);
    if (answers) await fixture.answerAll();
    else for (const request of fixture.asked.splice(0)) request.fail();
    await fixture.settle();
  }
}

describe("a transaction expires", () => {
  it("once the chain is past its last height, forks and all, and not a block before", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    await pass(fixture, BLOCKHASH_AGE_MAX + EXPIRY_MARGIN_BLOCKS);
    expect(fixture.finalStates).toEqual([]);
    await pass(fixture, 4);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "expired", reason: "blockhash_expired", slot: 0, slotDelta: null },
    ]);
  });

  it("by the height at receipt where the chain never saw its blockhash", async () => {
    const fixture = startedFixture();
    fixture.clock.advance(400);
    fixture.track(1, { hash: 77 });
    await pass(fixture, BLOCKHASH_AGE_MAX + EXPIRY_MARGIN_BLOCKS + 16);
    expect(fixture.finalStates).toEqual([]);
    // An old transaction is polled each 1.6 s.
    await pass(fixture, 8);
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("by its own last height, where a node that lagged learns its blockhash late", async () => {
    const fixture = startedFixture();
    const { cluster } = fixture;
    // The cluster has 4 blocks a second. The node is 60 behind and replays 10 a second.
    const tipAt = (seconds: number) => 1_000 + 4 * seconds;
    const nodeAt = (seconds: number) => Math.floor(Math.min(tipAt(seconds), 940 + 10 * seconds));
    cluster.knows = (hash) => cluster.lastValid.has(hash);
    cluster.height = nodeAt(0);
    fixture.plan("a");
    // The blockhash of block 1,000.
    fixture.track(1, { hash: 77 });
    for (let seconds = 0.25; seconds < 60 && fixture.finalStates.length === 0; seconds += 0.25) {
      fixture.clock.advance(250);
      cluster.height = nodeAt(seconds);
      cluster.slot = 4_000 + Math.floor(tipAt(seconds));
      cluster.checkSlot = 4_000 + nodeAt(seconds);
      if (nodeAt(seconds) >= 1_000) cluster.lastValid.set(77, 1_150);
      await fixture.answerAll(new Map(), cluster.checkSlot);
    }
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
    expect(cluster.height).toBeGreaterThan(1_150 + EXPIRY_MARGIN_BLOCKS);
  });

  it("never by a height from before the feed fell silent", async () => {
    const fixture = startedFixture();
    fixture.clock.advance(400);
    fixture.cluster.height = 1_000;
    fixture.clock.advance(10_000);
    fixture.track(1, { hash: 77 });
    fixture.clock.advance(400);
    await fixture.answerAll();
    // The subscription is back; the cluster advanced meanwhile.
    fixture.cluster.height = 1_140;
    await pass(fixture, 150);
    expect(fixture.finalStates).toEqual([]);
    await pass(fixture, 60);
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("by the height as it is, where it was set back for having been wrong", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    await pass(fixture, 10);
    fixture.cluster.height = 9_000_000;
    // No responses while the wrong height is accepted.
    await pass(fixture, 10, false);
    fixture.cluster.height = 1_030;
    const slotThen = fixture.cluster.slot ?? 0;
    await pass(fixture, 100);
    expect(fixture.finalStates).toEqual([]);
    await pass(fixture, 60, false);
    // From a node that is at that earlier slot.
    for (let ms = 0; ms < 10_000 && fixture.asked.length === 0; ms += 100)
      fixture.clock.advance(100);
    expect(fixture.asked).toHaveLength(1);
    await fixture.answerAll(new Map(), slotThen);
    expect(fixture.finalStates).toEqual([]);
    await pass(fixture, 8);
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("only by a response that was requested after the height had passed", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    await pass(fixture, 10);
    fixture.clock.advance(1_000);
    const [early] = fixture.asked.splice(0);
    expect(early?.ids).toEqual([1]);
    fixture.cluster.height = 1_200;
    fixture.cluster.slot = 5_200;
    fixture.clock.advance(400);
    early?.answer(new Map());
    await fixture.settle();
    expect(fixture.finalStates).toEqual([]);
    fixture.clock.advance(800);
    await fixture.answerAll();
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("not by the answer of a node that lags behind", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    await pass(fixture, 10);
    fixture.cluster.height = 1_200;
    fixture.cluster.slot = 5_200;
    for (let tick = 0; tick < 5; tick += 1) {
      fixture.clock.advance(400);
      await fixture.answerAll(new Map(), 5_150);
    }
    expect(fixture.finalStates).toEqual([]);
    fixture.clock.advance(400);
    await fixture.answerAll(new Map([[1, { slot: 5_149, confirmed: true, error: null }]]));
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, kind: "landed", slot: 5_149 }]);
  });

  it("nor where the height passed between the look at it and the question", async () => {
    const fixture = startFixture({ trackForMs: 600_000, countMax: 300 });
    fixture.landing.start();
    for (let id = 1; id <= 300; id += 1) fixture.track(id);
    await pass(fixture, 10);
    // The second request of a tick is sent later than the first.
    while (fixture.asked.at(-1)?.ids.length !== STATUSES_PER_REQUEST) fixture.clock.advance(10);
    fixture.asked.splice(0);
    fixture.cluster.height = 1_200;
    fixture.cluster.slot = 5_200;
    fixture.plan("a");
    fixture.clock.advance(50);
    expect(fixture.asked).toHaveLength(1);
    await fixture.answerAll(new Map(), 5_150);
    expect(fixture.finalStates).toEqual([]);
  });

  it("nor while the slot in progress is unknown, so that no lag is visible", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    await pass(fixture, 10);
    const slot = fixture.cluster.slot ?? 0;
    fixture.cluster.slot = null;
    fixture.cluster.height = 1_200;
    for (let tick = 0; tick < 5; tick += 1) {
      fixture.clock.advance(400);
      await fixture.answerAll(new Map(), slot);
    }
    expect(fixture.finalStates).toEqual([]);
    fixture.cluster.slot = slot + 200;
    await pass(fixture, 8);
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("not by a height that turned out to be wrong before the response came", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    await pass(fixture, 10);
    fixture.asked.splice(0);
    const height = fixture.cluster.height;
    fixture.cluster.height = 9_000_000;
    fixture.clock.advance(400);
    const asked = fixture.asked.splice(0);
    expect(asked).toHaveLength(1);
    fixture.cluster.height = height;
    fixture.clock.advance(400);
    asked[0]?.answer(new Map());
    await fixture.settle();
    expect(fixture.finalStates).toEqual([]);
  });

  it("not by failed requests; after a long silence the outcome is unknown", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    await pass(fixture, 300, false);
    expect(fixture.finalStates).toEqual([]);
    // The node no longer has the statuses of the first slots.
    await pass(fixture, 40);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "tracking_ended" },
    ]);
  });

  it("not if a response after a long silence comes before the height does", async () => {
    const fixture = startedFixture();
    const { cluster, clock, asked } = fixture;
    fixture.track(1);
    // The node is down for 75 s, and the transaction may land and be forgotten meanwhile.
    for (let slot = 5_001; slot <= 5_300; slot += 1) {
      cluster.slot = slot;
      clock.advance(250);
      for (const request of asked.splice(0)) request.fail();
      await fixture.settle();
    }
    for (let tick = 0; tick < 20; tick += 1) {
      clock.advance(400);
      await fixture.answerAll();
    }
    cluster.height = 1_300;
    await pass(fixture, 20);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "tracking_ended" },
    ]);
  });

  it("not if it may have landed before it arrived, for longer than statuses are kept", async () => {
    const fixture = startedFixture();
    const { cluster } = fixture;
    // The blockhashes of the blocks 240 and 260 before the newest one.
    cluster.lastValid.set(2, 760 + BLOCKHASH_AGE_MAX);
    cluster.lastValid.set(3, 740 + BLOCKHASH_AGE_MAX);
    fixture.track(1, { hash: 2 });
    fixture.track(2, { hash: 3 });
    await pass(fixture, 20);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "expired" },
      { packetId: 2, kind: "dropped", reason: "tracking_ended" },
    ]);
  });

  it("not if that was before an outage, after which no status reaches back to it", async () => {
    const fixture = startedFixture();
    // The blockhash of the block 140 before the newest one.
    fixture.cluster.lastValid.set(2, 860 + BLOCKHASH_AGE_MAX);
    fixture.track(1, { hash: 2 });
    await pass(fixture, 140, false);
    await pass(fixture, 40);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "tracking_ended" },
    ]);
  });

  it("not if it arrived late in an outage, when the height was not known", async () => {
    const fixture = startedFixture();
    const { cluster, clock } = fixture;
    // The blockhash of the block 10 before the outage; slots are announced all the time.
    cluster.lastValid.set(2, 990 + BLOCKHASH_AGE_MAX);
    const silence = async (slots: number): Promise<void> => {
      for (let step = 0; step < slots; step += 1) {
        cluster.slot = (cluster.slot ?? 0) + 1;
        clock.advance(250);
        for (const request of fixture.asked.splice(0)) request.fail();
        await fixture.settle();
      }
    };
    fixture.plan("a");
    await silence(250);
    fixture.track(1, { hash: 2 });
    await silence(60);
    cluster.height = 1_310;
    await pass(fixture, 30);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "tracking_ended" },
    ]);
  });

  it("nor by what a node answered while it was known to report no statuses", async () => {
    const fixture = startedFixture();
    const { cluster, clock } = fixture;
    fixture.track(1);
    cluster.reporting = "no";
    for (let slot = 5_001; slot <= 5_300; slot += 1) {
      cluster.slot = slot;
      clock.advance(250);
      await fixture.answerAll();
    }
    // Another node, which keeps the statuses of the last slots.
    cluster.reporting = "yes";
    cluster.height = 1_300;
    await pass(fixture, 20);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "tracking_ended" },
    ]);
  });

  it("surely after a shorter silence", async () => {
    const fixture = startedFixture();
    fixture.track(1);
    await pass(fixture, 100);
    await pass(fixture, 200, false);
    await pass(fixture, 40);
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("never with a durable nonce, which is watched for a bounded time", async () => {
    const fixture = startFixture({ trackForMs: 60_000 });
    fixture.landing.start();
    fixture.track(1, { accepted: { durableNonce: true } });
    await pass(fixture, 239);
    expect(fixture.finalStates).toEqual([]);
    await pass(fixture, 3);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "tracking_ended" },
    ]);
  });

  it("as never sent when no copy was ever on the wire", async () => {
    const fixture = startedFixture();
    fixture.track(1, { sent: [] });
    await pass(fixture, 170);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "never_sent" },
    ]);
  });

  it("not without a height, but its watch ends", async () => {
    const fixture = startFixture({ trackForMs: 60_000 });
    fixture.cluster.height = null;
    fixture.landing.start();
    fixture.track(1);
    await pass(fixture, 300);
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "tracking_ended" },
    ]);
  });
});
