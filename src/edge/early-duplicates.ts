/**
 * Repetitions of transactions of which nothing is noted yet. Threads answer a repetition by what
 * they remember together, and tell the main thread of it each in a line of its own, so it may come
 * before the transaction that it repeats, by one round of what they tell. It is kept until then.
 *
 * What never comes, because the first one was refused after all, goes when there are too many.
 */

import { EARLY_DUPLICATES_MAX } from "./limits.ts";

/** One repetition. */
export interface EarlyDuplicate {
  readonly account: string;
  readonly maxRetries: number | null;
}

const SIGNATURE_BYTES = 64;

export class EarlyDuplicates {
  /** Repetitions that are kept. */
  size = 0;
  /** By signature; the one that came first comes first. */
  readonly #duplicates = new Map<string, EarlyDuplicate[]>();

  add(bytes: Uint8Array, offset: number, duplicate: EarlyDuplicate): void {
    const key = keyOf(bytes, offset);
    const known = this.#duplicates.get(key);
    if (known === undefined) this.#duplicates.set(key, [duplicate]);
    else known.push(duplicate);
    this.size += 1;
    while (this.size > EARLY_DUPLICATES_MAX) this.#forgetOldest();
  }

  /** Those of the transaction with the signature at `offset`, which are forgotten here. */
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

/** A copy: the bytes are lent. */
function keyOf({ buffer, byteOffset }: Uint8Array, offset: number): string {
  return Buffer.from(buffer, byteOffset + offset, SIGNATURE_BYTES).toString("latin1");
}
