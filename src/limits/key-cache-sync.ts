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
import { quick } from "../runtime/fast-object.ts";
import { createTurns } from "../runtime/time-slice.ts";
import {
  PASS_PLACE_LOOKS,
  PASS_PLACE_MS,
  PASSES_A_TURN,
  PASSES_BACK_A_TURN,
  PASSES_MAX,
} from "./bounds.ts";
import { HeldLimits } from "./delegated-limits.ts";
import {
  type KeyLookup,
  type KeyOwner,
  type KeyRestriction,
  ownLimitName,
  type RatePlan,
} from "./gate.ts";
import type { Rate } from "./gcra.ts";
import type { SharedHolds } from "./global-delegation.ts";
import type { Pass, PassNews, PassPort, PassReturned } from "./key-cache-entry.ts";
import { HELD_CELLS_MAX, LimitCells, NO_CELL, passMarks } from "./shared-state.ts";

/** The keys, which tell of every change, once for many. */
export interface ChangingKeys extends KeyLookup {
  onChange(act: () => void): void;
}

export interface PassesDeps {
  readonly clock: Clock;
  readonly keys: ChangingKeys;
  /** The limits that the main thread's gate charges. */
  readonly held: HeldLimits;
  /** The limits that all edges share; null: every limit holds for this edge by itself. */
  readonly shared: SharedHolds | null;
  /** From `passMemory`, the same that all limits have their cells in. */
  readonly memory: SharedArrayBuffer;
}

export interface Passes {
  /** A thread that takes requests and has no pass as yet. */
  join(port: PassPort<PassNews>): PassHolder;
  /** Leaves undone what is left. */
  stop(): void;
  readonly counters: PassCounters;
}

/** One thread. */
export interface PassHolder {
  /**
   * Lets the thread take the key by itself from now on, where that can be. `owner` is what the gate
   * said of it just now. Cheap where it has the pass already.
   */
  grant(token: string, owner: KeyOwner): void;
  /** What the thread answered. */
  take(message: PassReturned): void;
  /** The thread is no more; it uses no pass. */
  leave(): void;
}

export interface PassCounters {
  /** Keys with a pass now. */
  readonly passes: number;
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
  readonly port: PassPort<PassNews>;
  isThere: boolean;
}

interface Entry {
  readonly token: string;
  readonly digest: Buffer;
  readonly owner: KeyOwner;
  /** Where the account's limit is held; null for a limit of this edge alone. */
  readonly shared: SharedHolds | null;
  readonly accountCell: number;
  readonly keyCell: number;
  readonly place: number;
  /** Threads that have it, or were asked to give it back and have not yet. */
  readonly holders: Set<Holder>;
  /** Whether it is taken back. */
  isOver: boolean;
}

/** The limits of a gate of which passes are given. `memory` is from `passMemory`. */
export function createHeldLimits(memory: SharedArrayBuffer): HeldLimits {
  return new HeldLimits(new LimitCells(memory), HELD_CELLS_MAX, LIMITED_ACCOUNTS_MAX);
}

