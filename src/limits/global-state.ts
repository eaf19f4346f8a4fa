/**
 * Global limits, which apply to all edges, in memory that threads share. Each has a state, which
 * every thread charges directly, and a count of allowed requests, which the main thread reports to
 * the other edges. One more number is common to all: the edge count by which rate and burst are
 * divided, 1 while edges can exchange counts.
 *
 * Note: a request is counted before it is charged, and the count is reverted if it is rejected. So
 * a reader that reads a state and then its count misses nothing that is in the state, and can
 * replace the state without a lock.
 *
 * Hot path: numbers and a plan in, one number out.
 */

import { CACHED_KEYS_MAX } from "./bounds.ts";
import { intervalNs, type Rate } from "./gcra.ts";
import { DELEGATED_LIMITS_MAX, globalInt32, ThreadLimitStates } from "./thread-limit-states.ts";

/** One for the account of each cached key. */
export const GLOBAL_LIMITS_MAX = CACHED_KEYS_MAX;

/** Index of the edge count; before it, the request counts by limit slot. */
const EDGE_COUNT = GLOBAL_LIMITS_MAX;

/** One thread's view of the global limits. */
export class GlobalLimitStates {
  readonly #limitStates: ThreadLimitStates;
  readonly #int32: Int32Array<SharedArrayBuffer>;

  /** `memory` is from `createKeyCacheMemory`. */
  constructor(memory: SharedArrayBuffer) {
    this.#limitStates = new ThreadLimitStates(memory);
    this.#int32 = globalInt32(memory);
  }

  /** Charges and counts one request: 0, or the nanoseconds to wait without either. */
  tryCharge(limitSlot: number, nowNs: number, { ratePerSecond, burst }: Rate): number {
    const edgeCount = this.#edgeCount();
    const interval = intervalNs(ratePerSecond) * edgeCount;
    const edgeBurst = burstOfEdge(burst, edgeCount);
    const place = DELEGATED_LIMITS_MAX + limitSlot;
    const wait = this.#limitStates.waitNs(place, nowNs, interval, edgeBurst);
    if (wait > 0) return wait;
    Atomics.add(this.#int32, limitSlot, 1);
    const lateWait = this.#limitStates.tryCharge(place, nowNs, interval, edgeBurst);
    if (lateWait > 0) Atomics.sub(this.#int32, limitSlot, 1);
    return lateWait;
  }

  /** How long the next request must wait. Changes nothing. */
  waitNs(limitSlot: number, nowNs: number, { ratePerSecond, burst }: Rate): number {
    const edgeCount = this.#edgeCount();
    const interval = intervalNs(ratePerSecond) * edgeCount;
    return this.#limitStates.waitNs(
      DELEGATED_LIMITS_MAX + limitSlot,
      nowNs,
      interval,
      burstOfEdge(burst, edgeCount),
    );
  }

  /** When the bucket is full again. */
  fullNsOf(limitSlot: number): number {
    return this.#limitStates.fullNsOf(DELEGATED_LIMITS_MAX + limitSlot);
  }

  /** Requests allowed so far by all threads; after 2^31 - 1 follows -2^31. */
  countOf(limitSlot: number): number {
    return Atomics.load(this.#int32, limitSlot);
  }

  /** For a slot that no other thread uses yet. Its count continues from the current value. */
  set(limitSlot: number, fullNs: number): void {
    this.#limitStates.set(DELEGATED_LIMITS_MAX + limitSlot, fullNs);
  }

  /** Replaces the state if it is still `wasNs`; returns whether it was. */
  replace(limitSlot: number, wasNs: number, fullNs: number): boolean {
    return this.#limitStates.replace(DELEGATED_LIMITS_MAX + limitSlot, wasNs, fullNs);
  }

  /** The divisor of rate and burst from now on; set before the first charge. */
  setEdgeCount(count: number): void {
    Atomics.store(this.#int32, EDGE_COUNT, count);
  }

  #edgeCount(): number {
    return Atomics.load(this.#int32, EDGE_COUNT);
  }
}

function burstOfEdge(burst: number, edgeCount: number): number {
  return Math.max(1, Math.floor(burst / edgeCount));
}
