/**
 * The response format: status lines, headers and JSON bodies, by concatenation of constant parts.
 * Every response that a browser may see allows any origin, errors too, because a browser hides the
 * reason otherwise. A rejection's message is also in the status line: `@solana/kit` shows its user
 * nothing else of a response that is not 200.
 *
 * Header blocks here start with the value of `content-type`, followed by further header lines, so
 * that a single call into the native library writes them all.
 */

import { REJECTIONS, type Rejection } from "../core/errors.ts";
import type { RatePlan } from "../limits/access-control.ts";
import { STATUS_MESSAGE_CHARS_MAX } from "./limits.ts";

export const STATUS_OK = "200 OK";
export const STATUS_NO_CONTENT = "204 No Content";
export const STATUS_UNAVAILABLE = "503 Service Unavailable";

/** Any origin. */
const COMMON_LINES = "access-control-allow-origin: *";

/**
 * The least time for which the library keeps an idle connection. Its timeout is 10 s, checked every
 * 4 s, so a connection closes after 8 to 12 s (uWebSockets `HTTP_IDLE_TIMEOUT_S`, uSockets
 * `LIBUS_TIMEOUT_GRANULARITY`, 2026-11).
 */
export const LIBRARY_IDLE_MS = 8_000;

/**
 * The line that tells clients how long they may keep an idle connection: less by a second, in which
 * a request may be on its way.
 */
export function keepAliveLine(idleTimeoutMs: number): string {
  return `\r\nkeep-alive: timeout=${Math.max(1, Math.floor(idleTimeoutMs / 1_000) - 1)}`;
}

/** Headers of a success: as few as possible. */
export const HEADERS_JSON = `application/json\r\n${COMMON_LINES}`;
export const HEADERS_TEXT = `text/plain\r\n${COMMON_LINES}\r\ncache-control: no-store`;

/** Headers of all other JSON responses. */
const HEADERS_REJECTION =
  `${HEADERS_JSON}\r\ncache-control: no-store` +
  "\r\naccess-control-expose-headers: retry-after, ratelimit, ratelimit-policy";
/**
 * Headers of an event stream: the connection is not reused after it, and the last line keeps nginx
 * from buffering it.
 */
export const HEADERS_EVENTS =
  "text/event-stream\r\naccess-control-allow-origin: *" +
  "\r\ncache-control: no-store\r\nconnection: close\r\nx-accel-buffering: no";
export const HEADERS_DOCUMENT = `${HEADERS_JSON}\r\ncache-control: no-store`;

/**
 * The line that warns of a key in the query, after all others. The field is that of RFC 7234, 5.5,
 * which RFC 9111 gave up and whose readers remain.
 */
export const KEY_IN_QUERY_LINE =
  '\r\nwarning: 299 touchdown "the key is in the query string, where proxies and logs keep it; ' +
  'send it in the header api-x-token"';

/** Headers of a preflight response; browsers may cache it for a day. */
export const PREFLIGHT_HEADERS: readonly (readonly [string, string])[] = [
  ["access-control-allow-origin", "*"],
  ["access-control-allow-methods", "GET, HEAD, POST, OPTIONS"],
  [
    "access-control-allow-headers",
    "content-type, solana-client, api-x-token, x-api-key, authorization, last-event-id, *",
  ],
  ["access-control-max-age", "86400"],
];

/** Headers of a rejection that its reason does not determine. */
export interface RejectionHeaders {
  /** Whole seconds for `Retry-After`; null for the reason's own default. */
  readonly retryAfterSeconds: number | null;
  /** The plan whose limit was exceeded; null for another reason. */
  readonly plan: RatePlan | null;
  /** The value of `Allow`; null for none. */
  readonly allow: string | null;
}

export const NO_EXTRAS: RejectionHeaders = { retryAfterSeconds: null, plan: null, allow: null };

