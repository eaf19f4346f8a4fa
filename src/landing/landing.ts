/**
 * Keeps every accepted transaction until its end is known, and sends it again until then.
 *
 *             ┌────────── sent again to each plan's leaders ──────────┐
 *   track ─▶ in flight ─▶ sighted (in a processed block) ─▶ landed (confirmed)
 *             │   ▲              │
 *             │   └── vanished ──┘        ─▶ expired: too old, and a later answer says not there
 *             └─────────────────────────  ─▶ dropped: with a reason
 *
 * Each ends exactly once, and accepted = landed + expired + dropped + in flight at any time. A
 * sighting is told at once, for whoever counts slots, and may be taken back; an end is final, so
 * `landed` waits for the cluster's confirmation. Nothing is called expired on a failed request, an
 * answer from before the height had passed, one of a node that lags behind or has not proven that
 * it tells statuses, or one that does not reach back far enough.
 *
 * Hot path: `track` and `outcome`, on typed arrays alone.
 */

import { type Clock, NS_PER_MS, NS_PER_S } from "../core/clock.ts";
import type { EndReason } from "../core/errors.ts";
import type { Accepted, End, Outcome, Packet, Plan, Sighting } from "../core/flow.ts";
import { SLOT_AGREE_DISTANCE } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import { createHistogram, type Histogram } from "../runtime/histogram.ts";
import { NONE } from "./byte-store.ts";
import { Confirmations } from "./confirmations.ts";
import { Expiry } from "./expiry.ts";
import { SENT, SIGHTED, UNKNOWN, Watch } from "./in-flight-table.ts";
import { type LandCounters, newLandCounters } from "./land-counters.ts";
import { RESEND_MARKS_SPARE, RESEND_PAUSE_MS, WATCH_BYTES_MEAN } from "./limits.ts";
import type { ChainView, Resender, TxStatus } from "./ports.ts";
import { LeaderMarks } from "./recent-recipients.ts";
import { Resends } from "./resends.ts";
import { Polls } from "./status-polling.ts";

export interface LandingDeps {
  readonly clock: Clock;
  readonly chain: ChainView;
  readonly resender: Resender;
  readonly log: Log;
  /** Has what was sent elsewhere and is not known here yet tracked now. Must not throw. */
  readonly adopt?: () => void;
  /** The end of a transaction, once for each. These three must not throw, nor call landing. */
  readonly onEnd: (end: End) => void;
  readonly onSighted: (sighting: Sighting) => void;
  /** The block of the last sighting is not the cluster's any more. */
  readonly onVanished: (packetId: number, atNs: number) => void;
}

export interface LandingOptions {
  /** Transactions in flight; above it the oldest ends as dropped. */
  readonly countMax: number;
  /** How long one is watched that never expires, or whose expiry cannot be known. */
  readonly watchMs: number;
  /** Between two questions after the same young transaction. */
  readonly pollMs: number;
  readonly resendsPerSecond: number;
  /** The most leaders that a plan sends to. */
  readonly leaders: number;
  /** How long a copy may wait for its leader after it was taken on. */
  readonly copyTtlMs: number;
}

export interface Landing {
  /** A packet was accepted, and a leader took it; before its outcomes. Copies its bytes. */
  track(packet: Packet, accepted: Accepted, nowNs: number): void;
  /**
   * The transaction with the signature at `offset` was submitted again. True when it is in flight.
   * Unless it was sent just now, it goes at once to those leaders of the plan that lack it.
   */
  join(bytes: Uint8Array, offset: number, maxRetries: number | null): boolean;
  /** What became of a leader's copy. */
  outcome(outcome: Outcome): void;
  /** The sender's new plan; after the sender has it. */
  usePlan(plan: Plan): void;
  /** A feed saw the transaction with this signature (64 bytes) in a block. */
  seen(signature: Uint8Array, status: TxStatus): void;
  /** A feed says that the block of that slot is confirmed: what was seen in it has landed. */
  confirmed(slot: number): void;
  readonly inFlight: number;
  /** By how much the most overdue status was late when last looked, in nanoseconds. */
  readonly pollLagNs: number;
  readonly counters: Readonly<LandCounters>;
  /** Slots from receipt to landing; a slot counts as a second. */
  readonly slotDeltas: Histogram;
  start(): void;
  /** Ends all that is in flight. */
  stop(): void;
}

/** Slots; what comes later counts above every bound. */
const DELTA_BOUNDS = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 150];
/** Beyond a copy's longest wait, until a transaction of which no copy was sent counts as such. */
const NEVER_SENT_GRACE_MS = 1_200;

/** Nothing is asked before `start`. */
export function createLanding(deps: LandingDeps, options: LandingOptions): Landing {
  return new LandingStage(deps, options);
}

