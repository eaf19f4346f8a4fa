import { describe, expect, it } from "vitest";
import { STATUSES_PER_REQUEST } from "../../src/core/limits.ts";
import { REQUESTED } from "../../src/landing/in-flight-table.ts";
import {
  CHECKS_PER_SLICE,
  LANDINGS_PER_SLICE,
  STATUS_REQUESTS_MAX,
} from "../../src/landing/limits.ts";
import { ACCEPTED, bytesOf, startRig } from "./rig.ts";
import { packetOf, startPoller } from "./status-poller-rig.ts";

describe("questions after statuses", () => {
  it("are not requested while nothing is in flight", () => {
    const rig = startRig();
    rig.landing.start();
    expect(rig.clock.pending).toBe(0);
    rig.slots(20);
    expect(rig.asked).toEqual([]);
  });

  it("take no timer once all has ended, and begin again with the next transaction", async () => {
    const rig = startRig({ countMax: 100 });
    rig.landing.start();
    for (const id of [1, 2]) {
      rig.track(id);
      rig.clock.advance(400);
      expect(rig.asked.flatMap(({ ids }) => ids)).toEqual([id]);
      rig.landing.seen(bytesOf(id).subarray(1, 65), { slot: 5_001, confirmed: true, error: null });
      await rig.answerAll();
      rig.clock.advance(400);
      expect(rig.clock.pending).toBe(0);
    }
  });

  it("are requested in batches of 256, a bounded number at a time", async () => {
    const rig = startRig({ countMax: 2_000 });
    rig.landing.start();
    for (let id = 1; id <= 1_500; id += 1) rig.track(id);
    rig.clock.advance(400);
    expect(rig.asked.map(({ ids }) => ids.length)).toEqual([256]);
    rig.clock.advance(400);
    expect(rig.asked.map(({ ids }) => ids.length)).toEqual([256, 256, 256, 256]);
    rig.clock.advance(400);
    expect(rig.asked).toHaveLength(STATUS_REQUESTS_MAX);
    expect(rig.landing.pollLagNs).toBeGreaterThan(400e6);
    await rig.answerAll();
    rig.clock.advance(450);
    // Those that waited come first, though the others are due again.
    const waited = Array.from({ length: 476 }, (_, index) => 1_025 + index);
    expect(rig.asked.flatMap(({ ids }) => ids).slice(0, 476)).toEqual(waited);
  });

  it("keep up with as many as the node answers, however many a tick brings", async () => {
    const rig = startRig({ countMax: 10_000 });
    rig.landing.start();
    let id = 0;
    // 5,000 a second for four seconds; each is in a confirmed block when it is polled.
    for (let step = 0; step < 160; step += 1) {
      for (let count = 0; count < 125; count += 1) {
        id += 1;
        rig.track(id);
      }
      rig.clock.advance(25);
      const landed = { slot: 5_000, confirmed: true, error: null };
      for (const { ids, answer } of rig.asked.splice(0)) {
        answer(new Map(ids.map((each) => [each, landed])));
      }
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    }
    // At most those of the last tick and a half.
    expect(rig.landing.inFlight).toBeLessThan(3_000);
    expect(rig.landing.counters.landed).toBe(id - rig.landing.inFlight);
  });

  it("are spaced out also when the node responds immediately and very many are due", async () => {
    const rig = startRig({ countMax: 20_000 });
    rig.landing.start();
    for (let id = 1; id <= 20_000; id += 1) rig.track(id);
    rig.clock.advance(375);
    let most = 0;
    for (let step = 0; step < 40; step += 1) {
      rig.clock.advance(6.25);
      most = Math.max(most, rig.asked.length);
      await rig.answerAll();
    }
    // At most one per 6.25 ms, including those that a response triggers: 40,000 statuses a second.
    expect(most).toBe(1);
    expect(rig.landing.counters.requestsSucceeded).toBeGreaterThan(25);
  });

  it("take a look at all that is in flight at every tick, and not with every answer", async () => {
    const count = 10_000;
    const { clock, table, poller, seen } = startPoller(count);
    clock.advance(400);
    expect(seen.looks).toBe(count);
    for (let step = 0; step < 15; step += 1) {
      clock.advance(25);
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    }
    // With a check per response it would be sixty times as many.
    expect(seen.looks).toBeLessThan(3 * count);
    expect(table.nextPollNs.filter((atNs) => atNs > clock.nowNs()).length).toBeGreaterThan(2_000);
    poller.stop();
  });

  it("check a bounded number in one turn, and reach all of them", () => {
    const count = 3 * CHECKS_PER_SLICE + 1;
    const { clock, poller, seen } = startPoller(count);
    clock.advance(400);
    expect(seen.looks).toBe(count);
    expect(seen.inATurn).toEqual([CHECKS_PER_SLICE, CHECKS_PER_SLICE, CHECKS_PER_SLICE, 1]);
    poller.stop();
    expect(clock.pending).toBe(0);
  });

  it("look at all at a regular tick, although less is being looked at between two", async () => {
    const { clock, table, poller } = startPoller(4 * CHECKS_PER_SLICE, 60);
    // A few more are due than can be requested; the check for the rest begins at 785 ms.
    table.nextPollNs.fill(Number.POSITIVE_INFINITY, 4 * STATUSES_PER_REQUEST + 76);
    for (let step = 0; step < 400; step += 1) {
      clock.advance(2.5);
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    }
    expect(poller.lagNs).toBeGreaterThan(400e6);
    poller.stop();
  });

  it("continue a scan that lasts longer than a tick, and request at its end", () => {
    const { clock, poller, seen } = startPoller(4 * CHECKS_PER_SLICE, 250);
    clock.advance(400 + 3 * 250);
    expect([seen.looks, seen.asked.length]).toEqual([4 * CHECKS_PER_SLICE, 1]);
    poller.stop();
  });

  it("report their delay at each regular tick alone", async () => {
    const { clock, poller, seen } = startPoller(6 * STATUSES_PER_REQUEST);
    clock.advance(400);
    const { lagNs } = poller;
    for (let step = 0; step < 14; step += 1) {
      clock.advance(25);
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    }
    expect(seen.asked.length).toBeGreaterThan(STATUS_REQUESTS_MAX);
    expect(poller.lagNs).toBe(lagNs);
    poller.stop();
  });

  it("are not requested at the end of a scan in which one has failed", async () => {
    const { clock, poller, seen } = startPoller(2 * CHECKS_PER_SLICE, 60);
    let fail = (): void => {};
    seen.answer = () =>
      new Promise((_, reject) => {
        fail = () => reject(new Error("no answer"));
      });
    clock.advance(400 + 60 + 200);
    expect(seen.asked).toHaveLength(STATUS_REQUESTS_MAX);
    clock.advance(800 - 660);
    fail();
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    clock.advance(200);
    expect(seen.asked).toHaveLength(STATUS_REQUESTS_MAX);
    poller.stop();
  });

  it("are dropped when the stage stops during a scan", () => {
    const { clock, poller, seen } = startPoller(2 * CHECKS_PER_SLICE);
    seen.onTurn = () => poller.stop();
    clock.advance(800);
    expect([seen.inATurn, clock.pending]).toEqual([[CHECKS_PER_SLICE], 0]);
    expect(seen.asked).toEqual([]);
  });

  it("are not about what took a place while the look went on", () => {
    const { clock, table, poller, seen } = startPoller(2 * CHECKS_PER_SLICE);
    const replaced = table.findPacket(1);
    seen.onTurn = () => {
      seen.onTurn = () => {};
      table.close(replaced);
      table.open(packetOf(9_999_999), ACCEPTED);
    };
    clock.advance(400);
    expect(table.holds(replaced, 9_999_999)).toBe(true);
    expect(table.is(replaced, REQUESTED)).toBe(false);
    expect(seen.asked[0]).toHaveLength(255 * 64);
    poller.stop();
  });

  it("end a bounded number in one turn when very many expire together", () => {
    const count = 5 * LANDINGS_PER_SLICE;
    const rig = startRig({ countMax: 400, trackForMs: 10_000 });
    rig.landing.start();
    const atOnce: number[] = [];
    let before = 0;
    for (let id = 1; id <= count; id += 1) rig.track(id, { accepted: { durableNonce: true } });
    rig.clock.advance(9_900);
    const { after: later } = rig.clock;
    rig.clock.after = (delayMs, act) => {
      const noted = (): void => {
        act();
        if (rig.finalStates.length > before) atOnce.push(rig.finalStates.length - before);
        before = rig.finalStates.length;
      };
      return later(delayMs, noted);
    };
    rig.clock.advance(500);
    expect(rig.finalStates).toHaveLength(count);
    // The first turn is the tick's own.
    expect(Math.max(...atOnce.slice(1))).toBe(LANDINGS_PER_SLICE);
  });

  it("are made one after another, and not about what has ended meanwhile", async () => {
    const rig = startRig({ countMax: 300 });
    rig.landing.start();
    for (let id = 1; id <= 300; id += 1) rig.track(id);
    rig.clock.advance(400);
    // A new transaction evicts the oldest before the second request is made.
    for (let id = 301; id <= 310; id += 1) rig.track(id);
    // One of the second request's transactions ends too.
    const landed = { slot: 5_001, confirmed: true, error: null };
    rig.landing.seen(bytesOf(257).subarray(1, 65), landed);
    const [first] = rig.asked;
    expect(first?.ids).toHaveLength(256);
    rig.clock.advance(50);
    expect(rig.asked).toHaveLength(2);
    const ended = rig.finalStates.map(({ packetId }) => packetId);
    expect(ended).toContain(257);
    expect(rig.asked[1]?.ids.filter((id) => ended.includes(id))).toEqual([]);
    await rig.answerAll(new Map([[258, landed]]));
    expect(rig.finalStates.at(-1)).toMatchObject({ packetId: 258, kind: "landed" });
    expect(rig.landing.inFlight).toBe(298);
  });

  it("are requested at every tick for young rows and less often for old ones", async () => {
    const rig = startRig();
    rig.landing.start();
    rig.track(1, { accepted: { durableNonce: true } });
    const during = async (ms: number): Promise<number> => {
      const before = rig.landing.counters.statusesRequested;
      for (let step = 0; step < ms / 100; step += 1) {
        rig.clock.advance(100);
        await rig.answerAll();
      }
      return rig.landing.counters.statusesRequested - before;
    };
    expect(await during(8_000)).toBe(20);
    await during(4_000);
    expect(await during(8_000)).toBe(10);
    await during(24_000);
    expect(await during(8_000)).toBe(5);
  });

  it("apply to the requested transaction only, also when its row was reused", async () => {
    const rig = startRig({ countMax: 1 });
    rig.landing.start();
    rig.track(1);
    rig.clock.advance(400);
    rig.track(2);
    await rig.answerAll(new Map([[1, { slot: 5_001, confirmed: true, error: null }]]));
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "dropped", reason: "table_full" }]);
    expect(rig.landing.inFlight).toBe(1);
  });

  it("end with the stage", async () => {
    const rig = startRig();
    rig.landing.start();
    rig.track(1);
    rig.clock.advance(400);
    rig.landing.stop();
    expect(rig.clock.pending).toBe(0);
    await rig.answerAll(new Map([[1, { slot: 5_001, confirmed: true, error: null }]]));
    expect(rig.finalStates).toMatchObject([{ packetId: 1, reason: "shutting_down" }]);
  });

  it("with a long response are handled in slices, and requested again only after all", async () => {
    const rig = startRig({ countMax: 300 });
    rig.landing.start();
    const count = 3 * LANDINGS_PER_SLICE + 1;
    for (let id = 1; id <= count; id += 1) rig.track(id);
    rig.clock.advance(400);
    const landed = { slot: 5_001, confirmed: true, error: null };
    const [unknown, replaced] = [count, count - 1];
    await rig.answerAll(new Map(Array.from({ length: count - 1 }, (_, n) => [n + 1, landed])));
    expect(rig.finalStates.map(({ packetId }) => packetId)).toEqual(
      Array.from({ length: LANDINGS_PER_SLICE }, (_, index) => index + 1),
    );
    // It has ended meanwhile, and its row belongs to another transaction.
    rig.landing.seen(bytesOf(replaced).subarray(1, 65), { ...landed, slot: 5_002 });
    rig.track(count + 1);
    rig.clock.advance(0);
    expect(rig.finalStates).toHaveLength(count - 1);
    expect(rig.finalStates.filter(({ packetId }) => packetId === replaced)).toMatchObject([
      { slot: 5_002 },
    ]);
    expect(rig.landing.inFlight).toBe(2);
    rig.clock.advance(400);
    expect(rig.asked.flatMap(({ ids }) => ids).sort()).toEqual([unknown, count + 1]);
  });

  it("with a received response are handled although the stage stops", async () => {
    const rig = startRig({ countMax: 300 });
    rig.landing.start();
    const count = 2 * LANDINGS_PER_SLICE;
    for (let id = 1; id <= count; id += 1) rig.track(id);
    rig.clock.advance(400);
    const landed = { slot: 5_001, confirmed: true, error: null };
    await rig.answerAll(new Map(Array.from({ length: count }, (_, n) => [n + 1, landed])));
    rig.landing.stop();
    expect(rig.landing.counters).toMatchObject({ landed: count, dropped: 0 });
    expect(rig.clock.pending).toBe(0);
  });
});
