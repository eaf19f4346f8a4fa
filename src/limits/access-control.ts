/**
 * Access control: keys and rate limits. The main thread checks them before it reads the body.
 *
 * A key is looked up by its SHA-256; the table compares in constant time. Each account has one
 * limit, common to its keys and to every endpoint. The state of a limit is one number, survives a
 * reload of the keys, and is removed once its bucket is full, so idle accounts use no memory.
 *
 * Hot path: two look-ups per request, and a hash for a key not used lately; no closures.
 *
 * Decision: docs/decisions/0046-keys-are-hashed-by-node.md
 */

import { hash } from "node:crypto";
import { type Clock, NS_PER_MS, NS_PER_S } from "../core/clock.ts";
import { type Rejection, rateLimitMessage } from "../core/errors.ts";
import { LIMITED_ACCOUNTS_MAX, TOKEN_CHARS_MAX, TOKEN_CHARS_MIN } from "../core/limits.ts";
import { withFastProperties } from "../runtime/fast-object.ts";
import { intervalNs } from "./gcra.ts";
import { KEY_MESSAGES } from "./key-messages.ts";
import { LocalLimitStates } from "./local-state.ts";

/** The rate limit of an account. */
export interface RatePlan {
  readonly name: string;
  /** Requests per second in the long run; above 0, may be below 1. */
  readonly ratePerSecond: number;
  /** Requests allowed at the same time; at least 1. */
  readonly burst: number;
  /** Whether the limit is global: it applies to all edges together, else to each separately. */
  readonly shared: boolean;
}

/** The authenticated caller. */
export interface Principal {
  /** The key's id in limits and usage; never the key itself. */
  readonly keyId: string;
  readonly account: string;
  readonly plan: RatePlan;
  /** Constraints of this key; null for none. */
  readonly policy: KeyPolicy | null;
}

export interface KeyPolicy {
  /** When the key expires, in milliseconds since the Unix epoch; null for never. */
  readonly expiresUnixMs: number | null;
  /** Networks that it may be used from; null for any. */
  readonly networks: {
    readonly ranges: readonly string[];
    includes(address: string): boolean;
  } | null;
  /** A limit below the account's; null for none. */
  readonly limit: KeyLimit | null;
}

export interface KeyLimit {
  readonly ratePerSecond: number;
  readonly burst: number;
}

/** The source of a request; read only if a key has network constraints. */
export interface ClientAddress {
  /** The address in text form. */
  remoteAddress(): string;
}

/** Looks up keys by their SHA-256. */
export interface KeyLookup {
  lookup(sha256: Buffer): Principal | null;
  /** Increases with each change of a key or plan; a principal is valid until then. */
  readonly changes: number;
}

/** Limits that apply to all edges together, for the plans that request it. */
export interface GlobalLimits {
  /** How long the account must wait now, in nanoseconds; 0: not at all. Changes nothing. */
  waitNs(account: string, plan: RatePlan, nowNs: number): number;
  /** Charges one request: 0, or the nanoseconds to wait, in which case nothing is charged. */
  tryCharge(account: string, plan: RatePlan, nowNs: number): number;
}

/** The limits of all keys, which several threads charge. */
export interface SharedLimits {
  /** Charges one request of the key with this digest: 0, or the nanoseconds to wait. */
  charge(sha256: Buffer, nowNs: number): number;
  /** The limit that caused the last wait. */
  readonly limitedBy: LimitedBy;
  /** Limits with a state. */
  readonly size: number;
}

export interface AccessControlDeps {
  readonly clock: Clock;
  readonly keys: KeyLookup;
  /** Whether an unknown key looks like a mistyped key of this service. */
  readonly looksMistyped: (token: string) => boolean;
  /** null: every limit applies to this edge alone. */
  readonly globalLimits: GlobalLimits | null;
  /** The limits that other threads charge too; absent: this thread charges all limits alone. */
  readonly sharedLimits?: SharedLimits | null;
  /**
   * Called for each rejection of a key that has expired or was used from outside its networks, with
   * the rejection that its account may see; absent: these are not recorded.
   */
  readonly onPolicyViolation?: (principal: Principal, rejection: Rejection) => void;
  /** Whether the keys were read; until then none is known. Absent: from the start. */
  readonly hasKeys?: () => boolean;
}

export interface AccessControlOptions {
  /** Accounts whose limit state is kept; ignored with `sharedLimits`. */
  readonly accountsMax?: number;
}

