/** Sleeps on this very thread, for what another one is about to do and nothing can wake for. */

const WORD = new Int32Array(new SharedArrayBuffer(4));

/** Nothing else runs on this thread meanwhile, so this is for fractions of a millisecond. */
export function sleepSync(ms: number): void {
  Atomics.wait(WORD, 0, 0, ms);
}
