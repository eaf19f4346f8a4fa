/**
 * Base58, deliberately slow and simple: the oracle for the fast one.
 */

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** Any bytes as base58; a leading zero byte is a leading "1". */
export function toBase58(bytes: Uint8Array): string {
  let value = bytes.length === 0 ? 0n : BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  for (; value > 0n; value /= 58n) text = ALPHABET.charAt(Number(value % 58n)) + text;
  for (let i = 0; i < bytes.length && bytes[i] === 0; i += 1) text = `1${text}`;
  return text;
}

/** The bytes of a base58 text; throws for invalid text. */
export function fromBase58(text: string): Uint8Array {
  let value = 0n;
  for (const letter of text) {
    const digit = ALPHABET.indexOf(letter);
    if (digit < 0) throw new RangeError(`not base58: ${text}`);
    value = value * 58n + BigInt(digit);
  }
  const zeros = /^1*/.exec(text)?.[0].length ?? 0;
  const hex = value === 0n ? "" : value.toString(16);
  const rest = Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex");
  return new Uint8Array(Buffer.concat([Buffer.alloc(zeros), rest]));
}
