/**
 * The one table of reasons why a request was rejected or a delivery did not reach its leader. The
 * names are part of the interface (responses, metrics, receipts, documents): from 1.0 on names are
 * added, never changed or removed.
 *
 * JSON-RPC responds to errors in the request's content with HTTP 200, as the network's own RPC
 * does, because `@solana/kit` hides the body of every other status from its user.
 */

export interface RejectionRow {
  /** HTTP status on the binary endpoint and on every other path that is not JSON-RPC. */
  readonly status: number;
  /** HTTP status on the JSON-RPC endpoint. */
  readonly rpcStatus: number;
  /** JSON-RPC error code. */
  readonly rpcCode: number;
  /** Code of a QUIC stream or connection that is refused. */
  readonly quicCode: number;
  /** Whether the same request may succeed later unchanged. */
  readonly retryable: boolean;
  /** The explanation for the documents. */
  readonly meaning: string;
}

/**
 * In the order in which several errors of one request are reported. Malformed framing, draining, an
 * ingress thread that cannot proxy, an unknown path and a wrong method come before all of them.
 */
export const REJECTIONS = {
  unauthorized: {
    status: 401,
    rpcStatus: 401,
    rpcCode: -32000,
    quicCode: 0x101,
    retryable: false,
    meaning: "key missing, unknown or revoked, or its account disabled",
  },
  rate_limited: {
    status: 429,
    rpcStatus: 429,
    rpcCode: -32005,
    quicCode: 0x102,
    retryable: true,
    meaning: "a rate limit of the account or key, or its number of long polls or streams",
  },
  length_required: {
    status: 411,
    rpcStatus: 411,
    rpcCode: -32600,
    quicCode: 0x103,
    retryable: false,
    meaning: "the request carries Transfer-Encoding; connection closed",
  },
  too_large: {
    status: 413,
    rpcStatus: 413,
    rpcCode: -32600,
    quicCode: 0x104,
    retryable: false,
    meaning: "body larger than 16 KiB (binary) or 128 KiB (JSON-RPC); connection closed",
  },
  parse_error: {
    status: 400,
    rpcStatus: 200,
    rpcCode: -32700,
    quicCode: 0x105,
    retryable: false,
    meaning: "not JSON, or empty",
  },
  invalid_request: {
    status: 400,
    rpcStatus: 200,
    rpcCode: -32600,
    quicCode: 0x106,
    retryable: false,
    meaning: "not a JSON-RPC request",
  },
  method_not_found: {
    status: 400,
    rpcStatus: 200,
    rpcCode: -32601,
    quicCode: 0x107,
    retryable: false,
    meaning: "a JSON-RPC method that is not served here; the message says what to use instead",
  },
  invalid_params: {
    status: 400,
    rpcStatus: 200,
    rpcCode: -32602,
    quicCode: 0x108,
    retryable: false,
    meaning: "wrong params: count, type or encoding",
  },
  undecodable: {
    status: 400,
    rpcStatus: 200,
    rpcCode: -32602,
    quicCode: 0x109,
    retryable: false,
    meaning: "not one complete transaction that leaders would accept",
  },
  tip_missing: {
    status: 400,
    rpcStatus: 200,
    rpcCode: -32602,
    quicCode: 0x10a,
    retryable: false,
    meaning: "no transfer of the minimum tip to a tip account",
  },
  signature_invalid: {
    status: 400,
    rpcStatus: 200,
    rpcCode: -32003,
    quicCode: 0x10b,
    retryable: false,
    meaning: "a signature does not verify",
  },
  no_leader: {
    status: 503,
    rpcStatus: 503,
    rpcCode: -32603,
    quicCode: 0x10c,
    retryable: true,
    meaning: "no leader can be reached now",
  },
  overloaded: {
    status: 503,
    rpcStatus: 503,
    rpcCode: -32603,
    quicCode: 0x10d,
    retryable: true,
    meaning: "overloaded, draining, or no response in time: then it may have been sent",
  },
  internal: {
    status: 500,
    rpcStatus: 500,
    rpcCode: -32603,
    quicCode: 0x10e,
    retryable: true,
    meaning: "internal error; the request may be retried",
  },
  not_found: {
    status: 404,
    rpcStatus: 404,
    rpcCode: -32601,
    quicCode: 0x10f,
    retryable: false,
    meaning: "no such path, or no such transaction for this key",
  },
  method_not_allowed: {
    status: 405,
    rpcStatus: 405,
    rpcCode: -32600,
    quicCode: 0x110,
    retryable: false,
    meaning: "the path exists, but not for this HTTP method",
  },
} as const satisfies Record<string, RejectionRow>;

