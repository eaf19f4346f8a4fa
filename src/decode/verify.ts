// Hot path: two views and, for an uncached key, one key object for each signature.
/**
 * Verifies every signature of a transaction as leaders do: Ed25519 with the rules of dalek's
 * `verify_strict`, which Agave runs.
 *
 * node:crypto rejects S >= L and compares the recomputed R byte by byte, so a non-canonical R never
 * passes. What it accepts wrongly is checked here first: points of small order as A or R, and a
 * non-canonical A. dalek rejects only the former; a signature with a non-canonical A of large order
 * would require an unknown discrete logarithm, so no signature distinguishes the two.
 *
 * Note: OpenSSL takes as long to read a key in DER (67 us) as to verify (62 us), but 5 us to read
 * it from a JWK. Senders sign with few keys, so key objects are cached (key-cache.ts).
 */

import { verify as verifyEd25519 } from "node:crypto";
import { isUnsafePoint, KEY_BYTES, SIGNATURE_BYTES } from "../core/ed25519.ts";
import type { Accepted } from "../core/flow.ts";
import { createKeyCache, type KeyCacheCounters } from "./key-cache.ts";

export interface VerifierOptions {
  /** How many public keys are cached; 0 for none. */
  readonly keyCacheSize: number;
}

export interface VerifierCounters extends KeyCacheCounters {
  /** Valid signatures. */
  readonly verified: number;
  /** Invalid signatures. */
  readonly invalid: number;
}

/** Their names, in the order in which workers and the native engine write them. */
export const VERIFIER_COUNTERS = [
  "verified",
  "invalid",
  "keysFound",
  "keysMade",
  "keysEvicted",
] as const satisfies readonly (keyof VerifierCounters)[];

export interface Verifier {
  /** -1 when every signature is valid, otherwise the index of the first invalid one. */
  verify(bytes: Uint8Array, accepted: Accepted): number;
  readonly counters: VerifierCounters;
}

/** A verifier for one thread, with its own cache of keys. */
export function createVerifier(options: VerifierOptions): Verifier {
  const cache = createKeyCache(options.keyCacheSize);
  // The cache counts its keys in the same record.
  const counters = Object.assign(cache.counters, { verified: 0, invalid: 0 });

  function isGood(
    bytes: Uint8Array,
    message: Uint8Array,
    keyOffset: number,
    signatureOffset: number,
  ): boolean {
    if (isUnsafePoint(bytes, keyOffset) || isUnsafePoint(bytes, signatureOffset)) return false;
    const signature = bytes.subarray(signatureOffset, signatureOffset + SIGNATURE_BYTES);
    try {
      return verifyEd25519(null, message, cache.keyAt(bytes, keyOffset), signature);
    } catch {
      // A key that OpenSSL rejects, for any reason, verifies nothing.
      return false;
    }
  }

  return {
    verify(bytes, accepted) {
      const start = accepted.messageOffset;
      const message = bytes.subarray(start, start + accepted.messageSize);
      for (let i = 0; i < accepted.signatureCount; i += 1) {
        const keyOffset = accepted.keysOffset + i * KEY_BYTES;
        const signatureOffset = accepted.signatureOffset + i * SIGNATURE_BYTES;
        if (!isGood(bytes, message, keyOffset, signatureOffset)) {
          counters.invalid += 1;
          return i;
        }
        counters.verified += 1;
      }
      return -1;
    },
    counters,
  };
}
