/**
 * Detects what a client sent instead of a transaction: text that encodes one, or an unsigned
 * message. These are the most common first mistakes of developers, and "signature count 65" would
 * not explain them. Only rejected bodies are examined, and only their first bytes.
 */

import { DECODE_ERROR, reasonOf } from "../core/decode-errors.ts";
import type { Rejected } from "../core/flow.ts";
import { parseMessage } from "./legacy.ts";
import { DIAGNOSIS_SAMPLE_BYTES_MAX } from "./limits.ts";
import { byteAt, createParseState, finish, startParse } from "./parse-state.ts";
import { createTipAccounts } from "./tip.ts";

/** The same rejection, or a more specific one where the bytes are a known mistake. */
export function diagnose(bytes: Uint8Array, rejected: Rejected): Rejected {
  if (bytes.length === 0 || reasonOf(rejected.errorCode) !== "undecodable") return rejected;
  const text = textErrorCode(bytes);
  if (text !== null) return { kind: "rejected", errorCode: text, found: bytes.length, needed: 0 };
  if (!isMessage(bytes)) return rejected;
  return { kind: "rejected", errorCode: DECODE_ERROR.message_only, found: bytes.length, needed: 0 };
}

/** Shorter text is not an encoded transaction. */
const ENCODED_LENGTH_MIN = 64;

const JSON_START = /^[[{"]/;
const HEX = /^(0x)?[0-9a-fA-F]+$/;
const BASE58 = /^[1-9A-HJ-NP-Za-km-z]+$/;
const BASE64 = /^[A-Za-z0-9+/_-]+=*$/;

function textErrorCode(bytes: Uint8Array): number | null {
  const size = Math.min(bytes.length, DIAGNOSIS_SAMPLE_BYTES_MAX);
  for (let i = 0; i < size; i += 1) if (!isTextByte(byteAt(bytes, i))) return null;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, size).toString("latin1").trim();
  if (JSON_START.test(text)) return DECODE_ERROR.text_json;
  if (text.length < ENCODED_LENGTH_MIN) return DECODE_ERROR.text_other;
  if (HEX.test(text)) return DECODE_ERROR.text_hex;
  if (BASE58.test(text)) return DECODE_ERROR.text_base58;
  if (BASE64.test(text)) return DECODE_ERROR.text_base64;
  return DECODE_ERROR.text_other;
}

/** Printable ASCII, tab, line feed or carriage return. */
function isTextByte(byte: number): boolean {
  return (byte >= 0x20 && byte < 0x7f) || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

const state = createParseState();
const noTips = createTipAccounts([]);

/** Whether the bytes are one complete legacy or v0 message; the v1 parser detects its own. */
function isMessage(bytes: Uint8Array): boolean {
  const first = byteAt(bytes, 0);
  startParse(state, bytes);
  state.signatureCount = first === 0x80 ? byteAt(bytes, 1) : first;
  const whole = parseMessage(state, noTips, 0);
  finish(state);
  return whole;
}
