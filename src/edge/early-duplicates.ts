/**
 * Duplicates whose original is not recorded yet. Threads share one dedup cache but have separate
 * record rings, so the record of a duplicate can arrive before that of the original, by one read of
 * the rings. It is kept until then.
 *
 * A duplicate whose original never arrives, because it was rejected, is evicted when the table is
 * full.
 */

import { EARLY_DUPLICATES_MAX } from "./limits.ts";

/** One duplicate. */
export interface EarlyDuplicate {
  readonly account: string;
  readonly maxRetries: number | null;
}

const SIGNATURE_BYTES = 64;

export class EarlyDuplicates {
  /** Duplicates kept. */
  size = 0;
  /** By signature, oldest first. */
  readonly #duplicates = new Map<string, EarlyDuplicate[]>();

  add(bytes: Uint8Array, offset: number, duplicate: EarlyDuplicate): void {
    const key = keyOf(bytes, offset);
    const known = this.#duplicates.get(key);
    if (known === undefined) this.#duplicates.set(key, [duplicate]);
    else known.push(duplicate);
    this.size += 1;
    while (this.size > EARLY_DUPLICATES_MAX) this.#forgetOldest();
  }

  /** Removes and returns the duplicates of the transaction with the signature at `offset`. */
  take(bytes: Uint8Array, offset: number): readonly EarlyDuplicate[] {
    if (this.size === 0) return NONE;
    const key = keyOf(bytes, offset);
    const known = this.#duplicates.get(key) ?? NONE;
    if (this.#duplicates.delete(key)) this.size -= known.length;
    return known;
  }

  #forgetOldest(): void {
    for (const [key, { length }] of this.#duplicates) {
      this.#duplicates.delete(key);
      this.size -= length;
      return;
    }
  }
}

const NONE: readonly EarlyDuplicate[] = [];

/** A string, because the bytes are valid only during the call. */
function keyOf({ buffer, byteOffset }: Uint8Array, offset: number): string {
  return Buffer.from(buffer, byteOffset + offset, SIGNATURE_BYTES).toString("latin1");
}
