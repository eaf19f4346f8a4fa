/**
 * Properties of the bytes of an Ed25519 key or signature that need no curve arithmetic: sizes,
 * points of small order, non-canonical encodings.
 *
 * Whether a point lies on the curve is not checked: for a key off the curve nothing verifies.
 */

/** RFC 8032 section 5.1, 2026-11. */
export const KEY_BYTES = 32;
/** R, then S, each of 32 bytes. */
export const SIGNATURE_BYTES = 64;

/** The two y of the points of order 8, little-endian; dalek's EIGHT_TORSION, 2026-11. */
const ORDER_8_Y = [
  Uint8Array.from(
    Buffer.from("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", "hex"),
  ),
  Uint8Array.from(
    Buffer.from("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", "hex"),
  ),
] as const;

/**
 * Whether the encoded point has small order or is not canonical. The sign bit is ignored: both
 * points of a small-order y have small order. The y of order 4 is 0, of order 1 is 1, of order 2 is
 * p - 1, and every y from p = 2^255 - 19 on is not canonical.
 */
export function isUnsafePoint(bytes: Uint8Array, offset: number): boolean {
  const first = bytes[offset] ?? 0;
  if (first <= 1) return isFilled(bytes, offset, 0x00, 0x00);
  if (first >= 0xec && isFilled(bytes, offset, 0xff, 0x7f)) return true;
  if (first === 0x26) return isY(bytes, offset, ORDER_8_Y[0]);
  if (first === 0xc7) return isY(bytes, offset, ORDER_8_Y[1]);
  return false;
}

/** Whether bytes 1 to 30 are all `middle`, and byte 31 without its sign bit is `last`. */
function isFilled(bytes: Uint8Array, offset: number, middle: number, last: number): boolean {
  for (let i = 1; i < KEY_BYTES - 1; i += 1) {
    if (bytes[offset + i] !== middle) return false;
  }
  return ((bytes[offset + KEY_BYTES - 1] ?? 0) & 0x7f) === last;
}

function isY(bytes: Uint8Array, offset: number, y: Uint8Array): boolean {
  for (let i = 1; i < KEY_BYTES - 1; i += 1) {
    if (bytes[offset + i] !== y[i]) return false;
  }
  return ((bytes[offset + KEY_BYTES - 1] ?? 0) & 0x7f) === y[KEY_BYTES - 1];
}
