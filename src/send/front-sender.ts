/**
 * Puts transactions on the wire from a front: a thread beside the one that has the sender, which
 * tells the sender's thread afterwards (`Sender.adopt`). Hot path: `send`.
 *
 * It goes by the table of routes that the sender keeps in shared memory. The engine and its handles
 * are good on every thread, and each copy's stream is drawn from the count that all threads share.
 */

import type { Clock } from "../core/clock.ts";
import { FRONT_TX_MIN, ROUTES_HELD_UP, ROUTES_SHARED_MAX } from "../core/front-limits.ts";
import { quick } from "../core/quick.ts";
import type { NativeSending } from "../native/contract.ts";
import { createHolding } from "./holding.ts";
import { RouteTable } from "./shared-routes.ts";

/** One transaction that a front sent. Made once and written over. */
export interface FrontSend {
  /** Of the routes that it went by. */
  version: number;
  /** The first so many routes of that version were given a copy. */
  count: number;
  /** Of each the stream. */
  readonly streams: Uint32Array;
  /**
   * As `txSend` answered: bit i, route i's copy is on the wire; bit 16 + i, it waits, or leaves
   * together with others in a moment.
   */
  mask: number;
  /** Whether it was held, to leave together with others. */
  held: boolean;
}

export interface FrontSenderDeps {
  readonly native: Pick<NativeSending, "txSend" | "txHold" | "txRelease">;
  readonly clock: Clock;
  /** The sender is to look at once: copies wait that should not. */
  readonly onHeldUp: () => void;
}

export interface FrontSender {
  /**
   * Sends to every route and writes `into`. False where that cannot be done now: nothing of it is
   * sent or will be, and the sender's own thread has to take it. Never throws.
   */
  send(bytes: Uint8Array, into: FrontSend): boolean;
  /**
   * Whether the sender is to hear of what was sent last at once: it has copies of it to place for
   * leaders that are connected, or has to look at the routes before anything more is sent.
   */
  readonly isUrgent: boolean;
  /**
   * Whether the sender's thread is sure to be woken for what was sent last, and to find the record
   * that was written since: the engine has news of it to tell, and tells them within 100 ms
   * (OUTCOMES_LINGER_NS there). Not where that thread has taken them already, or may have, because
   * it then looked for the record too early.
   */
  readonly isAwaited: boolean;
  /** Other work is at hand: what was held back for long enough leaves before it. */
  heed(nowNs: number): void;
}

export function newFrontSend(): FrontSend {
  return {
    version: 0,
    count: 0,
    streams: new Uint32Array(ROUTES_SHARED_MAX),
    mask: 0,
    held: false,
  };
}

/** The bits of copies that are on the wire, in what `txSend` answers. */
const ON_WIRE = 0xffff;
/** What a front's transactions are numbered from, for the engine alone. */
const FRONTS_MAX = 8191;

/** `memory` is the SharedRoutes' one. */
export function createFrontSender(
  { native, clock, onHeldUp }: FrontSenderDeps,
  memory: SharedArrayBuffer,
): FrontSender {
  const table = new RouteTable(memory);
  const copies = new Uint32Array(2 * ROUTES_SHARED_MAX);
  /** Of each count of routes the part of `copies` that holds them. */
  const parts = Array.from({ length: ROUTES_SHARED_MAX + 1 }, (_, count) =>
    copies.subarray(0, 2 * count),
  );
  // The engine tells by the number whether a connection's last copy was this one, so no other
  // thread may have it. In an array, because so large a number is an object in a variable.
  const tx = Float64Array.of(FRONT_TX_MIN * (1 + (table.front % FRONTS_MAX)));
  /** Transactions in a row of which a copy had to wait, or was not taken. */
  let waited = 0;
  let isUrgent = false;
  /** Takings of the engine's news before the last transaction, and whether there is news of it. */
  let takings = 0;
  let hasNews = false;
  const holding = createHolding({
    native,
    clock,
    onReleased(count, waits) {
      if (noteWaits(waits ? count : 0)) onHeldUp();
    },
  });

  function send(bytes: Uint8Array, into: FrontSend): boolean {
    if (!table.isOpen || !table.refresh()) return false;
    const { count } = table;
    if (count === 0 || bytes.length === 0 || bytes.length > table.bytesMax) return false;
    const { streams } = into;
    for (let route = 0; route < count; route += 1) {
      const stream = table.nextStream(route);
      streams[route] = stream;
      copies[2 * route] = table.peers[route] ?? 0;
      copies[2 * route + 1] = stream;
    }
    const number = (tx[0] ?? FRONT_TX_MIN) + 1;
    tx[0] = number;
    const part = parts[count] ?? copies;
    takings = table.takings;
    const mask = holding.give(table.engine, part, bytes, number, table.ttlMs);
    if (mask <= 0) {
      table.close();
      return false;
    }
    into.version = table.version;
    into.count = count;
    into.mask = mask;
    into.held = holding.isHeld;
    const all = (1 << count) - 1;
    // Of one that is held there may be none for long: its leader may have no credit.
    hasNews = (mask & ON_WIRE) !== 0;
    // Whoever did not take its copy is given it by the sender.
    isUrgent = table.leftOut > 0 || ((mask | (mask >>> 16)) & all) !== all;
    if (!holding.isHeld && noteWaits(mask === all ? 0 : 1)) isUrgent = true;
    return true;
  }

  /**
   * A copy waits where another thread is at work for its leader, which is over in microseconds, or
   * for the leader's credit. Some in a row are the latter, and who pays best is to go first then:
   * the sender looks at who it is, and leaves that one out. Whether it has come to that.
   */
  function noteWaits(count: number): boolean {
    waited = count === 0 ? 0 : waited + count;
    if (waited < ROUTES_HELD_UP) return false;
    waited = 0;
    table.close();
    return true;
  }

  return quick({
    send,
    get isUrgent() {
      return isUrgent;
    },
    get isAwaited() {
      return hasNews && takings % 2 === 0 && table.takings === takings;
    },
    heed: holding.heed,
  });
}
