/**
 * Keeps the key caches of ingress threads in sync with the key table. A thread proxies requests of
 * an unknown key to the main thread, which authenticates the key and grants it to the thread. The
 * grant delegates the account's limit, and the key's own, to memory that both threads charge.
 *
 * After each change of a key or plan, all cached keys are checked against the table, in slices over
 * several event loop turns, and changed ones are revoked; a key that is still valid is granted
 * again at its next request. A limit's slot is reused only after every thread has released the
 * cached key, so no charge ever goes to another account. When the cache is full, a CLOCK scan
 * evicts an entry not used since it was last scanned; if the scan finds none, requests with the new
 * key continue to be proxied. The scan is slow enough that with more keys than slots most cached
 * keys stay: rotating them would cost more than proxying the others.
 *
 * A global limit, which applies to all edges, has a slot of another kind that counts its charges,
 * so that the main thread can report them to the other edges.
 */

import { hash } from "node:crypto";
import { type Clock, NS_PER_MS } from "../core/clock.ts";
import { LIMITED_ACCOUNTS_MAX } from "../core/limits.ts";
import { withFastProperties } from "../runtime/fast-object.ts";
import { createTimeSlicer } from "../runtime/time-slice.ts";
import {
  type KeyLookup,
  type KeyPolicy,
  keyLimitName,
  type Principal,
  type RatePlan,
} from "./access-control.ts";
import {
  CACHED_KEYS_MAX,
  KEY_REVIEWS_PER_SLICE,
  KEY_REVOCATIONS_PER_SLICE,
  KEY_SLOT_SCAN_MS,
  KEY_SLOT_SCANS_MAX,
} from "./bounds.ts";
import { DelegatedLimits } from "./delegated-limits.ts";
import type { Rate } from "./gcra.ts";
import type { GlobalDelegation } from "./global-delegation.ts";
import type { KeyGrant, KeySlotReleased, KeyUpdate, KeyUpdatePort } from "./key-cache-entry.ts";
import {
  DELEGATED_LIMITS_MAX,
  keyUsedMarks,
  NO_LIMIT_SLOT,
  ThreadLimitStates,
} from "./thread-limit-states.ts";

/** A key table that notifies of changes, once for several. */
export interface ChangingKeys extends KeyLookup {
  onChange(act: () => void): void;
}

export interface KeyCacheSyncDeps {
  readonly clock: Clock;
  readonly keys: ChangingKeys;
  /** The limits that the main thread's access control charges. */
  readonly delegated: DelegatedLimits;
  /** The global limits; null: every limit applies to this edge alone. */
  readonly globalDelegation: GlobalDelegation | null;
  /** From `createKeyCacheMemory`, the memory that holds all limit slots. */
  readonly memory: SharedArrayBuffer;
}

export interface KeyCacheSync {
  /** Adds a thread whose cache is empty. */
  join(port: KeyUpdatePort<KeyUpdate>): ThreadKeyCache;
  /** Stops; pending checks are dropped. */
  stop(): void;
  readonly counters: KeyCacheCounters;
}

/** One thread. */
export interface ThreadKeyCache {
  /**
   * Grants the key to the thread if possible. `principal` is the current result of
   * authentication. Cheap if the thread has the key already.
   */
  grant(token: string, principal: Principal): void;
  /** Handles a message from the thread. */
  onReturned(message: KeySlotReleased): void;
  /** The thread has ended; it uses no cached key. */
  leave(): void;
}

export interface KeyCacheCounters {
  /** Keys cached now. */
  readonly cachedKeys: number;
  /** Keys granted to a thread. */
  granted: number;
  /** Keys revoked because the key or its plan changed. */
  revoked: number;
  /** Keys evicted because the cache was full. */
  evicted: number;
  /** Requests whose key was not granted because the cache was full. */
  declined: number;
}

interface Holder {
  readonly port: KeyUpdatePort<KeyUpdate>;
  isThere: boolean;
}

interface Entry {
  readonly token: string;
  readonly digest: Buffer;
  readonly principal: Principal;
  /** Where the account's global limit is delegated; null for a limit of this edge alone. */
  readonly globalDelegation: GlobalDelegation | null;
  readonly accountLimitSlot: number;
  readonly keyLimitSlot: number;
  readonly keySlot: number;
  /** Threads that have the key and have not released it. */
  readonly holders: Set<Holder>;
  /** Whether it is revoked. */
  isOver: boolean;
}

