/**
 * The binary endpoint: the body is the transaction, nothing else.
 *
 * Hot path: the received view of the bytes is passed on; one closure per request, for the response.
 */

import type { Clock } from "../../core/clock.ts";
import type { BodyHandler, RequestContext } from "../request-context.ts";
import type { RequestTracker } from "../request-tracker.ts";
import type { Submit } from "./submission.ts";

export function createRawHandler(deps: {
  readonly clock: Clock;
  readonly submit: Submit;
  readonly tracker: RequestTracker;
}): BodyHandler {
  const { clock, submit, tracker } = deps;
  return {
    handle(context: RequestContext, bytes: Uint8Array): void {
      // Already set for a request that an ingress thread proxied with its receive time.
      const receivedNs = context.receivedNs === 0 ? clock.nowNs() : context.receivedNs;
      context.receivedNs = receivedNs;
      const { account, keyId } = context.principal ?? ANONYMOUS;
      const isVerified = context.proxied?.isVerified ?? false;
      const submission = { bytes, account, keyId, receivedNs, maxRetries: null, isVerified };
      submit(submission, (result) => context.respond(result));
      if (context.open) tracker.enqueue(context);
    },
  };
}

/** Unreachable without a principal. */
const ANONYMOUS = { account: "", keyId: "" };