export function createPasses(deps: PassesDeps): Passes {
  const { clock, keys, held } = deps;
  const marks = passMarks(deps.memory);
  const counters = newCounters(() => entries.size);
  /** Those that are not taken back, by their key. */
  const entries = new Map<string, Entry>();
  const places: (Entry | null)[] = Array.from({ length: PASSES_MAX }, () => null);
  const free = Array.from({ length: PASSES_MAX }, (_, index) => PASSES_MAX - 1 - index);
  /** Places looked at next: for one to make room, and for one to hold against the keys. */
  let [hand, reviewed] = [0, 0];
  /** When one was looked for last that could make room. */
  let lookedNs = Number.NEGATIVE_INFINITY;
  /** Places that are still to be held against the keys. */
  let reviewsLeft = 0;
  let isStopped = false;
  const turns = createTurns(clock, review);

  function review(): boolean {
    let [looks, backs] = [0, 0];
    for (; reviewsLeft > 0 && looks < PASSES_A_TURN; reviewsLeft -= 1) {
      if (backs === PASSES_BACK_A_TURN) break;
      const entry = places[reviewed] ?? null;
      reviewed = (reviewed + 1) % PASSES_MAX;
      if (entry === null || entry.isOver) continue;
      looks += 1;
      const owner = keys.lookup(entry.digest);
      if (owner !== null && isSame(owner, entry.owner)) continue;
      counters.revoked += 1;
      backs += 1;
      takeBack(entry);
    }
    return reviewsLeft > 0;
  }

  function takeBack(entry: Entry): void {
    entries.delete(entry.token);
    entry.isOver = true;
    const { token, place } = entry;
    for (const holder of entry.holders) holder.port.post({ kind: "passOver", token, place });
  }

  /** A thread uses it no more. */
  function drop(entry: Entry, holder: Holder): void {
    if (!entry.holders.delete(holder) || entry.holders.size > 0) return;
    if (!entry.isOver) entries.delete(entry.token);
    places[entry.place] = null;
    free.push(entry.place);
    release(entry);
  }

  function release({ owner, shared, keyCell }: Entry): void {
    const nowNs = clock.nowNs();
    if (shared === null) held.release(owner.account, nowNs);
    else shared.release(owner.account);
    if (keyCell !== NO_CELL) held.release(ownLimitName(owner.keyId), nowNs);
  }

  /** Asks for one that is of no use, unless one is on its way back, or was asked for just now. */
  function makeRoom(): void {
    if (entries.size < PASSES_MAX) return;
    const nowNs = clock.nowNs();
    if (nowNs - lookedNs < PASS_PLACE_MS * NS_PER_MS) return;
    lookedNs = nowNs;
    for (let look = 0; look < PASS_PLACE_LOOKS; look += 1) {
      const entry = places[hand] ?? null;
      const wasUsed = marks[hand] !== 0;
      marks[hand] = 0;
      hand = (hand + 1) % PASSES_MAX;
      if (wasUsed || entry === null) continue;
      counters.evicted += 1;
      takeBack(entry);
      return;
    }
  }

  function newEntry(token: string, owner: KeyOwner): Entry | null {
    makeRoom();
    const place = free.pop();
    if (place === undefined) return null;
    const { account, plan, restriction } = owner;
    // Cells of both kinds for each place, so there are as many as can be held.
    const shared = plan.shared ? deps.shared : null;
    const accountCell = shared?.hold(account, plan) ?? held.hold(account);
    const isNarrower = (restriction?.limit ?? null) !== null;
    const keyCell = isNarrower ? held.hold(ownLimitName(owner.keyId)) : NO_CELL;
    const digest = Buffer.from(hash("sha256", token, "binary"), "latin1");
    const rest = { place, holders: new Set<Holder>(), isOver: false };
    const entry: Entry = { token, digest, owner, shared, accountCell, keyCell, ...rest };
    places[place] = entry;
    entries.set(token, entry);
    return entry;
  }

  function grant(holder: Holder, token: string, owner: KeyOwner): void {
    const known = entries.get(token);
    if (known?.holders.has(holder) || !holder.isThere) return;
    if (known !== undefined && !isSame(known.owner, owner)) return;
    const entry = known ?? newEntry(token, owner);
    if (entry === null) {
      counters.declined += 1;
      return;
    }
    entry.holders.add(holder);
    counters.granted += 1;
    marks[entry.place] = 1;
    holder.port.post({ kind: "pass", pass: passOf(entry) });
  }

  keys.onChange(() => {
    if (isStopped || entries.size === 0) return;
    // All of them anew, from where it is: one that changed is looked at soon, whatever follows.
    reviewsLeft = PASSES_MAX;
    turns.begin();
  });

  return {
    counters,
    join(port) {
      const holder: Holder = { port, isThere: true };
      return {
        grant: (token, owner) => grant(holder, token, owner),
        take({ place }) {
          const entry = places[place] ?? null;
          if (entry?.isOver) drop(entry, holder);
        },
        leave() {
          holder.isThere = false;
          for (const entry of places) if (entry !== null) drop(entry, holder);
        },
      };
    },
    stop() {
      isStopped = true;
      turns.stop();
    },
  };
}

function newCounters(passes: () => number): PassCounters {
  return quick({
    get passes() {
      return passes();
    },
    granted: 0,
    revoked: 0,
    evicted: 0,
    declined: 0,
  });
}

function passOf({ token, owner, shared, accountCell, keyCell, place }: Entry): Pass {
  const { keyId, account, plan, restriction } = owner;
  const { name, ratePerSecond, burst } = plan;
  const limit = restriction?.limit ?? null;
  return {
    token,
    keyId,
    account,
    plan: { name, ratePerSecond, burst, shared: plan.shared },
    expiresUnixMs: restriction?.expiresUnixMs ?? null,
    ranges: restriction?.networks?.ranges ?? null,
    limit: limit === null ? null : { ratePerSecond: limit.ratePerSecond, burst: limit.burst },
    isShared: shared !== null,
    accountCell,
    keyCell,
    place,
  };
}

/** Whether a pass for one says what one for the other would. */
function isSame(a: KeyOwner, b: KeyOwner): boolean {
  if (a.keyId !== b.keyId || a.account !== b.account) return false;
  if (a.plan !== b.plan && !isSamePlan(a.plan, b.plan)) return false;
  return a.restriction === b.restriction || isSameRestriction(a.restriction, b.restriction);
}

function isSamePlan(a: RatePlan, b: RatePlan): boolean {
  return a.name === b.name && a.shared === b.shared && isSameRate(a, b);
}

function isSameRestriction(a: KeyRestriction | null, b: KeyRestriction | null): boolean {
  if (a === null || b === null) return a === b;
  const rangesOf = ({ networks }: KeyRestriction) => networks?.ranges.join() ?? null;
  return (
    a.expiresUnixMs === b.expiresUnixMs &&
    rangesOf(a) === rangesOf(b) &&
    isSameRate(a.limit, b.limit)
  );
}

function isSameRate(a: Rate | null, b: Rate | null): boolean {
  return a?.ratePerSecond === b?.ratePerSecond && a?.burst === b?.burst;
}
