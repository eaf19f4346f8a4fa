/** How the portable engine validates: on the calling thread, and on worker threads. */

import { availableParallelism } from "node:os";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { decodeBase58 } from "../core/encoding.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { createDecoder, type DecoderOptions } from "../decode/decoder.ts";
import { createDispatch } from "../decode/workers/dispatch.ts";
import { createWorkerPool } from "../decode/workers/piscina-pool.ts";
import { DECODE_KEYS_MAX } from "./limits.ts";

type ValidationConfig = Pick<Config, "decode" | "tip">;

export interface ValidationDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/** The decoder of the calling thread, and the worker threads beside it. */
export function buildValidation(config: ValidationConfig, { clock, log }: ValidationDeps) {
  const options = { ...decoderOptionsOf(config), keyCacheSize: DECODE_KEYS_MAX };
  const decoder = createDecoder(options);
  const dispatch = createDispatch(
    { clock, decoder, log, workers: createWorkerPool() },
    { inline: config.decode.inline, workers: workersOf(config), decoder: options },
  );
  return { dispatch, inlineVerifier: decoder.counters };
}

/** Decode workers of the portable engine. */
export function workersOf({ decode }: Pick<Config, "decode">): number {
  return decode.workers ?? Math.max(1, availableParallelism() - 1);
}

/** What a decoder of either engine demands. @throws SetupError for a tip account that is none */
export function decoderOptionsOf({
  tip,
  decode,
}: ValidationConfig): Omit<DecoderOptions, "keyCacheSize"> {
  return {
    tipAccounts: tip.accounts.map(keyBytes),
    lamportsMin: tip.lamportsMin,
    verify: decode.verify,
  };
}

function keyBytes(account: string): Uint8Array {
  const bytes = decodeBase58(account, 32);
  if (bytes?.length !== 32) throw new SetupError(`tip.accounts: ${account} is no account`);
  return bytes;
}
