/**
 * Ed25519 public keys (Solana addresses) as keys of an account, and the proof that their holder
 * agrees: a signature of a challenge.
 *
 * The key table finds a public key by a SHA-256, as it finds an API key. The hashed bytes begin
 * with a text that ends in a zero byte, which no API key contains: knowing a public key never helps
 * to send over HTTP, and no API key stands for a public key.
 *
 * A challenge is one line of printable ASCII, so that `solana sign-offchain-message` takes it on a
 * command line and a hardware wallet shows it.
 */

import { createHash, createPublicKey, verify } from "node:crypto";
import { isUnsafePoint, KEY_BYTES, SIGNATURE_BYTES } from "../../core/ed25519.ts";
import { decodeBase58, decodeBase64, encodeKey } from "../../core/encoding.ts";

/** What the holder of a public key signs. */
export interface Challenge {
  /** Random; 32 hexadecimal digits or a UUID. */
  readonly id: string;
  /** The account's id, or its name in a keys file; printable ASCII. */
  readonly account: string;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Milliseconds since the Unix epoch. */
  readonly expiresAtMs: number;
}

/**
 * The 32 bytes of a public key in base58; null for any other text, and for a point that is not
 * canonical or of small order, for which anyone can sign.
 */
export function parsePublicKey(text: string): Uint8Array | null {
  const bytes = decodeBase58(text, KEY_BYTES);
  return bytes?.length === KEY_BYTES && !isUnsafePoint(bytes, 0) ? bytes : null;
}

/** The digest by which the key table finds a public key of 32 bytes. */
export function publicKeySha256(publicKey: Uint8Array): Buffer {
  return createHash("sha256").update(PUBLIC_KEY_PREFIX).update(publicKey).digest();
}

/** The text to sign. */
export function challengeText({ id, account, publicKey, expiresAtMs }: Challenge): string {
  const until = new Date(expiresAtMs).toISOString().replace(/\.\d+Z$/, "Z");
  return (
    `Touchdown: the public key ${encodeKey(publicKey)} may send transactions for the account ` +
    `${account}. Challenge ${id}, valid until ${until}.`
  );
}

/**
 * Whether `signature` (64 bytes in base58 or base64) is the holder's signature of this text: over
 * the text itself, as a wallet's `signMessage` makes it, or over an off-chain message with it.
 */
export function isSignedText(publicKey: Uint8Array, text: string, signature: string): boolean {
  const bytes = signatureOf(signature);
  if (bytes === null || isUnsafePoint(publicKey, 0) || isUnsafePoint(bytes, 0)) return false;
  const jwk = { kty: "OKP", crv: "Ed25519", x: Buffer.from(publicKey).toString("base64url") };
  const key = createPublicKey({ key: jwk, format: "jwk" });
  return signedForms(publicKey, Buffer.from(text, "ascii")).some((form) =>
    verify(null, form, key, bytes),
  );
}

function signatureOf(text: string): Uint8Array | null {
  const trimmed = text.trim();
  for (const bytes of [decodeBase58(trimmed, SIGNATURE_BYTES), decodeBase64(trimmed)]) {
    if (bytes?.length === SIGNATURE_BYTES) return bytes;
  }
  return null;
}

/**
 * The bytes that are signed for one text. `solana sign-offchain-message` writes the header of the
 * crate solana-offchain-message 3.0.0: version 0, format 0 (printable ASCII), the length. The
 * specification (docs.anza.xyz/proposals/off-chain-message-signing, sRFC 3) adds an application
 * domain, here the empty one, and the signers; its version 1 has the signers alone. 2026-11.
 */
function signedForms(publicKey: Uint8Array, text: Buffer): readonly Buffer[] {
  const length = Buffer.alloc(2);
  length.writeUInt16LE(text.length);
  const version = (number: number) => Buffer.concat([SIGNING_DOMAIN, Buffer.of(number)]);
  const format = Buffer.of(FORMAT_PRINTABLE_ASCII);
  const signers = Buffer.concat([Buffer.of(1), publicKey]);
  return [
    text,
    Buffer.concat([version(0), format, length, text]),
    Buffer.concat([version(0), Buffer.alloc(DOMAIN_BYTES), format, signers, length, text]),
    Buffer.concat([version(1), signers, text]),
  ];
}

const PUBLIC_KEY_PREFIX = "touchdown public key\0";
const SIGNING_DOMAIN = Buffer.from("\xffsolana offchain", "latin1");
const FORMAT_PRINTABLE_ASCII = 0;
const DOMAIN_BYTES = 32;
