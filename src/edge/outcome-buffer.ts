/**
 * Buffers delivery outcomes on their way from the sender to their consumers.
 *
 * A transaction is sent before it is recorded, because a leader that has it sooner may land it
 * sooner. Outcomes that the sender reports while it accepts a packet are buffered until all
 * consumers know the packet; none is lost or reordered.
 *
 * Hot path: `push` runs once or twice per delivery, and nothing is allocated.
 */

import type { Outcome } from "../core/flow.ts";

export interface OutcomeBuffer {
  /** Passes an outcome to `deliver`, immediately or at the next flush. */
  push(outcome: Outcome): void;
  /** From now on outcomes are buffered. */
  suspend(): void;
  /** Delivers what is buffered, in order, and stops buffering. */
  flush(): void;
}

/** The buffer holds the outcomes of one packet's first sends: a few per leader. */
export function createOutcomeBuffer(deliver: (outcome: Outcome) => void): OutcomeBuffer {
  /** Overwritten, not emptied: emptying would free the array's memory and allocate it again. */
  const buffered: Outcome[] = [];
  let count = 0;
  let isSuspended = false;

  return {
    push(outcome) {
      if (isSuspended) {
        buffered[count] = outcome;
        count += 1;
      } else deliver(outcome);
    },
    suspend() {
      isSuspended = true;
    },
    flush() {
      isSuspended = false;
      const pending = count;
      count = 0;
      for (let index = 0; index < pending; index += 1) {
        const outcome = buffered[index];
        if (outcome !== undefined) deliver(outcome);
      }
    },
  };
}