export interface AccessControl {
  /**
   * The principal of the key; null when the key is missing, unknown, expired or revoked, or may not
   * be used from this origin. Charges nothing.
   */
  authenticate(token: string, origin: ClientAddress): Principal | null;
  /** Charges one request: 0 when it is allowed, else the nanoseconds to wait. */
  charge(principal: Principal, nowNs: number): number;
  /** The limit that caused the last rejection by `charge`. */
  readonly limitedBy: LimitedBy;
  /** Why `authenticate` returned null, for the client. Never repeats the key itself. */
  rejectionOf(token: string, origin: ClientAddress): Rejection;
  readonly counters: AccessCounters;
}

/** All keys of an account share one limit; a key may have a limit of its own as well. */
export type LimitedBy = "account" | "key";

export interface AccessCounters {
  /** Requests without a key. */
  keysMissing: number;
  /** Requests with an unknown key. */
  keysUnknown: number;
  /** Requests with a key that has expired or may not be used from the request's address. */
  keysOutOfPolicy: number;
  /** Requests allowed. */
  allowed: number;
  /** Requests rejected by a limit. */
  limited: number;
  /** Accounts whose limit state is kept now. */
  readonly accountsTracked: number;
  /** Limit states evicted early because the table was full. */
  readonly accountsEvicted: number;
}

/** A key that was valid once, and its principal, valid while `changes` equals the lookup's. */
interface KnownKey {
  readonly digest: Buffer;
  principal: Principal | null;
  changes: number;
}

export function createAccessControl(
  deps: AccessControlDeps,
  options: AccessControlOptions = {},
): AccessControl {
  const { globalLimits } = deps;
  const sharedLimits = deps.sharedLimits ?? null;
  const states = new LocalLimitStates(options.accountsMax ?? LIMITED_ACCOUNTS_MAX);
  const counters: AccessCounters = withFastProperties({
    keysMissing: 0,
    keysUnknown: 0,
    keysOutOfPolicy: 0,
    allowed: 0,
    limited: 0,
    get accountsTracked() {
      return sharedLimits?.size ?? states.size;
    },
    get accountsEvicted() {
      return states.evicted;
    },
  });
  let limitedBy: LimitedBy = "account";
  /** Keys that were valid; each is looked up again after any change of a key. */
  const known = new Map<string, KnownKey>();
  /** Of the key that is looked up now. */
  const digest = Buffer.alloc(DIGEST_BYTES);
  /** Of the keys whose shared limits may be charged. */
  const digests = new WeakMap<Principal, Buffer>();

  /** Rejected by the limit with the longer wait. */
  function rejected(ownWait: number, accountWait: number): number {
    counters.limited += 1;
    limitedBy = ownWait > accountWait ? "key" : "account";
    return Math.max(ownWait, accountWait);
  }

  /** Other threads charge the same limits: check and charge are one step. */
  function chargeShared(limits: SharedLimits, principal: Principal, nowNs: number): number {
    const sha256 = digests.get(principal);
    const wait = sha256 === undefined ? 0 : limits.charge(sha256, nowNs);
    if (wait > 0) {
      counters.limited += 1;
      limitedBy = limits.limitedBy;
    } else counters.allowed += 1;
    return wait;
  }

  function found(principal: Principal | null, sha256: Buffer): Principal | null {
    if (principal !== null && sharedLimits !== null) digests.set(principal, sha256);
    return principal;
  }

  function lookup(token: string): Principal | null {
    if (token.length < TOKEN_CHARS_MIN || token.length > TOKEN_CHARS_MAX) return null;
    const { changes } = deps.keys;
    const key = known.get(token);
    if (key !== undefined) {
      if (key.changes === changes) return key.principal;
      key.principal = found(deps.keys.lookup(key.digest), key.digest);
      key.changes = changes;
      return key.principal;
    }
    // A query can be decoded to any text. What is hashed of a public key has a zero byte, and is no
    // API key.
    if (NOT_PRINTABLE.test(token)) return null;
    // As a string, because allocating a buffer costs three times as much as the hash.
    digest.write(hash("sha256", token, "binary"), "latin1");
    const principal = deps.keys.lookup(digest);
    if (principal === null) return null;
    // Keys in use are few; if there are too many, all are dropped and the busy ones come back.
    if (known.size >= TOKENS_KNOWN_MAX) known.clear();
    const sha256 = Buffer.from(digest);
    known.set(token, { digest: sha256, principal, changes });
    return found(principal, sha256);
  }

  return withFastProperties({
    counters,
    get limitedBy() {
      return limitedBy;
    },
    authenticate(token, origin) {
      const principal = lookup(token);
      if (principal === null || principal.policy === null) return principal;
      return policyViolation(principal.policy, origin, deps.clock.unixMs()) === null
        ? principal
        : null;
    },
    charge(principal, nowNs) {
      if (sharedLimits !== null) return chargeShared(sharedLimits, principal, nowNs);
      const { account, plan, keyId, policy } = principal;
      const own = policy?.limit ?? null;
      const ownName = own === null ? "" : keyLimitName(keyId);
      const ownWait = own === null ? 0 : states.waitNs(states.of(ownName), own, nowNs);
      if (plan.shared && globalLimits !== null) {
        if (ownWait > 0) return rejected(ownWait, globalLimits.waitNs(account, plan, nowNs));
        const wait = globalLimits.tryCharge(account, plan, nowNs);
        if (wait > 0) return rejected(0, wait);
      } else {
        const state = states.of(account);
        const wait = states.waitNs(state, plan, nowNs);
        if (ownWait > 0 || wait > 0) return rejected(ownWait, wait);
        states.charge(account, state, intervalNs(plan.ratePerSecond), nowNs);
      }
      if (own !== null) {
        // Looked up again: charging the account may have evicted it.
        states.charge(ownName, states.of(ownName), intervalNs(own.ratePerSecond), nowNs);
      }
      counters.allowed += 1;
      return 0;
    },
    rejectionOf(token, origin) {
      if (token === "") {
        counters.keysMissing += 1;
        return unauthorized(KEY_MESSAGES.keyMissing());
      }
      const principal = lookup(token);
      const policy = principal?.policy ?? null;
      const violation = policy && policyViolation(policy, origin, deps.clock.unixMs());
      if (principal !== null && violation !== null) {
        counters.keysOutOfPolicy += 1;
        deps.onPolicyViolation?.(principal, unauthorized(violation.forAccount));
        return unauthorized(violation.forClient);
      }
      const isMistyped = deps.looksMistyped(token);
      if (!isMistyped && deps.hasKeys?.() === false) return KEYS_UNREAD;
      counters.keysUnknown += 1;
      return isMistyped ? unauthorized(KEY_MESSAGES.keyMistyped()) : UNKNOWN_KEY;
    },
  });
}

