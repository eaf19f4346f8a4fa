// Hot path: adds nothing to what the parser and the verifier allocate.
/**
 * From bytes to a verdict: the parser, the tip rule and the signatures, in this order, because the
 * first fault found is the one that is named, and because the signatures are the dearest.
 *
 * Each thread has a decoder of its own. Nothing is shared, no input throws, and the same bytes get
 * the same verdict on every thread.
 */

import type { ValidationResult } from "../core/flow.ts";
import { signatureErrorCode } from "./ed25519.ts";
import { createTransactionDecoder } from "./transaction.ts";
import { createVerifier, type VerifierCounters } from "./verify.ts";

export interface DecoderOptions {
  /** The accounts of which one is tipped, 32 bytes each. */
  readonly tipAccounts: readonly Uint8Array[];
  /** The smallest tip that is taken. */
  readonly lamportsMin: number;
  /** Whether signatures are verified; without, a bad one is found by the leaders only. */
  readonly verify: boolean;
  /** How many public keys a thread keeps ready; 0 for none. */
  readonly keyCacheSize: number;
}

/** What a worker decodes with: a decoder of its own, or one of the native engine by its handle. */
export type WorkerDecoder = DecoderOptions | { readonly nativeHandle: number };

export interface Decoder {
  /** What is to be said of these bytes. They are read during the call only. */
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
      if (validation.kind === "refused" || !options.verify) return validation;
      const bad = verifier.verify(bytes, validation);
      if (bad === -1) return validation;
      const errorCode = signatureErrorCode(bytes, validation, bad);
      return { kind: "refused", errorCode, found: bad, needed: validation.signatureCount };
    },
    counters: verifier.counters,
  };
}
