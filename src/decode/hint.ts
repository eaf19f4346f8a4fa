/**
 * What somebody sent in place of a transaction: text that encodes one, or a message that nobody
 * has signed. These are the mistakes that developers make first, and "signature count 65" would
 * not tell them. Only what is refused anyway is looked at, and only its first bytes are.
 */

import { FAULT, reasonOf } from "../core/faults.ts";
import type { Refused } from "../core/flow.ts";
import { scanMessage } from "./legacy.ts";
import { HINT_SAMPLE_BYTES_MAX } from "./limits.ts";
import { begin, byteAt, createScan, finish } from "./scan.ts";
import { createTipAccounts } from "./tip.ts";

/** The same refusal, or a more telling one where the bytes are a known mistake. */
export function hintFor(bytes: Uint8Array, refused: Refused): Refused {
  if (bytes.length === 0 || reasonOf(refused.fault) !== "undecodable") return refused;
  const text = textFault(bytes);
  if (text !== null) return { kind: "refused", fault: text, found: bytes.length, needed: 0 };
  if (!isMessage(bytes)) return refused;
  return { kind: "refused", fault: FAULT.message_only, found: bytes.length, needed: 0 };
}

/** Shorter text than this is not an encoded transaction, whatever its letters. */
const ENCODED_LENGTH_MIN = 64;

const JSON_START = /^[[{"]/;
const HEX = /^(0x)?[0-9a-fA-F]+$/;
const BASE58 = /^[1-9A-HJ-NP-Za-km-z]+$/;
const BASE64 = /^[A-Za-z0-9+/_-]+=*$/;

function textFault(bytes: Uint8Array): number | null {
  const size = Math.min(bytes.length, HINT_SAMPLE_BYTES_MAX);
  for (let i = 0; i < size; i += 1) if (!isTextByte(byteAt(bytes, i))) return null;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, size).toString("latin1").trim();
  if (JSON_START.test(text)) return FAULT.text_json;
  if (text.length < ENCODED_LENGTH_MIN) return FAULT.text_other;
  if (HEX.test(text)) return FAULT.text_hex;
  if (BASE58.test(text)) return FAULT.text_base58;
  if (BASE64.test(text)) return FAULT.text_base64;
  return FAULT.text_other;
}

/** Printable ASCII, tab, line feed or carriage return. */
function isTextByte(byte: number): boolean {
  return (byte >= 0x20 && byte < 0x7f) || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

const scan = createScan();
const noTips = createTipAccounts([]);

/** Whether the bytes are one whole legacy or v0 message; the v1 parse sees its own kind. */
function isMessage(bytes: Uint8Array): boolean {
  const first = byteAt(bytes, 0);
  begin(scan, bytes);
  scan.signatureCount = first === 0x80 ? byteAt(bytes, 1) : first;
  const whole = scanMessage(scan, noTips, 0);
  finish(scan);
  return whole;
}
