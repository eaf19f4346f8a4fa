/**
 * The account of each key slot, in memory that ingress threads read (`native/src/submit`): one f64,
 * the account's number. By it the engine finds the landed share that ranks a transaction.
 */

import { CACHED_KEYS_MAX } from "../limits/bounds.ts";
import { accountNumber } from "../send/native/account-number.ts";

export class KeyAccounts {
  readonly memory = new SharedArrayBuffer(CACHED_KEYS_MAX * Float64Array.BYTES_PER_ELEMENT);
  readonly #numbers = new Float64Array(this.memory);

  /** Must be called before a thread is granted the key. */
  set(keySlot: number, account: string): void {
    this.#numbers[keySlot] = accountNumber(account);
  }
}
