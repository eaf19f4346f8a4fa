// Hot path: one call into the engine, and the verdict is the one thing that is allocated.
/**
 * The decoder of the native engine, behind the same interface as the portable one.
 *
 * All threads may share one: the handle and the tables of keys are the process's. What a refused
 * text might have been meant as is guessed here, as it is for the portable decoder.
 */

import { SetupError } from "../core/errors.ts";
import type { ValidationResult } from "../core/flow.ts";
import { DECODER_COUNTERS, type NativeDecoding, VALIDATION_NUMBERS } from "../native/contract.ts";
import type { Decoder, DecoderOptions } from "./decoder.ts";
import { diagnose } from "./diagnosis.ts";
import { readValidation } from "./workers/worker-channel.ts";

/**
 * How long the calling thread decodes in a turn itself, and while workers are behind: a quarter of
 * a millisecond and four times that, in units of what a known signer's transaction takes. To hand
 * one over takes longer than that.
 */
export const NATIVE_HERE = { hereAtLeast: 64, hereATurn: 256, hereUnitUs: 4 } as const;

/** What `createNativeDecoder` needs to speak to a decoder that exists already. */
export interface NativeDecoder extends Decoder {
  /** Good on every thread of the process, for `nativeDecoder`. */
  readonly handle: number;
  close(): void;
}

/** Makes a decoder in the engine. Throws a SetupError when the engine refuses the options. */
export function createNativeDecoder(
  native: NativeDecoding,
  options: DecoderOptions,
): NativeDecoder {
  const { tipAccounts, lamportsMin, verify, keyCacheSize } = options;
  const accounts = new Uint8Array(Buffer.concat(tipAccounts));
  const handle = native.decoderCreate(accounts, lamportsMin, verify, keyCacheSize);
  if (handle <= 0) throw new SetupError(`the native decoder was refused with code ${handle}`);
  return nativeDecoder(native, handle);
}

/** The view of a decoder that any thread has made. */
export function nativeDecoder(native: NativeDecoding, handle: number): NativeDecoder {
  const out = new Float64Array(VALIDATION_NUMBERS);
  const counters = new Float64Array(DECODER_COUNTERS);

  function counter(index: number): number {
    native.decoderCounters(handle, counters);
    return counters[index] ?? 0;
  }

  return {
    handle,
    decode(bytes): ValidationResult {
      const code = native.decode(handle, bytes, out, 0);
      if (code < 0) throw new Error(`the native decoder answered ${code}`);
      const validation = readValidation(out, 0);
      return validation.kind === "refused" ? diagnose(bytes, validation) : validation;
    },
    counters: {
      get verified() {
        return counter(0);
      },
      get invalid() {
        return counter(1);
      },
      get keysFound() {
        return counter(2);
      },
      get keysMade() {
        return counter(3);
      },
      get keysEvicted() {
        return counter(4);
      },
    },
    close() {
      native.decoderClose(handle);
    },
  };
}
