// Hot path: encodeBase58 runs once per transaction and allocates only the returned string.
/**
 * Converts bytes to text and back: base58 as Solana writes keys and signatures, and base64.
 *
 * Decoders are strict: they return null for any text that an encoder would not have written. For
 * base64 this matters because Node's decoder skips unknown characters, accepts both alphabets and
 * ignores padding, so a damaged transaction would decode to a different one.
 */

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const LETTERS = Uint8Array.from(ALPHABET, (letter) => letter.charCodeAt(0));

/** The digit of each ASCII code, 255 for characters that are not digits. */
const DIGITS = new Uint8Array(128).fill(255);
for (const [digit, code] of LETTERS.entries()) DIGITS[code] = digit;

/** Five digits of base 58 make one limb. */
const LIMB_DIGITS = 5;
const LIMB_BASE = 58 ** LIMB_DIGITS;

/** The maximum number of 16-bit words for the fast encoder: a signature. */
const WORDS_MAX = 32;
const LIMBS_MAX = 18;

/**
 * What one unit of word w (counted from the end) adds to limb l (counted from the end), at
 * `w * LIMBS_MAX + l`. A word is below 2^16 and a limb below 2^30, so the sum over all 32 words
 * stays below 2^51 and is exact as a double: carries wait until the very end.
 */
const WEIGHTS = new Float64Array(WORDS_MAX * LIMBS_MAX);
/** The number of limbs that word w affects. */
const REACH = new Uint8Array(WORDS_MAX);
for (let w = 0; w < WORDS_MAX; w += 1) {
  let weight = 1n << BigInt(16 * w);
  for (let l = 0; weight > 0n; l += 1) {
    WEIGHTS[w * LIMBS_MAX + l] = Number(weight % BigInt(LIMB_BASE));
    weight /= BigInt(LIMB_BASE);
    REACH[w] = l + 1;
  }
}

const sums = new Float64Array(LIMBS_MAX);
const text = Buffer.alloc(LIMBS_MAX * LIMB_DIGITS);

/** Base58 of the 32-byte key at `offset`. */
export function encodeKey(bytes: Uint8Array, offset = 0): string {
  return encodeWords(bytes, offset, 16, 9);
}

/** Base58 of the 64-byte signature at `offset`. */
export function encodeSignature(bytes: Uint8Array, offset = 0): string {
  return encodeWords(bytes, offset, 32, LIMBS_MAX);
}

/** Signatures of 64 bytes each, one after another, as base58 texts. */
export function encodeSignatures(bytes: Uint8Array): readonly string[] {
  const count = Math.floor(bytes.length / SIGNATURE_BYTES);
  return Array.from({ length: count }, (_, index) =>
    encodeSignature(bytes, index * SIGNATURE_BYTES),
  );
}

const SIGNATURE_BYTES = 64;

function encodeWords(bytes: Uint8Array, offset: number, words: number, limbs: number): string {
  if (offset < 0 || offset + 2 * words > bytes.length) {
    throw new RangeError(`${2 * words} bytes at ${offset} are outside of ${bytes.length}`);
  }
  sums.fill(0);
  for (let w = 0; w < words; w += 1) {
    const at = offset + 2 * (words - 1 - w);
    const word = ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
    const row = w * LIMBS_MAX;
    const reach = REACH[w] ?? 0;
    for (let l = 0; l < reach; l += 1) {
      sums[l] = (sums[l] ?? 0) + word * (WEIGHTS[row + l] ?? 0);
    }
  }
  let carry = 0;
  let end = text.length;
  for (let l = 0; l < limbs; l += 1) {
    const sum = (sums[l] ?? 0) + carry;
    carry = Math.floor(sum / LIMB_BASE);
    let limb = sum - carry * LIMB_BASE;
    for (let d = 0; d < LIMB_DIGITS; d += 1) {
      const rest = (limb / 58) | 0;
      end -= 1;
      text[end] = limb - rest * 58;
      limb = rest;
    }
  }
  return write(end, leadingZeros(bytes, offset, offset + 2 * words));
}

