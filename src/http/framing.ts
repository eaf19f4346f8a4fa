/**
 * Reads what matters of a request's headers, in one pass, and judges its framing.
 *
 * uWebSockets.js takes the first of several Content-Length headers, an empty one for 0, and an
 * empty Transfer-Encoding for none; a proxy in front may read each of them differently, and then
 * the two disagree on where a request ends. So every header is looked at: only one plain
 * Content-Length and no Transfer-Encoding whatever gets past.
 *
 * Hot path: one record for the whole process, filled anew for each request.
 */

import type { Rejection } from "../core/errors.ts";

/** The part of a request that is read here. */
export interface HeaderSource {
  forEach(visit: (key: string, value: string) => void): void;
}

export interface Framing {
  /** The key that was sent, "" for none. */
  token: string;
  /** The body's size in bytes; without Content-Length there is none (RFC 9112, 6.3). */
  bodySize: number;
  /** What is wrong with the framing, null for nothing. The connection cannot be used again. */
  rejection: Rejection | null;
  /** What a front that relays it says of it (relayed.ts), "" for nothing. */
  forwarded: string;
  /** Whether the client sends nothing behind it that is to be carried out. */
  isLast: boolean;
}

/** Filled by `readFraming`; holds until the next request. */
const framing: Framing = { token: "", bodySize: 0, rejection: null, forwarded: "", isLast: false };
let lengthText: string | null = null;
let forwardedHeaderName = "";

/**
 * Reads the headers. The answer is one shared record, to be used up before the next call.
 * `forwardedHeader` is the name of the line that fronts write, "" where nobody does.
 */
export function readFraming(source: HeaderSource, forwardedHeader = ""): Readonly<Framing> {
  framing.token = "";
  framing.bodySize = 0;
  framing.rejection = null;
  framing.forwarded = "";
  framing.isLast = false;
  lengthText = null;
  forwardedHeaderName = forwardedHeader;
  source.forEach(visit);
  return framing;
}

/** Names arrive in lower case, values without blanks around them. */
function visit(key: string, value: string): void {
  switch (key) {
    case "api-x-token":
      if (framing.token === "") framing.token = value;
      return;
    case "content-length":
      if (lengthText === null) readLength(value);
      else if (lengthText !== value) framing.rejection ??= LENGTHS_DIFFER;
      return;
    case "transfer-encoding":
      framing.rejection = TRANSFER_ENCODING;
      return;
    case "connection":
      framing.isLast ||= CLOSE.test(value);
      return;
    case forwardedHeaderName:
      if (framing.forwarded === "") framing.forwarded = value;
      return;
  }
}

function readLength(value: string): void {
  lengthText = value;
  const size = plainNumber(value);
  if (size >= 0) framing.bodySize = size;
  else framing.rejection ??= LENGTH_MALFORMED;
}

/** The number that 1 to 9 digits make, -1 for any other text; an expression takes thrice this. */
function plainNumber(text: string): number {
  if (text.length === 0 || text.length > LENGTH_DIGITS_MAX) return -1;
  let number = 0;
  for (let at = 0; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    number = number * 10 + digit;
  }
  return number;
}

/** Whether `close` is among the options of a Connection header. */
const CLOSE = /(^|,)[ \t]*close[ \t]*(,|$)/i;
/** The same bound as the parser underneath has. */
const LENGTH_DIGITS_MAX = 9;
const ZERO = 0x30;

const TRANSFER_ENCODING: Rejection = {
  reason: "length_required",
  message: "the request carries Transfer-Encoding, a body with Content-Length is needed",
  data: {},
};
const LENGTHS_DIFFER: Rejection = {
  reason: "invalid_request",
  message: "the request carries two Content-Length headers that differ, one is needed",
  data: {},
};
const LENGTH_MALFORMED: Rejection = {
  reason: "invalid_request",
  message: "the request's Content-Length is no number of bytes, plain decimal digits are needed",
  data: {},
};
