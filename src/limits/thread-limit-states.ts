/**
 * Limits in memory that threads share: each is one number, the GCRA state, and every thread charges
 * it directly with a compare-and-exchange. Together they allow exactly what one thread would.
 *
 * Note: a state is a double, whose bits are compared and exchanged as a BigInt. V8 compiles that
 * without allocating one: 30 ns per charge, where converting the number takes 57 ns and 17 bytes.
 * Locks would cost the same, and an interrupted lock holder would block all other threads.
 *
 * Hot path: numbers in, one number out.
 */

import { CACHED_KEYS_MAX } from "./bounds.ts";
import { charged, waitNs } from "./gcra.ts";

/** One for the account of each cached key, and one for each key with a limit of its own. */
export const DELEGATED_LIMITS_MAX = 2 * CACHED_KEYS_MAX;
/** After them, one per cached key with a global limit (global-state.ts). */
export const LIMIT_STATES_MAX = DELEGATED_LIMITS_MAX + CACHED_KEYS_MAX;
/** No slot. */
export const NO_LIMIT_SLOT = -1;

const LIMIT_STATES_BYTES = 8 * LIMIT_STATES_MAX;
/** A count for each global limit, and one int32 for all of them. */
const GLOBAL_INT32S = CACHED_KEYS_MAX + 1;
const MARKS_AT = LIMIT_STATES_BYTES + 4 * GLOBAL_INT32S;

/** Fresh memory for limit states, global limits, and the used marks of cached keys. */
export function createKeyCacheMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(MARKS_AT + CACHED_KEYS_MAX);
}

/** The int32s of `GlobalLimitStates`. */
export function globalInt32(memory: SharedArrayBuffer): Int32Array<SharedArrayBuffer> {
  return new Int32Array(memory, LIMIT_STATES_BYTES, GLOBAL_INT32S);
}

/** By key slot, 1 if a thread used the cached key since the last scan. A hint. */
export function keyUsedMarks(memory: SharedArrayBuffer): Uint8Array<SharedArrayBuffer> {
  return new Uint8Array(memory, MARKS_AT, CACHED_KEYS_MAX);
}

/** One thread's view of the states. */
export class ThreadLimitStates {
  readonly #limitStates: BigInt64Array<SharedArrayBuffer>;
  /** The value read and the value to write, as bits and as numbers. */
  readonly #bits = new BigInt64Array(2);
  readonly #numbers = new Float64Array(this.#bits.buffer);

  /** `memory` is from `createKeyCacheMemory`. */
  constructor(memory: SharedArrayBuffer) {
    this.#limitStates = new BigInt64Array(memory, 0, LIMIT_STATES_MAX);
  }

  /** Charges one request: 0, or the nanoseconds to wait, in which case nothing is charged. */
  tryCharge(limitSlot: number, nowNs: number, interval: number, burst: number): number {
    const numbers = this.#numbers;
    for (;;) {
      const fullNs = this.#read(limitSlot);
      const wait = waitNs(fullNs, nowNs, interval, burst);
      if (wait > 0) return wait;
      numbers[1] = charged(fullNs, nowNs, interval);
      if (this.#isExchanged(limitSlot)) return 0;
    }
  }

  /** How long the next request must wait. Changes nothing. */
  waitNs(limitSlot: number, nowNs: number, interval: number, burst: number): number {
    return waitNs(this.#read(limitSlot), nowNs, interval, burst);
  }

  /** Undoes a charge of the same interval. */
  refund(limitSlot: number, interval: number): void {
    const numbers = this.#numbers;
    for (;;) {
      numbers[1] = Math.max(0, this.#read(limitSlot) - interval);
      if (this.#isExchanged(limitSlot)) return;
    }
  }

  /** When the bucket is full again. */
  fullNsOf(limitSlot: number): number {
    return this.#read(limitSlot);
  }

  /** For a slot that no other thread uses yet. */
  set(limitSlot: number, fullNs: number): void {
    this.#numbers[1] = fullNs;
    Atomics.store(this.#limitStates, limitSlot, this.#bits[1] ?? 0n);
  }

  /** Replaces the state if it is still `wasNs`; returns whether it was. */
  replace(limitSlot: number, wasNs: number, fullNs: number): boolean {
    this.#numbers[0] = wasNs;
    this.#numbers[1] = fullNs;
    return this.#isExchanged(limitSlot);
  }

  #read(limitSlot: number): number {
    this.#bits[0] = Atomics.load(this.#limitStates, limitSlot);
    return this.#numbers[0] ?? 0;
  }

  /** Compares and exchanges; returns whether the state was still the value read. */
  #isExchanged(limitSlot: number): boolean {
    const was = this.#bits[0] ?? 0n;
    return Atomics.compareExchange(this.#limitStates, limitSlot, was, this.#bits[1] ?? 0n) === was;
  }
}
