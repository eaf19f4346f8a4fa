/**
 * What becomes of copies, on its way from the sender to those who keep it.
 *
 * A transaction is sent before anybody notes it, because a leader that has it sooner may land it
 * sooner. So what the sender tells while it takes a packet on is held here until the packet is
 * known to all who hear of it; nothing is lost, and nothing overtakes.
 *
 * Hot path: `tell` runs once or twice for each copy, and nothing is allocated.
 */

import type { Outcome } from "../core/flow.ts";

export interface OutcomeBuffer {
  /** Takes the sender's news; at once to `hear`, or once it is released. */
  push(outcome: Outcome): void;
  /** From now on news is held. */
  suspend(): void;
  /** Gives what is held to `hear`, in the order of its coming. */
  flush(): void;
}

/** What is held is what one packet's offer to its leaders brings about: a few a leader. */
export function createOutcomeBuffer(deliver: (outcome: Outcome) => void): OutcomeBuffer {
  /** Written over: a list that is emptied would give its memory away, and take some anew. */
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
