/**
 * Tracks every accepted transaction until its final state is known, and resends it until then.
 *
 *             ┌────────── sent again to each plan's leaders ──────────┐
 *   track ─▶ in flight ─▶ processed (unconfirmed block) ─▶ landed (confirmed)
 *             │   ▲              │
 *             │   └─ rolled back ┘      ─▶ expired: too old, and a later response has no status
 *             └───────────────────────  ─▶ dropped: with a reason
 *
 * Each ends exactly once, and accepted = landed + expired + dropped + in flight at any time.
 * `processed` is reported immediately, for slot latency, and may be rolled back; a final state is
 * permanent, so `landed` waits for the cluster's confirmation. No transaction expires because of a
 * failed request, or of a response that predates the height's passing, comes from a lagging node or
 * one not proven to report statuses, or does not reach back far enough.
 *
 * Hot path: `track` and `outcome`, on typed arrays alone.
 */

import { type Clock, NS_PER_MS, NS_PER_S } from "../core/clock.ts";
import type { EndReason } from "../core/errors.ts";
import type { Accepted, FinalState, Outcome, Packet, Plan, ProcessedEvent } from "../core/flow.ts";
import { SLOT_AGREE_DISTANCE } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import { createHistogram } from "../runtime/histogram.ts";
import { BlockhashChecks } from "./blockhash-checks.ts";
import { NONE } from "./byte-store.ts";
import { Confirmations } from "./confirmations.ts";
import { Expiry } from "./expiry.ts";
import { DURABLE, InFlightTable, PROCESSED, SENT, UNKNOWN } from "./in-flight-table.ts";
import { LandCounters } from "./land-counters.ts";
import type { LandingShares } from "./landing-shares.ts";
import { IN_FLIGHT_BYTES_MEAN, RECENT_RECIPIENTS_SPARE, RESEND_PAUSE_MS } from "./limits.ts";
import { MarkClears } from "./mark-clears.ts";
import type { ClusterView, DeliveryGate, Resender, TxStatus } from "./ports.ts";
import { RecentRecipients } from "./recent-recipients.ts";
import { Resends } from "./resends.ts";
import { Sightings } from "./sightings.ts";
import { StatusChain } from "./status-chain.ts";
import { StatusPoller } from "./status-polling.ts";
import { type PlanTips, TipTotals } from "./tips.ts";

export interface LandingDeps {
  readonly clock: Clock;
  readonly cluster: ClusterView;
  readonly resender: Resender;
  /** Missing: nothing else sends transactions in flight. */
  readonly deliveryGate?: DeliveryGate;
  readonly log: Log;
  /** The landed shares of accounts; absent: 1, and none is recorded. */
  readonly shares?: Pick<LandingShares, "shareOf" | "ended">;
  /** Tracks transactions that were sent elsewhere and are not known here yet. Must not throw. */
  readonly flushEvents?: () => void;
  /**
   * The final state of a transaction, once each. These three must not throw, nor call landing. A
   * signature has 64 bytes and is valid during the call.
   */
  readonly onFinalState: (end: FinalState, signature: Uint8Array) => void;
  readonly onProcessed: (event: ProcessedEvent, signature: Uint8Array) => void;
  /** The block last reported as processed is no longer part of the cluster's chain. */
  readonly onRolledBack: (signature: Uint8Array, atNs: number) => void;
}

export interface LandingOptions {
  /** Maximum transactions in flight; above it the oldest ends as dropped. */
  readonly countMax: number;
  /**
   * How long a transaction is tracked at most: one that never expires, whose expiry is unknown, or
   * whose blockhash lives longer.
   */
  readonly trackForMs: number;
  /** Time between two status requests for the same young transaction. */
  readonly pollMs: number;
  readonly resendsPerSecond: number;
  /** Maximum number of leaders in a plan. */
  readonly leaders: number;
  /** How long an accepted delivery may wait for its leader. */
  readonly deliveryTtlMs: number;
}

/** Slots; later landings count above every bound. */
const DELTA_BOUNDS = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 150];
/**
 * Beyond a delivery's maximum wait, until a transaction without a sent delivery counts as never
 * sent.
 */
const NEVER_SENT_GRACE_MS = 1_200;

const OPEN_GATE: DeliveryGate = { renew: () => true, forget() {} };