/** The delegated limits for a key cache. `memory` is from `createKeyCacheMemory`. */
export function createDelegatedLimits(memory: SharedArrayBuffer): DelegatedLimits {
  return new DelegatedLimits(
    new ThreadLimitStates(memory),
    DELEGATED_LIMITS_MAX,
    LIMITED_ACCOUNTS_MAX,
  );
}

export function createKeyCacheSync(deps: KeyCacheSyncDeps): KeyCacheSync {
  const { clock, keys, delegated } = deps;
  const usedMarks = keyUsedMarks(deps.memory);
  const counters = newCounters(() => entries.size);
  /** Entries that are not revoked, by key. */
  const entries = new Map<string, Entry>();
  const keySlots: (Entry | null)[] = Array.from({ length: CACHED_KEYS_MAX }, () => null);
  const free = Array.from({ length: CACHED_KEYS_MAX }, (_, index) => CACHED_KEYS_MAX - 1 - index);
  /** The next slots to scan: for an eviction, and for the check against the table. */
  let [hand, reviewed] = [0, 0];
  /** Time of the last eviction scan. */
  let lookedNs = Number.NEGATIVE_INFINITY;
  /** Slots still to check against the table. */
  let reviewsLeft = 0;
  let isStopped = false;
  const slicer = createTimeSlicer(clock, review);

  function review(): boolean {
    let [looks, backs] = [0, 0];
    for (; reviewsLeft > 0 && looks < KEY_REVIEWS_PER_SLICE; reviewsLeft -= 1) {
      if (backs === KEY_REVOCATIONS_PER_SLICE) break;
      const entry = keySlots[reviewed] ?? null;
      reviewed = (reviewed + 1) % CACHED_KEYS_MAX;
      if (entry === null || entry.isOver) continue;
      looks += 1;
      const principal = keys.lookup(entry.digest);
      if (principal !== null && isSame(principal, entry.principal)) continue;
      counters.revoked += 1;
      backs += 1;
      revoke(entry);
    }
    return reviewsLeft > 0;
  }

  function revoke(entry: Entry): void {
    entries.delete(entry.token);
    entry.isOver = true;
    const { token, keySlot } = entry;
    for (const holder of entry.holders) holder.port.post({ kind: "revoke", token, keySlot });
  }

  /** A thread has released the entry. */
  function drop(entry: Entry, holder: Holder): void {
    if (!entry.holders.delete(holder) || entry.holders.size > 0) return;
    if (!entry.isOver) entries.delete(entry.token);
    keySlots[entry.keySlot] = null;
    free.push(entry.keySlot);
    release(entry);
  }

  function release({ principal, globalDelegation, keyLimitSlot }: Entry): void {
    const nowNs = clock.nowNs();
    if (globalDelegation === null) delegated.release(principal.account, nowNs);
    else globalDelegation.release(principal.account);
    if (keyLimitSlot !== NO_LIMIT_SLOT) delegated.release(keyLimitName(principal.keyId), nowNs);
  }

  /** Evicts an unused entry, unless a release is pending or the last scan was just now. */
  function makeRoom(): void {
    if (entries.size < CACHED_KEYS_MAX) return;
    const nowNs = clock.nowNs();
    if (nowNs - lookedNs < KEY_SLOT_SCAN_MS * NS_PER_MS) return;
    lookedNs = nowNs;
    for (let look = 0; look < KEY_SLOT_SCANS_MAX; look += 1) {
      const entry = keySlots[hand] ?? null;
      const wasUsed = usedMarks[hand] !== 0;
      usedMarks[hand] = 0;
      hand = (hand + 1) % CACHED_KEYS_MAX;
      if (wasUsed || entry === null) continue;
      counters.evicted += 1;
      revoke(entry);
      return;
    }
  }

  function newEntry(token: string, principal: Principal): Entry | null {
    makeRoom();
    const keySlot = free.pop();
    if (keySlot === undefined) return null;
    const { account, plan, policy } = principal;
    // Each slot has limit slots of both kinds, so delegation always succeeds.
    const globalDelegation = plan.shared ? deps.globalDelegation : null;
    const accountLimitSlot =
      globalDelegation?.delegate(account, plan) ?? delegated.delegate(account);
    const isNarrower = (policy?.limit ?? null) !== null;
    const keyLimitSlot = isNarrower
      ? delegated.delegate(keyLimitName(principal.keyId))
      : NO_LIMIT_SLOT;
    const digest = Buffer.from(hash("sha256", token, "binary"), "latin1");
    const rest = { keySlot, holders: new Set<Holder>(), isOver: false };
    const entry: Entry = {
      token,
      digest,
      principal,
      globalDelegation,
      accountLimitSlot,
      keyLimitSlot,
      ...rest,
    };
    keySlots[keySlot] = entry;
    entries.set(token, entry);
    return entry;
  }

  function grant(holder: Holder, token: string, principal: Principal): void {
    const known = entries.get(token);
    if (known?.holders.has(holder) || !holder.isThere) return;
    if (known !== undefined && !isSame(known.principal, principal)) return;
    const entry = known ?? newEntry(token, principal);
    if (entry === null) {
      counters.declined += 1;
      return;
    }
    entry.holders.add(holder);
    counters.granted += 1;
    usedMarks[entry.keySlot] = 1;
    holder.port.post({ kind: "grant", grant: grantOf(entry) });
  }

  keys.onChange(() => {
    if (isStopped || entries.size === 0) return;
    // Checks all slots again, from the current one: repeated changes cannot starve a slot.
    reviewsLeft = CACHED_KEYS_MAX;
    slicer.start();
  });

  return {
    counters,
    join(port) {
      const holder: Holder = { port, isThere: true };
      return {
        grant: (token, principal) => grant(holder, token, principal),
        onReturned({ keySlot }) {
          const entry = keySlots[keySlot] ?? null;
          if (entry?.isOver) drop(entry, holder);
        },
        leave() {
          holder.isThere = false;
          for (const entry of keySlots) if (entry !== null) drop(entry, holder);
        },
      };
    },
    stop() {
      isStopped = true;
      slicer.stop();
    },
  };
}

