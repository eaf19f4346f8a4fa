/**
 * The deliveries queued for one leader's credit, highest priority first. Hot path: `push`, `drop`.
 *
 * A bounded heap on rows that are reused, as many as were ever needed. The priority is the amount
 * offered times the account's landed share. `rank` computes it anew for all when shares have
 * changed, so that one share applies to all deliveries of an account, and these leave in the order
 * of their offers, whenever they were queued. Deliveries of equal priority leave in arrival order.
 * At the bound the one with the lowest priority is evicted if the new one has a higher priority.
 * The bytes are copied, because a packet's bytes are only borrowed.
 */

import type { Packet, Target } from "../core/flow.ts";

export interface QueuedDelivery {
  packetId: number;
  target: Target;
  bytes: Uint8Array;
  account: string;
  /** Priority fee and tip, in lamports. */
  offeredLamports: number;
  /** The offer times the account's landed share. */
  priorityLamports: number;
  /** When it was queued. */
  sinceNs: number;
  /** Orders deliveries of the same time. */
  order: number;
  /** As `Outcome.resend`. */
  resend: number;
}

type Ranked = Pick<Packet, "account" | "offeredLamports">;
type QueuedPacket = Pick<Packet, "id" | "bytes" | "account" | "offeredLamports">;

const NO_TARGET: Target = { identity: "", address: "", slot: 0 };
const NO_BYTES = new Uint8Array(0);

export class PriorityQueue {
  readonly capacity: number;
  size = 0;
  readonly #landedShareOf: (account: string) => number;
  /** A heap: no row goes before its parent at half its index. Rows from `size` on are spare. */
  readonly #rows: QueuedDelivery[] = [];
  #order = 0;
  /** No row was queued before this. */
  #sinceNs = 0;

  constructor(capacity: number, landedShareOf: (account: string) => number) {
    this.capacity = capacity;
    this.#landedShareOf = landedShareOf;
  }

  /** The first delivery, or null; its row stays valid until the next change. */
  first(): QueuedDelivery | null {
    return this.size === 0 ? null : (this.#rows[0] ?? null);
  }

  /** The priority that the packet would have now. */
  priorityOf({ account, offeredLamports }: Ranked): number {
    return offeredLamports * this.#landedShareOf(account);
  }

  /** Copies the bytes. False when the queue is full. */
  push(packet: QueuedPacket, target: Target, sinceNs: number, resend = 0): boolean {
    if (this.size === this.capacity) return false;
    const row = this.#rows[this.size] ?? newRow();
    this.#rows[this.size] = row;
    if (this.size === 0) this.#sinceNs = sinceNs;
    this.#order += 1;
    row.packetId = packet.id;
    row.target = target;
    // An own copy: the borrowed view may be over memory that is overwritten.
    row.bytes = new Uint8Array(packet.bytes);
    row.account = packet.account;
    row.offeredLamports = packet.offeredLamports;
    row.priorityLamports = this.priorityOf(packet);
    row.sinceNs = sinceNs;
    row.order = this.#order;
    row.resend = resend;
    this.size += 1;
    this.#rise(this.size - 1);
    return true;
  }

  /** Ranks all anew, after landed shares changed. */
  rank(): void {
    for (let place = this.size - 1; place >= 0; place -= 1) {
      const row = this.#rows[place];
      if (row === undefined) continue;
      row.priorityLamports = this.priorityOf(row);
      // Its children, which are after it, are ranked and in order.
      this.#sink(place);
    }
  }

  /** Removes the first delivery. */
  drop(): void {
    if (this.size > 0) this.#remove(0);
  }

  /**
   * The delivery with the lowest priority, if that is below `belowLamports`: the one to evict when
   * the queue is full. Among several, the newest.
   */
  least(belowLamports: number): QueuedDelivery | null {
    const row = this.#rows[this.#leastPlace()];
    return this.size > 0 && row !== undefined && row.priorityLamports < belowLamports ? row : null;
  }

  dropLeast(): void {
    if (this.size > 0) this.#remove(this.#leastPlace());
  }

  /** Removes all deliveries queued at or before `bornNs`, and reports each. */
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
      // The row that moved to this index may be due as well.
      place = Math.min(place + 1, this.size);
    }
    this.#sinceNs = sinceNs;
  }

  /** Removes all deliveries in priority order, and reports each. */
  clear(ended: (delivery: QueuedDelivery) => void): void {
    for (let row = this.first(); row !== null; row = this.first()) {
      ended(row);
      this.drop();
    }
  }

  /** It is a leaf, so only the second half is searched. */
  #leastPlace(): number {
    let least = this.size >> 1;
    for (let place = least + 1; place < this.size; place += 1) {
      if (this.#before(least, place)) least = place;
    }
    return least;
  }

  #remove(place: number): void {
    const row = this.#rows[place];
    // The row stays; its bytes are released.
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

function newRow(): QueuedDelivery {
  return {
    packetId: 0,
    target: NO_TARGET,
    bytes: NO_BYTES,
    account: "",
    offeredLamports: 0,
    // A fraction, so that V8 reserves room for those: see core/packet.ts.
    priorityLamports: 0.5,
    sinceNs: 0,
    order: 0,
    resend: 0,
  };
}
