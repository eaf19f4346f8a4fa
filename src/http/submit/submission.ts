/** What ingress asks of the rest of the edge: take these bytes, answer once. */

import type { SubmitResult } from "../../core/flow.ts";

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
export type Submit = (submission: Submission, done: (result: SubmitResult) => void) => void;
