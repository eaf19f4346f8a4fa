// Hot path: a lock that is free costs two operations on memory.
/**
 * A lock in memory that threads share, for work of a microsecond. Who finds it held looks again for
 * a moment, and then sleeps in between: its holder was interrupted, or it would be done. After a
 * while it gives up, because a thread that never comes back must not hold up the others for ever.
 */

export class SharedLock {
  readonly #int32: Int32Array;
  readonly #word: number;
  readonly #sleeps: number;

  /** The word is 0 while nobody has the lock. `waitMs`: when `acquire` gives up. */
  constructor(int32: Int32Array, word: number, waitMs: number) {
    this.#int32 = int32;
    this.#word = word;
    this.#sleeps = Math.ceil(waitMs / SLEEP_MS);
  }

  /** Whether this thread has it now; then it has to `release` it. */
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
