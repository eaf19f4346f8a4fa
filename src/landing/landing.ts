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
import type { Accepted, FinalState, Outcome, Packet, Plan, ProcessedEvent } from "../core/flow.ts";
import { SLOT_AGREE_DISTANCE } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import { createHistogram, type Histogram } from "../runtime/histogram.ts";
import { NONE } from "./byte-store.ts";
import { Confirmations } from "./confirmations.ts";
import { Expiry } from "./expiry.ts";
import { InFlightTable, PROCESSED, SENT, UNKNOWN } from "./in-flight-table.ts";
import { type LandCounters, newLandCounters } from "./land-counters.ts";
import { IN_FLIGHT_BYTES_MEAN, RECENT_RECIPIENTS_SPARE, RESEND_PAUSE_MS } from "./limits.ts";
import type { ClusterView, Resender, TxStatus } from "./ports.ts";
import { RecentRecipients } from "./recent-recipients.ts";
import { Resends } from "./resends.ts";
import { StatusPoller } from "./status-polling.ts";

export interface LandingDeps {
  readonly clock: Clock;
  readonly cluster: ClusterView;
  readonly resender: Resender;
  readonly log: Log;
  /** Has what was sent elsewhere and is not known here yet tracked now. Must not throw. */
  readonly reconcile?: () => void;
  /** The end of a transaction, once for each. These three must not throw, nor call landing. */
  readonly onFinalState: (end: FinalState) => void;
  readonly onProcessed: (event: ProcessedEvent) => void;
  /** The block of the last sighting is not the cluster's any more. */
  readonly onRolledBack: (packetId: number, atNs: number) => void;
}

export interface LandingOptions {
  /** Transactions in flight; above it the oldest ends as dropped. */
  readonly countMax: number;
  /** How long one is watched that never expires, or whose expiry cannot be known. */
  readonly trackForMs: number;
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
  mergeDuplicate(bytes: Uint8Array, offset: number, maxRetries: number | null): boolean;
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
  readonly #table: InFlightTable;
  readonly #resends: Resends;
  readonly #poller: StatusPoller;
  readonly #expiry: Expiry;
  readonly #confirmations: Confirmations;
  readonly #trackNs: number;
  readonly #neverSentNs: number;
  /** Transactions that an unconfirmed block holds, and the network's errors of those by row. */
  #processed = 0;
  readonly #errors = new Map<number, string>();

