/**
 * What is known of each leader from dealing with it: the peers write it, the planner and the pool
 * of connections read it, and the admin listener shows it. Hot path: the fields of a card that the
 * peers count up.
 *
 * The table is bounded; at the bound the leader that was connected to longest ago is forgotten. A
 * mean follows the last ten or so values. What was never measured is a guess when it is planned
 * with, and null when it is shown.
 *
 * Decision: docs/decisions/0021-unreachable-leaders-do-not-count.md
 */

import { CLOSE_POLICIES, CLOSE_REASONS, type CloseReason } from "./close-policy.ts";
import { LEADER_STATS_MAX } from "./limits.ts";

export type ClientKind = "agave" | "firedancer" | "unknown";

/** One leader. The peers write its fields in place. */
export class LeaderStats {
  readonly identity: string;
  address: string;
  attempts = 0;
  admitted = 0;
  /** From 0, never reached, to 1: how far it can be counted on. */
  reliability = 1;
  readonly ends: Record<CloseReason, number>;
  /** As `CardView.reachable`. */
  reachable: boolean | null = null;
  /** Connections in a row that were evicted before they carried anything. */
  evictedIdle = 0;
  rttUs = 0;
  handshakeUs = 0;
  /** From a copy being given to the peer until the leader acknowledged it. */
  neededUs = 0;
  /** Handshakes for which the leader wanted a token first. */
  retries = 0;
  /** The most streams that it granted at once; 0: not known. */
  streamsMax = 0;
  /** Connections that had no stream granted when the handshake was done. */
  admittedLate = 0;
  sent = 0;
  acked = 0;
  saturated = 0;
  silentBeforeTurn = 0;
  /** Whether it took copies since it was last missed. */
  present = false;
  targeted = 0;
  landed = 0;

  constructor(identity: string, address: string) {
    this.identity = identity;
    this.address = address;
    // Every name of the table has its place from the beginning.
    const ends = CLOSE_REASONS.map((name) => [name, 0] as const);
    this.ends = Object.fromEntries(ends) as Record<CloseReason, number>;
  }

  /** A copy is acknowledged, so long after it was given to the peer. */
  ack(neededUs: number): void {
    this.acked += 1;
    this.reachable = true;
    this.evictedIdle = 0;
    this.neededUs = mean(this.neededUs, neededUs);
  }

  established(handshakeUs: number, retried: boolean): void {
    this.handshakeUs = mean(this.handshakeUs, handshakeUs);
    if (retried) this.retries += 1;
  }

  /** The leader takes copies; `streams` is how many at once, below 0 when not known. */
  admit(streams: number, late: boolean): void {
    this.admitted += 1;
    this.present = true;
    this.reachable = true;
    if (late) this.admittedLate += 1;
    this.reliability += (1 - this.reliability) / 2;
    this.streamsMax = Math.max(this.streamsMax, streams);
  }

  /** A connection ended; `live` if it took copies, and `carried` is whether it took any. */
  end(name: CloseReason, live: boolean, carried: boolean): void {
    this.ends[name] += 1;
    if (!live) this.reachable = false;
    this.reliability *= 1 - CLOSE_POLICIES[name].score;
    if (CLOSE_POLICIES[name].next === "before_window" && !carried) this.evictedIdle += 1;
  }

  /**
   * Whether the leader is missed by that end of a connection, `live` if it took copies: true once,
   * until it takes copies again.
   */
  markUnreachable(name: CloseReason, live: boolean, carried: boolean): boolean {
    if (!this.present || !CLOSE_POLICIES[name].gone || (live && !carried)) return false;
    this.present = false;
    return true;
  }
}

/** A new value weighs so much in a mean. */
const WEIGHT = 0.1;

function mean(before: number, value: number): number {
  return before === 0 ? value : before + WEIGHT * (value - before);
}

