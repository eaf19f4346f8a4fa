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

import { END_NAMES, type EndName, REACTIONS } from "./close-policy.ts";
import { LEADERS_SCORED_MAX } from "./limits.ts";

export type Dialect = "agave" | "firedancer" | "unknown";

/** One leader. The peers write its fields in place. */
export class Card {
  readonly identity: string;
  address: string;
  attempts = 0;
  admitted = 0;
  /** From 0, never reached, to 1: how far it can be counted on. */
  standing = 1;
  readonly ends: Record<EndName, number>;
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
    const ends = END_NAMES.map((name) => [name, 0] as const);
    this.ends = Object.fromEntries(ends) as Record<EndName, number>;
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
    this.standing += (1 - this.standing) / 2;
    this.streamsMax = Math.max(this.streamsMax, streams);
  }

  /** A connection ended; `live` if it took copies, and `carried` is whether it took any. */
  end(name: EndName, live: boolean, carried: boolean): void {
    this.ends[name] += 1;
    if (!live) this.reachable = false;
    this.standing *= 1 - REACTIONS[name].score;
    if (REACTIONS[name].next === "before_turn" && !carried) this.evictedIdle += 1;
  }

  /**
   * Whether the leader is missed by that end of a connection, `live` if it took copies: true once,
   * until it takes copies again.
   */
  misses(name: EndName, live: boolean, carried: boolean): boolean {
    if (!this.present || !REACTIONS[name].gone || (live && !carried)) return false;
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
export interface CardView {
  readonly identity: string;
  readonly address: string;
  /**
   * Whether the last attempt that ended or was admitted got through, or a copy was acknowledged
   * since; null before that.
   */
  readonly reachable: boolean | null;
  readonly standing: number;
  readonly dialect: Dialect;
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
  readonly ends: Readonly<Partial<Record<EndName, number>>>;
  readonly streamsMax: number | null;
  readonly saturated: number;
  readonly sent: number;
  readonly acked: number;
  readonly ackedShare: number | null;
  readonly targeted: number;
  readonly landed: number;
  readonly landedShare: number | null;
}

export interface Census {
  readonly dialect: Dialect;
  readonly reachable: "yes" | "no" | "unknown";
  readonly count: number;
}

export interface ScorecardOptions {
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

export class Scorecard {
  readonly #cards = new Map<string, Card>();
  readonly #max: number;
  readonly #versionOf: (identity: string) => string | null;

  constructor({ leadersMax = LEADERS_SCORED_MAX, versionOf }: ScorecardOptions = {}) {
    this.#max = leadersMax;
    this.#versionOf = versionOf ?? (() => null);
  }

  get size(): number {
    return this.#cards.size;
  }

  /** The card of a leader that is about to be dealt with; made when there is none. */
  card(identity: string, address: string): Card {
    let card = this.#cards.get(identity);
    if (card === undefined) {
      if (this.#cards.size >= this.#max) this.#forgetOldest();
      card = new Card(identity, address);
    } else {
      this.#cards.delete(identity);
      card.address = address;
    }
    this.#cards.set(identity, card);
    return card;
  }

  #forgetOldest(): void {
    for (const identity of this.#cards.keys()) {
      this.#cards.delete(identity);
      return;
    }
  }

  /** This leader acknowledged a copy: what it has is what can land with it. */
  targeted(identity: string): void {
    const card = this.#cards.get(identity);
    if (card !== undefined) card.targeted += 1;
  }

  /** A transaction landed in a block of this leader's. */
  landed(identity: string): void {
    const card = this.#cards.get(identity);
    if (card !== undefined) card.landed += 1;
  }

  roundTripMs(identity: string): number {
    const rttUs = this.#cards.get(identity)?.rttUs ?? 0;
    return rttUs === 0 ? ROUND_TRIP_MS : rttUs / 1000;
  }

  /** From a copy's sending until the leader has it, typically. */
  neededMs(identity: string): number {
    const neededUs = this.#cards.get(identity)?.neededUs ?? 0;
    return neededUs === 0 ? this.roundTripMs(identity) : neededUs / 1000;
  }

  /** From 0 to 1: how far a leader can be counted on. */
  standingOf(identity: string): number {
    return this.#cards.get(identity)?.standing ?? 1;
  }

  /**
   * How long before its turn a leader is connected to. As early as the plan knows of it, unless its
   * node evicts who is idle: then later each time, but never too late for two handshakes.
   */
  leadMs(identity: string): number {
    const evicted = this.#cards.get(identity)?.evictedIdle ?? 0;
    if (evicted === 0) return Number.POSITIVE_INFINITY;
    return Math.max(LEAD_MS / 2 ** evicted, this.#connectMs(identity) + SLACK_MS);
  }

  /** How long a leader may take to answer before it counts as silent. */
  answerMs(identity: string): number {
    return SLACK_MS + 2 * this.roundTripMs(identity);
  }

  /** How long before its turn a connection is checked: it can be replaced in what is left. */
  checkLeadMs(identity: string): number {
    return this.answerMs(identity) + this.#connectMs(identity);
  }

  #connectMs(identity: string): number {
    const handshakeUs = this.#cards.get(identity)?.handshakeUs ?? 0;
    return 2 * (handshakeUs === 0 ? HANDSHAKE_MS : handshakeUs / 1000);
  }

  /** What the leader's node runs: what it does tells more than what it says. */
  dialectOf(card: Card): Dialect {
    if (card.retries > 0 || card.streamsMax > STREAMS_UNLIMITED) return "firedancer";
    const { evicted, disallowed, too_many, invalid_stream } = card.ends;
    if (card.admittedLate + evicted + disallowed + too_many + invalid_stream > 0) return "agave";
    return dialectOfVersion(this.#versionOf(card.identity));
  }

  /** Those that were sent most copies first. */
  view(countMax = Number.POSITIVE_INFINITY): readonly CardView[] {
    const cards = [...this.#cards.values()].sort((a, b) => b.sent - a.sent);
    return cards.slice(0, countMax).map((card) => this.#viewOf(card));
  }

  /** How many leaders there are of each kind. */
  census(): readonly Census[] {
    const counts = new Map<string, Census>();
    for (const card of this.#cards.values()) {
      const dialect = this.dialectOf(card);
      const reachable = REACHABLE_WORDS.get(card.reachable) ?? "unknown";
      const key = `${dialect} ${reachable}`;
      const count = (counts.get(key)?.count ?? 0) + 1;
      counts.set(key, { dialect, reachable, count });
    }
    return [...counts.values()];
  }

  #viewOf(card: Card): CardView {
    const { identity, address, attempts, admitted, retries } = card;
    const ends = END_NAMES.filter((name) => card.ends[name] > 0);
    const leadMs = this.leadMs(identity);
    return {
      identity,
      address,
      reachable: card.reachable,
      standing: rounded(card.standing),
      dialect: this.dialectOf(card),
      version: this.#versionOf(identity),
      rttMs: card.rttUs === 0 ? null : card.rttUs / 1000,
      handshakeMs: card.handshakeUs === 0 ? null : rounded(card.handshakeUs / 1000),
      neededMs: card.neededUs === 0 ? null : rounded(card.neededUs / 1000),
      leadMs: Number.isFinite(leadMs) ? rounded(leadMs) : null,
      attempts,
      admitted,
      retries,
      evictions: card.ends.evicted,
      silentBeforeTurn: card.silentBeforeTurn,
      // The names of the table, again.
      ends: Object.fromEntries(ends.map((name) => [name, card.ends[name]])),
      streamsMax: card.streamsMax === 0 ? null : card.streamsMax,
      saturated: card.saturated,
      sent: card.sent,
      acked: card.acked,
      ackedShare: shareOf(card.acked, card.sent),
      targeted: card.targeted,
      landed: card.landed,
      landedShare: shareOf(card.landed, card.targeted),
    };
  }
}

const REACHABLE_WORDS: ReadonlyMap<boolean | null, Census["reachable"]> = new Map([
  [true, "yes"],
  [false, "no"],
] as const);

/**
 * Agave counts its versions from 1 up, Frankendancer's are 0.x, Firedancer's are the year's
 * (tags of `firedancer-io/firedancer`, 2026-08).
 */
export function dialectOfVersion(version: string | null): Dialect {
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
