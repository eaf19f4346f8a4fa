/**
 * The unconfirmed block that holds each transaction, and the transaction's error there.
 *
 * A node may replay a slot twice, in two banks, and give up one. So a transaction has up to two
 * sightings, in two banks of one slot:
 *
 *   add      in another slot ─▶ replaces both    in another bank of the slot ─▶ replaces the older
 *   confirm  its bank ─▶ landed, with the error there    another bank ─▶ not in the block
 *
 * A sighting without a bank, as from a status, may be of any: it waits for a confirmed status,
 * which the node reads from the confirmed bank. Only if the node reports no statuses does such a
 * sighting, which is from an earlier stream then, fit each confirmation of its slot. A confirmation
 * without a bank is that of the newest sighting.
 */

import { type InFlightTable, PROCESSED, UNKNOWN } from "./in-flight-table.ts";
import type { LandCounters } from "./land-counters.ts";

/** What a confirmed bank says: `open`, whether it holds the transaction is not known. */
export type InBank = "held" | "absent" | "open";

interface Sighting {
  /** The bank's id; UNKNOWN without one. */
  readonly bank: number;
  readonly error: string | null;
}

export class Sightings {
  /** Transactions that have one. */
  count = 0;
  readonly #table: InFlightTable;
  readonly #counters: Pick<LandCounters, "sightingsOmitted">;
  /** Errors of the newest sightings, and the sightings before those, by row. */
  readonly #errors = new Map<number, string>();
  readonly #others = new Map<number, Sighting>();

  constructor(table: InFlightTable, counters: Pick<LandCounters, "sightingsOmitted">) {
    this.#table = table;
    this.#counters = counters;
  }

  /** The transaction's error in the block of the newest sighting; null for success. */
  errorOf(row: number): string | null {
    return this.#errors.get(row) ?? null;
  }

  /** Returns whether it is another block than the one that was seen last. */
  add(row: number, slot: number, bank: number | null, error: string | null): boolean {
    const table = this.#table;
    if (!table.is(row, PROCESSED)) this.count += 1;
    else if (table.processedSlot[row] === slot) return this.#addBank(row, bank, error);
    table.raise(row, PROCESSED);
    table.processedSlot[row] = slot;
    this.#others.delete(row);
    this.#setNewest(row, { bank: bank ?? UNKNOWN, error });
    return true;
  }

  /**
   * A bank of the sightings' slot is confirmed. Returns whether it holds the transaction; if so,
   * `errorOf` is the error there. `hasStatuses`: a status will say if this is open.
   */
  confirm(row: number, bank: number | null, hasStatuses: boolean): InBank {
    const newest = this.#newest(row);
    if (bank === null || newest.bank === bank) return "held";
    const other = this.#others.get(row);
    if (other?.bank === bank) {
      this.#setNewest(row, other);
      return "held";
    }
    if (newest.bank !== UNKNOWN && other?.bank !== UNKNOWN) return "absent";
    if (hasStatuses) return "open";
    if (newest.bank !== UNKNOWN && other !== undefined) this.#setNewest(row, other);
    return "held";
  }

  /** Removes all sightings of a transaction, which has some. */
  clear(row: number): void {
    this.#table.lower(row, PROCESSED);
    this.count -= 1;
    this.#errors.delete(row);
    this.#others.delete(row);
  }

  /** The ids of banks so far are not those of later confirmations. */
  forgetBanks(): void {
    this.#table.processedBank.fill(UNKNOWN, 0, this.#table.rowsUsed);
    this.#others.clear();
  }

  /** Another sighting in the slot of the newest. */
  #addBank(row: number, bank: number | null, error: string | null): boolean {
    const newest = this.#newest(row);
    const other = this.#others.get(row);
    // One without a bank may be of either.
    if (bank === null || bank === newest.bank || bank === other?.bank) return false;
    const isSame = newest.bank === UNKNOWN && newest.error === error;
    if (!isSame) {
      if (other !== undefined) this.#counters.sightingsOmitted += 1;
      this.#others.set(row, newest);
    }
    this.#setNewest(row, { bank, error });
    return !isSame;
  }

  #newest(row: number): Sighting {
    return { bank: this.#table.processedBank[row] ?? UNKNOWN, error: this.errorOf(row) };
  }

  #setNewest(row: number, { bank, error }: Sighting): void {
    this.#table.processedBank[row] = bank;
    if (error === null) this.#errors.delete(row);
    else this.#errors.set(row, error);
  }
}
