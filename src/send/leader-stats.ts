/**
 * Statistics of each leader, measured while sending to it: `Leader` writes them, the planner and
 * `LeaderPool` read them, and the admin listener shows them. Hot path: the fields of `LeaderStats`
 * that are counted up.
 *
 * The table is bounded; at the bound the leader whose address was added longest ago is forgotten.
 * Means are exponential over about ten values. An unmeasured value is a default estimate for
 * planning, and null in the view.
 *
 * Decision: docs/decisions/0021-unreachable-leaders-do-not-count.md
 */

import { CLOSE_POLICIES, CLOSE_REASONS, type CloseReason } from "./close-policy.ts";
import { LEADER_STATS_MAX } from "./limits.ts";

export type ClientKind = "agave" | "firedancer" | "unknown";

/** One leader. `Leader` and `Deliveries` write its fields in place. */
export class LeaderStats {
  readonly identity: string;
  address: string;
  attempts = 0;
  admitted = 0;
  /** Reliability score from 0 (never reached) to 1. */
  reliability = 1;
  readonly ends: Record<CloseReason, number>;
  /** As `LeaderStatsView.reachable`. */
  reachable: boolean | null = null;
  /** Consecutive connections that were evicted before they carried anything. */
  evictedIdle = 0;
  rttUs = 0;
  handshakeUs = 0;
  /** From a delivery being given to the leader's queue until its acknowledgement. */
  neededUs = 0;
  /** Handshakes for which the leader demanded a token first (Retry). */
  retries = 0;
  /** The highest number of concurrent streams that it granted; 0: unknown. */
  streamsMax = 0;
  /** Connections without a granted stream when the handshake completed. */
  admittedLate = 0;
  sent = 0;
  acked = 0;
  saturated = 0;
  silentBeforeWindow = 0;
  /** Whether it accepted deliveries since it was last found unreachable. */
  present = false;
  landed = 0;

  constructor(identity: string, address: string) {
    this.identity = identity;
    this.address = address;
    // Every reason has an entry from the start.
    const ends = CLOSE_REASONS.map((name) => [name, 0] as const);
    this.ends = Object.fromEntries(ends) as Record<CloseReason, number>;
  }

  /** A delivery was acknowledged this long after it was given to the leader. */
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

  /**
   * The leader accepts deliveries; `streams`: how many concurrent streams, below 0 when unknown.
   */
  admit(streams: number, late: boolean): void {
    this.admitted += 1;
    this.present = true;
    this.reachable = true;
    if (late) this.admittedLate += 1;
    this.reliability += (1 - this.reliability) / 2;
    this.streamsMax = Math.max(this.streamsMax, streams);
  }

  /** A connection ended. `live`: it accepted deliveries; `carried`: it carried at least one. */
  end(name: CloseReason, live: boolean, carried: boolean): void {
    this.ends[name] += 1;
    if (!live) this.reachable = false;
    this.reliability *= 1 - CLOSE_POLICIES[name].score;
    if (CLOSE_POLICIES[name].next === "before_window" && !carried) this.evictedIdle += 1;
  }

  /**
   * Whether this end of a connection makes the leader unreachable: true once, until the leader
   * accepts deliveries again. `live`: the connection accepted deliveries.
   */
  markUnreachable(name: CloseReason, live: boolean, carried: boolean): boolean {
    if (!this.present || !CLOSE_POLICIES[name].gone || (live && !carried)) return false;
    this.present = false;
    return true;
  }
}

/** Weight of a new value in a mean. */
const WEIGHT = 0.1;

function mean(before: number, value: number): number {
  return before === 0 ? value : before + WEIGHT * (value - before);
}

/** The public view of a `LeaderStats`. Null: not measured. */
export interface LeaderStatsView {
  readonly identity: string;
  readonly address: string;
  /**
   * Whether the last attempt that ended or was admitted succeeded, or a delivery was acknowledged
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
  readonly silentBeforeWindow: number;
  /** Counts by close reason, without zeros. */
  readonly ends: Readonly<Partial<Record<CloseReason, number>>>;
  readonly streamsMax: number | null;
  readonly saturated: number;
  readonly sent: number;
  readonly acked: number;
  readonly ackedShare: number | null;
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
  /** The version that a leader gossips; null when unknown. */
  readonly versionOf?: (identity: string) => string | null;
}

