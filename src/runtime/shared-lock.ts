// Hot path: a lock that is free costs two operations on memory.
/**
 * A lock in memory that threads share, for work of a microsecond. Who finds it held looks again for
 * a moment, and then sleeps in between: its holder was interrupted, or it would be done. After a
 * while it gives up, because a thread that never comes back must not hold up the others for ever.
 */

export class MemoryLock {
  readonly #words: Int32Array;
  readonly #word: number;
  readonly #sleeps: number;

  /** The word is 0 while nobody has the lock. `waitMs`: when `acquire` gives up. */
  constructor(words: Int32Array, word: number, waitMs: number) {
    this.#words = words;
    this.#word = word;
    this.#sleeps = Math.ceil(waitMs / SLEEP_MS);
  }

  /** Whether this thread has it now; then it has to `release` it. */
  acquire(): boolean {
    const [words, word] = [this.#words, this.#word];
    for (let looks = 0; looks < LOOKS; looks += 1) {
      if (Atomics.compareExchange(words, word, 0, 1) === 0) return true;
    }
    for (let sleeps = 0; sleeps < this.#sleeps; sleeps += 1) {
      Atomics.wait(words, word, 1, SLEEP_MS);
      if (Atomics.compareExchange(words, word, 0, 1) === 0) return true;
    }
    return false;
  }

  release(): void {
    Atomics.store(this.#words, this.#word, 0);
  }
}

const LOOKS = 1_000;
const SLEEP_MS = 0.2;
