/**
 * Who may come in, and how often: keys and limits, before a byte of the body is read.
 *
 * A key is looked up by its SHA-256; the table compares in constant time. Each account has one
 * limit, shared by its keys and by every endpoint. The state of a limit is one number, outlives a
 * reload of the keys, and is forgotten once it says nothing, so idle accounts cost no memory.
 *
 * Hot path: two look-ups for each request, and a hash for a key not seen lately; no closures.
 *
 * Decision: docs/decisions/0046-keys-are-hashed-by-node.md
 */

import { hash } from "node:crypto";
import { type Clock, NS_PER_MS, NS_PER_S } from "../core/clock.ts";
import type { Rejection } from "../core/errors.ts";
import { LIMITED_ACCOUNTS_MAX, TOKEN_CHARS_MAX, TOKEN_CHARS_MIN } from "../core/limits.ts";
import { withFastProperties } from "../runtime/fast-object.ts";
import type { DelegatedLimits } from "./delegated-limits.ts";
import { intervalNs, waitNs } from "./gcra.ts";
import { type LimitState, LocalLimitStates } from "./local-state.ts";

/** What an account may do. */
export interface RatePlan {
  readonly name: string;
  /** Requests a second in the long run; above 0, may be below 1. */
  readonly ratePerSecond: number;
  /** Requests that are let through at once; at least 1. */
  readonly burst: number;
  /** Whether one limit holds over all edges; else it holds for each edge by itself. */
  readonly shared: boolean;
}

/** Whose key it is. */
export interface Principal {
  /** The key's name in limits and in usage; never the key itself. */
  readonly keyId: string;
  readonly account: string;
  readonly plan: RatePlan;
  /** What narrows this one key; null for nothing. */
  readonly policy: KeyPolicy | null;
}