/** Requests nothing before `start`. */
export function createLanding(deps: LandingDeps, options: LandingOptions): Landing {
  return new Landing(deps, options);
}

export class Landing {
  readonly counters: LandCounters = new LandCounters();
  /** Slots from receipt to landing; a slot counts as a second. */
  readonly slotDeltas = createHistogram(DELTA_BOUNDS.map((slots) => slots * NS_PER_S));
  readonly #deps: LandingDeps;
  readonly #table: InFlightTable;
  readonly #deliveryGate: DeliveryGate;
  readonly #resends: Resends;
  readonly #poller: StatusPoller;
  readonly #expiry: Expiry;
  readonly #confirmations: Confirmations;
  readonly #markClears: MarkClears;
  readonly #trackNs: number;
  readonly #neverSentNs: number;
  readonly #sightings: Sightings;
  readonly #statusChain = new StatusChain();
  readonly #tips = new TipTotals();

  constructor(deps: LandingDeps, options: LandingOptions) {
    const { clock, cluster, resender } = deps;
    const deliveryGate = deps.deliveryGate ?? OPEN_GATE;
    const { counters } = this;
    this.#deps = deps;
    this.#markClears = new MarkClears(counters);
    const table = new InFlightTable(options.countMax, options.countMax * IN_FLIGHT_BYTES_MEAN);
    const recipients = new RecentRecipients(
      options.countMax,
      Math.max(options.leaders, 2) + RECENT_RECIPIENTS_SPARE,
    );
    this.#table = table;
    this.#deliveryGate = deliveryGate;
    this.#trackNs = options.trackForMs * NS_PER_MS;
    this.#neverSentNs = (options.deliveryTtlMs + NEVER_SENT_GRACE_MS) * NS_PER_MS;
    const blockhashes = new BlockhashChecks({ clock, cluster, counters });
    const expiry = new Expiry({ clock, table, cluster, blockhashes });
    this.#expiry = expiry;
    this.#sightings = new Sightings(table, counters);
    this.#confirmations = new Confirmations({
      ...{ clock, table },
      onConfirmed: (row, slot, bank) => this.#confirm(row, slot, bank),
    });
    this.#resends = new Resends(
      {
        ...{ clock, table, recipients, counters, resender, deliveryGate, expiry },
        landedShareOf: (account) => deps.shares?.shareOf(account) ?? 1,
      },
      options.resendsPerSecond,
    );
    this.#poller = new StatusPoller(
      {
        clock,
        table,
        counters,
        cluster,
        onTick: (nowNs) => {
          expiry.read();
          blockhashes.ask(nowNs);
        },
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

  /** Delay of the most overdue status request at the last check, in nanoseconds. */
  get pollLagNs(): number {
    return this.#poller.lagNs;
  }

  /** Tips of accepted and of landed transactions by plan. */
  get tips(): ReadonlyMap<string, Readonly<PlanTips>> {
    return this.#tips.byPlan;
  }

  /**
   * A packet was accepted and a leader took it; called before its outcomes. Copies its bytes.
   * `plan` is the name of its account's plan.
   */
  track(packet: Packet, accepted: Accepted, nowNs: number, plan: string): void {
    const table = this.#table;
    this.counters.accepted += 1;
    // Transactions that have certainly landed make room first.
    if (table.isFullFor(packet.bytes.length)) this.#confirmations.flush();
    while (table.isFullFor(packet.bytes.length)) this.#drop(table.oldest, "table_full");
    const row = table.open(packet, accepted);
    // Below 0 where the transaction has none.
    const tipLamports = Math.max(0, accepted.tipLamports);
    table.tipLamports[row] = tipLamports;
    table.plans[row] = plan;
    this.#tips.accepted(plan, tipLamports);
    table.sinceNs[row] = nowNs;
    table.lastSentNs[row] = nowNs;
    table.entryNs[row] = nowNs;
    table.nextPollNs[row] = this.#poller.firstNs(nowNs);
    this.#expiry.open(row, nowNs);
    this.#resends.first(row, nowNs);
  }

  /**
   * The transaction with the signature at `offset` was submitted again. Returns whether it is in
   * flight. Unless it was just sent, it is immediately sent to the leaders of the plan that lack
   * it.
   */
  mergeDuplicate(bytes: Uint8Array, offset: number, maxRetries: number | null): boolean {
    const row = this.#merge(bytes, offset, maxRetries);
    if (row === NONE) return false;
    this.#resendUnlessRecent(row);
    return true;
  }

  /**
   * The transaction, with the signature at `offset`, was sent by the engine at `nowNs`, under this
   * packet's id; called before its outcomes. Returns whether it was in flight before.
   */
  mergeSend(packet: Packet, offset: number, nowNs: number): boolean {
    const table = this.#table;
    const row = this.#merge(packet.bytes, offset, packet.maxRetries);
    if (row === NONE) return false;
    table.merge(row, packet.id);
    table.lastSentNs[row] = nowNs;
    table.entryNs[row] = nowNs;
    this.#resends.again(row, packet.id, nowNs);
    return true;
  }

  /** The outcome of a leader's delivery. */
  outcome(outcome: Outcome): void {
    const { kind } = outcome;
    if (kind !== "sent" && kind !== "dropped") return;
    const row = this.#table.findPacket(outcome.packetId);
    if (row === NONE) return;
    if (kind === "sent") {
      this.#table.raise(row, SENT);
      this.#resends.sent(row, outcome);
    } else this.#resends.unsent(row, outcome);
  }

  /** The sender's new plan; called after the sender has it. */
  usePlan(plan: Plan): void {
    this.#expiry.read();
    if (this.#markClears.planned(this.#deps.clock.nowNs())) this.#resends.clearMarks(false);
    this.#resends.usePlan(plan);
  }

  /** The cluster's slot went back: what leaders acknowledged may be lost, and is sent again. */
  slotWentBack(): void {
    const nowNs = this.#deps.clock.nowNs();
    this.#confirmations.slotWentBack(nowNs);
    const slot = this.#deps.cluster.currentSlot(nowNs);
    if (slot !== null) {
      this.#statusChain.slotWentBack(slot);
      this.#renumber(slot);
    }
    if (this.#markClears.slotWentBack(nowNs)) this.#resends.clearMarks(true);
  }

  /**
   * The slots above this one are used again. Blocks seen in them are deleted, and what was recorded
   * by their numbers counts from here.
   */
  #renumber(slot: number): void {
    const table = this.#table;
    const { receivedSlot, absentSlot, expiredSlot, unknownSlot } = table;
    for (let row = 0; row < table.rowsUsed; row += 1) {
      if (table.is(row, PROCESSED) && (table.processedSlot[row] ?? 0) > slot) this.#rollBack(row);
      for (const slots of [receivedSlot, absentSlot, expiredSlot, unknownSlot]) {
        slots[row] = Math.min(slots[row] ?? UNKNOWN, slot);
      }
    }
  }

  /** The confirmation stands still while slots pass, or no longer; likewise. */
  setConfirmationStalled(isStalled: boolean): void {
    const nowNs = this.#deps.clock.nowNs();
    if (this.#markClears.setStalled(isStalled, nowNs)) this.#resends.clearMarks(true);
  }

  /**
   * A watcher saw the transaction with this signature (64 bytes) in a block; `bank` is the id of
   * the block's bank, null or absent if unknown.
   */
  seen(signature: Uint8Array, status: TxStatus, bank: number | null = null): void {
    let row = this.#table.findSignature(signature, 0);
    if (row === NONE && this.#deps.flushEvents !== undefined) {
      // A block may contain it before its submission is read.
      this.#deps.flushEvents();
      row = this.#table.findSignature(signature, 0);
    }
    if (row === NONE) return;
    this.#found(row, status, bank);
    if (!status.confirmed) this.#confirmations.seen(row);
  }

  /**
   * A watcher reports a confirmed block, once or several times: transactions seen in it have
   * landed, and those seen only in another bank of the slot are in flight again.
   */
  confirmed(slot: number, bank: number | null = null): void {
    this.#confirmations.record(slot, bank);
    if (this.#sightings.count > 0) this.#confirmations.confirm(slot, bank);
  }

  /** The ids of banks reported so far are not comparable with those reported from now on. */
  forgetBanks(): void {
    // Confirmations that wait for their turn still have the ids of the sightings so far.
    this.#confirmations.forgetBanks();
    this.#sightings.forgetBanks();
  }

  start(): void {
    this.#resends.start();
    this.#poller.start();
  }

  /** Ends all transactions in flight. */
  stop(): void {
    this.#resends.stop();
    this.#poller.stop();
    this.#confirmations.flush();
    while (this.#table.count > 0) this.#drop(this.#table.oldest, "shutting_down");
    const { accepted, landed, expired, dropped } = this.counters;
    this.#deps.log.info({ accepted, landed, expired, dropped }, "landing stopped");
  }

  /** The row of a transaction that was submitted again; NONE if it is not in flight. */
  #merge(bytes: Uint8Array, offset: number, maxRetries: number | null): number {
    const row = this.#table.findSignature(bytes, offset);
    if (row === NONE) return NONE;
    this.counters.duplicatesMerged += 1;
    this.#table.raiseRetries(row, maxRetries);
    return row;
  }

  /** Sends it to the leaders that lack it, unless it was just sent. */
  #resendUnlessRecent(row: number): void {
    const sentNs = this.#table.lastSentNs[row] ?? 0;
    const mayResend = this.#deps.clock.nowNs() - sentNs >= RESEND_PAUSE_MS * NS_PER_MS;
    if (mayResend) this.#resends.resend(row);
  }

  /** Applies time-based transitions to a row. Returns whether it still exists. */
  #check(row: number, nowNs: number): boolean {
    const table = this.#table;
    const ageNs = nowNs - (table.sinceNs[row] ?? 0);
    if (ageNs >= this.#trackNs) {
      if (table.is(row, PROCESSED)) this.#drop(row, "unconfirmed");
      else this.#drop(row, table.is(row, SENT) ? "tracking_ended" : "never_sent");
      return false;
    }
    const isSilent = !table.is(row, SENT) && !table.is(row, PROCESSED);
    const mayBeSent = (table.retriesLeft[row] ?? 0) > 0 || (table.copiesWaiting[row] ?? 0) > 0;
    // A later submission may have been offered to leaders since.
    const offeredNs = table.lastSentNs[row] ?? 0;
    if (isSilent && nowNs - offeredNs >= this.#neverSentNs && !mayBeSent) {
      this.#drop(row, "never_sent");
      return false;
    }
    this.#expiry.check(row, nowNs);
    const reporting = this.#deps.cluster.statusReporting();
    const isProcessed = table.is(row, PROCESSED);
    // Responses may be missing, or be of a node that reports no statuses.
    if (isProcessed && this.#confirmations.isPassedOver(row, nowNs)) this.#rollBack(row);
    // If the node reports no statuses, no response can end it.
    if (reporting !== "no" || table.is(row, PROCESSED)) return true;
    if (this.#expiry.isUnknown(row)) {
      this.#drop(row, "blockhash_unknown");
      return false;
    }
    if (!this.#expiry.isOver(row)) return true;
    if (table.is(row, SENT)) return this.#endUnreported(row);
    this.#drop(row, "never_sent");
    return false;
  }

  /**
   * Ends an expired transaction whose null status proves nothing, unless the blocks that could hold
   * it are not all known yet. Returns whether it still exists.
   */
  #endUnreported(row: number): boolean {
    const content = this.#expiry.contentUntilExpiry(row);
    if (content === "pending") return true;
    if (content === "empty") this.#end(row, "expired", null, "blockhash_expired");
    else this.#drop(row, "status_unknown");
    return false;
  }

  #status(row: number, status: TxStatus | null, slot: number, heightAtRequest: number): void {
    this.#statusChain.responded(slot);
    if (this.#statusChain.isInDoubt(status?.slot ?? null)) return;
    if (status !== null) {
      this.#found(row, status, null);
      return;
    }
    const table = this.#table;
    if (table.is(row, PROCESSED)) {
      // A node that has not reached that block, or keeps no statuses, cannot disprove it.
      const isReported = this.#deps.cluster.statusReporting() === "yes";
      const isPast = slot > (table.processedSlot[row] ?? 0) || this.#confirmations.isInDoubt(row);
      if (isReported && isPast) this.#rollBack(row);
      return;
    }
    // Such an answer shows nothing, now or later; `#check` ends what has expired.
    if (this.#deps.cluster.statusReporting() === "no") return;
    // It may have landed in the last block that still knew the blockhash.
    if (this.#expiry.isUnknown(row) && slot >= (table.unknownSlot[row] ?? UNKNOWN)) {
      this.#drop(row, this.#expiry.isCovered(row, slot) ? "blockhash_unknown" : "tracking_ended");
      return;
    }
    const expiryState = this.#expiry.absent(row, slot, heightAtRequest);
    if (expiryState === "open") return;
    if (expiryState === "lost") this.#drop(row, "tracking_ended");
    else if (!table.is(row, SENT)) this.#drop(row, "never_sent");
    else if (this.#deps.cluster.statusReporting() !== "yes") this.#endUnreported(row);
    else this.#end(row, "expired", null, "blockhash_expired");
  }

  #found(row: number, status: TxStatus, bank: number | null): void {
    if (status.confirmed) this.#end(row, "landed", status, null);
    else this.#markProcessed(row, status, bank);
  }

  #markProcessed(row: number, { slot, error }: TxStatus, bank: number | null): void {
    // The slot may have been used again since, so this may be another block.
    const isInDoubt = this.#table.is(row, PROCESSED) && this.#confirmations.isInDoubt(row);
    if (isInDoubt) this.#sightings.clear(row);
    this.#table.processedNs[row] = this.#deps.clock.nowNs();
    if (!this.#sightings.add(row, slot, bank, error)) return;
    this.counters.processed += 1;
    const atNs = this.#deps.clock.nowNs();
    const event = { slot, slotDelta: this.#deltaOf(row, slot), error, atNs };
    this.#deps.onProcessed(event, this.#table.signature(row));
  }

  /** The bank, or one of the slot in which the transaction was seen last, is confirmed. */
  #confirm(row: number, slot: number, bank: number | null): void {
    const hasStatuses = this.#deps.cluster.statusReporting() === "yes";
    const inBank = this.#sightings.confirm(row, bank, hasStatuses);
    if (inBank === "absent") this.#rollBack(row);
    if (inBank !== "held") return;
    const error = this.#sightings.errorOf(row);
    this.#end(row, "landed", { slot, confirmed: true, error }, null);
  }

  #rollBack(row: number): void {
    this.#sightings.clear(row);
    this.counters.rolledBack += 1;
    this.#deps.onRolledBack(this.#table.signature(row), this.#deps.clock.nowNs());
  }

  #drop(row: number, reason: EndReason): void {
    const table = this.#table;
    this.#deliveryGate.forget(table.bytes(row), table.entryNs[row] ?? 0);
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
    const signature = table.signature(row);
    const error = status?.error ?? null;
    const isReporting = this.#deps.cluster.statusReporting() === "yes";
    const isNonceUnused = isReporting && table.is(row, DURABLE);
    // Then nothing that was sent for this submission landed it, and its tip was counted before.
    const isDated = table.receivedSlot[row] !== UNKNOWN;
    const hadLanded = status !== null && slotDelta === null && isDated;
    if (!hadLanded) {
      this.#deps.shares?.ended(table.accountOf(row), { kind, error, reason, isNonceUnused });
    }
    if (table.is(row, PROCESSED)) this.#sightings.clear(row);
    table.close(row);
    counters[kind] += 1;
    if (reason !== null) counters.reasons[reason] += 1;
    if (error !== null) counters.landedFailed += 1;
    else if (kind === "landed" && !hadLanded) {
      this.#tips.landed(table.plans[row] ?? "", table.tipLamports[row] ?? 0);
    }
    if (slotDelta !== null) this.slotDeltas.record(slotDelta * NS_PER_S);
    const atNs = this.#deps.clock.nowNs();
    const end = { packetId, kind, slot, slotDelta, error, reason, atNs };
    this.#deps.onFinalState(end, signature);
  }

  #deltaOf(row: number, slot: number): number | null {
    const estimated = this.#table.receivedSlot[row] ?? UNKNOWN;
    // Later announcements show whether the estimate was ahead.
    const shown = this.#deps.cluster.currentSlot(this.#table.sinceNs[row] ?? 0);
    const received = shown === null ? estimated : Math.min(estimated, shown);
    // Landed long before: accepted earlier, and its latency was recorded then.
    if (received === UNKNOWN || slot < received - SLOT_AGREE_DISTANCE) return null;
    return Math.max(0, slot - received);
  }
}
