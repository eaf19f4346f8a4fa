/**
 * Outcomes of deliveries that ingress threads sent and the sender has not recorded yet: an
 * acknowledgement may arrive before the record of the send. Kept until the delivery is recorded,
 * for a second at most, because a delivery that the engine rejected immediately is never recorded.
 *
 *   cell, stream ─ hash ─▶ bucket ─▶ entry ─▶ next entry of the bucket
 *   oldest entry ─▶ newer entry ─▶ … ─▶ newest entry; free entries are linked likewise
 *
 * Under load every delivery of an ingress thread passes through here, so it uses typed arrays:
 * objects in a map survived several garbage collections and were a third of the bytes that the
 * collector copied.
 *
 * Hot path: `record` and `take`.
 */

import { NS_PER_S } from "../../core/clock.ts";
import { EARLY_OUTCOMES_MAX } from "../limits.ts";
import { IN_FLIGHT, type StreamResult } from "../transport.ts";

/** The known outcome of a delivery. */
export interface EarlyOutcome {
  /** When it was put on the wire; 0: not reported. */
  readonly sentNs: number;
  /** Its result, and when that arrived; IN_FLIGHT: not reported. */
  readonly streamResult: StreamResult;
  readonly endNs: number;
}

/** No entry. */
const NONE = -1;

export class EarlyOutcomes {
  /** Discarded after a second without a record: rejected deliveries. */
  expired = 0;
  /** Discarded to make room for newer ones. */
  evicted = 0;
  /** Deliveries with an entry. */
  size = 0;
  readonly #cells = new Int32Array(EARLY_OUTCOMES_MAX);
  readonly #streams = new Uint32Array(EARLY_OUTCOMES_MAX);
  readonly #sentsNs = new Float64Array(EARLY_OUTCOMES_MAX);
  readonly #endsNs = new Float64Array(EARLY_OUTCOMES_MAX);
  /** Time of the first event. */
  readonly #sincesNs = new Float64Array(EARLY_OUTCOMES_MAX);
  readonly #streamResults = new Uint8Array(EARLY_OUTCOMES_MAX);
  readonly #buckets = new Int32Array(EARLY_OUTCOMES_MAX).fill(NONE);
  /** The next entry of the same bucket. */
  readonly #chain = new Int32Array(EARLY_OUTCOMES_MAX);
  readonly #older = new Int32Array(EARLY_OUTCOMES_MAX);
  /** For a free entry: the one freed before it. */
  readonly #newer = new Int32Array(EARLY_OUTCOMES_MAX);
  #oldest = NONE;
  #newest = NONE;
  #free = NONE;
  /** No entry at or above this index was ever used. */
  #used = 0;
  readonly #found = { sentNs: 0.5, streamResult: IN_FLIGHT as StreamResult, endNs: 0.5 };

  /** `cell`: where the stream number was allocated; a cell never allocates a number twice. */
  record(cell: number, stream: number, streamResult: StreamResult, atNs: number): void {
    let place = this.#find(cell, stream);
    if (place === NONE) {
      if (this.size === EARLY_OUTCOMES_MAX) {
        this.#close(this.#oldest);
        this.evicted += 1;
      }
      place = this.#open(cell, stream, atNs);
    }
    if (streamResult === IN_FLIGHT) {
      this.#sentsNs[place] = atNs;
    } else {
      this.#streamResults[place] = streamResult;
      this.#endsNs[place] = atNs;
    }
  }

  /** Removes and returns the outcome of a delivery; null: none. Valid until the next call. */
  take(cell: number, stream: number): EarlyOutcome | null {
    if (this.size === 0) return null;
    const place = this.#find(cell, stream);
    if (place === NONE) return null;
    const found = this.#found;
    found.sentNs = this.#sentsNs[place] ?? 0;
    found.streamResult = this.#streamResults[place] ?? IN_FLIGHT;
    found.endNs = this.#endsNs[place] ?? 0;
    this.#close(place);
    return found;
  }

  /** Discards entries older than a second. */
  expire(nowNs: number): void {
    while (this.size > 0 && nowNs - (this.#sincesNs[this.#oldest] ?? 0) >= NS_PER_S) {
      this.#close(this.#oldest);
      this.expired += 1;
    }
  }

  #find(cell: number, stream: number): number {
    let place = this.#buckets[bucketOf(cell, stream)] ?? NONE;
    while (place !== NONE && !(this.#streams[place] === stream && this.#cells[place] === cell)) {
      place = this.#chain[place] ?? NONE;
    }
    return place;
  }

  /** Appends an entry to the list; one must be free. */
  #open(cell: number, stream: number, sinceNs: number): number {
    let place = this.#free;
    if (place === NONE) {
      place = this.#used;
      this.#used += 1;
    } else this.#free = this.#newer[place] ?? NONE;
    this.#cells[place] = cell;
    this.#streams[place] = stream;
    this.#sentsNs[place] = 0;
    this.#streamResults[place] = IN_FLIGHT;
    this.#endsNs[place] = 0;
    this.#sincesNs[place] = sinceNs;
    const bucket = bucketOf(cell, stream);
    this.#chain[place] = this.#buckets[bucket] ?? NONE;
    this.#buckets[bucket] = place;
    this.#older[place] = this.#newest;
    this.#newer[place] = NONE;
    if (this.#newest === NONE) this.#oldest = place;
    else this.#newer[this.#newest] = place;
    this.#newest = place;
    this.size += 1;
    return place;
  }

  #close(place: number): void {
    this.#unchain(place);
    const older = this.#older[place] ?? NONE;
    const newer = this.#newer[place] ?? NONE;
    if (older === NONE) this.#oldest = newer;
    else this.#newer[older] = newer;
    if (newer === NONE) this.#newest = older;
    else this.#older[newer] = older;
    this.#newer[place] = this.#free;
    this.#free = place;
    this.size -= 1;
  }

  #unchain(place: number): void {
    const bucket = bucketOf(this.#cells[place] ?? 0, this.#streams[place] ?? 0);
    const after = this.#chain[place] ?? NONE;
    let before = this.#buckets[bucket] ?? NONE;
    if (before === place) {
      this.#buckets[bucket] = after;
      return;
    }
    while ((this.#chain[before] ?? NONE) !== place) before = this.#chain[before] ?? NONE;
    this.#chain[before] = after;
  }
}

/** Streams of a cell count up, so neighbours get different buckets; cells are spread apart. */
function bucketOf(cell: number, stream: number): number {
  return (Math.imul(cell, 0x9e3779b1) + stream) & (EARLY_OUTCOMES_MAX - 1);
}
