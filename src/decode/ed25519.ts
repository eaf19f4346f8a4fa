/**
 * Which error a bad signature has, from its bytes alone, so that every engine reports the same
 * error for the same bytes.
 */

import { DECODE_ERROR } from "../core/decode-errors.ts";
import { isUnsafePoint, KEY_BYTES, SIGNATURE_BYTES } from "../core/ed25519.ts";
import type { Accepted, DecodeErrorCode } from "../core/flow.ts";

/** The order of the group, little-endian; RFC 8032 section 5.1, 2026-11. */
const GROUP_ORDER = Uint8Array.from(
  Buffer.from("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010", "hex"),
);

/**
 * Why the signature with this index is bad. A signature of zeros counts as missing; otherwise the
 * key is checked first, then the signature's encoding, then its value.
 */
export function signatureErrorCode(
  bytes: Uint8Array,
  accepted: Accepted,
  index: number,
): DecodeErrorCode {
  const start = accepted.signatureOffset + index * SIGNATURE_BYTES;
  const signature = bytes.subarray(start, start + SIGNATURE_BYTES);
  if (signature.every((byte) => byte === 0)) return DECODE_ERROR.signature_missing;
  if (isUnsafePoint(bytes, accepted.keysOffset + index * KEY_BYTES)) {
    return DECODE_ERROR.signer_key_malformed;
  }
  if (isUnsafePoint(bytes, start) || !isScalarCanonical(bytes, start + KEY_BYTES)) {
    return DECODE_ERROR.signature_malformed;
  }
  return DECODE_ERROR.signature_wrong;
}

/** Whether the 32 bytes from `offset` on, little-endian, are below the group's order. */
function isScalarCanonical(bytes: Uint8Array, offset: number): boolean {
  for (let i = KEY_BYTES - 1; i >= 0; i -= 1) {
    const digit = bytes[offset + i] ?? 0;
    const bound = GROUP_ORDER[i] ?? 0;
    if (digit !== bound) return digit < bound;
  }
  return false;
}