export type RejectionReason = keyof typeof REJECTIONS;

// `Object.keys` loses the key type; here and below these are the keys of the table.
export const REJECTION_NAMES = Object.keys(REJECTIONS) as readonly RejectionReason[];

/** Why one delivery of an accepted transaction failed or was dropped. */
export const DELIVERY_REASONS = {
  queue_full: "the queue of a leader without a live connection was full",
  expired: "it waited longer than `send.delivery_ttl` for a connection or this machine's socket",
  leader_saturated:
    "the leader granted no stream in time, its queue was full of deliveries of the same or a " +
    "higher rank, or packet loss on the path is too high",
  not_connected: "no connection to that leader was ready",
  connection_lost: "the connection ended before the leader acknowledged the delivery",
  stream_stopped: "the leader stopped the stream",
  too_many_in_flight:
    "more deliveries await this leader's acknowledgement than are tracked, or more events were " +
    "unread than the engine keeps",
  shutting_down: "this edge is stopping",
  stream_too_large: "larger than this leader accepts on one stream",
} as const satisfies Record<string, string>;

export type DeliveryReason = keyof typeof DELIVERY_REASONS;

export const DELIVERY_REASON_NAMES = Object.keys(DELIVERY_REASONS) as readonly DeliveryReason[];

/** Why an accepted transaction ended without a landing that this edge knows of. */
export const END_REASONS = {
  blockhash_expired: "its blockhash is too old for any leader, and no block holds it",
  never_sent: "it was not put on the wire, and will not be",
  tracking_ended:
    "whether it landed is unknown: no block and no expiry was proven while it was tracked",
  table_full: "more transactions are in flight than are tracked, and this was the oldest",
  shutting_down: "this edge stopped before its end was known",
  unconfirmed: "a block held it, and was not confirmed in the time for which it is tracked",
  status_unknown:
    "its blockhash is too old, and the node reports no statuses: whether it landed is unknown",
  blockhash_unknown: "the cluster does not know its blockhash, so no leader can include it",
} as const satisfies Record<string, string>;

export type EndReason = keyof typeof END_REASONS;

export const END_REASON_NAMES = Object.keys(END_REASONS) as readonly EndReason[];

export interface ControlRejectionRow {
  readonly status: number;
  readonly meaning: string;
}

/** Why the control process rejects a request; the `reason` of its responses. */
export const CONTROL_REJECTIONS = {
  unauthorized: { status: 401, meaning: "no session, an ended one, or an unknown token" },
  login_again: { status: 401, meaning: "this needs a login of the last minutes" },
  forbidden: { status: 403, meaning: "the caller lacks the right, or the account is disabled" },
  cross_site: { status: 403, meaning: "the request comes from another site's page" },
  not_found: { status: 404, meaning: "no such path, or no such object of this account" },
  method_not_allowed: { status: 405, meaning: "the path exists, but not for this method" },
  conflict: { status: 409, meaning: "the current state does not allow it" },
  key_refused: { status: 400, meaning: "that key cannot be linked; the reason is never given" },
  too_large: { status: 413, meaning: "the body is larger than 16 KiB" },
  unsupported_media_type: { status: 415, meaning: "the body is not application/json" },
  invalid_request: { status: 400, meaning: "malformed, or a field is missing or out of bounds" },
  rate_limited: { status: 429, meaning: "too many attempts; `Retry-After` gives the time to wait" },
  login_failed: { status: 400, meaning: "the provider's response was rejected" },
  login_expired: { status: 400, meaning: "the login took too long, or was used already" },
  login_unavailable: { status: 503, meaning: "the identity provider cannot be reached" },
  disabled: { status: 403, meaning: "the account is disabled" },
  unavailable: { status: 503, meaning: "the database cannot be reached, or the process drains" },
  internal: { status: 500, meaning: "internal error; the request may be retried" },
} as const satisfies Record<string, ControlRejectionRow>;

