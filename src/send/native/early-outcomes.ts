/**
 * News of copies that fronts sent and the sender does not know of yet: an acknowledgement may be
 * quicker than the word of the front. Kept until the copy is adopted, for a second at most, because
 * a copy that the engine refused at once is never adopted.
 *
 *   cell, stream ─ hash ─▶ bucket ─▶ place ─▶ next place of the bucket
 *   oldest place ─▶ newer place ─▶ … ─▶ newest place; free places are chained likewise
 *
 * Where fronts are busy every copy passes through here, so it is arrays: objects in a map outlived
 * the collector's rounds, and were a third of what it had to copy.
 *
 * Hot path: `note` and `take`.
 */

import { NS_PER_S } from "../../core/clock.ts";
import { EARLY_OUTCOMES_MAX } from "../limits.ts";
import { IN_FLIGHT, type StreamResult } from "../transport.ts";

/** What is known of a copy. */
export interface EarlyOutcome {
  /** When it went on the wire; 0: not told. */
  readonly sentNs: number;
  /** Its end, and when that came; IN_FLIGHT: not told. */
  readonly streamResult: StreamResult;
  readonly endNs: number;
}

/** No place. */
const NONE = -1;

export class EarlyOutcomes {
  /** Kept for a second and never asked for: of refused copies. */
  expired = 0;
  /** Those that gave way to newer ones. */
  evicted = 0;
  /** How many copies have news here. */
  size = 0;
  readonly #cells = new Int32Array(EARLY_OUTCOMES_MAX);
  readonly #streams = new Uint32Array(EARLY_OUTCOMES_MAX);
  readonly #sentsNs = new Float64Array(EARLY_OUTCOMES_MAX);
  readonly #endsNs = new Float64Array(EARLY_OUTCOMES_MAX);
  /** When the first of it happened. */
  readonly #sincesNs = new Float64Array(EARLY_OUTCOMES_MAX);
  readonly #streamResults = new Uint8Array(EARLY_OUTCOMES_MAX);
  readonly #buckets = new Int32Array(EARLY_OUTCOMES_MAX).fill(NONE);
  /** The next place of the same bucket. */
  readonly #chain = new Int32Array(EARLY_OUTCOMES_MAX);
  readonly #older = new Int32Array(EARLY_OUTCOMES_MAX);
  /** Of a free place the one that was freed before it. */
  readonly #newer = new Int32Array(EARLY_OUTCOMES_MAX);
  #oldest = NONE;
  #newest = NONE;
  #free = NONE;
  /** No place at or above this number was ever used. */
  #used = 0;
  readonly #found = { sentNs: 0.5, streamResult: IN_FLIGHT as StreamResult, endNs: 0.5 };

  /** `cell` is where the stream's number was drawn, of which no number is drawn twice. */
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

  /** What is known of a copy, which is forgotten here; null: nothing. Lent until the next call. */
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

  /** Forgets what is older than a second. */
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

  /** A place of its own at the end of the list; there must be one. */
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

/** Streams of a cell count up, so neighbours have buckets of their own; cells are set apart. */
function bucketOf(cell: number, stream: number): number {
  return (Math.imul(cell, 0x9e3779b1) + stream) & (EARLY_OUTCOMES_MAX - 1);
}
