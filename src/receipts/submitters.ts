/**
 * Which accounts may see a receipt, and each account's receipts in the order in which it sent them.
 *
 *  account ─▶ number ─▶ newest node ─▶ older node ─▶ …      node = place × rows + row
 *
 * A receipt has a few submitter places, each a node in its account's list. The first accounts that
 * sent a transaction take the places; later accounts cannot see the receipt. First places are
 * contiguous, so the memory of the others stays untouched while each receipt has one submitter. An
 * account without receipts is removed.
 *
 * Hot path: `add` and `release` run once per transaction.
 */

import { NONE } from "./columns.ts";
import { RECEIPT_SUBMITTERS_MAX } from "./limits.ts";

/** The number of no account. */
export const NO_ACCOUNT = 0;

export class ReceiptSubmitters {
  readonly #numbers = new Map<string, number>();
  /** By the account's number. */
  readonly #names: string[] = [""];
  readonly #newest: number[] = [NONE];
  readonly #free: number[] = [];
  /** The account number of each node, NO_ACCOUNT if the place is free. */
  readonly #account: Uint32Array;
  readonly #newer: Int32Array;
  readonly #older: Int32Array;

  readonly #rowsMax: number;

  constructor(rowsMax: number) {
    this.#rowsMax = rowsMax;
    this.#account = new Uint32Array(rowsMax * RECEIPT_SUBMITTERS_MAX);
    this.#newer = new Int32Array(rowsMax * RECEIPT_SUBMITTERS_MAX);
    this.#older = new Int32Array(rowsMax * RECEIPT_SUBMITTERS_MAX);
  }

  get bytes(): number {
    return this.#account.byteLength + this.#newer.byteLength + this.#older.byteLength;
  }

  /** Accounts that have a receipt. */
  get accounts(): number {
    return this.#numbers.size;
  }

  /** The account's number, valid while it has a receipt; NO_ACCOUNT if it has none. */
  numberOf(account: string): number {
    return this.#numbers.get(account) ?? NO_ACCOUNT;
  }

  /** Gives an account access to a row if a place is free. */
  add(row: number, account: string): void {
    const number = this.#numbers.get(account) ?? NO_ACCOUNT;
    for (let node = row; node < this.#account.length; node += this.#rowsMax) {
      const submitter = this.#account[node];
      if (submitter === NO_ACCOUNT) {
        this.#link(node, number === NO_ACCOUNT ? this.#enter(account) : number);
        return;
      }
      if (submitter === number) return;
    }
  }

  /** The node of an account in a row, or NONE. */
  nodeOf(row: number, number: number): number {
    if (number === NO_ACCOUNT) return NONE;
    for (let node = row; node < this.#account.length; node += this.#rowsMax) {
      const submitter = this.#account[node];
      if (submitter === number) return node;
      if (submitter === NO_ACCOUNT) return NONE;
    }
    return NONE;
  }

  /** The account at that place of a row, from 0; null if it and the later ones are free. */
  submitterAt(row: number, place: number): string | null {
    const number = this.#account[place * this.#rowsMax + row] ?? NO_ACCOUNT;
    return number === NO_ACCOUNT ? null : (this.#names[number] ?? null);
  }

  /** The newest node of an account, or NONE. */
  newest(number: number): number {
    return this.#newest[number] ?? NONE;
  }

  /** The next older node of the same account, or NONE. */
  older(node: number): number {
    return this.#older[node] ?? NONE;
  }

  rowOf(node: number): number {
    return node % this.#rowsMax;
  }

  /** Frees all places of a row. */
  release(row: number): void {
    for (let node = row; node < this.#account.length; node += this.#rowsMax) {
      const submitter = this.#account[node] ?? NO_ACCOUNT;
      // Places are filled in order.
      if (submitter === NO_ACCOUNT) return;
      this.#unlink(node, submitter);
    }
  }

  #enter(account: string): number {
    const number = this.#free.pop() ?? this.#names.length;
    this.#names[number] = account;
    this.#newest[number] = NONE;
    this.#numbers.set(account, number);
    return number;
  }

  #link(node: number, number: number): void {
    const next = this.#newest[number] ?? NONE;
    this.#account[node] = number;
    this.#newer[node] = NONE;
    this.#older[node] = next;
    if (next !== NONE) this.#newer[next] = node;
    this.#newest[number] = node;
  }

  #unlink(node: number, number: number): void {
    const newer = this.#newer[node] ?? NONE;
    const older = this.#older[node] ?? NONE;
    this.#account[node] = NO_ACCOUNT;
    if (older !== NONE) this.#newer[older] = newer;
    if (newer !== NONE) this.#older[newer] = older;
    else this.#newest[number] = older;
    if (newer !== NONE || older !== NONE) return;
    this.#numbers.delete(this.#names[number] ?? "");
    this.#names[number] = "";
    this.#free.push(number);
  }
}
