import { describe, expect, it } from "vitest";
import { STATUSES_PER_REQUEST } from "../../src/core/limits.ts";
import { REQUESTED } from "../../src/landing/in-flight-table.ts";
import {
  CHECKS_PER_SLICE,
  LANDINGS_PER_SLICE,
  STATUS_REQUESTS_MAX,
} from "../../src/landing/limits.ts";
import { ACCEPTED, bytesOf, startFixture } from "./fixture.ts";
import { packetOf, startPoller } from "./status-poller-fixture.ts";

describe("questions after statuses", () => {
  it("are not requested while nothing is in flight", () => {
    const fixture = startFixture();
    fixture.landing.start();
    expect(fixture.clock.pending).toBe(0);
    fixture.slots(20);
    expect(fixture.asked).toEqual([]);
  });

  it("take no timer once all has ended, and begin again with the next transaction", async () => {
    const fixture = startFixture({ countMax: 100 });
    fixture.landing.start();
    for (const id of [1, 2]) {
      fixture.track(id);
      fixture.clock.advance(400);
      expect(fixture.asked.flatMap(({ ids }) => ids)).toEqual([id]);
      fixture.landing.seen(bytesOf(id).subarray(1, 65), {
        slot: 5_001,
        confirmed: true,
        error: null,
      });
      await fixture.answerAll();
      fixture.clock.advance(400);
      expect(fixture.clock.pending).toBe(0);
    }
  });

  it("are requested in batches of 256, a bounded number at a time", async () => {
    const fixture = startFixture({ countMax: 2_000 });
    fixture.landing.start();
    for (let id = 1; id <= 1_500; id += 1) fixture.track(id);
    fixture.clock.advance(400);
    expect(fixture.asked.map(({ ids }) => ids.length)).toEqual([256]);
    fixture.clock.advance(400);
    expect(fixture.asked.map(({ ids }) => ids.length)).toEqual([256, 256, 256, 256]);
    fixture.clock.advance(400);
    expect(fixture.asked).toHaveLength(STATUS_REQUESTS_MAX);
    expect(fixture.landing.pollLagNs).toBeGreaterThan(400e6);
    await fixture.answerAll();
    fixture.clock.advance(450);
    // Those that waited come first, though the others are due again.
    const waited = Array.from({ length: 476 }, (_, index) => 1_025 + index);
    expect(fixture.asked.flatMap(({ ids }) => ids).slice(0, 476)).toEqual(waited);
  });

  it("keep up with as many as the node answers, however many a tick brings", async () => {
    const fixture = startFixture({ countMax: 10_000 });
    fixture.landing.start();
    let id = 0;
    // 5,000 a second for four seconds; each is in a confirmed block when it is polled.
    for (let step = 0; step < 160; step += 1) {
      for (let count = 0; count < 125; count += 1) {
        id += 1;
        fixture.track(id);
      }
      fixture.clock.advance(25);
      const landed = { slot: 5_000, confirmed: true, error: null };
      for (const { ids, answer } of fixture.asked.splice(0)) {
        answer(new Map(ids.map((each) => [each, landed])));
      }
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    }
    // At most those of the last tick and a half.
    expect(fixture.landing.inFlight).toBeLessThan(3_000);
    expect(fixture.landing.counters.landed).toBe(id - fixture.landing.inFlight);
  });

  it("are spaced out also when the node responds immediately and very many are due", async () => {
    const fixture = startFixture({ countMax: 20_000 });
    fixture.landing.start();
    for (let id = 1; id <= 20_000; id += 1) fixture.track(id);
    fixture.clock.advance(375);
    let most = 0;
    for (let step = 0; step < 40; step += 1) {
      fixture.clock.advance(6.25);
      most = Math.max(most, fixture.asked.length);
      await fixture.answerAll();
    }
    // At most one per 6.25 ms, including those that a response triggers: 40,000 statuses a second.
    expect(most).toBe(1);
    expect(fixture.landing.counters.requestsSucceeded).toBeGreaterThan(25);
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
    const fixture = startFixture({ countMax: 400, trackForMs: 10_000 });
    fixture.landing.start();
    const atOnce: number[] = [];
    let before = 0;
    for (let id = 1; id <= count; id += 1) fixture.track(id, { accepted: { durableNonce: true } });
    fixture.clock.advance(9_900);
    const { after: later } = fixture.clock;
    fixture.clock.after = (delayMs, act) => {
      const noted = (): void => {
        act();
        if (fixture.finalStates.length > before) atOnce.push(fixture.finalStates.length - before);
        before = fixture.finalStates.length;
      };
      return later(delayMs, noted);
    };
    fixture.clock.advance(500);
    expect(fixture.finalStates).toHaveLength(count);
    // The first turn is the tick's own.
    expect(Math.max(...atOnce.slice(1))).toBe(LANDINGS_PER_SLICE);
  });

  it("are made one after another, and not about what has ended meanwhile", async () => {
    const fixture = startFixture({ countMax: 300 });
    fixture.landing.start();
    for (let id = 1; id <= 300; id += 1) fixture.track(id);
    fixture.clock.advance(400);
    // A new transaction evicts the oldest before the second request is made.
    for (let id = 301; id <= 310; id += 1) fixture.track(id);
    // One of the second request's transactions ends too.
    const landed = { slot: 5_001, confirmed: true, error: null };
    fixture.landing.seen(bytesOf(257).subarray(1, 65), landed);
    const [first] = fixture.asked;
    expect(first?.ids).toHaveLength(256);
    fixture.clock.advance(50);
    expect(fixture.asked).toHaveLength(2);
    const ended = fixture.finalStates.map(({ packetId }) => packetId);
    expect(ended).toContain(257);
    expect(fixture.asked[1]?.ids.filter((id) => ended.includes(id))).toEqual([]);
    await fixture.answerAll(new Map([[258, landed]]));
    expect(fixture.finalStates.at(-1)).toMatchObject({ packetId: 258, kind: "landed" });
    expect(fixture.landing.inFlight).toBe(298);
  });

  it("are requested at every tick for young rows, and less often the older they are", async () => {
    const fixture = startFixture();
    fixture.landing.start();
    fixture.track(1, { accepted: { durableNonce: true } });
    const during = async (ms: number): Promise<number> => {
      const before = fixture.landing.counters.statusesRequested;
      for (let step = 0; step < ms / 100; step += 1) {
        fixture.clock.advance(100);
        await fixture.answerAll();
      }
      return fixture.landing.counters.statusesRequested - before;
    };
    expect(await during(4_000)).toBe(10);
    await during(800);
    expect(await during(3_200)).toBe(4);
    await during(4_000);
    expect(await during(8_000)).toBe(5);
    await during(60_000);
    expect(await during(8_000)).toBe(5);
  });

  it("are requested at every tick for an old row that has expired", async () => {
    const { clock, table, seen } = startPoller(1);
    const during = async (ms: number): Promise<number> => {
      const before = seen.asked.length;
      for (let step = 0; step < ms / 100; step += 1) {
        clock.advance(100);
        for (let turn = 0; turn < 4; turn += 1) await Promise.resolve();
      }
      return seen.asked.length - before;
    };
    await during(30_000);
    expect(await during(3_200)).toBe(2);
    table.expiredSlot[table.oldest] = 5;
    await during(1_600);
    expect(await during(3_200)).toBe(8);
  });

  it("are requested at the next tick for an old row that is in a processed block", async () => {
    const fixture = startFixture();
    fixture.landing.start();
    fixture.track(1, { accepted: { durableNonce: true } });
    const untilAsked = () => {
      let ms = 0;
      for (; ms < 5_000 && fixture.asked.length === 0; ms += 100) fixture.clock.advance(100);
      return ms;
    };
    for (let seconds = 0; seconds < 30; seconds += 1) {
      fixture.clock.advance(1_000);
      await fixture.answerAll();
    }
    untilAsked();
    await fixture.answerAll(new Map([[1, { slot: 5_000, confirmed: false, error: null }]]));
    expect(untilAsked()).toBeLessThanOrEqual(400);
    await fixture.answerAll(new Map([[1, { slot: 5_000, confirmed: true, error: null }]]));
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, kind: "landed" }]);
  });

  it("apply to the requested transaction only, also when its row was reused", async () => {
    const fixture = startFixture({ countMax: 1 });
    fixture.landing.start();
    fixture.track(1);
    fixture.clock.advance(400);
    fixture.track(2);
    await fixture.answerAll(new Map([[1, { slot: 5_001, confirmed: true, error: null }]]));
    expect(fixture.finalStates).toMatchObject([
      { packetId: 1, kind: "dropped", reason: "table_full" },
    ]);
    expect(fixture.landing.inFlight).toBe(1);
  });

  it("end with the stage", async () => {
    const fixture = startFixture();
    fixture.landing.start();
    fixture.track(1);
    fixture.clock.advance(400);
    fixture.landing.stop();
    expect(fixture.clock.pending).toBe(0);
    await fixture.answerAll(new Map([[1, { slot: 5_001, confirmed: true, error: null }]]));
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, reason: "shutting_down" }]);
  });

  it("with a long response are handled in slices, and requested again only after all", async () => {
    const fixture = startFixture({ countMax: 300 });
    fixture.landing.start();
    const count = 3 * LANDINGS_PER_SLICE + 1;
    for (let id = 1; id <= count; id += 1) fixture.track(id);
    fixture.clock.advance(400);
    const landed = { slot: 5_001, confirmed: true, error: null };
    const [unknown, replaced] = [count, count - 1];
    await fixture.answerAll(new Map(Array.from({ length: count - 1 }, (_, n) => [n + 1, landed])));
    expect(fixture.finalStates.map(({ packetId }) => packetId)).toEqual(
      Array.from({ length: LANDINGS_PER_SLICE }, (_, index) => index + 1),
    );
    // It has ended meanwhile, and its row belongs to another transaction.
    fixture.landing.seen(bytesOf(replaced).subarray(1, 65), { ...landed, slot: 5_002 });
    fixture.track(count + 1);
    fixture.clock.advance(0);
    expect(fixture.finalStates).toHaveLength(count - 1);
    expect(fixture.finalStates.filter(({ packetId }) => packetId === replaced)).toMatchObject([
      { slot: 5_002 },
    ]);
    expect(fixture.landing.inFlight).toBe(2);
    fixture.clock.advance(400);
    expect(fixture.asked.flatMap(({ ids }) => ids).sort()).toEqual([unknown, count + 1]);
  });

  it("with a received response are handled although the stage stops", async () => {
    const fixture = startFixture({ countMax: 300 });
    fixture.landing.start();
    const count = 2 * LANDINGS_PER_SLICE;
    for (let id = 1; id <= count; id += 1) fixture.track(id);
    fixture.clock.advance(400);
    const landed = { slot: 5_001, confirmed: true, error: null };
    await fixture.answerAll(new Map(Array.from({ length: count }, (_, n) => [n + 1, landed])));
    fixture.landing.stop();
    expect(fixture.landing.counters).toMatchObject({ landed: count, dropped: 0 });
    expect(fixture.clock.pending).toBe(0);
  });
});
