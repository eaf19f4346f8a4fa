// Hot path: one call into the engine; only the validation result is allocated.
/**
 * The decoder of the native engine, with the same interface as the portable one.
 *
 * All threads may share one: the handle and the key tables are per process. Rejected bodies are
 * diagnosed here, as for the portable decoder.
 */

import { SetupError } from "../core/errors.ts";
import type { ValidationResult } from "../core/flow.ts";
import { DECODER_COUNTERS, type NativeDecoding, VALIDATION_NUMBERS } from "../native/contract.ts";
import { computedCounters } from "../runtime/shared-counters.ts";
import type { Decoder, DecoderOptions } from "./decoder.ts";
import { diagnose } from "./diagnosis.ts";
import { VERIFIER_COUNTERS } from "./verify.ts";
import { readValidation } from "./workers/worker-channel.ts";

/** A decoder with its handle. */
export interface NativeDecoder extends Decoder {
  /** Valid on every thread of the process, for `nativeDecoder`. */
  readonly handle: number;
  close(): void;
}

/** Creates a decoder in the engine. Throws a SetupError when the engine rejects the options. */
export function createNativeDecoder(
  native: NativeDecoding,
  options: DecoderOptions,
): NativeDecoder {
  const { tipAccounts, lamportsMin, verify, keyCacheSize } = options;
  const accounts = new Uint8Array(Buffer.concat(tipAccounts));
  const handle = native.decoderCreate(accounts, lamportsMin, verify, keyCacheSize);
  if (handle <= 0)
    throw new SetupError(`the native engine rejected the decoder options: status ${handle}`);
  return nativeDecoder(native, handle);
}

/** A decoder for the handle of one that any thread has created. */
export function nativeDecoder(native: NativeDecoding, handle: number): NativeDecoder {
  const out = new Float64Array(VALIDATION_NUMBERS);
  const counters = new Float64Array(DECODER_COUNTERS);

  return {
    handle,
    decode(bytes): ValidationResult {
      const code = native.decode(handle, bytes, out, 0);
      if (code < 0) throw new Error(`the native decoder returned status ${code}`);
      const validation = readValidation(out, 0);
      return validation.kind === "rejected" ? diagnose(bytes, validation) : validation;
    },
    counters: computedCounters(VERIFIER_COUNTERS, (_, index) => {
      native.decoderCounters(handle, counters);
      return counters[index] ?? 0;
    }),
    close() {
      native.decoderClose(handle);
    },
  };
}
