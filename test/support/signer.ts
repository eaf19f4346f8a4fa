/** An Ed25519 keypair made at run time, which signs as Solana's command line and wallets do. */

import { generateKeyPairSync, sign } from "node:crypto";
import { encodeKey, encodeSignature } from "../../src/core/encoding.ts";

export interface Signer {
  /** Base58. */
  readonly publicKey: string;
  /** 32 bytes. */
  readonly publicKeyBytes: Uint8Array;
  /** 64 bytes: the signature of these bytes. */
  sign(bytes: Uint8Array): Buffer;
  /** What `solana sign-offchain-message` prints for this text. */
  signOffchain(text: string): string;
}

export function createSigner(): Signer {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const bytes = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url");
  const signBytes = (message: Uint8Array) => sign(null, message, privateKey);
  return {
    publicKey: encodeKey(bytes),
    publicKeyBytes: bytes,
    sign: signBytes,
    signOffchain: (text) => encodeSignature(signBytes(offchainMessage(text))),
  };
}

/**
 * The bytes that the command signs: `OffchainMessage::new(0, text).serialize()` of the crate
 * solana-offchain-message 3.0.0, for a text of printable ASCII. 2026-11.
 */
export function offchainMessage(text: string): Uint8Array {
  const body = Buffer.from(text, "ascii");
  const length = Buffer.from([body.length & 0xff, body.length >> 8]);
  return Buffer.concat([Buffer.from("\xffsolana offchain\0\0", "latin1"), length, body]);
}
