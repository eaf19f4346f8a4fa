/**
 * Limits in memory that threads share: each is one number, the state of the generic cell rate
 * algorithm, and every thread charges it by itself. All of them together let through what one
 * thread would: a charge is read, computed and put back only where nobody was faster.
 *
 * The surprise: a cell is a double, whose bits are compared and exchanged as a big integer. V8
 * compiles that without making one: 30 ns a charge, where converting the number takes 57, and
 * 17 bytes. Locks would cost the same, and whoever is interrupted with one holds up all the others.
 *
 * Hot path: numbers in, one number out.
 */

import { CACHED_KEYS_MAX } from "./bounds.ts";
import { charged, waitNs } from "./gcra.ts";

/** One for the account of each pass, and one for each key with a limit of its own. */
export const DELEGATED_LIMITS_MAX = 2 * CACHED_KEYS_MAX;
/** After them one for the account of each pass whose limit all edges share (shared-cells.ts). */
export const SHARED_LIMITS_MAX = DELEGATED_LIMITS_MAX + CACHED_KEYS_MAX;
/** No cell. */
export const NO_LIMIT_SLOT = -1;

const LIMIT_STATES_BYTES = 8 * SHARED_LIMITS_MAX;
/** A count for each shared limit, and one word for all of them. */
const GLOBAL_INT32S = CACHED_KEYS_MAX + 1;
const MARKS_AT = LIMIT_STATES_BYTES + 4 * GLOBAL_INT32S;

/** Fresh memory for the cells, for the words of shared limits, and for the marks of passes. */
export function createKeyCacheMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(MARKS_AT + CACHED_KEYS_MAX);
}

/** What `GlobalLimitStates` keeps beside its cells. */
export function globalInt32(memory: SharedArrayBuffer): Int32Array<SharedArrayBuffer> {
  return new Int32Array(memory, LIMIT_STATES_BYTES, GLOBAL_INT32S);
}

/** By the place of a pass, 1 where a thread used it since it was last looked at. A hint. */
export function keyUsedMarks(memory: SharedArrayBuffer): Uint8Array<SharedArrayBuffer> {
  return new Uint8Array(memory, MARKS_AT, CACHED_KEYS_MAX);
}

/** One thread's view of the cells. */
export class SharedLimitStates {
  readonly #limitStates: BigInt64Array<SharedArrayBuffer>;
  /** What was read and what shall be written, as bits and as numbers. */
  readonly #bits = new BigInt64Array(2);
  readonly #numbers = new Float64Array(this.#bits.buffer);

  /** `memory` is from `createKeyCacheMemory`. */
  constructor(memory: SharedArrayBuffer) {
    this.#limitStates = new BigInt64Array(memory, 0, SHARED_LIMITS_MAX);
  }

  /** Lets one request through: 0, or the nanoseconds to wait, and then nothing is charged. */
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

  /** How long the next request would have to wait. Changes nothing. */
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

  /** For a cell that no other thread knows as yet. */
  set(limitSlot: number, fullNs: number): void {
    this.#numbers[1] = fullNs;
    Atomics.store(this.#limitStates, limitSlot, this.#bits[1] ?? 0n);
  }

  /** Sets it where it is still what it was; whether that was so. */
  replace(limitSlot: number, wasNs: number, fullNs: number): boolean {
    this.#numbers[0] = wasNs;
    this.#numbers[1] = fullNs;
    return this.#isExchanged(limitSlot);
  }

  #read(limitSlot: number): number {
    this.#bits[0] = Atomics.load(this.#limitStates, limitSlot);
    return this.#numbers[0] ?? 0;
  }

  /** Whether the cell was still what was read, and is now what shall be written. */
  #isExchanged(limitSlot: number): boolean {
    const was = this.#bits[0] ?? 0n;
    return Atomics.compareExchange(this.#limitStates, limitSlot, was, this.#bits[1] ?? 0n) === was;
  }
}
