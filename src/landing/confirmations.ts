/**
 * Ends the transactions of a confirmed block. This scans all transactions in flight, and up to all
 * of them end: at 5,000 a second a slot has 2,000. Both are done in slices over several event loop
 * turns, so that other work is not delayed for long. After the slot went back, a slot's number says
 * nothing about a block seen before: those transactions wait for their status.
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
  /** Slots being searched for, and those reported since the scan began. */
  #slots = new Set<number>();
  #later = new Set<number>();
  /** Blocks seen before this may be deleted, and their slots used again. */
  #sinceNs = Number.NEGATIVE_INFINITY;
  /** The next row to check. */
  #row = 0;

  constructor(deps: ConfirmationsDeps) {
    this.#deps = deps;
    this.#slicer = createTimeSlicer(deps.clock, () => this.#checkNext());
  }

  /** Ends some immediately, and the others in later slices. */
  confirm(slot: number): void {
    this.#later.add(slot);
    this.#slicer.start();
  }

  /** The slot went back. Ends what was confirmed until now. */
  slotWentBack(nowNs: number): void {
    this.flush();
    this.#sinceNs = nowNs;
  }

  /** Whether the block of a processed transaction may be deleted. */
  isInDoubt(row: number): boolean {
    return (this.#deps.table.processedNs[row] ?? 0) < this.#sinceNs;
  }

  /** Ends all of them now. */
  flush(): void {
    this.#slicer.finish();
  }

  /** Runs one slice of checks and ends. Returns whether there are more. */
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
      if (!this.#slots.has(slot) || this.isInDoubt(this.#row)) continue;
      onLanded(this.#row, slot);
      ends += 1;
    }
    if (this.#row < table.rowsUsed) return true;
    this.#slots.clear();
    return this.#later.size > 0;
  }
}