  constructor(deps: LandingDeps, options: LandingOptions) {
    const { clock, cluster, resender } = deps;
    const { counters } = this;
    this.#deps = deps;
    const table = new InFlightTable(options.countMax, options.countMax * IN_FLIGHT_BYTES_MEAN);
    const recipients = new RecentRecipients(
      options.countMax,
      Math.max(options.leaders, 2) + RECENT_RECIPIENTS_SPARE,
    );
    this.#table = table;
    this.#trackNs = options.trackForMs * NS_PER_MS;
    this.#neverSentNs = (options.copyTtlMs + NEVER_SENT_GRACE_MS) * NS_PER_MS;
    const expiry = new Expiry({ clock, table, cluster });
    this.#expiry = expiry;
    this.#confirmations = new Confirmations({
      ...{ clock, table },
      onLanded: (row, slot) => {
        const error = this.#errors.get(row) ?? null;
        this.#end(row, "landed", { slot, confirmed: true, error }, null);
      },
    });
    this.#resends = new Resends(
      { clock, table, recipients, counters, resender, expiry },
      options.resendsPerSecond,
    );
    this.#poller = new StatusPoller(
      {
        clock,
        table,
        counters,
        cluster,
        onTick: () => expiry.read(),
        onCheck: (row, nowNs) => this.#check(row, nowNs),
        stamp: () => expiry.height,
        onStatus: (row, status, slot, stamp) => this.#status(row, status, slot, stamp),
      },
      options.pollMs,
    );
  }

  get inFlight(): number {
    return this.#table.count;
  }

  get pollLagNs(): number {
    return this.#poller.lagNs;
  }

  track(packet: Packet, accepted: Accepted, nowNs: number): void {
    const table = this.#table;
    this.counters.accepted += 1;
    // What has landed for certain makes room first.
    if (table.isFullFor(packet.bytes.length)) this.#confirmations.flush();
    while (table.isFullFor(packet.bytes.length)) this.#drop(table.oldest, "table_full");
    const row = table.open(packet, accepted);
    table.sinceNs[row] = nowNs;
    table.lastSentNs[row] = nowNs;
    table.nextPollNs[row] = this.#poller.firstNs(nowNs);
    this.#expiry.open(row, nowNs);
    this.#resends.first(row, nowNs);
  }

  mergeDuplicate(bytes: Uint8Array, offset: number, maxRetries: number | null): boolean {
    const row = this.#table.findSignature(bytes, offset);
    if (row === NONE) return false;
    this.counters.duplicatesMerged += 1;
    this.#table.raiseRetries(row, maxRetries);
    const sentNs = this.#table.lastSentNs[row] ?? 0;
    const isOwnResend = this.#deps.clock.nowNs() - sentNs >= RESEND_PAUSE_MS * NS_PER_MS;
    if (isOwnResend) this.#resends.resend(row);
    return true;
  }

  outcome(outcome: Outcome): void {
    const { kind } = outcome;
    if (kind !== "sent" && kind !== "dropped") return;
    const row = this.#table.findPacket(outcome.packetId);
    if (row === NONE) return;
    if (kind === "sent") {
      this.#table.raise(row, SENT);
      this.#resends.sent(row, outcome, outcome.atNs);
    } else this.#resends.unsent(row, outcome);
  }

  usePlan(plan: Plan): void {
    this.#expiry.read();
    this.#resends.usePlan(plan);
  }

  seen(signature: Uint8Array, status: TxStatus): void {
    let row = this.#table.findSignature(signature, 0);
    if (row === NONE && this.#deps.reconcile !== undefined) {
      // A block may have it sooner than the word of the front that sent it comes.
      this.#deps.reconcile();
      row = this.#table.findSignature(signature, 0);
    }
    if (row !== NONE) this.#found(row, status);
  }

  confirmed(slot: number): void {
    if (this.#processed > 0) this.#confirmations.confirm(slot);
  }

  start(): void {
    this.#resends.start();
    this.#poller.start();
  }

  stop(): void {
    this.#resends.stop();
    this.#poller.stop();
    this.#confirmations.flush();
    while (this.#table.count > 0) this.#drop(this.#table.oldest, "shutting_down");
    const { accepted, landed, expired, dropped } = this.counters;
    this.#deps.log.info({ accepted, landed, expired, dropped }, "landing stopped");
  }

  /** What time alone does to a row. Answers whether it is still there. */
  #check(row: number, nowNs: number): boolean {
    const table = this.#table;
    const ageNs = nowNs - (table.sinceNs[row] ?? 0);
    if (ageNs >= this.#trackNs) {
      if (table.is(row, PROCESSED)) this.#drop(row, "unconfirmed");
      else this.#drop(row, table.is(row, SENT) ? "tracking_ended" : "never_sent");
      return false;
    }
    const isSilent = !table.is(row, SENT) && !table.is(row, PROCESSED);
    if (isSilent && ageNs >= this.#neverSentNs && (table.retriesLeft[row] ?? 0) <= 0) {
      this.#drop(row, "never_sent");
      return false;
    }
    this.#expiry.check(row, nowNs);
    // Where statuses are refused, no answer comes that could end it.
    const isOver = this.#expiry.isOver(row) && !table.is(row, PROCESSED);
    if (!isOver || this.#deps.cluster.statusReporting() !== "no") return true;
    this.#drop(row, table.is(row, SENT) ? "status_unknown" : "never_sent");
    return false;
  }

  #status(row: number, status: TxStatus | null, slot: number, heightAtRequest: number): void {
    if (status !== null) {
      this.#found(row, status);
      return;
    }
    const table = this.#table;
    if (table.is(row, PROCESSED)) {
      // A node that has not come as far as that block, or drops statuses, knows nothing of it.
      const isReported = this.#deps.cluster.statusReporting() === "yes";
      if (isReported && slot > (table.processedSlot[row] ?? 0)) this.#rollBack(row);
      return;
    }
    const validation = this.#expiry.absent(row, slot, heightAtRequest);
    if (validation === "open") return;
    if (validation === "lost") this.#drop(row, "tracking_ended");
    else if (!table.is(row, SENT)) this.#drop(row, "never_sent");
    else if (this.#deps.cluster.statusReporting() !== "yes") this.#drop(row, "status_unknown");
    else this.#end(row, "expired", null, "blockhash_expired");
  }

  #found(row: number, status: TxStatus): void {
    if (status.confirmed) this.#end(row, "landed", status, null);
    else this.#markProcessed(row, status);
  }

  #markProcessed(row: number, { slot, error }: TxStatus): void {
    const table = this.#table;
    if (table.is(row, PROCESSED) && table.processedSlot[row] === slot) return;
    if (!table.is(row, PROCESSED)) this.#processed += 1;
    table.raise(row, PROCESSED);
    table.processedSlot[row] = slot;
    if (error === null) this.#errors.delete(row);
    else this.#errors.set(row, error);
    this.counters.processed += 1;
    this.#deps.onProcessed({
      packetId: table.packetId[row] ?? NONE,
      slot,
      slotDelta: this.#deltaOf(row, slot),
      error,
      atNs: this.#deps.clock.nowNs(),
    });
  }

  #rollBack(row: number): void {
    const table = this.#table;
    this.#clearProcessed(row);
    this.counters.rolledBack += 1;
    this.#deps.onRolledBack(table.packetId[row] ?? NONE, this.#deps.clock.nowNs());
  }

  #clearProcessed(row: number): void {
    this.#table.lower(row, PROCESSED);
    this.#processed -= 1;
    this.#errors.delete(row);
  }

  #drop(row: number, reason: EndReason): void {
    this.#end(row, "dropped", null, reason);
  }

  #end(
    row: number,
    kind: FinalState["kind"],
    status: TxStatus | null,
    reason: EndReason | null,
  ): void {
    const table = this.#table;
    const { counters } = this;
    const processedSlot = table.is(row, PROCESSED) ? (table.processedSlot[row] ?? 0) : 0;
    const slot = status?.slot ?? processedSlot;
    const slotDelta = status === null ? null : this.#deltaOf(row, slot);
    const packetId = table.packetId[row] ?? NONE;
    if (table.is(row, PROCESSED)) this.#clearProcessed(row);
    table.close(row);
    counters[kind] += 1;
    if (reason !== null) counters.reasons[reason] += 1;
    const error = status?.error ?? null;
    if (error !== null) counters.landedFailed += 1;
    if (slotDelta !== null) this.slotDeltas.record(slotDelta * NS_PER_S);
    const atNs = this.#deps.clock.nowNs();
    this.#deps.onFinalState({ packetId, kind, slot, slotDelta, error, reason, atNs });
  }

  #deltaOf(row: number, slot: number): number | null {
    const estimated = this.#table.receivedSlot[row] ?? UNKNOWN;
    // What has been announced since then shows where the estimate was ahead.
    const shown = this.#deps.cluster.currentSlot(this.#table.sinceNs[row] ?? 0);
    const received = shown === null ? estimated : Math.min(estimated, shown);
    // What landed long before had been accepted before, and its speed was told then.
    if (received === UNKNOWN || slot < received - SLOT_AGREE_DISTANCE) return null;
    return Math.max(0, slot - received);
  }
}