class LandingStage implements Landing {
  readonly counters: LandCounters = newLandCounters();
  readonly slotDeltas = createHistogram(DELTA_BOUNDS.map((slots) => slots * NS_PER_S));
  readonly #deps: LandingDeps;
  readonly #watch: Watch;
  readonly #resends: Resends;
  readonly #polls: Polls;
  readonly #expiry: Expiry;
  readonly #confirmations: Confirmations;
  readonly #watchNs: number;
  readonly #neverSentNs: number;
  /** Transactions that an unconfirmed block holds, and the network's errors of those by row. */
  #sighted = 0;
  readonly #errors = new Map<number, string>();

  constructor(deps: LandingDeps, options: LandingOptions) {
    const { clock, chain, resender } = deps;
    const { counters } = this;
    this.#deps = deps;
    const watch = new Watch(options.countMax, options.countMax * WATCH_BYTES_MEAN);
    const marks = new LeaderMarks(
      options.countMax,
      Math.max(options.leaders, 2) + RESEND_MARKS_SPARE,
    );
    this.#watch = watch;
    this.#watchNs = options.watchMs * NS_PER_MS;
    this.#neverSentNs = (options.copyTtlMs + NEVER_SENT_GRACE_MS) * NS_PER_MS;
    const expiry = new Expiry({ clock, watch, chain });
    this.#expiry = expiry;
    this.#confirmations = new Confirmations({
      ...{ clock, watch },
      onLanded: (row, slot) => {
        const error = this.#errors.get(row) ?? null;
        this.#end(row, "landed", { slot, confirmed: true, error }, null);
      },
    });
    this.#resends = new Resends(
      { clock, watch, marks, counters, resender, expiry },
      options.resendsPerSecond,
    );
    this.#polls = new Polls(
      {
        clock,
        watch,
        counters,
        chain,
        onTick: () => expiry.read(),
        onLook: (row, nowNs) => this.#look(row, nowNs),
        stamp: () => expiry.height,
        onStatus: (row, status, slot, stamp) => this.#status(row, status, slot, stamp),
      },
      options.pollMs,
    );
  }

  get inFlight(): number {
    return this.#watch.count;
  }

  get pollLagNs(): number {
    return this.#polls.lagNs;
  }

  track(packet: Packet, accepted: Accepted, nowNs: number): void {
    const watch = this.#watch;
    this.counters.accepted += 1;
    // What has landed for certain makes room first.
    if (watch.isFullFor(packet.bytes.length)) this.#confirmations.flush();
    while (watch.isFullFor(packet.bytes.length)) this.#drop(watch.oldest, "watch_full");
    const row = watch.open(packet, accepted);
    watch.sinceNs[row] = nowNs;
    watch.lastSentNs[row] = nowNs;
    watch.nextPollNs[row] = this.#polls.firstNs(nowNs);
    this.#expiry.open(row, nowNs);
    this.#resends.first(row, nowNs);
  }

  join(bytes: Uint8Array, offset: number, maxRetries: number | null): boolean {
    const row = this.#watch.findSignature(bytes, offset);
    if (row === NONE) return false;
    this.counters.joined += 1;
    this.#watch.raiseRetries(row, maxRetries);
    const sentNs = this.#watch.lastSentNs[row] ?? 0;
    const isOwnResend = this.#deps.clock.nowNs() - sentNs >= RESEND_PAUSE_MS * NS_PER_MS;
    if (isOwnResend) this.#resends.again(row);
    return true;
  }

  outcome(outcome: Outcome): void {
    const { kind } = outcome;
    if (kind !== "sent" && kind !== "dropped") return;
    const row = this.#watch.findPacket(outcome.packetId);
    if (row === NONE) return;
    if (kind === "sent") {
      this.#watch.raise(row, SENT);
      this.#resends.sent(row, outcome, outcome.atNs);
    } else this.#resends.unsent(row, outcome);
  }

  usePlan(plan: Plan): void {
    this.#expiry.read();
    this.#resends.usePlan(plan);
  }

  seen(signature: Uint8Array, status: TxStatus): void {
    let row = this.#watch.findSignature(signature, 0);
    if (row === NONE && this.#deps.adopt !== undefined) {
      // A block may have it sooner than the word of the front that sent it comes.
      this.#deps.adopt();
      row = this.#watch.findSignature(signature, 0);
    }
    if (row !== NONE) this.#found(row, status);
  }

  confirmed(slot: number): void {
    if (this.#sighted > 0) this.#confirmations.confirm(slot);
  }

  start(): void {
    this.#resends.start();
    this.#polls.start();
  }

  stop(): void {
    this.#resends.stop();
    this.#polls.stop();
    this.#confirmations.flush();
    while (this.#watch.count > 0) this.#drop(this.#watch.oldest, "shutting_down");
    const { accepted, landed, expired, dropped } = this.counters;
    this.#deps.log.info({ accepted, landed, expired, dropped }, "landing stopped");
  }

  /** What time alone does to a row. Answers whether it is still there. */
  #look(row: number, nowNs: number): boolean {
    const watch = this.#watch;
    const ageNs = nowNs - (watch.sinceNs[row] ?? 0);
    if (ageNs >= this.#watchNs) {
      if (watch.is(row, SIGHTED)) this.#drop(row, "unconfirmed");
      else this.#drop(row, watch.is(row, SENT) ? "watch_ended" : "never_sent");
      return false;
    }
    const isSilent = !watch.is(row, SENT) && !watch.is(row, SIGHTED);
    if (isSilent && ageNs >= this.#neverSentNs && (watch.retriesLeft[row] ?? 0) <= 0) {
      this.#drop(row, "never_sent");
      return false;
    }
    this.#expiry.look(row, nowNs);
    // Where statuses are refused, no answer comes that could end it.
    const isOver = this.#expiry.isOver(row) && !watch.is(row, SIGHTED);
    if (!isOver || this.#deps.chain.statusTelling() !== "no") return true;
    this.#drop(row, watch.is(row, SENT) ? "status_unknown" : "never_sent");
    return false;
  }

  #status(row: number, status: TxStatus | null, slot: number, heightAsked: number): void {
    if (status !== null) {
      this.#found(row, status);
      return;
    }
    const watch = this.#watch;
    if (watch.is(row, SIGHTED)) {
      // A node that has not come as far as that block, or drops statuses, knows nothing of it.
      const isTold = this.#deps.chain.statusTelling() === "yes";
      if (isTold && slot > (watch.sightedSlot[row] ?? 0)) this.#vanish(row);
      return;
    }
    const verdict = this.#expiry.absent(row, slot, heightAsked);
    if (verdict === "open") return;
    if (verdict === "lost") this.#drop(row, "watch_ended");
    else if (!watch.is(row, SENT)) this.#drop(row, "never_sent");
    else if (this.#deps.chain.statusTelling() !== "yes") this.#drop(row, "status_unknown");
    else this.#end(row, "expired", null, "blockhash_expired");
  }

  #found(row: number, status: TxStatus): void {
    if (status.confirmed) this.#end(row, "landed", status, null);
    else this.#sight(row, status);
  }

  #sight(row: number, { slot, error }: TxStatus): void {
    const watch = this.#watch;
    if (watch.is(row, SIGHTED) && watch.sightedSlot[row] === slot) return;
    if (!watch.is(row, SIGHTED)) this.#sighted += 1;
    watch.raise(row, SIGHTED);
    watch.sightedSlot[row] = slot;
    if (error === null) this.#errors.delete(row);
    else this.#errors.set(row, error);
    this.counters.sighted += 1;
    this.#deps.onSighted({
      packetId: watch.packetId[row] ?? NONE,
      slot,
      slotDelta: this.#deltaOf(row, slot),
      error,
      atNs: this.#deps.clock.nowNs(),
    });
  }

  #vanish(row: number): void {
    const watch = this.#watch;
    this.#unsight(row);
    this.counters.vanished += 1;
    this.#deps.onVanished(watch.packetId[row] ?? NONE, this.#deps.clock.nowNs());
  }

  #unsight(row: number): void {
    this.#watch.lower(row, SIGHTED);
    this.#sighted -= 1;
    this.#errors.delete(row);
  }

  #drop(row: number, reason: EndReason): void {
    this.#end(row, "dropped", null, reason);
  }

  #end(row: number, kind: End["kind"], status: TxStatus | null, reason: EndReason | null): void {
    const watch = this.#watch;
    const { counters } = this;
    const sightedSlot = watch.is(row, SIGHTED) ? (watch.sightedSlot[row] ?? 0) : 0;
    const slot = status?.slot ?? sightedSlot;
    const slotDelta = status === null ? null : this.#deltaOf(row, slot);
    const packetId = watch.packetId[row] ?? NONE;
    if (watch.is(row, SIGHTED)) this.#unsight(row);
    watch.close(row);
    counters[kind] += 1;
    if (reason !== null) counters.reasons[reason] += 1;
    const error = status?.error ?? null;
    if (error !== null) counters.landedFailed += 1;
    if (slotDelta !== null) this.slotDeltas.record(slotDelta * NS_PER_S);
    const atNs = this.#deps.clock.nowNs();
    this.#deps.onEnd({ packetId, kind, slot, slotDelta, error, reason, atNs });
  }

  #deltaOf(row: number, slot: number): number | null {
    const estimated = this.#watch.receivedSlot[row] ?? UNKNOWN;
    // What has been announced since then shows where the estimate was ahead.
    const shown = this.#deps.chain.currentSlot(this.#watch.sinceNs[row] ?? 0);
    const received = shown === null ? estimated : Math.min(estimated, shown);
    // What landed long before had been accepted before, and its speed was told then.
    if (received === UNKNOWN || slot < received - SLOT_AGREE_DISTANCE) return null;
    return Math.max(0, slot - received);
  }
}
