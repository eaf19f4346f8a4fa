/**
 * Decides whether the cluster knows a transaction's blockhash, by asking the node.
 *
 * One question per blockhash, not per transaction, many in one request, and at most
 * `BLOCKHASHES_PER_REQUEST` per period. A blockhash that the node knows is never asked for again.
 * One that it does not know is proven unknown for a transaction only by two responses some seconds
 * apart, both from a node past the slot in which the transaction arrived: a lagging node, or one on
 * another fork, would learn the blockhash in between. Both must be from within a blockhash's
 * lifetime after that slot: later no node knows it any more, however valid it was. Without such
 * responses nothing is proven, and the transaction expires by the height.
 *
 * Accounts take turns, in the questions and in the cache, so that one with many unknown blockhashes
 * delays its own transactions only.
 */

import { type Clock, NS_PER_MS, NS_PER_S } from "../core/clock.ts";
import { BLOCKHASH_AGE_MAX } from "../core/limits.ts";
import { UNKNOWN } from "./in-flight-table.ts";
import type { LandCounters } from "./land-counters.ts";
import {
  BLOCKHASH_CHECK_GAP_MS,
  BLOCKHASH_CHECK_PERIOD_MS,
  BLOCKHASH_MARGIN_SLOTS,
  BLOCKHASHES_CHECKED_MAX,
  BLOCKHASHES_PER_REQUEST,
} from "./limits.ts";
import type { BlockhashCheck, ClusterView } from "./ports.ts";

export interface BlockhashChecksDeps {
  readonly clock: Clock;
  readonly cluster: Pick<ClusterView, "checkBlockhashes">;
  readonly counters: LandCounters;
}

/** What the node reported about one blockhash. */
interface Entry {
  readonly blockhash: Uint8Array;
  /** Whose transaction it was in first. */
  readonly account: string;
  readonly sinceNs: number;
  isKnown: boolean;
  isPending: boolean;
  /** A transaction waits for the next response. */
  isWanted: boolean;
  /** The last question, and the node's slot in the last two responses that did not know it. */
  askedNs: number;
  slot: number;
  previousSlot: number;
}

/** While the table is full, a new blockhash replaces an entry of at least this age. */
const ENTRY_KEPT_NS = 15 * NS_PER_S;
/** Time without questions after a failed request. */
const FAILED_PAUSE_NS = 5 * NS_PER_S;

export class BlockhashChecks {
  readonly #deps: BlockhashChecksDeps;
  /** By the bytes as Latin-1 text, the oldest first. */
  readonly #entries = new Map<string, Entry>();
  /** How many of them each account has. */
  readonly #counts = new Map<string, number>();
  #isAsking = false;
  #nextNs = Number.NEGATIVE_INFINITY;
  /** Until then no entry is old enough to be replaced. */
  #allYoungUntilNs = Number.NEGATIVE_INFINITY;

  constructor(deps: BlockhashChecksDeps) {
    this.#deps = deps;
  }

  /** Blockhashes in the cache. */
  get size(): number {
    return this.#entries.size;
  }

  /** Those of an account. */
  countOf(account: string): number {
    return this.#counts.get(account) ?? 0;
  }

  /**
   * Whether a blockhash is known, for a transaction of an account that arrived in `receivedSlot`:
   * `unknown` once it is proven, then `slotOf` is the slot of the proof; `open` until then.
   */
  check(
    blockhash: Uint8Array,
    account: string,
    receivedSlot: number,
    nowNs: number,
  ): "known" | "unknown" | "open" {
    // Without that slot a lagging node cannot be recognized.
    if (this.#deps.cluster.checkBlockhashes === undefined || receivedSlot === UNKNOWN) {
      return "open";
    }
    const entry = this.#entryOf(blockhash, account, nowNs);
    if (entry === null) return "open";
    if (entry.isKnown) return "known";
    const firstSlot = Math.min(entry.previousSlot, entry.slot);
    const lastSlot = Math.max(entry.previousSlot, entry.slot);
    // From here on a blockhash that was valid on arrival is too old.
    const isLate = lastSlot > receivedSlot + BLOCKHASH_AGE_MAX;
    if (firstSlot - BLOCKHASH_MARGIN_SLOTS >= receivedSlot && !isLate) return "unknown";
    if (!isLate) entry.isWanted = true;
    return "open";
  }

  /** The slot of the proof; UNKNOWN without one. */
  slotOf(blockhash: Uint8Array): number {
    const entry = this.#entries.get(keyOf(blockhash));
    return entry === undefined ? UNKNOWN : Math.max(entry.slot, entry.previousSlot);
  }

