/**
 * Checks that need only the headers, in this order: framing, draining, key, limit, size. The body
 * is read afterwards, so no client makes this process buffer or parse bytes that it rejects anyway.
 *
 * Exception: getHealth and other methods that need no key share their paths with sendTransaction. A
 * body too small for any transaction is therefore read before a missing key, or draining, leads to
 * a rejection.
 *
 * Hot path: no allocation of its own for an accepted request.
 */

import type { Clock } from "../core/clock.ts";
import { bodyTooLargeMessage, DRAINING_REJECTION, type Rejection } from "../core/errors.ts";
import {
  type AccessControl,
  type LimitedBy,
  limitOf,
  limitRejection,
  type Principal,
  retryAfterSeconds,
} from "../limits/access-control.ts";
import { type HeaderSource, readFraming } from "./framing.ts";
import {
  KEYLESS_BODY_BYTES_MAX,
  RAW_BODY_BYTES_MAX,
  RPC_BODY_BYTES_MAX,
  UNREAD_BODY_BYTES_MAX,
} from "./limits.ts";
import type { BodyHandler, RequestContext } from "./request-context.ts";
import type { RequestTracker } from "./request-tracker.ts";
import { NO_EXTRAS } from "./response.ts";
import type { Health } from "./routes.ts";
import { createRpcHandler, type ServiceInfo } from "./submit/json-rpc.ts";
import { createRawHandler } from "./submit/raw.ts";
import type { Submit, SubmitCall } from "./submit/submission.ts";

export interface RequestCheckDeps {
  readonly clock: Clock;
  readonly access: AccessControl;
  readonly submit: Submit;
  readonly tracker: RequestTracker;
  /** Submits JSON-RPC calls in the common form; null: all calls are parsed. */
  readonly submitCall: SubmitCall | null;
  /** Name of the header that ingress threads add; "" without them. */
  readonly forwardedHeader: string;
  readonly health: Pick<Health, "isDraining">;
  readonly info: ServiceInfo;
}

/** One entry point per route that has a body. */
export interface RequestChecks {
  raw(context: RequestContext, headers: HeaderSource): void;
  rpc(context: RequestContext, headers: HeaderSource): void;
}

export function createRequestChecks(deps: RequestCheckDeps): RequestChecks {
  const { clock, access, tracker, forwardedHeader } = deps;
  const rawHandler = createRawHandler(deps);
  const rpcHandler = createRpcHandler(deps, DRAINING_REJECTION);

  /** `keylessMax` is the largest body that is read without a key; -1 for none. */
  function checkRequest(
    context: RequestContext,
    headers: HeaderSource,
    sizeMax: number,
    keylessMax: number,
    handler: BodyHandler,
  ): void {
    const framing = readFraming(headers, forwardedHeader);
    const { token, bodySize, rejection, forwarded } = framing;
    context.useFraming(framing);
    if (rejection !== null) {
      context.rejectAndClose(rejection);
      return;
    }
    if (forwardedHeader !== "") context.forwardedAddress = forwarded;
    if (tracker.draining) {
      if (bodySize <= keylessMax) context.receive(bodySize, handler);
      else context.reject(DRAINING_REJECTION);
    } else {
      const principal = access.authenticate(token, context);
      if (principal === null) checkAnonymous(context, token, bodySize, keylessMax, handler);
      else checkLimit(context, principal, bodySize, sizeMax, handler);
    }
  }

  function checkAnonymous(
    context: RequestContext,
    token: string,
    bodySize: number,
    keylessMax: number,
    handler: BodyHandler,
  ): void {
    if (bodySize <= keylessMax) {
      context.token = token;
      context.receive(bodySize, handler);
    } else if (bodySize > UNREAD_BODY_BYTES_MAX)
      context.rejectAndClose(access.rejectionOf(token, context));
    else context.reject(access.rejectionOf(token, context));
  }

  function checkLimit(
    context: RequestContext,
    principal: Principal,
    bodySize: number,
    sizeMax: number,
    handler: BodyHandler,
  ): void {
    context.principal = principal;
    const wait = access.charge(principal, clock.nowNs());
    if (wait > 0) rejectLimited(context, principal, wait, access.limitedBy, bodySize);
    else receiveWithin(context, bodySize, sizeMax, handler);
  }

  return {
    raw(context, headers) {
      checkRequest(context, headers, RAW_BODY_BYTES_MAX, -1, rawHandler);
    },
    rpc(context, headers) {
      checkRequest(context, headers, RPC_BODY_BYTES_MAX, KEYLESS_BODY_BYTES_MAX, rpcHandler);
    },
  };
}

function receiveWithin(
  context: RequestContext,
  bodySize: number,
  sizeMax: number,
  handler: BodyHandler,
): void {
  if (bodySize > sizeMax) context.rejectAndClose(tooLarge(bodySize, sizeMax));
  else context.receive(bodySize, handler);
}

function rejectLimited(
  context: RequestContext,
  principal: Principal,
  wait: number,
  by: LimitedBy,
  bodySize: number,
): void {
  const rejection = limitRejection(principal, wait, by);
  const plan = limitOf(principal, by);
  const extras = { ...NO_EXTRAS, retryAfterSeconds: retryAfterSeconds(wait), plan };
  if (bodySize > UNREAD_BODY_BYTES_MAX) context.rejectAndClose(rejection, extras);
  else context.reject(rejection, extras);
}

export function tooLarge(found: number, needed: number): Rejection {
  return {
    reason: "too_large",
    message: bodyTooLargeMessage(found, needed),
    data: { found, needed },
  };
}
