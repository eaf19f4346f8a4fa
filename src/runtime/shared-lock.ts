// Hot path: acquiring and releasing a free lock costs two memory operations.
/**
 * A lock in shared memory for work of a microsecond. A thread that finds it held first polls, then
 * sleeps between polls, because the holder must have been interrupted. After `waitMs` it times out:
 * a holder that never returns must not block the others for ever.
 */

export class SharedLock {
  readonly #int32: Int32Array;
  readonly #word: number;
  readonly #sleeps: number;

  /** The word is 0 while the lock is free. `waitMs`: when `acquire` times out. */
  constructor(int32: Int32Array, word: number, waitMs: number) {
    this.#int32 = int32;
    this.#word = word;
    this.#sleeps = Math.ceil(waitMs / SLEEP_MS);
  }

  /** Whether this thread now has the lock; if so it must call `release`. */
  acquire(): boolean {
    const [int32, word] = [this.#int32, this.#word];
    for (let spins = 0; spins < SPINS; spins += 1) {
      if (Atomics.compareExchange(int32, word, 0, 1) === 0) return true;
    }
    for (let sleeps = 0; sleeps < this.#sleeps; sleeps += 1) {
      Atomics.wait(int32, word, 1, SLEEP_MS);
      if (Atomics.compareExchange(int32, word, 0, 1) === 0) return true;
    }
    return false;
  }

  release(): void {
    Atomics.store(this.#int32, this.#word, 0);
  }
}

const SPINS = 1_000;
const SLEEP_MS = 0.2;