export interface KeyPolicy {
  /** From when on the key is no longer good, in milliseconds since the Unix epoch. */
  readonly expiresUnixMs: number | null;
  /** From where it may be used; null for everywhere. */
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

/** From where a request came; asked for only where a key says from where it may come. */
export interface Origin {
  /** The address in text form. */
  remoteAddress(): string;
}

/** Where the keys are, by the SHA-256 of the key. */
export interface KeyLookup {
  lookup(sha256: Buffer): Principal | null;
  /** Rises with each change of any key or plan; an owner holds until then. */
  readonly changes: number;
}

/** Limits that hold over all edges, for the plans that say so. */
export interface SharedLimits {
  /** How long the account has to wait now, in nanoseconds; 0: it may pass. Changes nothing. */
  waitNs(account: string, plan: RatePlan, nowNs: number): number;
  /** Lets one request through: 0, or the nanoseconds to wait, and then nothing is charged. */
  tryCharge(account: string, plan: RatePlan, nowNs: number): number;
}

export interface AccessControlDeps {
  readonly clock: Clock;
  readonly keys: KeyLookup;
  /** Whether an unknown key looks like one of ours with a typing error. */
  readonly looksMistyped: (token: string) => boolean;
  /** null: every limit holds for this edge by itself. */
  readonly sharedLimits: SharedLimits | null;
  /** Where other threads charge limits as well; not given: they are this thread's own. */
  readonly delegated?: DelegatedLimits | null;
  /**
   * Called for each refusal of a key that has expired or came from outside of its networks, with
   * what its account may know of it; not given: nothing keeps those.
   */
  readonly onPolicyViolation?: (principal: Principal, rejection: Rejection) => void;
}

export interface AccessControlOptions {
  /** Accounts whose limit is remembered; where limits are held, that is said there. */
  readonly accountsMax?: number;
}

export interface AccessControl {
  /**
   * The owner of the key, null when it is missing, unknown, expired or revoked, or may not be used
   * from there. Costs nothing.
   */
  authenticate(token: string, origin: Origin): Principal | null;
  /** Charges one request: 0 when it is let through, else the nanoseconds to wait. */
  charge(principal: Principal, nowNs: number): number;
  /** Whose limit the last request was refused by that `charge` refused. */
  readonly limitedBy: LimitedBy;
  /** Why `find` answered null, for the client. The key itself is never repeated. */
  rejectionOf(token: string, origin: Origin): Rejection;
  readonly counters: AccessCounters;
}

/** All keys of an account have one limit together; a key may have one of its own as well. */
export type LimitedBy = "account" | "key";

export interface AccessCounters {
  /** Requests without a key. */
  keysMissing: number;
  /** Requests with a key that nobody has. */
  keysUnknown: number;
  /** Requests with a key that has expired, or from where it may not be used. */
  keysOutOfPolicy: number;
  /** Requests let through. */
  allowed: number;
  /** Requests refused by a limit. */
  limited: number;
  /** Accounts whose limit is remembered now. */
  readonly accountsTracked: number;
  /** Limits forgotten before their time, for want of room. */
  readonly accountsEvicted: number;
}

/** A key that was good once, and whose it is; the owner holds while `changes` is the keys' own. */
interface KnownKey {
  readonly digest: Buffer;
  principal: Principal | null;
  changes: number;
}

export function createAccessControl(
  deps: AccessControlDeps,
  options: AccessControlOptions = {},
): AccessControl {
  const { sharedLimits } = deps;
  const delegated = deps.delegated ?? null;
  const states =
    delegated?.states ?? new LocalLimitStates(options.accountsMax ?? LIMITED_ACCOUNTS_MAX);
  const counters: AccessCounters = withFastProperties({
    keysMissing: 0,
    keysUnknown: 0,
    keysOutOfPolicy: 0,
    allowed: 0,
    limited: 0,
    get accountsTracked() {
      return delegated?.size ?? states.size;
    },
    get accountsEvicted() {
      return states.evicted;
    },
  });
  let limitedBy: LimitedBy = "account";
  /** Keys that were good; whether they still are is asked anew after each change of any key. */
  const known = new Map<string, KnownKey>();
  /** Of the key that is looked up now. */
  const digest = Buffer.alloc(DIGEST_BYTES);

  /** By whichever limit has to be waited for longer. */
  function rejected(ownWait: number, accountWait: number): number {
    counters.limited += 1;
    limitedBy = ownWait > accountWait ? "key" : "account";
    return Math.max(ownWait, accountWait);
  }

  /** The same as `charge`, while others charge too: what was free a moment ago may be gone. */
  function chargeDelegated(
    delegated: DelegatedLimits,
    principal: Principal,
    nowNs: number,
  ): number {
    const { account, plan, keyId, policy } = principal;
    const own = policy?.limit ?? null;
    const ownName = own === null ? "" : ownLimitName(keyId);
    const limits = plan.shared && sharedLimits !== null ? sharedLimits : delegated;
    const ownWait = own === null ? 0 : delegated.tryCharge(ownName, own, nowNs);
    if (ownWait > 0) return rejected(ownWait, limits.waitNs(account, plan, nowNs));
    const wait = limits.tryCharge(account, plan, nowNs);
    if (wait > 0) {
      if (own !== null) delegated.refund(ownName, own);
      return rejected(0, wait);
    }
    counters.allowed += 1;
    return 0;
  }

  function lookup(token: string): Principal | null {
    if (token.length < TOKEN_CHARS_MIN || token.length > TOKEN_CHARS_MAX) return null;
    const { changes } = deps.keys;
    const key = known.get(token);
    if (key !== undefined) {
      if (key.changes === changes) return key.principal;
      key.principal = deps.keys.lookup(key.digest);
      key.changes = changes;
      return key.principal;
    }
    // As a text, because one more buffer of its own costs three times what the hash does.
    digest.write(hash("sha256", token, "binary"), "latin1");
    const principal = deps.keys.lookup(digest);
    if (principal === null) return null;
    // Keys in use are few; when they are many, all are forgotten and the busy ones come back.
    if (known.size >= TOKENS_KNOWN_MAX) known.clear();
    known.set(token, { digest: Buffer.from(digest), principal, changes });
    return principal;
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
      if (delegated !== null) return chargeDelegated(delegated, principal, nowNs);
      const { account, plan, keyId, policy } = principal;
      const own = policy?.limit ?? null;
      const ownName = own === null ? "" : ownLimitName(keyId);
      const ownWait = own === null ? 0 : waitOf(states.of(ownName), own, nowNs);
      if (plan.shared && sharedLimits !== null) {
        if (ownWait > 0) return rejected(ownWait, sharedLimits.waitNs(account, plan, nowNs));
        const wait = sharedLimits.tryCharge(account, plan, nowNs);
        if (wait > 0) return rejected(0, wait);
      } else {
        const state = states.of(account);
        const wait = waitOf(state, plan, nowNs);
        if (ownWait > 0 || wait > 0) return rejected(ownWait, wait);
        states.charge(account, state, intervalNs(plan.ratePerSecond), nowNs);
      }
      if (own !== null) {
        // Asked anew: the account's charge may have let it go.
        states.charge(ownName, states.of(ownName), intervalNs(own.ratePerSecond), nowNs);
      }
      counters.allowed += 1;
      return 0;
    },
    rejectionOf(token, origin) {
      if (token === "") {
        counters.keysMissing += 1;
        return unauthorized("the header api-x-token is missing, the key of an account is needed");
      }
      const principal = lookup(token);
      const policy = principal?.policy ?? null;
      const violation = policy && policyViolation(policy, origin, deps.clock.unixMs());
      if (principal !== null && violation !== null) {
        counters.keysOutOfPolicy += 1;
        deps.onPolicyViolation?.(principal, unauthorized(violation.forAccount));
        return unauthorized(violation.forClient);
      }
      counters.keysUnknown += 1;
      return deps.looksMistyped(token)
        ? unauthorized("the key in api-x-token has a typing error: its checksum does not match")
        : UNKNOWN_KEY;
    },
  });
}