export function rejectionHeaders(rejection: Rejection, extras: RejectionHeaders): string {
  let headers = HEADERS_REJECTION;
  const { status } = REJECTIONS[rejection.reason];
  const passes = status === 429 || status === 503;
  const seconds = extras.retryAfterSeconds ?? (passes ? 1 : null);
  if (seconds !== null) headers += `\r\nretry-after: ${seconds}`;
  if (extras.plan !== null) headers += rateLimitLines(extras.plan, seconds ?? 1);
  if (extras.allow !== null) headers += `\r\nallow: ${extras.allow}`;
  if (status === 401) headers += '\r\nwww-authenticate: ApiKey header="api-x-token"';
  return headers;
}

/** The fields of draft-ietf-httpapi-ratelimit-headers-11, 2026-05. */
function rateLimitLines(plan: RatePlan, seconds: number): string {
  // Quotas are integers there, so a rate below one per second is stated over a longer window.
  const slow = plan.ratePerSecond < 1;
  const quota = slow ? 1 : Math.floor(plan.ratePerSecond);
  const window = slow ? Math.ceil(1 / plan.ratePerSecond) : 1;
  const name = `"${plan.name.replace(/[^\x20-\x7e]|["\\]/g, "_")}"`;
  return (
    `\r\nratelimit-policy: ${name};q=${quota};w=${window}` +
    `\r\nratelimit: ${name};r=0;t=${seconds}`
  );
}

/** The rest of the status line: code, title and the rejection's message. */
export function rejectionStatus(status: number, rejection: Rejection): string {
  const message = rejection.message.slice(0, STATUS_MESSAGE_CHARS_MAX);
  return `${status} ${TITLES[status] ?? "Refused"}: ${message.replace(/[^\x20-\x7e]/g, "?")}`;
}

/** The binary endpoint's response to an accepted transaction. */
export function rawAccepted(signature: string): string {
  return `{"success":true,"signature":"${signature}"}`;
}

/** The binary endpoint's rejection; also that of every path other than JSON-RPC. */
export function rawRejected(rejection: Rejection): string {
  const message = JSON.stringify(rejection.message);
  return `{"success":false,"error":${message},"reason":"${rejection.reason}"}`;
}

/** A JSON-RPC result that is a plain string; `id` is JSON text. */
export function rpcResult(id: string, result: string): string {
  return `{"jsonrpc":"2.0","result":"${result}","id":${id}}`;
}

/** A JSON-RPC result that is JSON text, as `id` is. */
export function rpcResultJson(id: string, json: string): string {
  return `{"jsonrpc":"2.0","result":${json},"id":${id}}`;
}

/** The response of a node that is not healthy, as Agave's RPC gives it; `id` is JSON text. */
export function rpcUnhealthy(id: string): string {
  return (
    '{"jsonrpc":"2.0","error":{"code":-32005,"message":"Node is unhealthy",' +
    `"data":{"numSlotsBehind":null}},"id":${id}}`
  );
}

/** A JSON-RPC error; `id` is JSON text. */
export function rpcRejected(id: string, rejection: Rejection): string {
  const row = REJECTIONS[rejection.reason];
  const message = JSON.stringify(rejection.message);
  const data = JSON.stringify({
    ...rejection.data,
    reason: rejection.reason,
    retryable: row.retryable,
    // `@solana/kit` replaces the message of -32003 by its own text.
    message: rejection.message,
  });
  return (
    `{"jsonrpc":"2.0","error":{"code":${row.rpcCode},"message":${message},` +
    `"data":${data}},"id":${id}}`
  );
}

const TITLES: Readonly<Record<number, string>> = {
  200: "OK",
  400: "Bad Request",
  401: "Unauthorized",
  404: "Not Found",
  405: "Method Not Allowed",
  411: "Length Required",
  413: "Content Too Large",
  429: "Too Many Requests",
  500: "Internal Server Error",
  503: "Service Unavailable",
};
