/**
 * Leaders that recently received each transaction in flight, so that none gets the same bytes twice
 * within the time in which it would drop them anyway.
 *
 * A leader matches by identity or by address. Both are kept as 32-bit tags: a collision leaves out
 * one resend. The delivery that made a mark is a tag too: a collision there sends one too many. A
 * row has a fixed number of marks. If all are recent, every leader counts as served: one resend too
 * few is better than a wasted one. All marks can be cleared together, in constant time.
 *
 * Hot path: `clear` and `add`.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { RESEND_SAME_LEADER_MS } from "./limits.ts";

/** The time of an empty mark, older than every other. */
const NEVER_NS = Number.NEGATIVE_INFINITY;

/** FNV-1a over the UTF-16 units. */
export function tagOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash | 0;
}

/** A 32-bit tag of a delivery: of the packet's first send (`resend` 0), or of that resend. */
export function deliveryTagOf(packetId: number, resend: number): number {
  return Math.imul(packetId, 0x9e3779b1) ^ resend;
}

export class RecentRecipients {
  readonly #perRow: number;
  readonly #identities: Int32Array;
  readonly #addresses: Int32Array;
  readonly #deliveries: Int32Array;
  readonly #atNs: Float64Array;
  /** Marks older than this are cleared. */
  #clearedNs = NEVER_NS;

  constructor(rows: number, perRow: number) {
    this.#perRow = perRow;
    this.#identities = new Int32Array(rows * perRow);
    this.#addresses = new Int32Array(rows * perRow);
    this.#deliveries = new Int32Array(rows * perRow);
    this.#atNs = new Float64Array(rows * perRow).fill(NEVER_NS);
  }

  /** Clears the marks of all rows, up to now. */
  clearAll(nowNs: number): void {
    this.#clearedNs = nowNs;
  }

  clear(row: number): void {
    const start = row * this.#perRow;
    for (let at = start; at < start + this.#perRow; at += 1) this.#atNs[at] = NEVER_NS;
  }

  /**
   * Marks that the leader received the bytes at `atNs`, by that delivery; updates its mark, else
   * replaces the oldest.
   */
  add(
    row: number,
    identityTag: number,
    addressTag: number,
    atNs: number,
    deliveryTag: number,
  ): void {
    const start = row * this.#perRow;
    let place = start;
    for (let at = start; at < start + this.#perRow; at += 1) {
      if (this.#identities[at] === identityTag && this.#addresses[at] === addressTag) {
        place = at;
        break;
      }
      if ((this.#atNs[at] ?? 0) < (this.#atNs[place] ?? 0)) place = at;
    }
    this.#identities[place] = identityTag;
    this.#addresses[place] = addressTag;
    this.#deliveries[place] = deliveryTag;
    this.#atNs[place] = atNs;
  }

  /** That delivery for this leader was never sent; the mark of another one stays. */
  remove(row: number, identityTag: number, addressTag: number, deliveryTag: number): void {
    const start = row * this.#perRow;
    for (let at = start; at < start + this.#perRow; at += 1) {
      if (this.#identities[at] !== identityTag || this.#addresses[at] !== addressTag) continue;
      if (this.#deliveries[at] === deliveryTag) this.#atNs[at] = NEVER_NS;
    }
  }

  /** Whether these bytes may be sent to the leader now. */
  allows(row: number, identityTag: number, addressTag: number, nowNs: number): boolean {
    const start = row * this.#perRow;
    const youngNs = nowNs - RESEND_SAME_LEADER_MS * NS_PER_MS;
    let young = 0;
    for (let at = start; at < start + this.#perRow; at += 1) {
      const atNs = this.#atNs[at] ?? NEVER_NS;
      if (atNs <= youngNs || atNs < this.#clearedNs) continue;
      young += 1;
      if (this.#identities[at] === identityTag || this.#addresses[at] === addressTag) return false;
    }
    return young < this.#perRow;
  }
}
