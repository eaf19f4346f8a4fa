/** What ingress asks of the rest of the edge: take these bytes, answer once. */

import type { Answer } from "../core/flow.ts";
import type { KeyOwner } from "./gate.ts";
import type { MoveReason } from "./moved.ts";

export interface Submission {
  /** The serialized transaction; lent until `Submit` returns. */
  readonly bytes: Uint8Array;
  /** The account whose key sent it. */
  readonly account: string;
  /** That key's name. */
  readonly keyId: string;
  /** `Clock.nowNs` when the request's body was complete. */
  readonly receivedNs: number;
  /** The sender's `maxRetries`; null when not given. */
  readonly maxRetries: number | null;
}

/** `done` is called exactly once, before `Submit` returns or later. */
export type Submit = (submission: Submission, done: (answer: Answer) => void) => void;

/** What a front is given, with what the main thread needs for its books. */
export interface FrontSubmission extends Omit<Submission, "account" | "keyId"> {
  /** Whose key let it in. */
  readonly owner: KeyOwner;
  /** Bytes of the request's body. */
  readonly bodyBytes: number;
}

/** Answers at once, or declines and says why: nothing was done with it, and another may try. */
export type TrySubmit = (submission: FrontSubmission) => Answer | MoveReason;
