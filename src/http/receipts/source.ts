/** Where receipts come from, as far as ingress needs to know: the reader of the stage observe. */

import type { ReceiptState } from "../../core/receipt-state.ts";
import type { ListQuery, WaitGoal } from "./query.ts";

/** Takes one change of state; false ends the reading behind it. */
export type OnChange = (number: number, receipt: object) => boolean;

/** Takes one change of an account that is wanted; `receipt` makes the receipt when it is called. */
export type OnAnyChange = (
  number: number,
  state: ReceiptState,
  account: string,
  receipt: () => object,
) => void;

export interface ReceiptSource {
  /** What became of a transaction that this account sent; null when there is no such. */
  find(signature: string, account: string): object | null;
  /** What stands for a receipt that `find` would show; null when there is no such. */
  ticket(signature: string, account: string): number | null;
  /** Whether what the ticket stands for has come that far, has ended, or is gone. */
  reached(ticket: number, goal: WaitGoal): boolean;
  /** An account's receipts, newest first. */
  list(account: string, query: ListQuery): object;
  /** The numbers of the oldest change that is kept, and of the next one that comes. */
  readonly changes: { readonly first: number; readonly next: number };
  /**
   * Tells `take` of this account's changes to one of `states` from number `from` on, looking at
   * `stepsMax` changes at most. Answers the number to go on from.
   */
  readChanges(
    account: string,
    from: number,
    limits: { readonly states: readonly ReceiptState[] | null; readonly stepsMax: number },
    take: OnChange,
  ): number;
  /**
   * Tells `take` of the changes of all accounts that it `wants` from number `from` on, looking at
   * `stepsMax` changes at most. Answers the number to go on from.
   */
  eachChange(
    from: number,
    which: { readonly wants: (account: string) => boolean; readonly stepsMax: number },
    take: OnAnyChange,
  ): number;
}