/** What the limit of a key is called where limits of accounts are, too. */
export function ownLimitName(keyId: string): string {
  return `key ${keyId}`;
}

function waitOf(state: LimitState | undefined, limit: KeyLimit, nowNs: number): number {
  return waitNs(state?.fullNs ?? 0, nowNs, intervalNs(limit.ratePerSecond), limit.burst);
}

/** Why a key is not good here and now, in two sentences. */
export interface PolicyViolation {
  /** For whoever sent the key, who may have found it somewhere. */
  readonly forClient: string;
  /** For the key's account. */
  readonly forAccount: string;
}

/** Why a key is not good here and now, null when it is. */
export function policyViolation(
  policy: KeyPolicy,
  origin: Origin,
  unixMs: number,
): PolicyViolation | null {
  const { expiresUnixMs, networks } = policy;
  if (expiresUnixMs !== null && unixMs >= expiresUnixMs) {
    const message = `the key in api-x-token expired at ${new Date(expiresUnixMs).toISOString()}`;
    return { forClient: message, forAccount: message };
  }
  if (networks === null) return null;
  const address = origin.remoteAddress();
  if (networks.includes(address)) return null;
  const ranges = networks.ranges.join(", ");
  const from = address === "" ? "an address that is not known" : address;
  return {
    forClient: "the key in api-x-token may not be used from this address",
    forAccount: `the key may be used from ${ranges} only, a request with it came from ${from}`,
  };
}

/** The limit that a request was refused by, as a plan; a key's own is called "key". */
export function limitOf({ plan, policy }: Principal, by: LimitedBy): RatePlan {
  const own = by === "key" ? (policy?.limit ?? null) : null;
  return own === null ? plan : { ...own, name: "key", shared: false };
}

/** What a client is told whose limit, the account's or the key's, is used up for `wait` ns. */
export function limitRejection(principal: Principal, wait: number, by: LimitedBy): Rejection {
  const { plan } = principal;
  const retryAfterMs = Math.ceil(wait / NS_PER_MS);
  const { ratePerSecond, burst } = limitOf(principal, by);
  const whose = by === "account" ? `plan ${plan.name}` : "this key";
  return {
    reason: "rate_limited",
    message:
      `the rate limit of ${whose} is ${ratePerSecond} requests a second ` +
      `with a burst of ${burst}; the next one is let through in ${retryAfterMs} ms`,
    data: { plan: plan.name, ratePerSecond, burst, retryAfterMs },
  };
}

/** Whole seconds to wait, at least one: what `Retry-After` can say. */
export function retryAfterSeconds(wait: number): number {
  return Math.max(1, Math.ceil(wait / NS_PER_S));
}

function unauthorized(message: string): Rejection {
  return { reason: "unauthorized", message, data: {} };
}

/** Which of them it is the edge does not know: it holds no key that is not good. */
export const UNKNOWN_KEY = unauthorized(
  "the key in api-x-token is unknown or revoked, or its account is disabled; " +
    "whoever issued it can tell which",
);
const DIGEST_BYTES = 32;

/** Keys whose digest and owner are remembered, so that they are not looked up for each request. */
const TOKENS_KNOWN_MAX = 4096;
