/**
 * Repetitions of transactions of which nothing is noted yet. Threads answer a repetition by what
 * they remember together, and tell the main thread of it each in a line of its own, so it may come
 * before the transaction that it repeats, by one round of what they tell. It is kept until then.
 *
 * What never comes, because the first one was refused after all, goes when there are too many.
 */

import { EARLY_SHARES_MAX } from "./limits.ts";

/** One repetition. */
export interface EarlyShare {
  readonly account: string;
  readonly maxRetries: number | null;
}

const SIGNATURE_BYTES = 64;

export class EarlyShares {
  /** Repetitions that are kept. */
  size = 0;
  /** By signature; the one that came first comes first. */
  readonly #shares = new Map<string, EarlyShare[]>();

  keep(bytes: Uint8Array, offset: number, share: EarlyShare): void {
    const key = keyOf(bytes, offset);
    const known = this.#shares.get(key);
    if (known === undefined) this.#shares.set(key, [share]);
    else known.push(share);
    this.size += 1;
    while (this.size > EARLY_SHARES_MAX) this.#forgetOldest();
  }

  /** Those of the transaction with the signature at `offset`, which are forgotten here. */
  take(bytes: Uint8Array, offset: number): readonly EarlyShare[] {
    if (this.size === 0) return NONE;
    const key = keyOf(bytes, offset);
    const known = this.#shares.get(key) ?? NONE;
    if (this.#shares.delete(key)) this.size -= known.length;
    return known;
  }

  #forgetOldest(): void {
    for (const [key, { length }] of this.#shares) {
      this.#shares.delete(key);
      this.size -= length;
      return;
    }
  }
}

const NONE: readonly EarlyShare[] = [];

/** A copy: the bytes are lent. */
function keyOf({ buffer, byteOffset }: Uint8Array, offset: number): string {
  return Buffer.from(buffer, byteOffset + offset, SIGNATURE_BYTES).toString("latin1");
}
