// Hot path: `give` runs once for each transaction that a front sends.
/**
 * Has transactions that come without a pause leave together. Who sends one after the other pays a
 * datagram and a system call for each, and so do the leaders; a front that falls behind by it holds
 * what it comes upon in the native engine, until this turn of its event loop is through or for a
 * fraction of a millisecond, and all of it leaves in as few as it can. The first ones of a run do
 * not wait: while the front keeps up, a transaction is on the wire sooner by itself.
 *
 *     ─ pause ─┬──────┬──────┬──────┬──────┬──────┬──────┬──────┐
 *              │ sent │ sent │ sent │ sent │ held │ held │ held ├─▶ released: 2 datagrams, 1 call
 *              └──────┴──────┴──────┴──────┴──────┴──────┴──────┘
 */

import { type Clock, NS_PER_US } from "../core/clock.ts";
import {
  FRONT_HELD_MAX,
  FRONT_HELD_US_MAX,
  FRONT_PAUSE_US,
  FRONT_RUN,
} from "../core/front-limits.ts";
import { quick } from "../core/quick.ts";
import type { NativeSending } from "../native/contract.ts";

export interface HoldingDeps {
  readonly native: Pick<NativeSending, "txSend" | "txHold" | "txRelease">;
  readonly clock: Clock;
  /** So many transactions were released, and whether copies wait now for a leader of theirs. */
  readonly onReleased: (count: number, waits: boolean) => void;
}

export interface Holding {
  /** As `txSend`. One that is held is answered for as one that waits. */
  give(engine: number, copies: Uint32Array, bytes: Uint8Array, tx: number, ttlMs: number): number;
  /** Whether the last one is held. */
  readonly isHeld: boolean;
  /** Other work is at hand: what was held for long enough is released before it. */
  heed(nowNs: number): void;
}

const PAUSE_NS = FRONT_PAUSE_US * NS_PER_US;
const HELD_NS_MAX = FRONT_HELD_US_MAX * NS_PER_US;
/** In `times`: when the last one was through, and since when the oldest is held. */
const LAST_NS = 0;
const HELD_NS = 1;

export function createHolding({ native, clock, onReleased }: HoldingDeps): Holding {
  // In an array, because so large a number is an object in a variable.
  const times = Float64Array.of(Number.NEGATIVE_INFINITY, 0);
  /** Transactions without a pause, this one aside. */
  let run = 0;
  let count = 0;
  let isHeld = false;
  let isDue = false;

  function release(): void {
    if (count === 0) return;
    const released = count;
    count = 0;
    // Below 0 the engine failed, and nobody knows what is on the wire.
    const waits = native.txRelease() !== 0;
    times[LAST_NS] = clock.nowNs();
    onReleased(released, waits);
  }

  function endTurn(): void {
    isDue = false;
    release();
  }

  function heed(nowNs: number): void {
    if (count > 0 && nowNs - (times[HELD_NS] ?? 0) >= HELD_NS_MAX) release();
  }

  function hold(nowNs: number): void {
    if (count === 0) times[HELD_NS] = nowNs;
    count += 1;
    if (count >= FRONT_HELD_MAX) release();
    else heed(nowNs);
    if (count === 0 || isDue) return;
    isDue = true;
    clock.after(0, endTurn);
  }

  return quick({
    give(engine: number, copies: Uint32Array, bytes: Uint8Array, tx: number, ttlMs: number) {
      const nowNs = clock.nowNs();
      run = nowNs - (times[LAST_NS] ?? 0) < PAUSE_NS ? run + 1 : 0;
      isHeld = run >= FRONT_RUN;
      if (!isHeld) release();
      const mask = isHeld
        ? native.txHold(engine, copies, bytes, tx, ttlMs)
        : native.txSend(engine, copies, bytes, tx, ttlMs);
      if (isHeld && mask > 0) hold(nowNs);
      times[LAST_NS] = clock.nowNs();
      return mask;
    },
    get isHeld() {
      return isHeld;
    },
    heed,
  });
}
