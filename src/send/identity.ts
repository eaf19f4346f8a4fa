/**
 * The key that this edge presents to leaders. Leaders assign streams by stake, so a staked
 * validator's key gets that validator's share. Read from the JSON file that `solana-keygen` writes,
 * or generated, which makes an unstaked edge. The secret leaves this record only as the private key
 * of the client certificate.
 */

import { createPrivateKey, createPublicKey, type KeyObject, randomBytes } from "node:crypto";
import { SetupError } from "../core/errors.ts";

export interface Identity {
  /** 32 bytes. */
  readonly seed: Uint8Array;
  /** 32 bytes; the validator's public key. */
  readonly publicKey: Uint8Array;
}

const SEED_BYTES = 32;
const KEYPAIR_BYTES = 64;
/** RFC 8410 section 7: the PKCS#8 prefix before the 32 bytes of an Ed25519 seed. */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/** The seed as PKCS#8 DER, 48 bytes. */
export function pkcs8Of(seed: Uint8Array): Uint8Array {
  return Buffer.concat([PKCS8_PREFIX, seed]);
}

export function privateKeyOf(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.from(pkcs8Of(seed)), format: "der", type: "pkcs8" });
}

/** The identity of a 32-byte seed. */
export function identityOfSeed(seed: Uint8Array): Identity {
  if (seed.length !== SEED_BYTES) {
    throw new SetupError(`an identity's seed has ${SEED_BYTES} bytes, not ${seed.length}`);
  }
  const spki = createPublicKey(privateKeyOf(seed)).export({ format: "der", type: "spki" });
  return { seed: Uint8Array.from(seed), publicKey: Uint8Array.from(spki.subarray(-SEED_BYTES)) };
}

/** A new identity, unstaked. */
export function freshIdentity(): Identity {
  return identityOfSeed(randomBytes(SEED_BYTES));
}

/**
 * Reads the JSON of `solana-keygen`: an array of 64 bytes, seed and public key.
 *
 * @throws SetupError when the format is different, or the public key does not belong to the seed;
 *   the message never contains a byte of the key
 */
export function identityOfJson(text: string): Identity {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the text, which is a secret.
    throw new SetupError("the identity file is not JSON");
  }
  const isByte = (item: unknown): boolean =>
    Number.isInteger(item) && Number(item) >= 0 && Number(item) <= 255;
  if (!Array.isArray(value) || value.length !== KEYPAIR_BYTES || !value.every(isByte)) {
    throw new SetupError(`the identity file is not an array of ${KEYPAIR_BYTES} bytes`);
  }
  const bytes = Uint8Array.from(value);
  const identity = identityOfSeed(bytes.subarray(0, SEED_BYTES));
  if (!Buffer.from(identity.publicKey).equals(bytes.subarray(SEED_BYTES))) {
    throw new SetupError("the identity file's public key does not belong to its seed");
  }
  return identity;
}
