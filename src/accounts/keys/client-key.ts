/**
 * The Ed25519 key pair that follows from an API key, so that its holder can prove it over QUIC by a
 * client's certificate, and needs no second secret. Its public key is stored beside the API key's
 * SHA-256, from which it does not follow: whoever reads the stored data cannot send.
 *
 * docs/quic.md describes the derivation for clients.
 */

import { createHmac, createPrivateKey, createPublicKey } from "node:crypto";
import { KEY_BYTES } from "../../core/ed25519.ts";

/** The 32 bytes of the public key that follows from an API key. */
export function clientKeyOf(token: string): Uint8Array {
  const seed = createHmac("sha256", token).update(LABEL).digest();
  const key = Buffer.concat([PKCS8_START, seed]);
  const publicKey = createPublicKey(createPrivateKey({ key, format: "der", type: "pkcs8" }));
  return publicKey.export({ format: "der", type: "spki" }).subarray(-KEY_BYTES);
}

const LABEL = "touchdown/1 client certificate";
/** What precedes the seed in PKCS#8. RFC 8410 section 7, 2026-11. */
const PKCS8_START = Buffer.from("302e020100300506032b657004220420", "hex");
