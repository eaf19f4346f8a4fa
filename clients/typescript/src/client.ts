/**
 * A client of Touchdown's submission over QUIC: it keeps one connection to an edge, opens it again
 * when it is lost, and returns a verdict for each transaction. The work is done by the Rust client,
 * on threads of its own.
 */

import { type NativeError, startNative } from "./addon.ts";
import { ClientError } from "./errors.ts";
import { type ClientEvent, eventOf } from "./events.ts";
import { type Verdict, verdictOf } from "./verdict.ts";

export { ClientError, type ErrorKind } from "./errors.ts";
export type { ClientEvent } from "./events.ts";
export type { Reason } from "./reasons.ts";
export type { Accepted, InBlock, Refused, Verdict } from "./verdict.ts";

/** Who sends: one of the three. */
export type Credential =
  /** An API key, which is sent to the edge after its certificate was verified. */
  | { readonly apiKey: string }
  /** A certificate that is derived from an API key, so that the key itself is never sent. */
  | { readonly derivedFrom: string }
  /** The Ed25519 seed of a keypair whose public key is registered: 32 bytes. */
  | { readonly seed: Uint8Array };

export interface ClientOptions {
  /** `host:port` of the edge's `quic.listen`. */
  readonly address: string;
  readonly credential: Credential;
  /** `solana-tpu` has no verdicts, and needs a keypair ("touchdown/1"). */
  readonly protocol?: "touchdown/1" | "solana-tpu";
  /**
   * Which server certificates are accepted: those of the system's authorities ("system"), of these in
   * PEM or DER (one or more), or any. Certificates of a PEM bundle that are no authority's are ignored
   * beside one that is. With any, whoever is on the path can read the transactions; an API key is
   * not sent.
   */
  readonly trust?: "system" | "any" | readonly Uint8Array[];
  /** Whether receipts of the account's transactions arrive as events (false). */
  readonly receipts?: boolean;
  /** Called for each event; 1,024 may wait, and further ones are dropped. */
  readonly onEvent?: (event: ClientEvent) => void;
  /** How long one attempt to connect may take (5,000); with `solana-tpu`, its handshake. */
  readonly connectTimeoutMs?: number;
  /** Attempts to connect in a row that may fail before the client gives up (20). */
  readonly reconnectsMax?: number;
  /** The wait before the second attempt (50); it doubles with each one, up to `backoffMaxMs` (5,000). */
  readonly backoffMinMs?: number;
  readonly backoffMaxMs?: number;
  /** How long a transaction may wait for connection, stream credit and verdict (5,000). */
  readonly timeoutMs?: number;
  /** Transactions that may wait at a time (4,096). */
  readonly pendingMax?: number;
  /** Idle time after which the client pings (15,000); 0 for no pings: an edge pings after 20 s. */
  readonly keepAliveMs?: number;
}

export interface SubmitOptions {
  /**
   * The edge sends it once and never again (false). A client that loses the connection before the
   * verdict submits it once more, perhaps to another edge, which sends it once too.
   */
  readonly once?: boolean;
  /** The verdict on an accepted transaction comes once its end is known, for 120 s more (false). */
  readonly whenLanded?: boolean;
}

export interface Client {
  /** Resolves once the edge has authenticated the client. @throws ClientError when it gave up */
  ready(): Promise<void>;
  /**
   * The edge's verdict, a refusal too. The array may be reused at once.
   * @throws ClientError where there is no verdict
   */
  submit(transaction: Uint8Array, options?: SubmitOptions): Promise<Verdict>;
  /**
   * Resolves once the edge has received it, without a verdict. The array may be reused at once.
   * @throws ClientError
   */
  send(transaction: Uint8Array): Promise<void>;
  /** Closes the connection. Transactions without a verdict end with an error. */
  close(): void;
}

const ENCODER = new TextEncoder();

/**
 * Begins to connect. @throws Error for an empty list, for a number that is negative or above
 * 4,294,967,295, or for options that contradict each other
 */
export function connect(options: ClientOptions): Client {
  const { trust = "system", onEvent } = options;
  // The addon takes an empty list for the system's authorities.
  if (trust.length === 0) {
    throw new Error('trust names no authority; for those of the system it is "system"');
  }
  const native = startNative(
    {
      address: options.address,
      ...credentialOf(options.credential),
      isSolanaTpu: options.protocol === "solana-tpu",
      trustsAny: trust === "any",
      authorities: typeof trust === "string" ? [] : trust,
      receipts: options.receipts ?? false,
      ...numbersOf(options),
    },
    (nativeEvent) => {
      const event = eventOf(nativeEvent);
      if (event !== null) onEvent?.(event);
    },
  );
  // The addon reads the bytes on another thread: it gets a copy, and the caller may reuse the array.
  const copyOf = (transaction: Uint8Array): Uint8Array => new Uint8Array(transaction);
  return {
    async ready() {
      throwIf(await native.ready());
    },
    async submit(transaction, { once = false, whenLanded = false } = {}) {
      const { verdict, error } = await native.submit(copyOf(transaction), once, whenLanded);
      throwIf(error);
      if (verdict === undefined) throw new Error("the addon returned neither verdict nor error");
      return verdictOf(verdict);
    },
    async send(transaction) {
      throwIf(await native.send(copyOf(transaction)));
    },
    close: () => native.close(),
  };
}

function credentialOf(credential: Credential) {
  if ("seed" in credential) return { credentialKind: 0, credential: credential.seed } as const;
  if ("apiKey" in credential) {
    return { credentialKind: 1, credential: ENCODER.encode(credential.apiKey) } as const;
  }
  return { credentialKind: 2, credential: ENCODER.encode(credential.derivedFrom) } as const;
}

function numbersOf(options: ClientOptions) {
  const numbers = {
    connectTimeoutMs: options.connectTimeoutMs ?? 5_000,
    reconnectsMax: options.reconnectsMax ?? 20,
    backoffMinMs: options.backoffMinMs ?? 50,
    backoffMaxMs: options.backoffMaxMs ?? 5_000,
    timeoutMs: options.timeoutMs ?? 5_000,
    pendingMax: options.pendingMax ?? 4_096,
    keepAliveMs: options.keepAliveMs ?? 15_000,
  };
  for (const [name, number] of Object.entries(numbers)) {
    // Node passes 0 on to the addon for Infinity and NaN, and the last 32 bits of another number.
    if (number >= 0 && number <= UINT32_MAX) continue;
    throw new Error(`${name} is ${number}, a number from 0 to ${UINT32_MAX} is needed`);
  }
  return numbers;
}

const UINT32_MAX = 0xffff_ffff;

function throwIf(error: NativeError | null | undefined): void {
  if (error !== null && error !== undefined) throw new ClientError(error);
}
