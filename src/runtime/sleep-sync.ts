/** Blocks this thread. Use only to wait for another thread that cannot notify. */

const WORD = new Int32Array(new SharedArrayBuffer(4));

/** Nothing else runs on this thread meanwhile: use it for fractions of a millisecond. */
export function sleepSync(ms: number): void {
  Atomics.wait(WORD, 0, 0, ms);
}
