/**
 * Keeps this thread's event loop from sleeping, so that a request is read as soon as it arrives:
 * waking a thread costs more than most of the work on a transaction.
 *
 * libuv has no option to spin. It does not block while an immediate is due, though, so an immediate
 * that schedules the next keeps it polling: an empty turn takes about a microsecond, and its
 * garbage a scavenge of some tenths of a millisecond now and then. The price is one processor.
 *
 * Decision: docs/decisions/0018-busy-polling-is-opt-in.md
 */

export interface Polling {
  start(): void;
  /** From the next turn on the loop sleeps again. */
  stop(): void;
  /** Event loop turns kept from sleeping. */
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