function newCounters(cachedKeys: () => number): KeyCacheCounters {
  return withFastProperties({
    get cachedKeys() {
      return cachedKeys();
    },
    granted: 0,
    revoked: 0,
    evicted: 0,
    declined: 0,
  });
}

function grantOf({
  token,
  principal,
  globalDelegation,
  accountLimitSlot,
  keyLimitSlot,
  keySlot,
}: Entry): KeyGrant {
  const { keyId, account, plan, policy } = principal;
  const { name, ratePerSecond, burst } = plan;
  const limit = policy?.limit ?? null;
  return {
    token,
    keyId,
    account,
    plan: { name, ratePerSecond, burst, shared: plan.shared },
    expiresUnixMs: policy?.expiresUnixMs ?? null,
    ranges: policy?.networks?.ranges ?? null,
    limit: limit === null ? null : { ratePerSecond: limit.ratePerSecond, burst: limit.burst },
    isGlobal: globalDelegation !== null,
    accountLimitSlot,
    keyLimitSlot,
    keySlot,
  };
}

/** Whether cached grants for both principals would be equal. */
function isSame(a: Principal, b: Principal): boolean {
  if (a.keyId !== b.keyId || a.account !== b.account) return false;
  if (a.plan !== b.plan && !isSamePlan(a.plan, b.plan)) return false;
  return a.policy === b.policy || isSamePolicy(a.policy, b.policy);
}

function isSamePlan(a: RatePlan, b: RatePlan): boolean {
  return a.name === b.name && a.shared === b.shared && isSameRate(a, b);
}

function isSamePolicy(a: KeyPolicy | null, b: KeyPolicy | null): boolean {
  if (a === null || b === null) return a === b;
  const rangesOf = ({ networks }: KeyPolicy) => networks?.ranges.join() ?? null;
  return (
    a.expiresUnixMs === b.expiresUnixMs &&
    rangesOf(a) === rangesOf(b) &&
    isSameRate(a.limit, b.limit)
  );
}

function isSameRate(a: Rate | null, b: Rate | null): boolean {
  return a?.ratePerSecond === b?.ratePerSecond && a?.burst === b?.burst;
}
