import { describe, expect, it } from "vitest";
import { NS_PER_US } from "../../src/core/clock.ts";
import {
  FRONT_HELD_US_MAX,
  FRONT_RUN,
  FRONT_TX_MIN,
  ROUTES_HELD_UP,
} from "../../src/core/front-limits.ts";
import { createFrontSender, newFrontSend } from "../../src/send/front-sender.ts";
import { SHARED_ROUTES_BYTES, SharedRoutes } from "../../src/send/shared-routes.ts";
import { createFakeClock, withPauses } from "../support/fake-clock.ts";

const BYTES = Uint8Array.of(1, 2, 3);

/** Has it send until it holds what it sends. */
function runOn({ busy, into }: ReturnType<typeof setUp>, count = FRONT_RUN): void {
  for (let sent = 0; sent < count; sent += 1) busy.send(BYTES, into);
}

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
    /** What a release answers, and how many there were. */
    waits: 0,
    released: 0,
    txSend(engine: number, copies: Uint32Array, _: Uint8Array, tx: number, ttlMs: number) {
      calls.push({ engine, copies: [...copies], tx, ttlMs });
      return native.mask;
    },
    txHold(engine: number, copies: Uint32Array, bytes: Uint8Array, tx: number, ttlMs: number) {
      native.txSend(engine, copies, bytes, tx, ttlMs);
      return native.mask << 16;
    },
    txRelease() {
      native.released += 1;
      return native.waits;
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
  const clock = createFakeClock();
  let heldUp = 0;
  const onHeldUp = (): void => {
    heldUp += 1;
  };
  const front = createFrontSender({ native, clock: withPauses(clock), onHeldUp }, memory);
  /** One that never has a pause. */
  const busy = createFrontSender({ native, clock, onHeldUp }, memory);
  const into = newFrontSend();
  return {
    ...{ memory, routes, native, calls, publish, version, front, into, clock, busy },
    heldUp: () => heldUp,
  };
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
    const deps = { native, clock: withPauses(createFakeClock()), onHeldUp() {} };
    const other = createFrontSender(deps, memory);
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

  it("counts on no news of what it holds: its leader may have no credit for it", () => {
    const rig = setUp();
    runOn(rig);
    expect(rig.busy.isAwaited).toBe(true);
    expect([rig.busy.send(BYTES, rig.into), rig.into.mask]).toEqual([true, 0b11 << 16]);
    expect([rig.busy.isUrgent, rig.busy.isAwaited]).toEqual([false, false]);
  });

  it("releases what it held for long enough before other work", () => {
    const rig = setUp();
    const { native, clock, busy, into } = rig;
    runOn(rig);
    busy.send(BYTES, into);
    busy.heed(clock.nowNs());
    expect(native.released).toBe(0);
    busy.heed(clock.nowNs() + FRONT_HELD_US_MAX * NS_PER_US);
    expect(native.released).toBe(1);
  });

  it("has the sender look once copies that it held wait again and again", () => {
    const rig = setUp();
    const { native, clock, busy, into, routes } = rig;
    /** Has it hold so many, and release them. */
    const hold = (count: number): boolean[] => {
      const sent = Array.from({ length: count }, () => busy.send(BYTES, into));
      clock.advance(0);
      return sent;
    };
    runOn(rig);
    native.waits = 1;
    expect(hold(ROUTES_HELD_UP - 1)).not.toContain(false);
    native.waits = 0;
    expect(hold(1)).toEqual([true]);
    native.waits = 1;
    expect([hold(ROUTES_HELD_UP - 1).includes(false), rig.heldUp()]).toEqual([false, 0]);
    expect([hold(1), rig.heldUp()]).toEqual([[true], 1]);
    expect(hold(1)).toEqual([false]);
    routes.open(true);
    // Nobody knows what is on the wire.
    native.waits = -1;
    expect([hold(8), hold(8)].flat()).not.toContain(false);
    expect([rig.heldUp(), busy.send(BYTES, into)]).toEqual([2, false]);
  });

  it("leaves to the sender what no leader took while it held", () => {
    const rig = setUp();
    runOn(rig);
    rig.native.mask = 0b10;
    expect([rig.busy.send(BYTES, rig.into), rig.busy.isUrgent]).toEqual([true, true]);
    rig.native.mask = 0;
    expect([rig.busy.send(BYTES, rig.into), rig.busy.send(BYTES, rig.into)]).toEqual([
      false,
      false,
    ]);
  });
});
