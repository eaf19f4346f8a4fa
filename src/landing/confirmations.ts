/**
 * Ends the transactions of a confirmed block, and rolls back those of its slot's other banks. This
 * scans all transactions in flight, and up to all of them end: at 5,000 a second a slot has 2,000.
 * Both are done in slices over several event loop turns, so that other work is not delayed much.
 * A transaction that a stream reports only after its block's confirmation ends at once.
 * After the slot went back, a slot's number alone says nothing about a block seen before: those
 * transactions wait for their bank or their status.
 * A block that is never confirmed is one that the cluster gave up. A status shows that; where none
 * comes, the confirmations of later slots do.
 */

import { type Clock, NS_PER_MS } from "../core/clock.ts";
import { createTimeSlicer, type TimeSlicer } from "../runtime/time-slice.ts";
import { type InFlightTable, PROCESSED, UNKNOWN } from "./in-flight-table.ts";
import {
  CHECKS_PER_SLICE,
  LANDINGS_PER_SLICE,
  PASSED_OVER_MS,
  SLOTS_CONFIRMED_KEPT,
} from "./limits.ts";

export interface ConfirmationsDeps {
  readonly clock: Clock;
  readonly table: InFlightTable;
  /** A block of the slot in which it was seen last is confirmed; `bank` is null if unknown. */
  readonly onConfirmed: (row: number, slot: number, bank: number | null) => void;
}

export class Confirmations {
  readonly #deps: ConfirmationsDeps;
  readonly #slicer: TimeSlicer;
  /** Slots being searched for, and those reported since the scan began; the bank of each. */
  #slots = new Map<number, number | null>();
  #later = new Map<number, number | null>();
  /** The banks of the slots confirmed last, the oldest first. */
  readonly #recent = new Map<number, number | null>();
  /** The lowest of those slots, once there are as many as are kept. */
  #lowestRecent = UNKNOWN;
  /** The lowest slot that this stream has confirmed. */
  #lowest = Number.POSITIVE_INFINITY;
  /** Blocks seen before this may be deleted, and their slots used again. */
  #sinceNs = Number.NEGATIVE_INFINITY;
  /** The next row to check. */
  #row = 0;

  constructor(deps: ConfirmationsDeps) {
    this.#deps = deps;
    this.#slicer = createTimeSlicer(deps.clock, () => this.#checkNext());
  }

  /** Ends some immediately, and the others in later slices. */
  confirm(slot: number, bank: number | null = null): void {
    this.#later.set(slot, bank ?? this.#later.get(slot) ?? null);
    this.#slicer.start();
  }

  /** Records a confirmation for transactions that are seen in the slot only after it. */
  record(slot: number, bank: number | null): void {
    const known = bank ?? this.#recent.get(slot) ?? null;
    this.#recent.delete(slot);
    this.#recent.set(slot, known);
    this.#lowest = Math.min(this.#lowest, slot);
    if (this.#recent.size <= SLOTS_CONFIRMED_KEPT) return;
    for (const oldest of this.#recent.keys()) {
      this.#recent.delete(oldest);
      break;
    }
    this.#lowestRecent = Math.min(...this.#recent.keys());
  }

  /**
   * Whether the cluster has given up the block of a processed transaction: for some time its stream
   * has confirmed later slots alone, each slot at its confirmation and again when it is final. A
   * stream that began behind the block shows nothing: it was not there for either.
   */
  isPassedOver(row: number, nowNs: number): boolean {
    const { table } = this.#deps;
    const seenNs = table.processedNs[row] ?? 0;
    if (this.#slicer.isBusy || nowNs - seenNs < PASSED_OVER_MS * NS_PER_MS) return false;
    const slot = table.processedSlot[row] ?? UNKNOWN;
    return this.#lowest < slot && slot < this.#lowestRecent;
  }

  /** A watcher saw a transaction, whose block may be confirmed already. */
  seen(row: number): void {
    const slot = this.#deps.table.processedSlot[row] ?? UNKNOWN;
    const bank = this.#recent.get(slot);
    if (bank !== undefined) this.#deps.onConfirmed(row, slot, bank);
  }

  /** The slot went back. Ends what was confirmed until now. */
  slotWentBack(nowNs: number): void {
    this.flush();
    this.#forgetRecent();
    this.#sinceNs = nowNs;
  }

  /** Banks have other ids from now on. Ends what was confirmed until now. */
  forgetBanks(): void {
    this.flush();
    this.#forgetRecent();
  }

  #forgetRecent(): void {
    this.#recent.clear();
    this.#lowestRecent = UNKNOWN;
    this.#lowest = Number.POSITIVE_INFINITY;
  }

  /** Whether the block of a processed transaction may be deleted. */
  isInDoubt(row: number): boolean {
    return (this.#deps.table.processedNs[row] ?? 0) < this.#sinceNs;
  }

  /** Whether both the confirmed block and the one seen last are known by their banks. */
  #hasBank(bank: number | null): boolean {
    return bank !== null && this.#deps.table.processedBank[this.#row] !== UNKNOWN;
  }

  /** Ends all of them now. */
  flush(): void {
    this.#slicer.finish();
  }

  /** Runs one slice of checks and ends. Returns whether there are more. */
  #checkNext(): boolean {
    const { table, onConfirmed } = this.#deps;
    if (this.#slots.size === 0) {
      [this.#slots, this.#later] = [this.#later, this.#slots];
      this.#row = 0;
    }
    const last = Math.min(table.rowsUsed, this.#row + CHECKS_PER_SLICE);
    let ends = 0;
    for (; this.#row < last && ends < LANDINGS_PER_SLICE; this.#row += 1) {
      if (!table.is(this.#row, PROCESSED)) continue;
      const slot = table.processedSlot[this.#row] ?? 0;
      const bank = this.#slots.get(slot);
      if (bank === undefined || (this.isInDoubt(this.#row) && !this.#hasBank(bank))) continue;
      onConfirmed(this.#row, slot, bank);
      ends += 1;
    }
    if (this.#row < table.rowsUsed) return true;
    this.#slots.clear();
    return this.#later.size > 0;
  }
}
