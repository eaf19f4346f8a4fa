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
import type { Refusal } from "../core/errors.ts";
import { LIMITED_ACCOUNTS_MAX, TOKEN_CHARS_MAX, TOKEN_CHARS_MIN } from "../core/limits.ts";
import { quick } from "../runtime/fast-object.ts";
import type { HeldLimits } from "./delegated-limits.ts";
import { intervalNs, waitNs } from "./gcra.ts";
import { type LimitState, LimitStates } from "./local-state.ts";

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
export interface KeyOwner {
  /** The key's name in limits and in usage; never the key itself. */
  readonly keyId: string;
  readonly account: string;
  readonly plan: RatePlan;
  /** What narrows this one key; null for nothing. */
  readonly restriction: KeyRestriction | null;
}

export interface KeyRestriction {
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
  lookup(sha256: Buffer): KeyOwner | null;
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

export interface GateDeps {
  readonly clock: Clock;
  readonly keys: KeyLookup;
  /** Whether an unknown key looks like one of ours with a typing error. */
  readonly looksMistyped: (token: string) => boolean;
  /** null: every limit holds for this edge by itself. */
  readonly sharedLimits: SharedLimits | null;
  /** Where other threads charge limits as well; not given: they are this thread's own. */
  readonly held?: HeldLimits | null;
  /**
   * Called for each refusal of a key that has expired or came from outside of its networks, with
   * what its account may know of it; not given: nothing keeps those.
   */
  readonly barred?: (owner: KeyOwner, refusal: Refusal) => void;
}

export interface GateOptions {
  /** Accounts whose limit is remembered; where limits are held, that is said there. */
  readonly accountsMax?: number;
}

export interface Gate {
  /**
   * The owner of the key, null when it is missing, unknown, expired or revoked, or may not be used
   * from there. Costs nothing.
   */
  find(token: string, origin: Origin): KeyOwner | null;
  /** Charges one request: 0 when it is let through, else the nanoseconds to wait. */
  charge(owner: KeyOwner, nowNs: number): number;
  /** Whose limit the last request was refused by that `charge` refused. */
  readonly limitedBy: LimitedBy;
  /** Why `find` answered null, for the client. The key itself is never repeated. */
  refusalOf(token: string, origin: Origin): Refusal;
  readonly counters: GateCounters;
}

/** All keys of an account have one limit together; a key may have one of its own as well. */
export type LimitedBy = "account" | "key";

export interface GateCounters {
  /** Requests without a key. */
  keysMissing: number;
  /** Requests with a key that nobody has. */
  keysUnknown: number;
  /** Requests with a key that has expired, or from where it may not be used. */
  keysBarred: number;
  /** Requests let through. */
  admitted: number;
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
  owner: KeyOwner | null;
  changes: number;
}

export function createGate(deps: GateDeps, options: GateOptions = {}): Gate {
  const { sharedLimits } = deps;
  const held = deps.held ?? null;
  const states = held?.states ?? new LimitStates(options.accountsMax ?? LIMITED_ACCOUNTS_MAX);
  const counters: GateCounters = quick({
    keysMissing: 0,
    keysUnknown: 0,
    keysBarred: 0,
    admitted: 0,
    limited: 0,
    get accountsTracked() {
      return held?.size ?? states.size;
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
  function refused(ownWait: number, accountWait: number): number {
    counters.limited += 1;
    limitedBy = ownWait > accountWait ? "key" : "account";
    return Math.max(ownWait, accountWait);
  }

  /** The same as `charge`, while others charge too: what was free a moment ago may be gone. */
  function chargeHeld(held: HeldLimits, owner: KeyOwner, nowNs: number): number {
    const { account, plan, keyId, restriction } = owner;
    const own = restriction?.limit ?? null;
    const ownName = own === null ? "" : ownLimitName(keyId);
    const limits = plan.shared && sharedLimits !== null ? sharedLimits : held;
    const ownWait = own === null ? 0 : held.tryCharge(ownName, own, nowNs);
    if (ownWait > 0) return refused(ownWait, limits.waitNs(account, plan, nowNs));
    const wait = limits.tryCharge(account, plan, nowNs);
    if (wait > 0) {
      if (own !== null) held.giveBack(ownName, own);
      return refused(0, wait);
    }
    counters.admitted += 1;
    return 0;
  }

  function lookup(token: string): KeyOwner | null {
    if (token.length < TOKEN_CHARS_MIN || token.length > TOKEN_CHARS_MAX) return null;
    const { changes } = deps.keys;
    const key = known.get(token);
    if (key !== undefined) {
      if (key.changes === changes) return key.owner;
      key.owner = deps.keys.lookup(key.digest);
      key.changes = changes;
      return key.owner;
    }
    // As a text, because one more buffer of its own costs three times what the hash does.
    digest.write(hash("sha256", token, "binary"), "latin1");
    const owner = deps.keys.lookup(digest);
    if (owner === null) return null;
    // Keys in use are few; when they are many, all are forgotten and the busy ones come back.
    if (known.size >= TOKENS_KNOWN_MAX) known.clear();
    known.set(token, { digest: Buffer.from(digest), owner, changes });
    return owner;
  }

  return quick({
    counters,
    get limitedBy() {
      return limitedBy;
    },
    find(token, origin) {
      const owner = lookup(token);
      if (owner === null || owner.restriction === null) return owner;
      return barOf(owner.restriction, origin, deps.clock.unixMs()) === null ? owner : null;
    },
    charge(owner, nowNs) {
      if (held !== null) return chargeHeld(held, owner, nowNs);
      const { account, plan, keyId, restriction } = owner;
      const own = restriction?.limit ?? null;
      const ownName = own === null ? "" : ownLimitName(keyId);
      const ownWait = own === null ? 0 : waitOf(states.of(ownName), own, nowNs);
      if (plan.shared && sharedLimits !== null) {
        if (ownWait > 0) return refused(ownWait, sharedLimits.waitNs(account, plan, nowNs));
        const wait = sharedLimits.tryCharge(account, plan, nowNs);
        if (wait > 0) return refused(0, wait);
      } else {
        const state = states.of(account);
        const wait = waitOf(state, plan, nowNs);
        if (ownWait > 0 || wait > 0) return refused(ownWait, wait);
        states.charge(account, state, intervalNs(plan.ratePerSecond), nowNs);
      }
      if (own !== null) {
        // Asked anew: the account's charge may have let it go.
        states.charge(ownName, states.of(ownName), intervalNs(own.ratePerSecond), nowNs);
      }
      counters.admitted += 1;
      return 0;
    },
    refusalOf(token, origin) {
      if (token === "") {
        counters.keysMissing += 1;
        return unauthorized("the header api-x-token is missing, the key of an account is needed");
      }
      const owner = lookup(token);
      const restriction = owner?.restriction ?? null;
      const bar = restriction && barOf(restriction, origin, deps.clock.unixMs());
      if (owner !== null && bar !== null) {
        counters.keysBarred += 1;
        deps.barred?.(owner, unauthorized(bar.forAccount));
        return unauthorized(bar.forClient);
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
export interface Bar {
  /** For whoever sent the key, who may have found it somewhere. */
  readonly forClient: string;
  /** For the key's account. */
  readonly forAccount: string;
}

/** Why a key is not good here and now, null when it is. */
export function barOf(restriction: KeyRestriction, origin: Origin, unixMs: number): Bar | null {
  const { expiresUnixMs, networks } = restriction;
  if (expiresUnixMs !== null && unixMs >= expiresUnixMs) {
    const sentence = `the key in api-x-token expired at ${new Date(expiresUnixMs).toISOString()}`;
    return { forClient: sentence, forAccount: sentence };
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
export function limitOf({ plan, restriction }: KeyOwner, by: LimitedBy): RatePlan {
  const own = by === "key" ? (restriction?.limit ?? null) : null;
  return own === null ? plan : { ...own, name: "key", shared: false };
}

/** What a client is told whose limit, the account's or the key's, is used up for `wait` ns. */
export function limitRefusal(owner: KeyOwner, wait: number, by: LimitedBy): Refusal {
  const { plan } = owner;
  const retryAfterMs = Math.ceil(wait / NS_PER_MS);
  const { ratePerSecond, burst } = limitOf(owner, by);
  const whose = by === "account" ? `plan ${plan.name}` : "this key";
  return {
    reason: "rate_limited",
    sentence:
      `the rate limit of ${whose} is ${ratePerSecond} requests a second ` +
      `with a burst of ${burst}; the next one is let through in ${retryAfterMs} ms`,
    data: { plan: plan.name, ratePerSecond, burst, retryAfterMs },
  };
}

/** Whole seconds to wait, at least one: what `Retry-After` can say. */
export function retryAfterSeconds(wait: number): number {
  return Math.max(1, Math.ceil(wait / NS_PER_S));
}

function unauthorized(sentence: string): Refusal {
  return { reason: "unauthorized", sentence, data: {} };
}

/** Which of them it is the edge does not know: it holds no key that is not good. */
export const UNKNOWN_KEY = unauthorized(
  "the key in api-x-token is unknown or revoked, or its account is disabled; " +
    "whoever issued it can tell which",
);
const DIGEST_BYTES = 32;

/** Keys whose digest and owner are remembered, so that they are not looked up for each request. */
const TOKENS_KNOWN_MAX = 4096;
