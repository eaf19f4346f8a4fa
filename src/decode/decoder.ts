// Hot path: allocates nothing besides the parser and the verifier.
/**
 * From bytes to a validation result: the parser, the tip rule and the signatures, in this order,
 * because the first error found is reported, and because the signatures are the most expensive.
 *
 * Each thread has its own decoder. Nothing is shared, no input throws, and the same bytes have the
 * same result on every thread.
 */

import type { ValidationResult } from "../core/flow.ts";
import { signatureErrorCode } from "./ed25519.ts";
import { createTransactionDecoder } from "./transaction.ts";
import { createVerifier, type VerifierCounters } from "./verify.ts";

export interface DecoderOptions {
  /** The accounts that a tip may go to, 32 bytes each. */
  readonly tipAccounts: readonly Uint8Array[];
  /** The smallest tip that is accepted. */
  readonly lamportsMin: number;
  /** Whether signatures are verified; otherwise only leaders detect a bad one. */
  readonly verify: boolean;
  /** How many public keys a thread caches; 0 for none. */
  readonly keyCacheSize: number;
}

export interface Decoder {
  /** The validation result of these bytes. They are read during the call only. */
  decode(bytes: Uint8Array): ValidationResult;
  readonly counters: VerifierCounters;
}

/** A decoder for one thread. */
export function createDecoder(options: DecoderOptions): Decoder {
  const parser = createTransactionDecoder({
    tipAccounts: options.tipAccounts,
    lamportsMin: options.lamportsMin,
  });
  const verifier = createVerifier({ keyCacheSize: options.keyCacheSize });

  return {
    decode(bytes) {
      const validation = parser.decode(bytes);
      if (validation.kind === "rejected" || !options.verify) return validation;
      const bad = verifier.verify(bytes, validation);
      if (bad === -1) return validation;
      const errorCode = signatureErrorCode(bytes, validation, bad);
      return { kind: "rejected", errorCode, found: bad, needed: validation.signatureCount };
    },
    counters: verifier.counters,
  };
}
