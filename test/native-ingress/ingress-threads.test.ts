/** The fronts as the main thread has them: their books, their turns and their end. */

import { describe, expect, it } from "vitest";
import { FRONT_FULL, FRONT_LISTEN, FRONT_STATES, FRONT_TOLD } from "../../src/native/contract.ts";
import {
  FRONT_END_MS_MAX,
  FRONT_RECORDS_A_TURN,
  FRONT_RECORDS_BEHIND,
  FRONTS_STOP_MS_MAX,
} from "../../src/native-ingress/limits.ts";
import {
  DESK_NAMES,
  REFUSAL_NAMES,
  RELAY_REASONS,
} from "../../src/native-ingress/thread-counters.ts";
import { BEHIND_PORT, faultOf, PASS, PUBLIC_PORT, rig, shared, started } from "../front/rig.ts";
import { keyOwner } from "../support/owners.ts";

describe("fronts that start", () => {
  it("listen together at the public address, and tell the port", () => {
    const { engine, fronts, threads } = rig();
    expect(fronts.start(BEHIND_PORT)).toEqual({ port: PUBLIC_PORT });
    expect(threads.map(({ options }) => options.number)).toEqual([0, 1]);
    expect(engine.listens).toEqual([
      { fronts: [256, 257], host: "127.0.0.1", port: 0, perAddress: 6 },
    ]);
  });

  it("are all ended where one of them does not come up", () => {
    const { clock, deaths, engine, fronts, holders, threads } = rig(3);
    engine.startAnswers = [FRONT_FULL, null, null];
    expect(faultOf(() => fronts.start(BEHIND_PORT)).message).toMatch(/^http\.threads: /);
    expect(engine.listens).toEqual([]);
    expect(threads.map(({ told }) => told)).toEqual([[FRONT_TOLD.end], [FRONT_TOLD.end]]);
    for (const { wake } of threads) wake();
    clock.advance(FRONT_END_MS_MAX);
    expect(threads.map(({ closes }) => closes)).toEqual([1, 1]);
    expect(holders.map(({ left }) => left)).toEqual([true, true]);
    expect(deaths).toEqual([]);
  });

  it("are all ended where they cannot listen, with where that was and why it may be", () => {
    const { engine, fronts, threads } = rig();
    engine.listenAnswer = FRONT_LISTEN;
    expect(faultOf(() => fronts.start(BEHIND_PORT)).message).toMatch(
      /^http\.listen: cannot listen on 127\.0\.0\.1:0; either the port is taken/,
    );
    expect(threads.map(({ told }) => told)).toEqual([[FRONT_TOLD.end], [FRONT_TOLD.end]]);
  });
});

describe("what fronts did", () => {
  it("is taken in when asked for, each under its owner", async () => {
    const { fronts, thread, books } = started();
    thread(0).note(10);
    thread(1).note(20);
    thread(0).note(11);
    expect(fronts.waiting).toBe(3);
    fronts.adopt();
    expect(books.sort()).toEqual(["acme 10", "acme 11", "acme 20"]);
    expect(fronts.waiting).toBe(0);
    expect(fronts.counters.repeated).toBe(3);
    await fronts.stop();
  });

  it("is taken in with the engine's news when one says that it has something", async () => {
    const { fronts, thread, books, settled } = started(1);
    thread(0).note(10);
    thread(0).wake();
    expect([books, settled]).toEqual([["acme 10"], [0]]);
    await fronts.stop();
  });

  it("is taken in after all were heard, so that what comes meanwhile wakes again", async () => {
    const { fronts, threads, thread, settled } = started();
    const looks: (readonly number[])[] = [];
    settled.push = (...items) => {
      looks.push(threads.map((front) => front.looks));
      return items.length;
    };
    thread(0).wake();
    expect(looks).toEqual([[1, 1]]);
    await fronts.stop();
  });

  it("is taken in before a pass that let it in is given up", async () => {
    const { fronts, thread, holders } = started();
    thread(1).note(10);
    thread(0).returned.push(PASS.place);
    // Whichever of them says so.
    thread(1).wake();
    expect(holders.map(({ returned }) => returned)).toEqual([[{ place: 3, books: 1 }], []]);
    await fronts.stop();
  });

  it("is taken in to the last when they stop", async () => {
    const { fronts, thread, books, passes } = started(1);
    thread(0).note(10);
    await fronts.stop();
    expect([books, passes.stops]).toEqual([["acme 10"], 1]);
  });

  it("is told with what they count: why they relay in all, and the figures of each", async () => {
    const { fronts, thread } = started();
    const first = DESK_NAMES.length + REFUSAL_NAMES.length;
    for (const [front, counts] of [
      [0, [1, 2, 3, 4, 5]],
      [1, [10, 20, 30, 40, 50]],
    ] as const) {
      const numbers = new Float64Array(shared(thread(front).memory.figures));
      numbers.set(counts, first);
      numbers[DESK_NAMES.indexOf("accepted")] = 100 + front;
    }
    expect(RELAY_REASONS.map((reason) => fronts.relayed[reason])).toEqual([11, 22, 33, 44, 55]);
    expect(fronts.figures.map(({ counters }) => counters.accepted)).toEqual([100, 101]);
    await fronts.stop();
  });
});

