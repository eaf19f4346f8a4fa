/** An Ed25519 keypair made at run time, which signs as Solana's command line and wallets do. */

import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
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

/** `seed`: the key's 32 bytes; without it a fresh one. */
export function createSigner(seed: Uint8Array | null = null): Signer {
  const privateKey =
    seed === null
      ? generateKeyPairSync("ed25519").privateKey
      : createPrivateKey({
          key: Buffer.concat([PKCS8_START, seed]),
          format: "der",
          type: "pkcs8",
        });
  const publicKey = createPublicKey(privateKey);
  const bytes = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url");
  const signBytes = (message: Uint8Array) => sign(null, message, privateKey);
  return {
    publicKey: encodeKey(bytes),
    publicKeyBytes: bytes,
    sign: signBytes,
    signOffchain: (text) => encodeSignature(signBytes(offchainMessage(text))),
  };
}

/** What precedes the seed in PKCS#8. RFC 8410 section 7, 2026-11. */
const PKCS8_START = Buffer.from("302e020100300506032b657004220420", "hex");

/**
 * The bytes that the command signs: `OffchainMessage::new(0, text).serialize()` of the crate
 * solana-offchain-message 3.0.0, for a text of printable ASCII. 2026-11.
 */
export function offchainMessage(text: string): Uint8Array {
  const body = Buffer.from(text, "ascii");
  const length = Buffer.from([body.length & 0xff, body.length >> 8]);
  return Buffer.concat([Buffer.from("\xffsolana offchain\0\0", "latin1"), length, body]);
}
