/**
 * The copies of a connection whose acknowledgement is awaited, in the order of sending, as a ring
 * of fixed size. At its bound the caller ends the oldest. Rows are plain records kept in place, so
 * that the hot path allocates nothing. Hot path: every function here.
 */

import type { Target } from "../core/flow.ts";

export interface FlyingCopy {
  packetId: number;
  /** The leader that it went to, and the slot that it was aimed at. */
  target: Target;
  stream: number;
  /** Whether it was on the wire yet. */
  sent: boolean;
  /** As `Outcome.connectionAgeMs`. */
  ageMs: number;
}

const NOBODY: Target = { identity: "", address: "", slot: 0 };

/** A first-in first-out ring of rows that are made once and written over. */
class Ring<Row> {
  readonly capacity: number;
  readonly #rows: Row[];
  #head = 0;
  size = 0;

  constructor(capacity: number, blank: () => Row) {
    this.capacity = capacity;
    this.#rows = Array.from({ length: capacity }, blank);
  }

  /** The oldest row, or null; it stays valid until the next `drop`. */
  oldest(): Row | null {
    return this.size === 0 ? null : (this.#rows[this.#head] ?? null);
  }

  /** The row behind the newest, to be written over, or null when the ring is full. */
  next(): Row | null {
    if (this.size === this.capacity) return null;
    const index = (this.#head + this.size) % this.capacity;
    this.size += 1;
    return this.#rows[index] ?? null;
  }

  /** Forgets the oldest row. */
  drop(): void {
    if (this.size === 0) return;
    this.#head = (this.#head + 1) % this.capacity;
    this.size -= 1;
  }
}

export class InFlight extends Ring<FlyingCopy> {
  constructor(capacity: number) {
    super(capacity, () => ({ packetId: 0, target: NOBODY, stream: 0, sent: false, ageMs: 0 }));
  }

  /** False when the ring is full. */
  push(packetId: number, target: Target, stream: number, sent: boolean, ageMs: number): boolean {
    const row = this.next();
    if (row === null) return false;
    row.packetId = packetId;
    row.target = target;
    row.stream = stream;
    row.sent = sent;
    row.ageMs = ageMs;
    return true;
  }
}