export type ControlReason = keyof typeof CONTROL_REJECTIONS;

/** A rejection as the client receives it: reason, message, and the numbers in the message. */
export interface Rejection {
  readonly reason: RejectionReason;
  /** The values found and needed, without a full stop. */
  readonly message: string;
  /** The numbers of the message by name, for programs. */
  readonly data: Readonly<Record<string, string | number>>;
}

/** No connection to a leader of the plan accepts the transaction. */
export const NO_LEADER_REJECTION: Rejection = {
  reason: "no_leader",
  message:
    "no leader can be reached now: no connection to the current or next leaders is live and " +
    "accepts a transaction of this size",
  data: {},
};

/** Every connected leader has a full queue. */
export const LEADERS_FULL_REJECTION: Rejection = {
  reason: "overloaded",
  message:
    "the queue of every connected leader is full, " +
    "and each transaction in it ranks as high or higher",
  data: {},
};

/** Another thread has reserved the transaction. */
export const BUSY_REJECTION = overloaded(
  "another thread is sending this transaction and does not finish",
);

/** The main thread does not read the engine's events. */
export const RING_FULL_REJECTION = overloaded("this edge has fallen behind in accounting");

/** This edge is about to stop. */
export const DRAINING_REJECTION: Rejection = {
  reason: "overloaded",
  message: "this edge is draining and accepts no new work; reconnect to reach another edge",
  data: {},
};

/** The message of `too_large`, of a body. */
export function bodyTooLargeMessage(found: string | number, needed: string | number): string {
  return `the body has ${found} bytes, at most ${needed} are accepted here`;
}

/** `why` has no full stop. */
export function overloaded(why: string): Rejection {
  const message = `${why}; it is safe to send the same transaction again`;
  return { reason: "overloaded", message, data: {} };
}

/** A bug. */
export const INTERNAL_REJECTION: Rejection = {
  reason: "internal",
  message: "internal error; the request may be retried",
  data: {},
};

/** The message of `rate_limited`; `whose` names the limit. */
export function rateLimitMessage(
  whose: string,
  ratePerSecond: string | number,
  burst: string | number,
  retryAfterMs: string | number,
): string {
  return (
    `the rate limit of ${whose} is ${ratePerSecond} requests a second ` +
    `with a burst of ${burst}; the next one is let through in ${retryAfterMs} ms`
  );
}

/** An error's code, such as `ENOENT`, set by the system or a library; null without one. */
export function codeOf(error: unknown): string | null {
  return error instanceof Error && "code" in error ? String(error.code) : null;
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  // Of a connection to a name with several addresses: only the errors of each have a message.
  if (error instanceof AggregateError && error.message === "") {
    return error.errors.map(messageOf).join("; ");
  }
  return error instanceof Error ? error.message : String(error);
}

/** Why `fetch` failed: it says "fetch failed", and keeps the code or the message in the cause. */
export function fetchReasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error) return codeOf(cause) ?? cause.message;
  return error.name === "AbortError" ? "no answer in time" : error.message;
}

/** An error in the operator's setup; ends the command with exit code 1. */
export class SetupError extends Error {
  override readonly name = "SetupError";
}

/** Why no socket could be bound to the address that a key of the configuration has. */
export function cannotListen(
  configKey: string,
  { host, port }: { readonly host: string; readonly port: number },
): SetupError {
  return new SetupError(
    `${configKey}: cannot listen on ${host}:${port}; either the port is in use, ` +
      "perhaps by another edge, or the address does not belong to this machine",
  );
}