/** The digits from `start` on as letters, with one "1" per leading zero byte. */
function write(start: number, zeros: number): string {
  let first = start;
  while (first < text.length && text[first] === 0) first += 1;
  // A byte holds more than one digit, so there are at least as many zero digits as zero bytes.
  first -= zeros;
  for (let i = first; i < text.length; i += 1) text[i] = LETTERS[text[i] ?? 0] ?? 0;
  return text.toString("latin1", first);
}

function leadingZeros(bytes: Uint8Array, start: number, end: number): number {
  let zeros = 0;
  while (start + zeros < end && bytes[start + zeros] === 0) zeros += 1;
  return zeros;
}

/** Base58 of any bytes. Quadratic: use it for short input or where time does not matter. */
export function encodeBase58(bytes: Uint8Array): string {
  const zeros = leadingZeros(bytes, 0, bytes.length);
  let value = zeros === bytes.length ? 0n : BigInt(`0x${encodeHex(bytes)}`);
  let digits = "";
  for (; value > 0n; value /= 58n) digits = ALPHABET.charAt(Number(value % 58n)) + digits;
  return "1".repeat(zeros) + digits;
}

/** Nine digits at most stay exact as a double. */
const LEAF_DIGITS = 9;

/**
 * The bytes of a base58 text; null if it is invalid or holds more than `sizeMax` bytes. The work
 * grows with the text, so a text longer than `sizeMax` bytes can need is rejected unread.
 */
export function decodeBase58(encoded: string, sizeMax: number): Uint8Array | null {
  if (encoded.length > base58LengthMax(sizeMax)) return null;
  const digits = new Uint8Array(encoded.length);
  for (let i = 0; i < encoded.length; i += 1) {
    const digit = DIGITS[encoded.charCodeAt(i)] ?? 255;
    if (digit === 255) return null;
    digits[i] = digit;
  }
  const zeros = leadingZeros(digits, 0, digits.length);
  const value = join(digits);
  const hex = value === 0n ? "" : value.toString(16);
  const evenHex = hex.length % 2 === 0 ? hex : `0${hex}`;
  const size = zeros + evenHex.length / 2;
  if (size > sizeMax) return null;
  const bytes = Buffer.alloc(size);
  bytes.write(evenHex, zeros, "hex");
  return bytes;
}

/** The maximum length of the base58 text of `size` bytes. */
export function base58LengthMax(size: number): number {
  // log(256) / log(58) is a little below 1.3658.
  return Math.ceil(size * 1.3658);
}

/** The number that the digits write. Joins ever larger pieces, which is far below quadratic. */
function join(digits: Uint8Array): bigint {
  let pieces: bigint[] = [];
  for (let end = digits.length; end > 0; end -= LEAF_DIGITS) {
    let leaf = 0;
    for (let i = Math.max(0, end - LEAF_DIGITS); i < end; i += 1)
      leaf = leaf * 58 + (digits[i] ?? 0);
    pieces.push(BigInt(leaf));
  }
  for (let base = 58n ** BigInt(LEAF_DIGITS); pieces.length > 1; base *= base) {
    const halves: bigint[] = [];
    for (let i = 0; i < pieces.length; i += 2) {
      halves.push((pieces[i] ?? 0n) + (pieces[i + 1] ?? 0n) * base);
    }
    pieces = halves;
  }
  return pieces[0] ?? 0n;
}

/** The bytes of a padded base64 text in the standard alphabet; null for anything else. */
export function decodeBase64(encoded: string): Uint8Array | null {
  if (encoded.length % 4 !== 0) return null;
  const bytes = Buffer.from(encoded, "base64");
  // Encoding again is the check: whatever the decoder skipped or guessed comes out differently.
  return bytes.toString("base64") === encoded ? bytes : null;
}

export function encodeBase64(bytes: Uint8Array): string {
  return asBuffer(bytes).toString("base64");
}

/** Lower case. */
function encodeHex(bytes: Uint8Array): string {
  return asBuffer(bytes).toString("hex");
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