describe("fronts that wait for the processor of the books", () => {
  it("have their turn after every few of a ring's records", async () => {
    const { fronts, thread, ways } = started();
    for (let n = 0; n < 2 * FRONT_RECORDS_A_TURN + 1; n += 1) thread(0).note(n);
    thread(1).note(1);
    fronts.adopt();
    expect(ways).toEqual([FRONT_RECORDS_A_TURN, 2 * FRONT_RECORDS_A_TURN]);
    await fronts.stop();
  });

  it("wait while so many of a ring's records are left that it could fill up", async () => {
    const { fronts, thread, books, ways } = started();
    const few = 3 * FRONT_RECORDS_A_TURN;
    for (let n = 0; n < FRONT_RECORDS_BEHIND + few; n += 1) thread(0).note(1);
    fronts.adopt();
    expect(ways[0]).toBe(few + FRONT_RECORDS_A_TURN);
    expect(books).toHaveLength(FRONT_RECORDS_BEHIND + few);
    for (let n = 0; n < FRONT_RECORDS_BEHIND; n += 1) thread(1).note(1);
    const before = ways.length;
    fronts.giveWay();
    expect(ways).toHaveLength(before);
    await fronts.stop();
  });

  it("cannot keep the main thread at their books by what they do meanwhile", async () => {
    const { fronts, thread, books, ways } = started();
    const note = (count: number): void => {
      for (let n = 0; n < count; n += 1) thread(0).note(n);
    };
    note(FRONT_RECORDS_A_TURN);
    ways.push = (...items) => {
      note(FRONT_RECORDS_A_TURN);
      return items.length;
    };
    fronts.adopt();
    expect(books).toHaveLength(FRONT_RECORDS_A_TURN);
    fronts.adopt();
    expect(books).toHaveLength(2 * FRONT_RECORDS_A_TURN);
    await fronts.stop();
  });
});

describe("a front that relays a request", () => {
  it("is the one that is to let in its key", async () => {
    const { fronts, holders } = started();
    const owner = keyOwner("acme", PASS.plan);
    fronts.known(1, "its key", owner);
    // No front has that number.
    fronts.known(9, "its key", owner);
    expect(holders.map(({ granted }) => granted)).toEqual([[], [{ token: "its key", owner }]]);
    await fronts.stop();
  });
});

