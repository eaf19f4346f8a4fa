/**
 * Reads the relevant headers of a request in one pass and validates its framing.
 *
 * uWebSockets.js uses the first of several Content-Length headers, treats an empty one as 0 and an
 * empty Transfer-Encoding as absent. A proxy in front may read each of them differently, and then
 * the two disagree on where a request ends (request smuggling). So every header is checked: only
 * one plain Content-Length and no Transfer-Encoding at all is accepted.
 *
 * The key is that of the first place that has one: `api-x-token`, `x-api-key`, `Authorization:
 * Bearer`, the query parameter `api-key`. Later places are not examined.
 *
 * Hot path: one record for the process, filled again for each request.
 */

import type { Rejection } from "../core/errors.ts";

/** The part of a request that is read here. */
export interface HeaderSource {
  forEach(visit: (key: string, value: string) => void): void;
  /** The query without its question mark. */
  getQuery(): string;
}

export interface Framing {
  /** The key as sent; "" for none. */
  token: string;
  /** Whether the query has that key. */
  isKeyInQuery: boolean;
  /** Whether the body is text (`content-type: text/plain`). */
  isText: boolean;
  /** The body's size in bytes; 0 without Content-Length (RFC 9112, 6.3). */
  bodySize: number;
  /** The framing error; null for none. After an error the connection cannot be reused. */
  rejection: Rejection | null;
  /** Value of the forwarded header (forwarded-header.ts); "" for none. */
  forwarded: string;
  /** Whether the client announces that no request follows (`connection: close`). */
  isLast: boolean;
  /** Whether it does so in a form that the library overlooks, so that it keeps the connection. */
  isCloseUnseen: boolean;
}

/** Filled by `readFraming`; valid until the next request. */
const framing: Framing = {
  token: "",
  isKeyInQuery: false,
  isText: false,
  bodySize: 0,
  rejection: null,
  forwarded: "",
  isLast: false,
  isCloseUnseen: false,
};
let apiKey = "";
let bearer = "";
let lengthText: string | null = null;
let hasConnectionHeader = false;
let forwardedHeaderName = "";

/**
 * Reads the headers. Returns one shared record, valid until the next call. `forwardedHeader` is the
 * name of the header that ingress threads add; "" without them.
 */
export function readFraming(source: HeaderSource, forwardedHeader = ""): Readonly<Framing> {
  framing.token = "";
  framing.isKeyInQuery = false;
  framing.isText = false;
  apiKey = "";
  bearer = "";
  framing.bodySize = 0;
  framing.rejection = null;
  framing.forwarded = "";
  framing.isLast = false;
  framing.isCloseUnseen = false;
  hasConnectionHeader = false;
  lengthText = null;
  forwardedHeaderName = forwardedHeader;
  source.forEach(visit);
  if (framing.token === "") framing.token = apiKey || bearer;
  if (framing.token === "") {
    framing.token = queryKey(source.getQuery());
    framing.isKeyInQuery = framing.token !== "";
  }
  return framing;
}

function queryKey(query: string): string {
  if (query === "") return "";
  return new URLSearchParams(query).getAll("api-key").find((key) => key !== "") ?? "";
}

/** Names arrive in lower case, values without surrounding blanks. */
function visit(key: string, value: string): void {
  switch (key) {
    case "api-x-token":
      if (framing.token === "") framing.token = value;
      return;
    case "x-api-key":
      if (apiKey === "") apiKey = value;
      return;
    case "authorization":
      if (bearer === "") bearer = BEARER.exec(value)?.[1] ?? "";
      return;
    case "content-type":
      framing.isText ||= TEXT.test(value);
      return;
    case "content-length":
      if (lengthText === null) readLength(value);
      else if (lengthText !== value) framing.rejection ??= LENGTHS_DIFFER;
      return;
    case "transfer-encoding":
      framing.rejection = TRANSFER_ENCODING;
      return;
    case "connection":
      if (!framing.isLast && CLOSE.test(value)) {
        framing.isLast = true;
        // The library takes any five characters as `close`, in the first of these headers alone.
        framing.isCloseUnseen = hasConnectionHeader || value.length > "close".length;
      }
      hasConnectionHeader = true;
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

/** The number that 1 to 9 digits make, -1 for any other text; a regular expression takes 3x. */
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

/** The key of `Authorization: Bearer` (RFC 6750, 2.1). */
const BEARER = /^bearer +([!-~]+)$/i;
const TEXT = /^text\/plain[ \t]*(?:;|$)/i;
/** Whether `close` is among the options of a Connection header. */
const CLOSE = /(^|,)[ \t]*close[ \t]*(,|$)/i;
/** The same bound as in uWebSockets.js's parser. */
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
  message: "the request's Content-Length is not a number of bytes, plain decimal digits are needed",
  data: {},
};
