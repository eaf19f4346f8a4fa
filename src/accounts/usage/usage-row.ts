/** The counts of one key in one minute, and their format for the database. */

import { USAGE_SLOT_BOUNDS, USAGE_WIRE_BOUNDS_NS } from "./usage-shape.ts";

/** The input of `edge_write_usage`; the names are its columns. */
export interface WrittenRow {
  readonly key: string;
  /** Start of the minute, milliseconds since the Unix epoch. */
  readonly minute: number;
  readonly requests: number;
  readonly accepted: number;
  readonly refused: number;
  readonly bytes: number;
  readonly landed: number;
  readonly expired: number;
  readonly dropped: number;
  readonly wire: readonly number[];
  readonly slots: readonly number[];
  /** Rejected, expired and dropped counts by reason. */
  readonly reasons: readonly (readonly [string, string, number])[];
}

export class UsageRow {
  readonly keyId: string;
  readonly minuteMs: number;
  #requests = 0;
  #accepted = 0;
  #refused = 0;
  #bytes = 0;
  readonly #ends = { landed: 0, expired: 0, dropped: 0 };
  readonly #wire = new Float64Array(USAGE_WIRE_BOUNDS_NS.length + 1);
  readonly #slots = new Float64Array(USAGE_SLOT_BOUNDS.length + 1);
  /** By kind and reason, separated by a space; bounded by the reason tables. */
  readonly #reasons = new Map<string, number>();

  constructor(keyId: string, minuteMs: number) {
    this.keyId = keyId;
    this.minuteMs = minuteMs;
  }

  /** `reason` is null for an accepted request. */
  request(reason: string | null, bytes: number): void {
    this.#requests += 1;
    this.#bytes += bytes;
    if (reason === null) this.#accepted += 1;
    else {
      this.#refused += 1;
      this.#addReason(`refused ${reason}`, 1);
    }
  }

  wire(ns: number): void {
    const bucket = bucketOf(USAGE_WIRE_BOUNDS_NS, ns);
    this.#wire[bucket] = (this.#wire[bucket] ?? 0) + 1;
  }

  /** `slotDelta` is null if unknown. */
  ended(kind: keyof WrittenEnds, reason: string | null, slotDelta: number | null): void {
    this.#ends[kind] += 1;
    if (reason !== null) this.#addReason(`${kind} ${reason}`, 1);
    if (slotDelta === null) return;
    const bucket = bucketOf(USAGE_SLOT_BOUNDS, slotDelta);
    this.#slots[bucket] = (this.#slots[bucket] ?? 0) + 1;
  }

  /** Adds another row of the same key. */
  add(other: UsageRow): void {
    this.#requests += other.#requests;
    this.#accepted += other.#accepted;
    this.#refused += other.#refused;
    this.#bytes += other.#bytes;
    this.#ends.landed += other.#ends.landed;
    this.#ends.expired += other.#ends.expired;
    this.#ends.dropped += other.#ends.dropped;
    addTo(this.#wire, other.#wire);
    addTo(this.#slots, other.#slots);
    for (const [name, count] of other.#reasons) this.#addReason(name, count);
  }

  written(): WrittenRow {
    return {
      key: this.keyId,
      minute: this.minuteMs,
      requests: this.#requests,
      accepted: this.#accepted,
      refused: this.#refused,
      bytes: this.#bytes,
      ...this.#ends,
      wire: [...this.#wire],
      slots: [...this.#slots],
      reasons: [...this.#reasons].map(([name, count]) => {
        const [kind = "", reason = ""] = name.split(" ");
        return [kind, reason, count];
      }),
    };
  }

  #addReason(name: string, count: number): void {
    this.#reasons.set(name, (this.#reasons.get(name) ?? 0) + count);
  }
}

type WrittenEnds = Pick<WrittenRow, "landed" | "expired" | "dropped">;

/** The first bucket whose bound is at least the value; the last one takes the rest. */
function bucketOf(bounds: readonly number[], value: number): number {
  let bucket = 0;
  while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket += 1;
  return bucket;
}

function addTo(sums: Float64Array, more: Readonly<Float64Array>): void {
  for (let index = 0; index < sums.length; index += 1) {
    sums[index] = (sums[index] ?? 0) + (more[index] ?? 0);
  }
}
