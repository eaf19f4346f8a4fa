/**
 * The deliveries that the engine has of one connection and that have no result yet: those on the
 * wire, and those that wait in the engine. Each is found by its number; each kind is in order and
 * bounded, and at the bound the oldest makes room. Rows are reused, and the table is only as large
 * as was ever needed: nothing is allocated for a delivery, and an idle connection costs little.
 *
 * Hot path: every function here.
 */

import type { Target } from "../core/flow.ts";

/** A delivery that an engine has; valid until it is removed. */
export interface Delivery {
  /** As `EngineConnection.send` returned it. */
  number: number;
  packetId: number;
  /** The leader that receives it, and the slot that it was sent for. */
  target: Target;
  /** When it was put on the wire; 0: it waits in the engine. */
  sentNs: number;
  /** As `Outcome.connectionAgeMs`. */
  ageMs: number;
  /** As `Outcome.resend`. */
  resend: number;
}

/** A row of the table. */
interface Row extends Delivery {
  /** The next row whose number has the same low bits. */
  chained: Row | null;
  older: Row | null;
  newer: Row | null;
}

const NO_TARGET: Target = { identity: "", address: "", slot: 0 };
const BUCKETS_MIN = 16;

/** Rows in the order in which they came. */
class Line {
  readonly max: number;
  size = 0;
  oldest: Row | null = null;
  #newest: Row | null = null;

  constructor(max: number) {
    this.max = max;
  }

  append(row: Row): void {
    row.older = this.#newest;
    if (this.#newest === null) this.oldest = row;
    else this.#newest.newer = row;
    this.#newest = row;
    this.size += 1;
  }

  take(row: Row): void {
    if (row.older === null) this.oldest = row.newer;
    else row.older.newer = row.newer;
    if (row.newer === null) this.#newest = row.older;
    else row.newer.older = row.older;
    row.older = null;
    row.newer = null;
    this.size -= 1;
  }
}

export class DeliveryTable {
  readonly #onWire: Line;
  readonly #waiting: Line;
  readonly #spare: Row[] = [];
  /** By the low bits of the number. */
  #buckets: (Row | null)[] = new Array<Row | null>(BUCKETS_MIN).fill(null);

  /** At most so many on the wire, and so many that wait. */
  constructor(onWireMax: number, waitingMax: number) {
    this.#onWire = new Line(onWireMax);
    this.#waiting = new Line(waitingMax);
  }

  get onWire(): number {
    return this.#onWire.size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Of each kind the one that came first; null: there is none. */
  get oldestOnWire(): Delivery | null {
    return this.#onWire.oldest;
  }

  get oldestWaiting(): Delivery | null {
    return this.#waiting.oldest;
  }

  /**
   * Adds a delivery, which waits while its `sentNs` is 0. At the bound the oldest is removed, and
   * passed to `overflowed`.
   */
  add(
    number: number,
    packetId: number,
    target: Target,
    sentNs: number,
    ageMs: number,
    resend: number,
    overflowed: (delivery: Delivery) => void,
  ): void {
    const row = this.#spare.pop() ?? newRow();
    row.number = number;
    row.packetId = packetId;
    row.target = target;
    row.sentNs = sentNs;
    row.ageMs = ageMs;
    row.resend = resend;
    if (this.onWire + this.waiting >= this.#buckets.length) this.#grow();
    this.#chain(row);
    this.#append(row, overflowed);
  }

  /** The delivery of that number; null when it has its result, or is unknown. */
  find(number: number): Row | null {
    let row = this.#buckets[number & (this.#buckets.length - 1)] ?? null;
    while (row !== null && row.number !== number) row = row.chained;
    return row;
  }

  /** A delivery that waited, as `find` returned it, is on the wire now; as `add`. */
  putOnWire(row: Row, sentNs: number, overflowed: (delivery: Delivery) => void): void {
    this.#waiting.take(row);
    row.sentNs = sentNs;
    this.#append(row, overflowed);
  }

  /** Forgets a delivery. */
  remove({ number }: Delivery): void {
    const buckets = this.#buckets;
    const bucket = number & (buckets.length - 1);
    let before: Row | null = null;
    let row = buckets[bucket] ?? null;
    while (row !== null && row.number !== number) {
      before = row;
      row = row.chained;
    }
    if (row === null) return;
    if (before === null) buckets[bucket] = row.chained;
    else before.chained = row.chained;
    (row.sentNs === 0 ? this.#waiting : this.#onWire).take(row);
    row.target = NO_TARGET;
    this.#spare.push(row);
  }

  /** Removes all deliveries, and reports each: first those on the wire, the oldest first. */
  clear(removed: (delivery: Delivery) => void): void {
    for (const line of [this.#onWire, this.#waiting]) {
      for (let row = line.oldest; row !== null; row = line.oldest) {
        removed(row);
        this.remove(row);
      }
    }
  }

  #append(row: Row, overflowed: (delivery: Delivery) => void): void {
    const line = row.sentNs === 0 ? this.#waiting : this.#onWire;
    line.append(row);
    const { oldest } = line;
    if (line.size <= line.max || oldest === null) return;
    overflowed(oldest);
    this.remove(oldest);
  }

  #chain(row: Row): void {
    const bucket = row.number & (this.#buckets.length - 1);
    row.chained = this.#buckets[bucket] ?? null;
    this.#buckets[bucket] = row;
  }

  #grow(): void {
    this.#buckets = new Array<Row | null>(2 * this.#buckets.length).fill(null);
    for (const line of [this.#onWire, this.#waiting]) {
      for (let row = line.oldest; row !== null; row = row.newer) this.#chain(row);
    }
  }
}

/** Numbers start as fractions: see core/packet.ts. */
function newRow(): Row {
  return {
    number: 0,
    packetId: 0.5,
    target: NO_TARGET,
    sentNs: 0.5,
    ageMs: 0.5,
    resend: 0,
    chained: null,
    older: null,
    newer: null,
  };
}
