/**
 * The network's errors of landed transactions, each text stored once: thousands of transactions
 * fail in the same few ways. Texts are reference-counted by receipts and removed with the last one;
 * a text that is too long or exceeds the limit is not kept, and its receipt says so.
 */

import { RECEIPT_ERROR_CHARS_MAX, RECEIPT_ERRORS_MAX } from "./limits.ts";

/** Numbers for no error, and for an error that is not kept. */
export const NO_ERROR = 0;
const NOT_KEPT = 0xffff;
/** Placeholder in a receipt for an error that is not kept; JSON text. */
const NOT_KEPT_TEXT = '"an error whose text is not kept"';

export class ReceiptErrors {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [""];
  readonly #users: number[] = [0];
  readonly #free: number[] = [];

  /** Number of stored texts. */
  get size(): number {
    return this.#numbers.size;
  }

  /** The number of a text; adds a reference. */
  take(text: string | null): number {
    if (text === null) return NO_ERROR;
    const known = this.#numbers.get(text);
    if (known !== undefined) {
      this.#users[known] = (this.#users[known] ?? 0) + 1;
      return known;
    }
    if (text.length > RECEIPT_ERROR_CHARS_MAX || this.size >= RECEIPT_ERRORS_MAX) return NOT_KEPT;
    const number = this.#free.pop() ?? this.#texts.length;
    this.#texts[number] = text;
    this.#users[number] = 1;
    this.#numbers.set(text, number);
    return number;
  }

  /** Removes a reference. */
  release(number: number): void {
    if (number === NO_ERROR || number === NOT_KEPT) return;
    const users = (this.#users[number] ?? 1) - 1;
    this.#users[number] = users;
    if (users > 0) return;
    this.#numbers.delete(this.#texts[number] ?? "");
    this.#texts[number] = "";
    this.#free.push(number);
  }

  /** The error as JSON text; null for none. */
  at(number: number): string | null {
    if (number === NO_ERROR) return null;
    return number === NOT_KEPT ? NOT_KEPT_TEXT : (this.#texts[number] ?? NOT_KEPT_TEXT);
  }
}
