// Hot path: two views and, for a key that is not kept, one key object for each signature.
/**
 * Checks every signature of a transaction as the leaders do: Ed25519 in the sense of dalek's
 * `verify_strict`, which is what Agave runs.
 *
 * node:crypto refuses S >= L and compares the recomputed R byte by byte, so a non-canonical R
 * never passes. What it lets through is looked for here, before it is asked: points of small order
 * as A or R, and a non-canonical A. dalek refuses only the former; a non-canonical A of large order
 * needs a discrete logarithm that nobody knows, so no signature tells the two apart.
 *
 * The surprise: OpenSSL takes as long to read a key in DER (67 us) as to verify (62 us), but 5 us
 * to take it from a JWK. Senders sign with few keys, so made keys are kept (key-cache.ts).
 */

import { verify as verifyEd25519 } from "node:crypto";
import type { Accepted } from "../core/flow.ts";
import { isUnsafePoint, KEY_BYTES, SIGNATURE_BYTES } from "./ed25519.ts";
import { createKeyCache, type KeyCacheCounters } from "./key-cache.ts";

export interface VerifierOptions {
  /** How many public keys are kept ready; 0 for none. */
  readonly keyCacheSize: number;
}

export interface VerifierCounters extends KeyCacheCounters {
  /** Signatures found good. */
  readonly verified: number;
  /** Signatures found bad. */
  readonly invalid: number;
}

export interface Verifier {
  /** -1 when every signature is good, otherwise the index of the first bad one. */
  verify(bytes: Uint8Array, accepted: Accepted): number;
  readonly counters: VerifierCounters;
}

/** A verifier for one thread, with its own cache of keys. */
export function createVerifier(options: VerifierOptions): Verifier {
  const cache = createKeyCache(options.keyCacheSize);
  const kept = cache.counters;
  const own = { verified: 0, invalid: 0 };

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
      // A key that OpenSSL does not take, whatever its reason, verifies nothing.
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
          own.invalid += 1;
          return i;
        }
        own.verified += 1;
      }
      return -1;
    },
    counters: {
      get verified() {
        return own.verified;
      },
      get invalid() {
        return own.invalid;
      },
      get keysFound() {
        return kept.keysFound;
      },
      get keysMade() {
        return kept.keysMade;
      },
      get keysEvicted() {
        return kept.keysEvicted;
      },
    },
  };
}
