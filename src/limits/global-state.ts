/**
 * Limits that hold over all edges, in memory that threads share. Each is a limit's cell, which
 * every thread charges by itself, and a count of what was let through, which the main thread tells
 * the other edges. One number more is the same for all: by how many edges rate and burst are
 * divided now, which is 1 while edges tell each other.
 *
 * The surprise: a request is counted before it is charged, and no more where it is refused then. So
 * who reads a cell and then its count misses nothing that is in the cell, and can set it anew
 * without a lock.
 *
 * Hot path: numbers and a plan in, one number out.
 */

import { CACHED_KEYS_MAX } from "./bounds.ts";
import { intervalNs, type Rate } from "./gcra.ts";
import { DELEGATED_LIMITS_MAX, globalInt32, SharedLimitStates } from "./shared-state.ts";

/** One for the account of each pass. */
export const GLOBAL_LIMITS_MAX = CACHED_KEYS_MAX;

/** Where the number of edges stands; before it, the counts by the number of their cell. */
const EDGE_COUNT = GLOBAL_LIMITS_MAX;

/** One thread's view of them. */
export class GlobalLimitStates {
  readonly #limitStates: SharedLimitStates;
  readonly #int32: Int32Array<SharedArrayBuffer>;

  /** `memory` is from `createKeyCacheMemory`. */
  constructor(memory: SharedArrayBuffer) {
    this.#limitStates = new SharedLimitStates(memory);
    this.#int32 = globalInt32(memory);
  }

  /** Lets one request through and counts it: 0, or the nanoseconds to wait, and nothing is done. */
  tryCharge(limitSlot: number, nowNs: number, { ratePerSecond, burst }: Rate): number {
    const share = this.#edgeCount();
    const interval = intervalNs(ratePerSecond) * share;
    const atOnce = shareOf(burst, share);
    const place = DELEGATED_LIMITS_MAX + limitSlot;
    const wait = this.#limitStates.waitNs(place, nowNs, interval, atOnce);
    if (wait > 0) return wait;
    Atomics.add(this.#int32, limitSlot, 1);
    const lateWait = this.#limitStates.tryCharge(place, nowNs, interval, atOnce);
    if (lateWait > 0) Atomics.sub(this.#int32, limitSlot, 1);
    return lateWait;
  }

  /** How long the next request would have to wait. Changes nothing. */
  waitNs(limitSlot: number, nowNs: number, { ratePerSecond, burst }: Rate): number {
    const share = this.#edgeCount();
    const interval = intervalNs(ratePerSecond) * share;
    return this.#limitStates.waitNs(
      DELEGATED_LIMITS_MAX + limitSlot,
      nowNs,
      interval,
      shareOf(burst, share),
    );
  }

  /** When the bucket is full again. */
  fullNsOf(limitSlot: number): number {
    return this.#limitStates.fullNsOf(DELEGATED_LIMITS_MAX + limitSlot);
  }

  /** Requests let through so far, by whomever; after 2^31 - 1 comes -2^31. */
  countOf(limitSlot: number): number {
    return Atomics.load(this.#int32, limitSlot);
  }

  /** For a cell that no other thread knows as yet. Its count goes on from where it is. */
  set(limitSlot: number, fullNs: number): void {
    this.#limitStates.set(DELEGATED_LIMITS_MAX + limitSlot, fullNs);
  }

  /** Sets it where it is still what it was; whether that was so. */
  replace(limitSlot: number, wasNs: number, fullNs: number): boolean {
    return this.#limitStates.replace(DELEGATED_LIMITS_MAX + limitSlot, wasNs, fullNs);
  }

  /** By how many edges rate and burst are divided from now on; said before the first charge. */
  setEdgeCount(count: number): void {
    Atomics.store(this.#int32, EDGE_COUNT, count);
  }

  #edgeCount(): number {
    return Atomics.load(this.#int32, EDGE_COUNT);
  }
}

function shareOf(burst: number, share: number): number {
  return Math.max(1, Math.floor(burst / share));
}
