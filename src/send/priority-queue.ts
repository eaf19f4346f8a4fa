/**
 * The copies that wait for one leader's credit, the one that pays most first. Hot path: `push`,
 * `drop`.
 *
 * A heap of bounded size on rows that are made once. Copies that pay the same go in the order in
 * which they came. At the bound the one that pays least gives way, if the newcomer pays more. The
 * bytes are copied, because a packet's bytes are lent.
 */

import type { Target } from "../core/flow.ts";

export interface QueuedDelivery {
  packetId: number;
  target: Target;
  bytes: Uint8Array;
  /** Priority fee and tip, in lamports. */
  priorityLamports: number;
  /** When it came. */
  sinceNs: number;
  /** Tells apart those that came at the same moment. */
  order: number;
}

const NO_TARGET: Target = { identity: "", address: "", slot: 0 };
const NO_BYTES = new Uint8Array(0);

export class PriorityQueue {
  readonly capacity: number;
  size = 0;
  /** A heap: no row goes before the one at half its place. Rows from `size` on are spare. */
  readonly #rows: QueuedDelivery[];
  #order = 0;
  /** No row came before this. */
  #sinceNs = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#rows = Array.from({ length: capacity }, () => ({
      packetId: 0,
      target: NO_TARGET,
      bytes: NO_BYTES,
      priorityLamports: 0,
      sinceNs: 0,
      order: 0,
    }));
  }

  /** The copy that goes first, or null; its row stays valid until the next change. */
  first(): QueuedDelivery | null {
    return this.size === 0 ? null : (this.#rows[0] ?? null);
  }

  /** Copies the bytes. False when the queue is full. */
  push(
    packetId: number,
    target: Target,
    bytes: Uint8Array,
    priorityLamports: number,
    sinceNs: number,
  ): boolean {
    const row = this.#rows[this.size];
    if (row === undefined) return false;
    if (this.size === 0) this.#sinceNs = sinceNs;
    this.#order += 1;
    row.packetId = packetId;
    row.target = target;
    // A copy in memory of its own: the lent view may be over memory that is written again.
    row.bytes = new Uint8Array(bytes);
    row.priorityLamports = priorityLamports;
    row.sinceNs = sinceNs;
    row.order = this.#order;
    this.size += 1;
    this.#rise(this.size - 1);
    return true;
  }

  /** Takes the first out. */
  drop(): void {
    if (this.size > 0) this.#remove(0);
  }

  /**
   * The copy that pays least, if it pays less than that: the one that has to give way when the
   * queue is full. The newest of several.
   */
  least(belowLamports: number): QueuedDelivery | null {
    const row = this.#rows[this.#leastPlace()];
    return this.size > 0 && row !== undefined && row.priorityLamports < belowLamports ? row : null;
  }

  dropLeast(): void {
    if (this.size > 0) this.#remove(this.#leastPlace());
  }

  /** Takes out all that came before `bornNs` or just then, telling of each. */
  expire(bornNs: number, ended: (delivery: QueuedDelivery) => void): void {
    if (this.size === 0 || this.#sinceNs > bornNs) return;
    let sinceNs = Number.POSITIVE_INFINITY;
    for (let place = this.size - 1; place >= 0; place -= 1) {
      const row = this.#rows[place];
      if (row === undefined) continue;
      if (row.sinceNs > bornNs) {
        sinceNs = Math.min(sinceNs, row.sinceNs);
        continue;
      }
      ended(row);
      this.#remove(place);
      // What took the place may be due as well.
      place = Math.min(place + 1, this.size);
    }
    this.#sinceNs = sinceNs;
  }

  /** Takes out all, the first first, telling of each. */
  clear(ended: (delivery: QueuedDelivery) => void): void {
    for (let row = this.first(); row !== null; row = this.first()) {
      ended(row);
      this.drop();
    }
  }

  /** It is a leaf, so the later half is looked through. */
  #leastPlace(): number {
    let least = this.size >> 1;
    for (let place = least + 1; place < this.size; place += 1) {
      if (this.#before(least, place)) least = place;
    }
    return least;
  }

  #remove(place: number): void {
    const row = this.#rows[place];
    // The row stays; its bytes need not.
    if (row !== undefined) row.bytes = NO_BYTES;
    this.size -= 1;
    if (place === this.size) return;
    this.#swap(place, this.size);
    this.#rise(place);
    this.#sink(place);
  }

  #rise(place: number): void {
    for (let at = place; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#before(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #sink(place: number): void {
    for (let at = place; ; ) {
      const left = 2 * at + 1;
      if (left >= this.size) return;
      const right = left + 1;
      const child = right < this.size && this.#before(right, left) ? right : left;
      if (!this.#before(child, at)) return;
      this.#swap(at, child);
      at = child;
    }
  }

  /** Whether the row at `a` goes before the one at `b`. */
  #before(a: number, b: number): boolean {
    const first = this.#rows[a];
    const second = this.#rows[b];
    if (first === undefined || second === undefined) return false;
    if (first.priorityLamports !== second.priorityLamports) {
      return first.priorityLamports > second.priorityLamports;
    }
    return first.order < second.order;
  }

  #swap(a: number, b: number): void {
    const first = this.#rows[a];
    const second = this.#rows[b];
    if (first === undefined || second === undefined) return;
    this.#rows[a] = second;
    this.#rows[b] = first;
  }
}
