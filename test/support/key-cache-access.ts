/**
 * The authentication of an ingress thread, on any thread of a test: it accepts cached keys, and
 * charges the limit that the main thread and the other ingress threads share. Other keys have no
 * principal here, and a request over a limit is rejected here but not counted: those requests are
 * proxied to the main thread. The real one is `native/src/submit/key_cache.rs`.
 *
 * A revoked key is rejected from that moment on, also by a thread that found it before.
 */

import type { Clock } from "../../src/core/clock.ts";
import {
  type AccessControl,
  type AccessCounters,
  type KeyPolicy,
  type LimitedBy,
  type Principal,
  policyViolation,
  UNKNOWN_KEY,
} from "../../src/limits/access-control.ts";
import { intervalNs, type Rate } from "../../src/limits/gcra.ts";
import { GlobalLimitStates } from "../../src/limits/global-state.ts";
import type {
  KeyGrant,
  KeySlotReleased,
  KeyUpdate,
  KeyUpdatePort,
} from "../../src/limits/key-cache-entry.ts";
import { keyUsedMarks, ThreadLimitStates } from "../../src/limits/thread-limit-states.ts";

export interface KeyCacheAccessDeps {
  readonly clock: Clock;
  /** From `createKeyCacheMemory` of the main thread. */
  readonly memory: SharedArrayBuffer;
  /** Networks in CIDR notation, all valid. */
  readonly networksOf: (ranges: readonly string[]) => NonNullable<KeyPolicy["networks"]>;
  /** To the main thread. */
  readonly port: KeyUpdatePort<KeySlotReleased>;
}

export interface KeyCacheAccess extends AccessControl {
  /** Handles a message of the main thread. */
  onMessage(update: KeyUpdate): void;
  put(grant: KeyGrant): void;
  /** Notifies the main thread, whether the key was there or not. */
  revoke(token: string, keySlot: number): void;
  readonly counters: KeyCacheAccessCounters;
}

/** Invalid keys, and requests over a limit, are counted by the main thread. */
export interface KeyCacheAccessCounters extends AccessCounters {
  /** Keys that are cached now. */
  readonly cachedKeys: number;
  /** Requests rejected by a limit. */
  overLimit: number;
}

/** The principal of a cached key. */
interface CachedKey extends Principal {
  readonly isGlobal: boolean;
  readonly accountLimitSlot: number;
  readonly keyLimitSlot: number;
  readonly keySlot: number;
  /** Until it is revoked. */
  isGood: boolean;
}

export function createKeyCacheAccess(deps: KeyCacheAccessDeps): KeyCacheAccess {
  const { clock, networksOf, port } = deps;
  const limitStates = new ThreadLimitStates(deps.memory);
  const shared = new GlobalLimitStates(deps.memory);
  const usedMarks = keyUsedMarks(deps.memory);
  const cachedKeys = new Map<string, CachedKey>();
  const counters = newCounters(() => cachedKeys.size);
  let limitedBy: LimitedBy = "account";

  function rejected(ownWait: number, accountWait: number): number {
    counters.overLimit += 1;
    limitedBy = ownWait > accountWait ? "key" : "account";
    return Math.max(ownWait, accountWait);
  }

  function accountWait({ accountLimitSlot, plan, isGlobal }: CachedKey, nowNs: number): number {
    if (isGlobal) return shared.waitNs(accountLimitSlot, nowNs, plan);
    return limitStates.waitNs(accountLimitSlot, nowNs, intervalNs(plan.ratePerSecond), plan.burst);
  }

  function put(grant: KeyGrant): void {
    forget(grant.token);
    cachedKeys.set(grant.token, cachedKeyOf(grant, networksOf));
  }

  function revoke(token: string, keySlot: number): void {
    if (cachedKeys.get(token)?.keySlot === keySlot) forget(token);
    port.post({ kind: "slotReleased", keySlot });
  }

  function forget(token: string): void {
    const known = cachedKeys.get(token);
    if (known === undefined) return;
    known.isGood = false;
    cachedKeys.delete(token);
  }

  return {
    counters,
    get limitedBy() {
      return limitedBy;
    },
    authenticate(token, origin) {
      const principal = cachedKeys.get(token);
      if (principal === undefined) return null;
      const { policy, keySlot } = principal;
      if (policy !== null && policyViolation(policy, origin, clock.unixMs()) !== null) return null;
      // Read first: a cache line without writes is in every processor's cache.
      if (usedMarks[keySlot] === 0) usedMarks[keySlot] = 1;
      return principal;
    },
    charge(principal, nowNs) {
      if (!isCachedKey(principal) || !principal.isGood) return rejected(0, 1);
      const { accountLimitSlot, keyLimitSlot, plan, isGlobal } = principal;
      const own = principal.policy?.limit ?? null;
      const ownWait = own === null ? 0 : charge(limitStates, keyLimitSlot, own, nowNs);
      if (ownWait > 0) return rejected(ownWait, accountWait(principal, nowNs));
      const wait = isGlobal
        ? shared.tryCharge(accountLimitSlot, nowNs, plan)
        : charge(limitStates, accountLimitSlot, plan, nowNs);
      if (wait > 0) {
        if (own !== null) limitStates.refund(keyLimitSlot, intervalNs(own.ratePerSecond));
        return rejected(0, wait);
      }
      counters.allowed += 1;
      return 0;
    },
    rejectionOf: () => UNKNOWN_KEY,
    onMessage(update) {
      if (update.kind === "grant") put(update.grant);
      else revoke(update.token, update.keySlot);
    },
    put,
    revoke,
  };
}

function charge(
  limitStates: ThreadLimitStates,
  limitSlot: number,
  { ratePerSecond, burst }: Rate,
  nowNs: number,
): number {
  return limitStates.tryCharge(limitSlot, nowNs, intervalNs(ratePerSecond), burst);
}

function newCounters(cachedKeys: () => number): KeyCacheAccessCounters {
  return {
    get cachedKeys() {
      return cachedKeys();
    },
    keysMissing: 0,
    keysUnknown: 0,
    keysOutOfPolicy: 0,
    allowed: 0,
    limited: 0,
    overLimit: 0,
    accountsTracked: 0,
    accountsEvicted: 0,
  };
}

function isCachedKey(principal: Principal): principal is CachedKey {
  return "isGood" in principal;
}

/** Copied, so that all have one shape: an object from a port may have another. */
function cachedKeyOf(grant: KeyGrant, networksOf: KeyCacheAccessDeps["networksOf"]): CachedKey {
  const { keyId, account, plan, expiresUnixMs, ranges, limit } = grant;
  const { isGlobal, accountLimitSlot, keyLimitSlot, keySlot } = grant;
  const { name, ratePerSecond, burst, shared } = plan;
  const isNarrowed = expiresUnixMs !== null || ranges !== null || limit !== null;
  const networks = ranges === null ? null : networksOf(ranges);
  return {
    keyId,
    account,
    plan: { name, ratePerSecond, burst, shared },
    policy: isNarrowed ? { expiresUnixMs, networks, limit } : null,
    isGlobal,
    accountLimitSlot,
    keyLimitSlot,
    keySlot,
    isGood: true,
  };
}
