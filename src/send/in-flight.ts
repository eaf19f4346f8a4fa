/**
 * The copies of a connection whose acknowledgement is awaited, in the order of sending, as a ring
 * with a bound, at which the caller ends the oldest. Rows are plain records kept in place, so that
 * the hot path allocates nothing. The ring goes round in as few of them as were ever needed at
 * once: a connection that carries little costs little, and what is written next was read a moment
 * ago. Hot path: every function here.
 */

import type { Target } from "../core/flow.ts";
import { IN_FLIGHT, type StreamResult } from "./transport.ts";

export interface InFlightDelivery {
  packetId: number;
  /** The leader that it went to, and the slot that it was aimed at. */
  target: Target;
  stream: number;
  /** When it went on the wire; 0: not yet. */
  sentNs: number;
  /** Its end, where that came about before those of the older ones; IN_FLIGHT: not known. */
  streamResult: StreamResult;
  /** When it came to its end; 0: just now. */
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
  streamResult: IN_FLIGHT,
  endNs: 0,
  ageMs: 0,
  resend: 0,
};

const PLACES_MIN = 16;

/** A first-in first-out ring of rows that are made once and written over. */
class Ring<Row> {
  readonly capacity: number;
  readonly #blank: () => Row;
  #rows: Row[] = [];
  /** The ring goes round in so many rows; the last of them may not be made yet. */
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

  /** The row so many places behind the oldest one, or null. */
  at(place: number): Row | null {
    if (place >= this.size) return null;
    return this.#rows[(this.#head + place) % this.#places] ?? null;
  }

  /** The row behind the newest, to be written over, or null when the ring is full. */
  next(): Row | null {
    if (this.size === this.capacity) return null;
    if (this.size === this.#places) this.#grow();
    const index = (this.#head + this.size) % this.#places;
    this.size += 1;
    // The ring comes to its places in turn, so a new one is always the array's next.
    if (index === this.#rows.length) this.#rows.push(this.#blank());
    return this.#rows[index] ?? null;
  }

  /** Forgets the oldest row. */
  drop(): void {
    if (this.size === 0) return;
    this.#head = (this.#head + 1) % this.#places;
    this.size -= 1;
  }

  /** All places are taken: those that are added stand behind the newest. */
  #grow(): void {
    this.#rows = [...this.#rows.slice(this.#head), ...this.#rows.slice(0, this.#head)];
    this.#head = 0;
    this.#places = Math.min(2 * this.#places, this.capacity);
  }
}

export class InFlight extends Ring<InFlightDelivery> {
  /** So many of the oldest are on the wire, or have their end. */
  #gone = 0;

  constructor(capacity: number) {
    super(capacity, () => ({ ...NOTHING }));
  }

  /** False when the ring is full. */
  push(
    packetId: number,
    target: Target,
    stream: number,
    sentNs: number,
    ageMs: number,
    resend: number,
  ): boolean {
    const row = this.next();
    if (row === null) return false;
    row.packetId = packetId;
    row.target = target;
    row.stream = stream;
    row.sentNs = sentNs;
    row.streamResult = IN_FLIGHT;
    row.endNs = 0;
    row.ageMs = ageMs;
    row.resend = resend;
    return true;
  }

  override drop(): void {
    super.drop();
    if (this.#gone > 0) this.#gone -= 1;
  }

  /** The oldest that is not known to be on the wire, nor to have its end; or null. */
  nextUnsent(): InFlightDelivery | null {
    for (let row = this.at(this.#gone); row !== null; row = this.at(this.#gone)) {
      if (row.sentNs === 0 && row.streamResult === IN_FLIGHT) return row;
      this.#gone += 1;
    }
    return null;
  }
}
