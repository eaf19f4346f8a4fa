/** How receipts are read: HTTP needs this interface, the receipts stage implements it. */

import type { ReceiptState } from "./receipt-state.ts";

/** How far a transaction must have progressed before the response. */
export type WaitGoal = "processed" | "landed";

/** Filter and position of a list. */
export interface ListQuery {
  /** Only those in one of these states; null for all. */
  readonly states: readonly ReceiptState[] | null;
  readonly limit: number;
  /** Only those older than this signature; null for all. */
  readonly before: string | null;
}

/** Receives one change of state; returns false to stop reading after it. */
export type OnChange<Receipt> = (number: number, receipt: Receipt) => boolean;

/** Receives one change of a wanted account; `receipt` builds the receipt when called. */
export type OnAnyChange<Receipt> = (
  number: number,
  state: ReceiptState,
  account: string,
  receipt: () => Receipt,
) => void;

export interface ChangeNumbers {
  readonly first: number;
  readonly next: number;
  /** Names the numbers: those of one name are comparable; absent: those of this process. */
  readonly epoch?: string;
  /** The number of the change after that one; absent: the next higher one. */
  after?(number: number): number;
  /**
   * Whether `after` of that number can no longer change. It can until the process that this one
   * replaces has said which change its streams were told last. Absent: it cannot.
   */
  isAfterKnown?(number: number): boolean;
}

export interface ReceiptSource<Receipt = object, List = object> {
  /** The receipt of a transaction that this account sent; null when there is none. */
  find(signature: string, account: string): Receipt | null;
  /** A ticket for a receipt that `find` would return; null when there is none. */
  ticket(signature: string, account: string): number | null;
  /** Whether the ticket's transaction has reached the goal, has ended, or was evicted. */
  reached(ticket: number, goal: WaitGoal): boolean;
  /** An account's receipts, newest first. */
  list(account: string, query: ListQuery): List;
  /** The numbers of the oldest change kept, and of the next one. */
  readonly changes: ChangeNumbers;
  /**
   * Asks the process that this one replaces for all that it knows; resolves when that is here, or
   * the time is up. null, or absent: there is no such process.
   */
  catchUp?(): Promise<void> | null;
  /**
   * Calls `take` for this account's changes to one of `states` from number `from` on, checking at
   * most `stepsMax` changes, and `onEvicted` for each that may be this account's and is skipped
   * because its receipt was evicted. Returns the number to continue from.
   */
  readChanges(
    account: string,
    from: number,
    limits: { readonly states: readonly ReceiptState[] | null; readonly stepsMax: number },
    take: OnChange<Receipt>,
    onEvicted?: () => void,
  ): number;
  /**
   * Calls `take` for the changes of all accounts that `wants` accepts from number `from` on,
   * checking at most `stepsMax` changes. Returns the number to continue from.
   */
  eachChange(
    from: number,
    which: { readonly wants: (account: string) => boolean; readonly stepsMax: number },
    take: OnAnyChange<Receipt>,
  ): number;
}
