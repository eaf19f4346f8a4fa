/**
 * Ends what a block held whose slot is confirmed. All that is in flight is looked at for that, and
 * up to all of it ends: at 5,000 a second a slot has 2,000. Both are done a few at a time, in turns
 * of the event loop, so that what comes meanwhile waits for a moment.
 */

import type { Clock } from "../core/clock.ts";
import { createTurns, type Turns } from "../runtime/time-slice.ts";
import { SIGHTED, type Watch } from "./in-flight-table.ts";
import { LANDINGS_A_TURN, LOOKS_A_TURN } from "./limits.ts";

export interface ConfirmationsDeps {
  readonly clock: Clock;
  readonly watch: Watch;
  /** The block that holds it is confirmed. */
  readonly onLanded: (row: number, slot: number) => void;
}

export class Confirmations {
  readonly #deps: ConfirmationsDeps;
  readonly #turns: Turns;
  /** Slots whose transactions are looked for, and those told of since that began. */
  #slots = new Set<number>();
  #later = new Set<number>();
  /** The row to look at next. */
  #row = 0;

  constructor(deps: ConfirmationsDeps) {
    this.#deps = deps;
    this.#turns = createTurns(deps.clock, () => this.#lookOn());
  }

  /** Ends some at once, and the others in turns of their own. */
  confirm(slot: number): void {
    this.#later.add(slot);
    this.#turns.begin();
  }

  /** Ends all of them now. */
  flush(): void {
    this.#turns.finish();
  }

  /** As many looks, and as many ends, as one turn has. Answers whether there are more. */
  #lookOn(): boolean {
    const { watch, onLanded } = this.#deps;
    if (this.#slots.size === 0) {
      [this.#slots, this.#later] = [this.#later, this.#slots];
      this.#row = 0;
    }
    const last = Math.min(watch.rowsUsed, this.#row + LOOKS_A_TURN);
    let ends = 0;
    for (; this.#row < last && ends < LANDINGS_A_TURN; this.#row += 1) {
      if (!watch.is(this.#row, SIGHTED)) continue;
      const slot = watch.sightedSlot[this.#row] ?? 0;
      if (!this.#slots.has(slot)) continue;
      onLanded(this.#row, slot);
      ends += 1;
    }
    if (this.#row < watch.rowsUsed) return true;
    this.#slots.clear();
    return this.#later.size > 0;
  }
}