describe("fronts that end", () => {
  it("leave new work to the main thread where the edge drains", async () => {
    const { fronts, threads } = started();
    fronts.drain();
    expect(threads.map(({ told }) => told)).toEqual([[FRONT_TOLD.drain], [FRONT_TOLD.drain]]);
    await fronts.stop();
  });

  it("are stopped, closed, give their memory back and have no pass any more", async () => {
    const { fronts, holders, threads, deaths } = started();
    await fronts.stop();
    const told = [FRONT_TOLD.stop, FRONT_TOLD.end];
    expect(threads.map((front) => front.told)).toEqual([told, told]);
    expect(threads.map(({ closes }) => closes)).toEqual([1, 1]);
    expect(holders.every(({ left }) => left)).toBe(true);
    expect(deaths).toEqual([]);
    // Nobody is there to be told of it.
    fronts.drain();
    await fronts.stop();
    expect(threads.map((front) => front.told)).toEqual([told, told]);
  });

  it("close no connection while any of them has something in hand", async () => {
    const { fronts, threads, thread, books } = started();
    thread(0).isDeaf = true;
    let isStopped = false;
    const stopping = fronts.stop().then(() => {
      isStopped = true;
    });
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    thread(0).wake();
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    expect(threads.map(({ told }) => told)).toEqual([[FRONT_TOLD.stop], [FRONT_TOLD.stop]]);
    expect(isStopped).toBe(false);
    thread(0).note(10);
    thread(0).isDeaf = false;
    thread(0).become(FRONT_STATES.idle);
    await stopping;
    expect(threads.map(({ closes }) => closes)).toEqual([1, 1]);
    expect(books).toEqual(["acme 10"]);
  });

  it.each([
    ["fails", FRONT_STATES.failed, "a front's thread failed"],
    ["ends", FRONT_STATES.ended, "a front's thread ended"],
  ])("are told of one that %s though nobody asked for it, once", async (_, state, message) => {
    const { fronts, thread, deaths, books, holders } = started();
    thread(0).note(10);
    thread(0).become(state);
    expect(deaths).toMatchObject([{ message }]);
    expect([books, thread(0).closes]).toEqual([["acme 10"], 1]);
    expect(holders.map(({ left }) => left)).toEqual([true, false]);
    thread(1).wake();
    // Whether that says it again is of no concern: the process ends by it.
    await Promise.allSettled([fronts.stop()]);
    expect(deaths).toHaveLength(1);
    expect([thread(0).told, thread(1).closes]).toEqual([[], 1]);
  });

  it("fail to stop where one of them fails meanwhile, once all are through", async () => {
    const { fronts, threads, thread, deaths, books } = started();
    thread(1).isDeaf = true;
    const stopping = fronts.stop();
    thread(0).become(FRONT_STATES.failed);
    thread(1).note(10);
    thread(1).isDeaf = false;
    thread(1).become(FRONT_STATES.idle);
    await expect(stopping).rejects.toThrow("a front's thread failed");
    expect(threads.map(({ closes }) => closes)).toEqual([1, 1]);
    expect([books, deaths]).toEqual([["acme 10"], []]);
  });

  it("fail to stop where one of them fails when it is to close its connections", async () => {
    const { fronts, threads, thread, deaths } = started();
    const stopping = fronts.stop();
    const { tell } = thread(0);
    thread(0).tell = (what) => {
      thread(0).isDeaf = true;
      tell.call(thread(0), what);
      thread(0).become(FRONT_STATES.failed);
    };
    await expect(stopping).rejects.toThrow("a front's thread failed");
    expect([threads.map(({ closes }) => closes), deaths]).toEqual([[1, 1], []]);
  });

  it("are ended at last where they do not stop by themselves", async () => {
    const { clock, fronts, thread } = started(1);
    thread(0).isDeaf = true;
    const stopping = fronts.stop();
    clock.advance(FRONTS_STOP_MS_MAX - 1);
    expect(thread(0).told).toEqual([FRONT_TOLD.stop]);
    clock.advance(1);
    expect(thread(0).told).toEqual([FRONT_TOLD.stop, FRONT_TOLD.end]);
    thread(0).become(FRONT_STATES.ended);
    await stopping;
    clock.advance(FRONT_END_MS_MAX);
    expect(thread(0).closes).toBe(1);
  });

  it("are given up where they do not even end then", async () => {
    const { clock, fronts, thread, books } = started(1);
    thread(0).isDeaf = true;
    const stopping = fronts.stop();
    thread(0).note(10);
    clock.advance(FRONTS_STOP_MS_MAX + FRONT_END_MS_MAX);
    await expect(stopping).rejects.toThrow("a front's thread does not end");
    // Nor is it waited for, as closing it would.
    expect([books, thread(0).closes]).toEqual([["acme 10"], 0]);
  });
});