/** Estimates for a leader on another continent that was never measured. */
const ROUND_TRIP_MS = 100;
const HANDSHAKE_MS = 250;
/** Lead time for a connection after one eviction; each further consecutive eviction halves it. */
const LEAD_MS = 4_000;
/** Allowance for timers and one lost packet. */
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

  /** The statistics of a leader, created when missing. */
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

  /** A transaction landed in a block of this leader. */
  landed(identity: string): void {
    const stats = this.#rows.get(identity);
    if (stats !== undefined) stats.landed += 1;
  }

  roundTripMs(identity: string): number {
    const rttUs = this.#rows.get(identity)?.rttUs ?? 0;
    return rttUs === 0 ? ROUND_TRIP_MS : rttUs / 1000;
  }

  /** Typical time from sending a delivery until the leader has it. */
  neededMs(identity: string): number {
    const neededUs = this.#rows.get(identity)?.neededUs ?? 0;
    return neededUs === 0 ? this.roundTripMs(identity) : neededUs / 1000;
  }

  /** Reliability score of a leader, from 0 to 1. */
  reliabilityOf(identity: string): number {
    return this.#rows.get(identity)?.reliability ?? 1;
  }

  /**
   * How long before its leader window a leader is connected to: as early as the plan includes it,
   * unless its node evicts idle connections. Then later after each eviction, but never too late for
   * two handshakes.
   */
  leadMs(identity: string): number {
    const evicted = this.#rows.get(identity)?.evictedIdle ?? 0;
    if (evicted === 0) return Number.POSITIVE_INFINITY;
    return Math.max(LEAD_MS / 2 ** evicted, this.#connectMs(identity) + SLACK_MS);
  }

  /** How long a leader may take to respond before it counts as silent. */
  responseMs(identity: string): number {
    return SLACK_MS + 2 * this.roundTripMs(identity);
  }

  /** How long before the leader window a connection is probed: enough time to replace it. */
  probeLeadMs(identity: string): number {
    return this.responseMs(identity) + this.#connectMs(identity);
  }

  #connectMs(identity: string): number {
    const handshakeUs = this.#rows.get(identity)?.handshakeUs ?? 0;
    return 2 * (handshakeUs === 0 ? HANDSHAKE_MS : handshakeUs / 1000);
  }

  /** The client software of the leader: its behaviour is stronger evidence than its version. */
  clientKindOf(stats: LeaderStats): ClientKind {
    if (stats.retries > 0 || stats.streamsMax > STREAMS_UNLIMITED) return "firedancer";
    const { evicted, disallowed, too_many, invalid_stream } = stats.ends;
    if (stats.admittedLate + evicted + disallowed + too_many + invalid_stream > 0) return "agave";
    return clientKindOfVersion(this.#versionOf(stats.identity));
  }

  /** Ordered by deliveries sent, descending. */
  view(countMax = Number.POSITIVE_INFINITY): readonly LeaderStatsView[] {
    const rows = [...this.#rows.values()].sort((a, b) => b.sent - a.sent);
    return rows.slice(0, countMax).map((stats) => this.#viewOf(stats));
  }

  /** Leader counts by client kind and reachability. */
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
      silentBeforeWindow: stats.silentBeforeWindow,
      // The keys come from CLOSE_REASONS again.
      ends: Object.fromEntries(ends.map((name) => [name, stats.ends[name]])),
      streamsMax: stats.streamsMax === 0 ? null : stats.streamsMax,
      saturated: stats.saturated,
      sent: stats.sent,
      acked: stats.acked,
      ackedShare: shareOf(stats.acked, stats.sent),
      landed: stats.landed,
      landedShare: shareOf(stats.landed, stats.acked),
    };
  }
}

const REACHABLE_WORDS: ReadonlyMap<boolean | null, LeaderCount["reachable"]> = new Map([
  [true, "yes"],
  [false, "no"],
] as const);

/**
 * Agave versions start at 1, Frankendancer's are 0.x, Firedancer's are calendar years (tags of
 * `firedancer-io/firedancer`, 2026-08).
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