/** What is shown of a card. Null: not measured. */
export interface LeaderStatsView {
  readonly identity: string;
  readonly address: string;
  /**
   * Whether the last attempt that ended or was admitted got through, or a copy was acknowledged
   * since; null before that.
   */
  readonly reachable: boolean | null;
  readonly reliability: number;
  readonly clientKind: ClientKind;
  readonly version: string | null;
  readonly rttMs: number | null;
  readonly handshakeMs: number | null;
  readonly neededMs: number | null;
  readonly leadMs: number | null;
  readonly attempts: number;
  readonly admitted: number;
  readonly retries: number;
  readonly evictions: number;
  readonly silentBeforeTurn: number;
  /** Ends by name, those that happened. */
  readonly ends: Readonly<Partial<Record<CloseReason, number>>>;
  readonly streamsMax: number | null;
  readonly saturated: number;
  readonly sent: number;
  readonly acked: number;
  readonly ackedShare: number | null;
  readonly targeted: number;
  readonly landed: number;
  readonly landedShare: number | null;
}

export interface LeaderCount {
  readonly clientKind: ClientKind;
  readonly reachable: "yes" | "no" | "unknown";
  readonly count: number;
}

export interface LeaderStatsTableOptions {
  readonly leadersMax?: number;
  /** The version that a leader gossips; null when it tells none. */
  readonly versionOf?: (identity: string) => string | null;
}

/** Guesses of a leader on another continent that was never met. */
const ROUND_TRIP_MS = 100;
const HANDSHAKE_MS = 250;
/** An evicted connection is made this long before the turn, and half of it each time in a row. */
const LEAD_MS = 4_000;
/** Room for timers and a lost packet. */
const SLACK_MS = 150;
/** More streams than any Agave grants (`swqos.rs`: 3584); Firedancer grants 2^60. */
const STREAMS_UNLIMITED = 1_000_000;

export class LeaderStatsTable {
  readonly #rows = new Map<string, LeaderStats>();
  readonly #max: number;
  readonly #versionOf: (identity: string) => string | null;

  constructor({ leadersMax = LEADER_STATS_MAX, versionOf }: LeaderStatsTableOptions = {}) {
    this.#max = leadersMax;
    this.#versionOf = versionOf ?? (() => null);
  }

  get size(): number {
    return this.#rows.size;
  }

  /** The card of a leader that is about to be dealt with; made when there is none. */
  stats(identity: string, address: string): LeaderStats {
    let stats = this.#rows.get(identity);
    if (stats === undefined) {
      if (this.#rows.size >= this.#max) this.#forgetOldest();
      stats = new LeaderStats(identity, address);
    } else {
      this.#rows.delete(identity);
      stats.address = address;
    }
    this.#rows.set(identity, stats);
    return stats;
  }

  #forgetOldest(): void {
    for (const identity of this.#rows.keys()) {
      this.#rows.delete(identity);
      return;
    }
  }

  /** This leader acknowledged a copy: what it has is what can land with it. */
  targeted(identity: string): void {
    const stats = this.#rows.get(identity);
    if (stats !== undefined) stats.targeted += 1;
  }

  /** A transaction landed in a block of this leader's. */
  landed(identity: string): void {
    const stats = this.#rows.get(identity);
    if (stats !== undefined) stats.landed += 1;
  }

  roundTripMs(identity: string): number {
    const rttUs = this.#rows.get(identity)?.rttUs ?? 0;
    return rttUs === 0 ? ROUND_TRIP_MS : rttUs / 1000;
  }

  /** From a copy's sending until the leader has it, typically. */
  neededMs(identity: string): number {
    const neededUs = this.#rows.get(identity)?.neededUs ?? 0;
    return neededUs === 0 ? this.roundTripMs(identity) : neededUs / 1000;
  }

  /** From 0 to 1: how far a leader can be counted on. */
  reliabilityOf(identity: string): number {
    return this.#rows.get(identity)?.reliability ?? 1;
  }

