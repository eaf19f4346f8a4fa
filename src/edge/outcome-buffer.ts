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

export interface OutcomeRelay {
  /** Takes the sender's news; at once to `hear`, or once it is released. */
  tell(outcome: Outcome): void;
  /** From now on news is held. */
  hold(): void;
  /** Gives what is held to `hear`, in the order of its coming. */
  release(): void;
}

/** What is held is what one packet's offer to its leaders brings about: a few a leader. */
export function createOutcomeRelay(hear: (outcome: Outcome) => void): OutcomeRelay {
  /** Written over: a list that is emptied would give its memory away, and take some anew. */
  const held: Outcome[] = [];
  let count = 0;
  let isHolding = false;

  return {
    tell(outcome) {
      if (isHolding) {
        held[count] = outcome;
        count += 1;
      } else hear(outcome);
    },
    hold() {
      isHolding = true;
    },
    release() {
      isHolding = false;
      const told = count;
      count = 0;
      for (let index = 0; index < told; index += 1) {
        const outcome = held[index];
        if (outcome !== undefined) hear(outcome);
      }
    },
  };
}
