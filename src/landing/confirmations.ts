/**
 * Ends what a block held whose slot is confirmed. All that is in flight is looked at for that, and
 * up to all of it ends: at 5,000 a second a slot has 2,000. Both are done a few at a time, in turns
 * of the event loop, so that what comes meanwhile waits for a moment.
 */

import type { Clock } from "../core/clock.ts";
import { createTimeSlicer, type TimeSlicer } from "../runtime/time-slice.ts";
import { type InFlightTable, PROCESSED } from "./in-flight-table.ts";
import { CHECKS_PER_SLICE, LANDINGS_PER_SLICE } from "./limits.ts";

export interface ConfirmationsDeps {
  readonly clock: Clock;
  readonly table: InFlightTable;
  /** The block that holds it is confirmed. */
  readonly onLanded: (row: number, slot: number) => void;
}

export class Confirmations {
  readonly #deps: ConfirmationsDeps;
  readonly #slicer: TimeSlicer;
  /** Slots whose transactions are looked for, and those told of since that began. */
  #slots = new Set<number>();
  #later = new Set<number>();
  /** The row to look at next. */
  #row = 0;

  constructor(deps: ConfirmationsDeps) {
    this.#deps = deps;
    this.#slicer = createTimeSlicer(deps.clock, () => this.#checkNext());
  }

  /** Ends some at once, and the others in turns of their own. */
  confirm(slot: number): void {
    this.#later.add(slot);
    this.#slicer.start();
  }

  /** Ends all of them now. */
  flush(): void {
    this.#slicer.finish();
  }

  /** As many looks, and as many ends, as one turn has. Answers whether there are more. */
  #checkNext(): boolean {
    const { table, onLanded } = this.#deps;
    if (this.#slots.size === 0) {
      [this.#slots, this.#later] = [this.#later, this.#slots];
      this.#row = 0;
    }
    const last = Math.min(table.rowsUsed, this.#row + CHECKS_PER_SLICE);
    let ends = 0;
    for (; this.#row < last && ends < LANDINGS_PER_SLICE; this.#row += 1) {
      if (!table.is(this.#row, PROCESSED)) continue;
      const slot = table.processedSlot[this.#row] ?? 0;
      if (!this.#slots.has(slot)) continue;
      onLanded(this.#row, slot);
      ends += 1;
    }
    if (this.#row < table.rowsUsed) return true;
    this.#slots.clear();
    return this.#later.size > 0;
  }
}