  /**
   * How long before its turn a leader is connected to. As early as the plan knows of it, unless its
   * node evicts who is idle: then later each time, but never too late for two handshakes.
   */
  leadMs(identity: string): number {
    const evicted = this.#rows.get(identity)?.evictedIdle ?? 0;
    if (evicted === 0) return Number.POSITIVE_INFINITY;
    return Math.max(LEAD_MS / 2 ** evicted, this.#connectMs(identity) + SLACK_MS);
  }

  /** How long a leader may take to answer before it counts as silent. */
  responseMs(identity: string): number {
    return SLACK_MS + 2 * this.roundTripMs(identity);
  }

  /** How long before its turn a connection is checked: it can be replaced in what is left. */
  probeLeadMs(identity: string): number {
    return this.responseMs(identity) + this.#connectMs(identity);
  }

  #connectMs(identity: string): number {
    const handshakeUs = this.#rows.get(identity)?.handshakeUs ?? 0;
    return 2 * (handshakeUs === 0 ? HANDSHAKE_MS : handshakeUs / 1000);
  }

  /** What the leader's node runs: what it does tells more than what it says. */
  clientKindOf(stats: LeaderStats): ClientKind {
    if (stats.retries > 0 || stats.streamsMax > STREAMS_UNLIMITED) return "firedancer";
    const { evicted, disallowed, too_many, invalid_stream } = stats.ends;
    if (stats.admittedLate + evicted + disallowed + too_many + invalid_stream > 0) return "agave";
    return clientKindOfVersion(this.#versionOf(stats.identity));
  }

  /** Those that were sent most copies first. */
  view(countMax = Number.POSITIVE_INFINITY): readonly LeaderStatsView[] {
    const rows = [...this.#rows.values()].sort((a, b) => b.sent - a.sent);
    return rows.slice(0, countMax).map((stats) => this.#viewOf(stats));
  }

  /** How many leaders there are of each kind. */
  countByKind(): readonly LeaderCount[] {
    const counts = new Map<string, LeaderCount>();
    for (const stats of this.#rows.values()) {
      const clientKind = this.clientKindOf(stats);
      const reachable = REACHABLE_WORDS.get(stats.reachable) ?? "unknown";
      const key = `${clientKind} ${reachable}`;
      const count = (counts.get(key)?.count ?? 0) + 1;
      counts.set(key, { clientKind, reachable, count });
    }
    return [...counts.values()];
  }

  #viewOf(stats: LeaderStats): LeaderStatsView {
    const { identity, address, attempts, admitted, retries } = stats;
    const ends = CLOSE_REASONS.filter((name) => stats.ends[name] > 0);
    const leadMs = this.leadMs(identity);
    return {
      identity,
      address,
      reachable: stats.reachable,
      reliability: rounded(stats.reliability),
      clientKind: this.clientKindOf(stats),
      version: this.#versionOf(identity),
      rttMs: stats.rttUs === 0 ? null : stats.rttUs / 1000,
      handshakeMs: stats.handshakeUs === 0 ? null : rounded(stats.handshakeUs / 1000),
      neededMs: stats.neededUs === 0 ? null : rounded(stats.neededUs / 1000),
      leadMs: Number.isFinite(leadMs) ? rounded(leadMs) : null,
      attempts,
      admitted,
      retries,
      evictions: stats.ends.evicted,
      silentBeforeTurn: stats.silentBeforeTurn,
      // The names of the table, again.
      ends: Object.fromEntries(ends.map((name) => [name, stats.ends[name]])),
      streamsMax: stats.streamsMax === 0 ? null : stats.streamsMax,
      saturated: stats.saturated,
      sent: stats.sent,
      acked: stats.acked,
      ackedShare: shareOf(stats.acked, stats.sent),
      targeted: stats.targeted,
      landed: stats.landed,
      landedShare: shareOf(stats.landed, stats.targeted),
    };
  }
}

const REACHABLE_WORDS: ReadonlyMap<boolean | null, LeaderCount["reachable"]> = new Map([
  [true, "yes"],
  [false, "no"],
] as const);

/**
 * Agave counts its versions from 1 up, Frankendancer's are 0.x, Firedancer's are the year's
 * (tags of `firedancer-io/firedancer`, 2026-08).
 */
export function clientKindOfVersion(version: string | null): ClientKind {
  const major = /^v?(\d+)\./.exec(version ?? "")?.[1];
  if (major === undefined) return "unknown";
  const number = Number(major);
  return number === 0 || number >= 20 ? "firedancer" : "agave";
}

function shareOf(part: number, whole: number): number | null {
  return whole === 0 ? null : rounded(Math.min(1, part / whole));
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
