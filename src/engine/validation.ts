/** How an engine validates: on the calling thread, and on worker threads. */

import { availableParallelism } from "node:os";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { decodeBase58 } from "../core/encoding.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { createDecoder, type DecoderOptions } from "../decode/decoder.ts";
import { createNativeDecoder, NATIVE_INLINE } from "../decode/native-decoder.ts";
import { createDispatch } from "../decode/workers/dispatch.ts";
import { createWorkerPool } from "../decode/workers/piscina-pool.ts";
import type { EngineChoice } from "../native/choose.ts";
import { signatureTextOf } from "../native/signature-text.ts";
import { DECODE_KEYS_MAX, NATIVE_KEYS_MAX } from "./limits.ts";
import { busyPollOf } from "./transport.ts";

type ValidationConfig = Pick<Config, "host" | "decode" | "tip">;

export interface ValidationDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly engine: EngineChoice;
  /** Threads that validate what they accept themselves. */
  readonly ingressThreads: number;
}

/** The decoder of the calling thread, and the worker threads beside it. */
export function buildValidation(
  config: ValidationConfig,
  { clock, log, engine, ingressThreads }: ValidationDeps,
) {
  const options = decoderOptionsOf(config);
  const { decoder, handle, forWorkers, inlineLimits, close } = decodersOf(options, engine);
  const parser = ingressThreads === 0 ? null : parserOf(options, engine);
  const pollUs = busyPollOf(config.host, engine, availableParallelism());
  const workers = workersOf(config, ingressThreads);
  const dispatch = createDispatch(
    { clock, decoder, log, workers: createWorkerPool() },
    { inline: config.decode.inline, workers, decoder: forWorkers, pollUs, ...inlineLimits },
  );
  return {
    dispatch,
    parser,
    inlineVerifier: decoder.counters,
    decoderHandle: handle,
    signatureText: signatureTextOf(engine.native),
    async start() {
      await dispatch.start();
    },
    async stop() {
      await dispatch.stop();
      // Workers use the native decoder until they end.
      close();
      parser?.close();
    },
  };
}

/** Validates what an ingress thread has verified: everything but the signatures. */
function parserOf(options: DecoderOptions, { native }: EngineChoice) {
  if (native === null) return null;
  return createNativeDecoder(native, { ...options, verify: false, keyCacheSize: 0 });
}

/** Decode workers; ingress threads validate their transactions themselves and are subtracted. */
export function workersOf({ decode }: Pick<Config, "decode">, ingressThreads: number): number {
  const spare = availableParallelism() - 1 - ingressThreads;
  return decode.workers ?? Math.max(ingressThreads === 0 ? 1 : 0, spare);
}

/** The decoder of this thread, and the parameters of the workers' decoders. */
function decodersOf(options: DecoderOptions, { native }: EngineChoice) {
  if (native === null) {
    const decoder = createDecoder(options);
    return { decoder, handle: null, forWorkers: options, inlineLimits: {}, close() {} };
  }
  const decoder = createNativeDecoder(native, { ...options, keyCacheSize: NATIVE_KEYS_MAX });
  const { handle } = decoder;
  const forWorkers = { nativeHandle: handle };
  return { decoder, handle, forWorkers, inlineLimits: NATIVE_INLINE, close: () => decoder.close() };
}

function decoderOptionsOf(config: ValidationConfig): DecoderOptions {
  return {
    tipAccounts: config.tip.accounts.map(keyBytes),
    lamportsMin: config.tip.lamportsMin,
    verify: config.decode.verify,
    keyCacheSize: DECODE_KEYS_MAX,
  };
}

function keyBytes(account: string): Uint8Array {
  const bytes = decodeBase58(account, 32);
  if (bytes?.length !== 32) throw new SetupError(`tip.accounts: ${account} is no account`);
  return bytes;
}
