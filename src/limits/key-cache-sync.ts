/**
 * Which threads may let in which keys by themselves. A thread that takes requests hands those of an
 * unknown key to the main thread; that knows it to be good and gives the thread a pass, which holds
 * the account's limit, and the key's own, in memory that both charge.
 *
 * After each change of any key or plan all passes are held against the keys, a share in each turn
 * of the event loop, and those that say something else are taken back; who still has a good key is
 * given a new one with its next request. A limit's cell becomes another's only after every thread
 * has said that it uses the pass no more, so no charge ever goes to a stranger's account. When all
 * places are taken, one that was not used since it was last looked at makes room, found by a hand
 * that goes round; a newcomer for whom none is found at once goes on being handed over. The hand
 * goes so slowly that with more keys than places most passes stay where they are: giving them in
 * turns would cost more than handing over what has none.
 *
 * A limit that all edges share lies in a cell of another kind, whose charges are counted, so that
 * the main thread can tell the other edges of them.
 */

import { hash } from "node:crypto";
import { type Clock, NS_PER_MS } from "../core/clock.ts";
import { LIMITED_ACCOUNTS_MAX } from "../core/limits.ts";
import { withFastProperties } from "../runtime/fast-object.ts";
import { createTimeSlicer } from "../runtime/time-slice.ts";
import {
  type KeyLookup,
  type KeyPolicy,
  ownLimitName,
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
  SharedLimitStates,
} from "./shared-state.ts";

/** The keys, which tell of every change, once for many. */
export interface ChangingKeys extends KeyLookup {
  onChange(act: () => void): void;
}

export interface KeyCacheSyncDeps {
  readonly clock: Clock;
  readonly keys: ChangingKeys;
  /** The limits that the main thread's gate charges. */
  readonly delegated: DelegatedLimits;
  /** The limits that all edges share; null: every limit holds for this edge by itself. */
  readonly shared: GlobalDelegation | null;
  /** From `createKeyCacheMemory`, the same that all limits have their cells in. */
  readonly memory: SharedArrayBuffer;
}

export interface KeyCacheSync {
  /** A thread that takes requests and has no pass as yet. */
  join(port: KeyUpdatePort<KeyUpdate>): ThreadKeyCache;
  /** Leaves undone what is left. */
  stop(): void;
  readonly counters: KeyCacheCounters;
}

/** One thread. */
export interface ThreadKeyCache {
  /**
   * Lets the thread take the key by itself from now on, where that can be. `owner` is what the gate
   * said of it just now. Cheap where it has the pass already.
   */
  grant(token: string, principal: Principal): void;
  /** What the thread answered. */
  onReturned(message: KeySlotReleased): void;
  /** The thread is no more; it uses no pass. */
  leave(): void;
}

export interface KeyCacheCounters {
  /** Keys with a pass now. */
  readonly cachedKeys: number;
  /** Passes given to a thread. */
  granted: number;
  /** Keys whose pass was taken back, because what it said is no longer so. */
  revoked: number;
  /** The same, for want of room. */
  evicted: number;
  /** Requests after which no pass was given, for want of room. */
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
  /** Where the account's limit is held; null for a limit of this edge alone. */
  readonly shared: GlobalDelegation | null;
  readonly accountLimitSlot: number;
  readonly keyLimitSlot: number;
  readonly keySlot: number;
  /** Threads that have it, or were asked to give it back and have not yet. */
  readonly holders: Set<Holder>;
  /** Whether it is taken back. */
  isOver: boolean;
}

/** The limits of a gate of which passes are given. `memory` is from `createKeyCacheMemory`. */
export function createDelegatedLimits(memory: SharedArrayBuffer): DelegatedLimits {
  return new DelegatedLimits(
    new SharedLimitStates(memory),
    DELEGATED_LIMITS_MAX,
    LIMITED_ACCOUNTS_MAX,
  );
}

export function createKeyCacheSync(deps: KeyCacheSyncDeps): KeyCacheSync {
  const { clock, keys, delegated } = deps;
  const usedMarks = keyUsedMarks(deps.memory);
  const counters = newCounters(() => entries.size);
  /** Those that are not taken back, by their key. */
  const entries = new Map<string, Entry>();
  const keySlots: (Entry | null)[] = Array.from({ length: CACHED_KEYS_MAX }, () => null);
  const free = Array.from({ length: CACHED_KEYS_MAX }, (_, index) => CACHED_KEYS_MAX - 1 - index);
  /** Places looked at next: for one to make room, and for one to hold against the keys. */
  let [hand, reviewed] = [0, 0];
  /** When one was looked for last that could make room. */
  let lookedNs = Number.NEGATIVE_INFINITY;
  /** Places that are still to be held against the keys. */
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

  /** A thread uses it no more. */
  function drop(entry: Entry, holder: Holder): void {
    if (!entry.holders.delete(holder) || entry.holders.size > 0) return;
    if (!entry.isOver) entries.delete(entry.token);
    keySlots[entry.keySlot] = null;
    free.push(entry.keySlot);
    release(entry);
  }

  function release({ principal, shared, keyLimitSlot }: Entry): void {
    const nowNs = clock.nowNs();
    if (shared === null) delegated.release(principal.account, nowNs);
    else shared.release(principal.account);
    if (keyLimitSlot !== NO_LIMIT_SLOT) delegated.release(ownLimitName(principal.keyId), nowNs);
  }

  /** Asks for one that is of no use, unless one is on its way back, or was asked for just now. */
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
    // Cells of both kinds for each place, so there are as many as can be held.
    const shared = plan.shared ? deps.shared : null;
    const accountLimitSlot = shared?.delegate(account, plan) ?? delegated.delegate(account);
    const isNarrower = (policy?.limit ?? null) !== null;
    const keyLimitSlot = isNarrower
      ? delegated.delegate(ownLimitName(principal.keyId))
      : NO_LIMIT_SLOT;
    const digest = Buffer.from(hash("sha256", token, "binary"), "latin1");
    const rest = { keySlot, holders: new Set<Holder>(), isOver: false };
    const entry: Entry = {
      token,
      digest,
      principal,
      shared,
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
    // All of them anew, from where it is: one that changed is looked at soon, whatever follows.
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
  shared,
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
    isShared: shared !== null,
    accountLimitSlot,
    keyLimitSlot,
    keySlot,
  };
}

/** Whether a pass for one says what one for the other would. */
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
