/** The interface from HTTP to the rest of the edge: submit these bytes, respond once. */

import type { SubmitResult } from "../../core/flow.ts";
import type { RequestContext } from "../request-context.ts";

export interface Submission {
  /** The serialized transaction; valid until `Submit` returns. */
  readonly bytes: Uint8Array;
  /** The account whose key sent it. */
  readonly account: string;
  /** That key's id. */
  readonly keyId: string;
  /** The name of the account's plan. */
  readonly plan: string;
  /** `Clock.nowNs` when the request's body was complete. */
  readonly receivedNs: number;
  /** The client's `maxRetries`; null when absent. */
  readonly maxRetries: number | null;
}

/** `done` is called exactly once, before `Submit` returns or later. */
export type Submit = (submission: Submission, done: (result: SubmitResult) => void) => void;

/** The answer to a JSON-RPC call, and the call's id as JSON text. */
export interface CallAnswer {
  readonly id: string;
  readonly result: SubmitResult;
}

/**
 * Submits the transaction of a JSON-RPC call in the form that nearly all clients write; `bytes` is
 * the body. Null for a body of any other form, valid or not: then nothing was done, and its call
 * may be parsed and submitted.
 */
export type SubmitCall = (submission: Submission) => CallAnswer | null;

/** What a request submits with the principal of its key. */
export function submissionOf(
  { principal, receivedNs }: Pick<RequestContext, "principal" | "receivedNs">,
  bytes: Uint8Array,
  maxRetries: number | null,
): Submission {
  const { account, keyId, plan } = principal ?? ANONYMOUS;
  return { bytes, account, keyId, plan: plan.name, receivedNs, maxRetries };
}

/** Unreachable without a principal. */
const ANONYMOUS = { account: "", keyId: "", plan: { name: "" } };
