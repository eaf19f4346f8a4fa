import { describe, expect, it } from "vitest";
import { FRONT_TX_MIN, ROUTES_HELD_UP } from "../../src/core/front-limits.ts";
import { createFrontSender, newFrontSend } from "../../src/send/front-sender.ts";
import { SHARED_ROUTES_BYTES, SharedRoutes } from "../../src/send/shared-routes.ts";

const BYTES = Uint8Array.of(1, 2, 3);

interface Call {
  readonly engine: number;
  readonly copies: readonly number[];
  readonly tx: number;
  readonly ttlMs: number;
}

/** A front whose table names so many leaders, on an engine that answers as told. */
function setUp(count = 2, leftOut = 0) {
  const memory = new SharedArrayBuffer(SHARED_ROUTES_BYTES);
  const routes = new SharedRoutes(memory);
  const calls: Call[] = [];
  const native = {
    mask: 0b11,
    txSend(engine: number, copies: Uint32Array, _: Uint8Array, tx: number, ttlMs: number) {
      calls.push({ engine, copies: [...copies], tx, ttlMs });
      return native.mask;
    },
  };
  routes.useEngine(3);
  const publish = (): number =>
    routes.publish(
      Array.from({ length: count }, (_, index) => ({
        peer: 70 + index,
        cell: index,
        streamBytesMax: 1232,
        crowded: false,
        adopt: () => false,
      })),
      800,
      1232,
      leftOut,
    );
  const version = publish();
  routes.open(true);
  const front = createFrontSender(native, memory);
  const into = newFrontSend();
  return { memory, routes, native, calls, publish, version, front, into };
}

describe("a front", () => {
  it("sends to all routes in one call, and says what it did", () => {
    const { front, into, calls, version } = setUp();
    expect(front.send(BYTES, into)).toBe(true);
    expect(into).toMatchObject({ version, count: 2, mask: 0b11 });
    expect([...into.streams.slice(0, 2)]).toEqual([1, 1]);
    expect(front.send(BYTES, into)).toBe(true);
    expect([...into.streams.slice(0, 2)]).toEqual([2, 2]);
    expect(calls.map(({ copies }) => copies)).toEqual([
      [70, 1, 71, 1],
      [70, 2, 71, 2],
    ]);
    expect(calls[0]).toMatchObject({ engine: 3, ttlMs: 800 });
  });

  it("has numbers for its transactions that no other thread has", () => {
    const { front, into, calls, native, memory } = setUp();
    const other = createFrontSender(native, memory);
    for (const sender of [front, other, front, other]) sender.send(BYTES, into);
    expect(new Set(calls.map(({ tx }) => tx)).size).toBe(4);
    for (const { tx } of calls) expect(tx).toBeGreaterThan(FRONT_TX_MIN);
  });

  it("sends up to 16 copies", () => {
    const { front, into, native } = setUp(16);
    native.mask = 2 ** 32 - 1;
    expect([front.send(BYTES, into), into.count, into.mask]).toEqual([true, 16, 2 ** 32 - 1]);
  });

  it("leaves to the sender what is too large or empty, and all while the routes are closed", () => {
    const { front, into, calls, routes } = setUp();
    expect(front.send(new Uint8Array(1233), into)).toBe(false);
    expect(front.send(new Uint8Array(0), into)).toBe(false);
    routes.open(false);
    expect(front.send(BYTES, into)).toBe(false);
    expect(calls).toEqual([]);
  });

  it("goes by a new table as soon as there is one", () => {
    const { front, into, publish, routes } = setUp();
    front.send(BYTES, into);
    const version = publish();
    expect(front.send(BYTES, into)).toBe(false);
    routes.open(true);
    expect([front.send(BYTES, into), into.version]).toEqual([true, version]);
  });

  it("sends no more where the engine took nothing, until the sender has looked", () => {
    const { front, into, native, routes, calls } = setUp();
    native.mask = 0;
    expect([front.send(BYTES, into), front.send(BYTES, into), calls.length]).toEqual([
      false,
      false,
      1,
    ]);
    native.mask = 1;
    routes.open(true);
    expect(front.send(BYTES, into)).toBe(true);
  });

  it("sends no more where copies have to wait again and again", () => {
    const { front, into, native, routes } = setUp();
    const sendMany = (mask: number, count: number): boolean[] => {
      native.mask = mask;
      return Array.from({ length: count }, () => front.send(BYTES, into));
    };
    const held = 0b01 | (1 << 17);
    const notTaken = 0b10;
    expect(sendMany(held, ROUTES_HELD_UP - 1)).not.toContain(false);
    // Another thread was at work for the leader, and that is over.
    expect(sendMany(0b11, 1)).toEqual([true]);
    expect(sendMany(held, ROUTES_HELD_UP - 1)).not.toContain(false);
    expect(sendMany(notTaken, 1)).toEqual([true]);
    expect(sendMany(held, 1)).toEqual([false]);
    expect(front.isUrgent).toBe(true);
    routes.open(true);
    expect(sendMany(held, 1)).toEqual([true]);
  });

  it("knows whether the engine's news bring the sender to the record that is written now", () => {
    const { front, into, native, routes } = setUp();
    const isAwaited = (mask = 0b11): boolean => {
      native.mask = mask;
      return front.send(BYTES, into) && front.isAwaited;
    };
    expect(isAwaited()).toBe(true);
    // Its news were taken before the record was there, or are being taken.
    routes.turnTaking();
    expect([front.isAwaited, isAwaited()]).toEqual([false, false]);
    routes.turnTaking();
    expect([front.isAwaited, isAwaited()]).toEqual([false, true]);
    // What waits may do so for long, and there is no news of it until then.
    expect([0b11 << 16, 0b01 | (1 << 17)].map(isAwaited)).toEqual([false, true]);
  });

  it("has the sender hear at once of what it left copies of to it, and of nothing else", () => {
    const { front, into, native } = setUp();
    const isUrgent = (mask: number): boolean => {
      native.mask = mask;
      front.send(BYTES, into);
      return front.isUrgent;
    };
    expect([0b11, 0b01 | (1 << 17), 0b10, 1 << 16, 0b11].map(isUrgent)).toEqual([
      false,
      false,
      true,
      true,
      false,
    ]);
    const other = setUp(2, 1);
    expect([other.front.send(BYTES, other.into), other.front.isUrgent]).toEqual([true, true]);
    const all = setUp(16, 1);
    all.native.mask = 2 ** 16 - 1;
    expect([all.front.send(BYTES, all.into), all.front.isUrgent]).toEqual([true, true]);
    const whole = setUp(16);
    whole.native.mask = 2 ** 16 - 1;
    expect([whole.front.send(BYTES, whole.into), whole.front.isUrgent]).toEqual([true, false]);
  });
});