  /** Asks for the wanted blockhashes, if it is time to. */
  ask(nowNs: number): void {
    const { checkBlockhashes } = this.#deps.cluster;
    if (checkBlockhashes === undefined || this.#isAsking || nowNs < this.#nextNs) return;
    const isDue = ({ isWanted, askedNs }: Entry): boolean =>
      isWanted && nowNs - askedNs >= BLOCKHASH_CHECK_GAP_MS * NS_PER_MS;
    const due = [...this.#entries.values()].filter(isDue);
    if (due.length === 0) return;
    const entries = byTurns(due).slice(0, BLOCKHASHES_PER_REQUEST);
    this.#isAsking = true;
    this.#nextNs = nowNs + BLOCKHASH_CHECK_PERIOD_MS * NS_PER_MS;
    for (const entry of entries) {
      entry.isWanted = false;
      entry.isPending = true;
      entry.askedNs = nowNs;
    }
    checkBlockhashes(entries.map(({ blockhash }) => blockhash)).then(
      (checks) => this.#onResponse(entries, checks),
      () => this.#onResponse(entries, []),
    );
  }

  #onResponse(entries: readonly Entry[], checks: readonly (BlockhashCheck | null)[]): void {
    const { counters, clock } = this.#deps;
    this.#isAsking = false;
    if (checks.length === 0) this.#nextNs = clock.nowNs() + FAILED_PAUSE_NS;
    for (const [index, entry] of entries.entries()) {
      const check = checks[index] ?? null;
      entry.isPending = false;
      // Transactions that this response decides need no further one; the others ask again.
      entry.isWanted = false;
      if (check === null) counters.blockhashChecksFailed += 1;
      else if (check.isValid) {
        counters.blockhashesKnown += 1;
        entry.isKnown = true;
      } else {
        counters.blockhashesUnknown += 1;
        entry.previousSlot = entry.slot;
        entry.slot = check.slot;
      }
    }
  }

  /** The entry of a blockhash, a new one if there is room; null if there is none. */
  #entryOf(blockhash: Uint8Array, account: string, nowNs: number): Entry | null {
    const key = keyOf(blockhash);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const isFull = this.#entries.size >= BLOCKHASHES_CHECKED_MAX;
    if (isFull && !this.#dropOld(nowNs) && !this.#dropOfMost(account)) return null;
    const entry: Entry = {
      blockhash: Uint8Array.from(blockhash),
      account,
      sinceNs: nowNs,
      isKnown: false,
      isPending: false,
      isWanted: false,
      askedNs: Number.NEGATIVE_INFINITY,
      slot: UNKNOWN,
      previousSlot: UNKNOWN,
    };
    this.#entries.set(key, entry);
    this.#counts.set(account, this.countOf(account) + 1);
    return entry;
  }

  /** A younger entry stays: if each new blockhash replaced one, none would be asked for twice. */
  #dropOld(nowNs: number): boolean {
    if (nowNs < this.#allYoungUntilNs) return false;
    for (const [key, entry] of this.#entries) {
      this.#allYoungUntilNs = entry.sinceNs + ENTRY_KEPT_NS;
      const isKept = entry.isPending || nowNs < this.#allYoungUntilNs;
      return !isKept && this.#drop(key, entry);
    }
    return false;
  }

  /** Makes room for an account by the newest entry of the one that has most, if that has more. */
  #dropOfMost(account: string): boolean {
    let [most, count] = ["", this.countOf(account) + 1];
    for (const [other, entries] of this.#counts)
      if (entries > count) [most, count] = [other, entries];
    if (most === "") return false;
    const newest = [...this.#entries].findLast(
      ([, entry]) => entry.account === most && !entry.isPending,
    );
    return newest !== undefined && this.#drop(...newest);
  }

  #drop(key: string, { account }: Entry): boolean {
    const left = this.countOf(account) - 1;
    if (left > 0) this.#counts.set(account, left);
    else this.#counts.delete(account);
    return this.#entries.delete(key);
  }
}

/** One of each account, then the second of each, and so on; those of an account in their order. */
function byTurns(entries: readonly Entry[]): readonly Entry[] {
  const turns = new Map<string, number>();
  const places = entries.map((entry) => {
    const turn = turns.get(entry.account) ?? 0;
    turns.set(entry.account, turn + 1);
    return { entry, turn };
  });
  return places.toSorted((a, b) => a.turn - b.turn).map(({ entry }) => entry);
}

function keyOf(blockhash: Uint8Array): string {
  return Buffer.from(blockhash.buffer, blockhash.byteOffset, blockhash.length).toString("latin1");
}