/** The name of a key's limit; accounts' limits are in the same table. */
export function keyLimitName(keyId: string): string {
  return `key ${keyId}`;
}

/** Why a key is not valid here and now, in two messages. */
export interface PolicyViolation {
  /** For the sender of the key, who may have stolen it. */
  readonly forClient: string;
  /** For the key's account. */
  readonly forAccount: string;
}

/** Why a key is not valid here and now; null when it is. */
export function policyViolation(
  policy: KeyPolicy,
  origin: ClientAddress,
  unixMs: number,
): PolicyViolation | null {
  const { expiresUnixMs, networks } = policy;
  if (expiresUnixMs !== null && unixMs >= expiresUnixMs) {
    const message = KEY_MESSAGES.keyExpired(new Date(expiresUnixMs).toISOString());
    return { forClient: message, forAccount: message };
  }
  if (networks === null) return null;
  const address = origin.remoteAddress();
  if (networks.includes(address)) return null;
  const ranges = networks.ranges.join(", ");
  const from = address === "" ? "an unknown address" : address;
  return {
    forClient: KEY_MESSAGES.keyNetwork(),
    forAccount: KEY_MESSAGES.keyNetworkAccount(ranges, from),
  };
}

/** The limit that rejected a request, as a plan; a key's own is named "key". */
export function limitOf({ plan, policy }: Principal, by: LimitedBy): RatePlan {
  const own = by === "key" ? (policy?.limit ?? null) : null;
  return own === null ? plan : { ...own, name: "key", shared: false };
}

/** The rejection when the account's or key's limit is used up for `wait` ns. */
export function limitRejection(principal: Principal, wait: number, by: LimitedBy): Rejection {
  const { plan } = principal;
  const retryAfterMs = Math.ceil(wait / NS_PER_MS);
  const { ratePerSecond, burst } = limitOf(principal, by);
  const whose = by === "account" ? `plan ${plan.name}` : "this key";
  return {
    reason: "rate_limited",
    message: rateLimitMessage(whose, ratePerSecond, burst, retryAfterMs),
    data: { plan: plan.name, ratePerSecond, burst, retryAfterMs },
  };
}

/** Whole seconds to wait, at least one, as `Retry-After` requires. */
export function retryAfterSeconds(wait: number): number {
  return Math.max(1, Math.ceil(wait / NS_PER_S));
}

function unauthorized(message: string): Rejection {
  return { reason: "unauthorized", message, data: {} };
}

export const UNKNOWN_KEY = unauthorized(KEY_MESSAGES.keyUnknown());
/** Until the database was read once, any key may be valid. */
export const KEYS_UNREAD: Rejection = {
  reason: "overloaded",
  message: KEY_MESSAGES.keysUnread(),
  data: {},
};
const DIGEST_BYTES = 32;

/** A character that no API key has. */
const NOT_PRINTABLE = /[^ -~]/;
/** Keys whose digest and principal are cached, so that they are not looked up per request. */
const TOKENS_KNOWN_MAX = 4096;
