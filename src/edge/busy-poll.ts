/**
 * Keeps the event loop of this thread from sleeping, so that a request is seen as soon as it is
 * there: waking up a thread costs more than most of the work on a transaction.
 *
 * libuv has no way to be told to spin. It does not wait while an immediate is due, though, so one
 * that makes the next keeps it looking: a turn of nothing takes about a microsecond, and its
 * garbage a scavenge of some tenths of a millisecond now and then. The price is one processor.
 *
 * Decision: docs/decisions/0018-busy-polling-is-opt-in.md
 */

export interface Polling {
  start(): void;
  /** From the next turn on the loop sleeps again. */
  stop(): void;
  /** Turns of the loop that it kept from sleeping. */
  readonly counters: { readonly iterations: number };
}

export function createPolling(): Polling {
  const counters = { iterations: 0 };
  let next: NodeJS.Immediate | null = null;
  const iterate = (): void => {
    counters.iterations += 1;
    next = setImmediate(iterate);
  };
  return {
    counters,
    start() {
      next ??= setImmediate(iterate);
    },
    stop() {
      if (next !== null) clearImmediate(next);
      next = null;
    },
  };
}
