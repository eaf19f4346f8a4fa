/**
 * The deliveries of a connection that are on the wire and await acknowledgement, in send order, in
 * a bounded ring; at the bound the caller ends the oldest. Rows are reused, so the hot path
 * does not allocate. The ring uses only as many rows as were ever needed together: an idle
 * connection costs little, and the next row to write is still in the CPU cache. Hot path: every
 * function here.
 */

import type { Target } from "../core/flow.ts";

export interface InFlightDelivery {
  packetId: number;
  /** The leader that receives it, and the slot that it was sent for. */
  target: Target;
  stream: number;
  /** When it was put on the wire; 0: not yet. */
  sentNs: number;
  /** When the result arrived; 0: just now. */
  endNs: number;
  /** As `Outcome.connectionAgeMs`. */
  ageMs: number;
  /** As `Outcome.resend`. */
  resend: number;
}

const NOTHING: InFlightDelivery = {
  packetId: 0,
  target: { identity: "", address: "", slot: 0 },
  stream: 0,
  sentNs: 0,
  endNs: 0,
  ageMs: 0,
  resend: 0,
};

const PLACES_MIN = 16;

/** A first-in first-out ring of reused rows. */
class Ring<Row> {
  readonly capacity: number;
  readonly #blank: () => Row;
  #rows: Row[] = [];
  /** Current capacity; the last row may not be allocated yet. */
  #places: number;
  #head = 0;
  size = 0;

  constructor(capacity: number, blank: () => Row) {
    this.capacity = capacity;
    this.#blank = blank;
    this.#places = Math.min(PLACES_MIN, capacity);
  }

  /** The oldest row, or null; it stays valid until the next `drop`. */
  oldest(): Row | null {
    return this.size === 0 ? null : (this.#rows[this.#head] ?? null);
  }

  /** The row after the newest, to be overwritten, or null when the ring is full. */
  next(): Row | null {
    if (this.size === this.capacity) return null;
    if (this.size === this.#places) this.#grow();
    const index = (this.#head + this.size) % this.#places;
    this.size += 1;
    // The ring reaches its rows in order, so a new row is always appended.
    if (index === this.#rows.length) this.#rows.push(this.#blank());
    return this.#rows[index] ?? null;
  }

  /** Removes the oldest row. */
  drop(): void {
    if (this.size === 0) return;
    this.#head = (this.#head + 1) % this.#places;
    this.size -= 1;
  }

  /** Doubles the capacity of a full ring; the new rows follow the newest. */
  #grow(): void {
    this.#rows = [...this.#rows.slice(this.#head), ...this.#rows.slice(0, this.#head)];
    this.#head = 0;
    this.#places = Math.min(2 * this.#places, this.capacity);
  }
}

export class InFlight extends Ring<InFlightDelivery> {
  constructor(capacity: number) {
    super(capacity, () => ({ ...NOTHING }));
  }

  /** Copies the row. False when the ring is full. */
  push(delivery: InFlightDelivery): boolean {
    const row = this.next();
    if (row === null) return false;
    row.packetId = delivery.packetId;
    row.target = delivery.target;
    row.stream = delivery.stream;
    row.sentNs = delivery.sentNs;
    row.endNs = 0;
    row.ageMs = delivery.ageMs;
    row.resend = delivery.resend;
    return true;
  }
}
