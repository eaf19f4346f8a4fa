/** The addon's exports, as `native/src/lib.rs` has them. Programs use `client.ts`. */

import { createRequire } from "node:module";

export interface NativeConfig {
  readonly address: string;
  /** 0: a seed of 32 bytes; 1: an API key; 2: a certificate derived from an API key. */
  readonly credentialKind: 0 | 1 | 2;
  readonly credential: Uint8Array;
  readonly isSolanaTpu: boolean;
  readonly trustsAny: boolean;
  readonly authorities: readonly Uint8Array[];
  readonly receipts: boolean;
  readonly connectTimeoutMs: number;
  readonly reconnectsMax: number;
  readonly backoffMinMs: number;
  readonly backoffMaxMs: number;
  readonly timeoutMs: number;
  readonly pendingMax: number;
  readonly keepAliveMs: number;
}

export interface NativeError {
  readonly kind: string;
  readonly message: string;
  readonly code: number;
}

export interface NativeVerdict {
  readonly outcome: string;
  readonly code: number;
  readonly signature: string;
  readonly microseconds: number;
  readonly credit: number;
  readonly slot: number;
  readonly hasExecutionFailed: boolean;
}

export interface NativeEvent {
  readonly kind: string;
  readonly address?: string;
  readonly error?: NativeError;
  readonly numbers: readonly number[];
  readonly lamportsMin?: bigint;
  readonly accounts: readonly string[];
  readonly verdict?: NativeVerdict;
}

export interface NativeClient {
  ready(): Promise<NativeError | null>;
  submit(
    bytes: Uint8Array,
    once: boolean,
    whenLanded: boolean,
  ): Promise<{ readonly verdict?: NativeVerdict; readonly error?: NativeError }>;
  send(bytes: Uint8Array): Promise<NativeError | null>;
  close(): void;
}

interface Addon {
  readonly NativeClient: {
    start(config: NativeConfig, onEvent: (event: NativeEvent) => void): NativeClient;
  };
}

/** @throws Error where the addon was not built: `npm run build` */
export function startNative(
  config: NativeConfig,
  onEvent: (event: NativeEvent) => void,
): NativeClient {
  // `require` is the one way to load an addon; the types above describe it.
  const addon = createRequire(import.meta.url)("../client.node") as Addon;
  return addon.NativeClient.start(config, onEvent);
}
