/**
 * Sends transactions to leaders: one delivery for each leader of the plan. Hot path: `accept`.
 *
 * A packet is first offered to the live connections; only when one of them accepted it may other
 * leaders queue a delivery, so a result of 0 or less means that nothing of it will ever be sent.
 * The caller then opens the packet's account and calls `report`. Every delivery is reported through
 * `onOutcome`: optionally `sent`, and then exactly one of acked, failed and dropped. A packet that
 * no connection accepted has no deliveries.
 */

import type { Clock } from "../core/clock.ts";
import { NS_PER_MS } from "../core/clock.ts";
import type { DeliveryReason } from "../core/errors.ts";
import type { Outcome, Packet, Plan, ResendRoom, ResendTo, Target } from "../core/flow.ts";
import { DELIVERIES_QUEUED_MAX, LEADERS_CONNECTED_MAX } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import { withFastProperties } from "../runtime/fast-object.ts";
import type { TrySendResult } from "./deliveries.ts";
import type { Identity } from "./identity.ts";
import type { Leader, LeaderState } from "./leader.ts";
import { LeaderPool, type LeaderPoolOptions } from "./leader-pool.ts";
import { LeaderStatsTable } from "./leader-stats.ts";
import {
  DELIVERIES_IN_FLIGHT_MAX,
  NATIVE_DELIVERIES_IN_FLIGHT_MAX,
  RETIRING_MS,
} from "./limits.ts";
import type { SendRecord } from "./native/send-record.ts";
import { TargetPublisher } from "./native/target-publisher.ts";
import type { TargetTable } from "./native/target-table.ts";
import { createPollTimer, POLL_FAST_MS } from "./poll-timer.ts";
import { newSendCounters, type SendCounters } from "./send-counters.ts";
import { type Losses, NO_LOSSES, type Transport } from "./transport.ts";

export interface SenderDeps {
  readonly clock: Clock;
  readonly transport: Transport;
  /** Must not throw, nor call the sender. */
  readonly onOutcome: (outcome: Outcome) => void;
  readonly log: Log;
  /** A leader that accepted deliveries no longer responds at its address. Must not throw. */
  readonly onLeaderUnreachable?: () => void;
  /** Leader statistics to update; created when missing. */
  readonly leaderStats?: LeaderStatsTable;
  /** Where all threads of the native engine send; the transport's. Missing: the portable one. */
  readonly targetTable?: TargetTable | null;
}

export interface SenderOptions extends LeaderPoolOptions {
  /** How long `stop` waits for deliveries in flight. */
  readonly stopMs: number;
}

/** Default slot duration: SIMD-0525's step live on mainnet in 2026-09. */
const SLOT_TIME_MS = 250;

/** Overrides with the native engine: its deliveries are recorded late, and in batches. */
const WITH_RECORDS = {
  unseenMs: RETIRING_MS,
  inFlightMax: NATIVE_DELIVERIES_IN_FLIGHT_MAX,
} as const;

/** Times are those of Anza's `tpu-client-next` where it has them (2026-11). */
export const SENDER_DEFAULTS: SenderOptions = {
  queuePerLeader: DELIVERIES_QUEUED_MAX,
  deliveryTtlMs: 800,
  reconnectMs: 8_000,
  reconnectMsMax: 64_000,
  handshakeMs: 3_000,
  // Twice within the idle timeout of 10 s. The library pings every second, which with a thousand
  // connections costs a twentieth of a processor; leaders are also probed before their window.
  keepAliveMs: 4_000,
  lifetimeMs: 15 * 60_000,
  closeTimeoutMs: 2_000,
  unseenMs: 0,
  inFlightMax: DELIVERIES_IN_FLIGHT_MAX,
  leaveGraceMs: 2_000,
  connectionsMax: LEADERS_CONNECTED_MAX,
  stopMs: 500,
  random: Math.random,
  slotTimeMs: () => SLOT_TIME_MS,
  stakeShareOf: () => 0,
  landedShareOf: () => 1,
};

/** The public view of one leader. */
export interface LeaderView {
  readonly identity: string;
  readonly address: string;
  readonly state: LeaderState;
  readonly rttUs: number;
  readonly queued: number;
  readonly inFlight: number;
  /** Consecutive connections that ended soon. */
  readonly failures: number;
  /** Whether the plan still contains it. */
  readonly wanted: boolean;
}

/** What readers of a sender see: readiness, metrics and the admin server. */
export interface SenderStatus {
  /** Connections that accept transactions. */
  readonly liveCount: number;
  /** Those of them that the plan sends to now. */
  readonly sendableCount: number;
  /** As `LeaderPool.openingCount`. */
  readonly openingCount: number;
  /** Live connections that still use a previous identity. */
  readonly outdatedCount: number;
  readonly counters: Readonly<SendCounters>;
  /** What the engine lost. */
  losses(): Losses;
  leaders(): readonly LeaderView[];
}

export interface Sender extends SenderStatus {
  /**
   * Sends a packet to the leaders of the plan. Returns how many live connections accepted it, now
   * or as soon as they have credit. Otherwise nothing of it is sent or queued: ALL_FULL where at
   * least one connection is live and its queue is full, 0 where none accepts it. What is accepted
   * must be passed to `report` before anything else. Never throws.
   */
  accept(packet: Packet): number;
  /** Reports the deliveries of the packet that `accept` accepted last. Never throws. */
  report(packet: Packet): void;
  /**
   * Offers a packet again to the leaders of the plan that `to` selects. It waits for its turn by
   * the same rank as a first send. A leader whose queue is full of transactions of the same or a
   * higher rank gets no delivery, and nothing is reported. Returns how many accepted it. Never
   * throws.
   */
  resend(packet: Packet, to: ResendTo): number;
  /** Whether `resend` would offer a packet to a leader now. */
  roomFor(to: Pick<ResendTo, "wants">): ResendRoom;
  /**
   * Reports a packet that the native engine sent at `sentNs`, as if `accept` had sent it then: its
   * deliveries are reported from now on, and leaders of the plan that were not reached get theirs.
   * Must be called before the engine's events of it are processed. Never throws.
   */
  recordSend(packet: Packet, sent: SendRecord, sentNs: number): void;
  /**
   * Records what the native engine sent, and reports all known outcomes now, for a caller that is
   * about to read them. Must not be called from `onOutcome`. Never throws.
   */
  flushEvents(): void;
  /** Landed shares changed: the engine ranks by them from now on, the sender with the next plan. */
  useLandedShares(changed: ReadonlyMap<string, number>): void;
  /**
   * Replaces the plan; connections are opened and closed accordingly. Landed shares may change
   * before: all that is queued is ranked by them now.
   */
  usePlan(plan: Plan): void;
  /**
   * Replaces the identity: new connections use it immediately, and each open one is replaced and
   * closed when its deliveries are acknowledged.
   *
   * @throws Error when it makes no certificate; the previous identity stays
   */
  useIdentity(identity: Identity): void;
  /** @throws Error when the transport cannot start */
  start(): Promise<void>;
  /** Accepts nothing more, waits up to `stopMs` for acknowledgements, then ends every delivery. */
  stop(): Promise<void>;
}

/** Result of `accept` where leaders are connected, and none has room for one more delivery. */
export const ALL_FULL = -1;

const STOP_POLL_MS = 10;

export function createSender(deps: SenderDeps, options: Partial<SenderOptions> = {}): Sender {
  const { clock, transport, onOutcome, log } = deps;
  const targetTable = deps.targetTable ?? null;
  const recordOptions = targetTable === null ? {} : WITH_RECORDS;
  const settings: SenderOptions = { ...SENDER_DEFAULTS, ...recordOptions, ...options };
  const counters = newSendCounters();
  const leaderStats = deps.leaderStats ?? new LeaderStatsTable();
  const onLeaderUnreachable = deps.onLeaderUnreachable ?? ((): void => {});
  const leaders = new LeaderPool(
    { clock, transport, counters, report: reportDelivery, onLeaderUnreachable, leaderStats },
    settings,
  );
  /**
   * The leaders that the packet accepted last was offered to, with their results, and when. Other
   * leaders may be targets by the time it is reported: a connection can end while it sends.
   */
  let offeredTo: readonly Leader[] = [];
  const results: TrySendResult[] = [];
  let acceptedNs = 0;
  const pollTimer = createPollTimer(clock, () => {
    // First the events: a connection that retires may close now, and a delivery whose end is among
    // them is not one without an end.
    transport.flushEvents?.();
    const nextMs = leaders.tick(clock.nowNs());
    check();
    return nextMs;
  });
  const publisher =
    targetTable === null ? null : new TargetPublisher(targetTable, leaders, settings.deliveryTtlMs);
  let running = false;
  /** Deliveries queued so far, as of the last poll. */
  let queuedKnown = 0;

  function reportDelivery(
    packetId: number,
    target: Target,
    kind: Outcome["kind"],
    reason: DeliveryReason | null,
    rttUs: number,
    connectionAgeMs: number,
    resend: number,
    atNs = clock.nowNs(),
  ): void {
    if (kind === "sent") counters.deliveriesSent += 1;
    else if (kind === "acked") counters.deliveriesAcked += 1;
    else if (kind === "failed") counters.deliveriesFailed += 1;
    else counters.deliveriesDropped += 1;
    if (reason !== null) counters.reasons[reason] += 1;
    onOutcome({
      packetId,
      identity: target.identity,
      address: target.address,
      slot: target.slot,
      kind,
      reason,
      atNs,
      rttUs,
      connectionAgeMs,
      resend,
    });
  }

  /**
   * Offers the packet to leaders that did not accept it: connecting ones may queue it, and for the
   * others it is reported why there is no delivery.
   */
  function queueRest(
    packet: Packet,
    sendTargets: readonly Leader[],
    results: readonly TrySendResult[],
    nowNs: number,
  ): void {
    for (let index = 0; index < sendTargets.length; index += 1) {
      const leader = sendTargets[index];
      let result = results[index] ?? "accepted";
      if (leader === undefined || result === "accepted") continue;
      if (result === "not_connected") result = leader.queueUntilLive(packet, nowNs);
      if (result !== "accepted")
        reportDelivery(packet.id, leader.target, "dropped", result, 0, Number.NaN, 0);
    }
  }

  function accept(packet: Packet): number {
    if (!running) return 0;
    const nowNs = clock.nowNs();
    const { sendTargets } = leaders;
    let acceptedCount = 0;
    let rejection = 0;
    for (let index = 0; index < sendTargets.length; index += 1) {
      const leader = sendTargets[index];
      if (leader === undefined) continue;
      const result = leader.trySend(packet, nowNs);
      results[index] = result;
      if (result === "accepted") acceptedCount += 1;
      else if (result === "leader_saturated") rejection = ALL_FULL;
    }
    if (acceptedCount === 0) {
      counters.packetsRejected += 1;
      return rejection;
    }
    acceptedNs = nowNs;
    offeredTo = sendTargets;
    return acceptedCount;
  }

  function report(packet: Packet): void {
    const sendTargets = offeredTo;
    counters.packetsAccepted += 1;
    counters.deliveries += sendTargets.length;
    let acceptedCount = 0;
    for (let index = 0; index < sendTargets.length; index += 1) {
      const leader = sendTargets[index];
      if (leader === undefined || results[index] !== "accepted") continue;
      acceptedCount += 1;
      leader.reportSent(packet, acceptedNs);
    }
    if (acceptedCount < sendTargets.length) queueRest(packet, sendTargets, results, acceptedNs);
    pollIfQueued();
    check();
  }

  /** New queued deliveries request a poll soon. */
  function pollIfQueued(): void {
    if (counters.deliveriesQueued === queuedKnown) return;
    queuedKnown = counters.deliveriesQueued;
    pollTimer.within(POLL_FAST_MS);
  }

  /** Called after everything that may change where the native engine sends. */
  function check(): void {
    if (publisher !== null) publisher.check(running);
  }

  function resend(packet: Packet, to: ResendTo): number {
    if (!running) return 0;
    const nowNs = clock.nowNs();
    let acceptedCount = 0;
    for (const leader of leaders.sendTargets) {
      if (!leader.live || !to.wants(leader.target)) continue;
      if (!leader.takesResends) {
        counters.resendsRefused += 1;
        continue;
      }
      if (!to.mayLeave()) break;
      const result = leader.resend(packet, nowNs, to.ordinal);
      if (result === "refused") continue;
      to.accepted(leader.target, result === "queued");
      acceptedCount += 1;
    }
    counters.deliveries += acceptedCount;
    return acceptedCount;
  }

  function roomFor(to: Pick<ResendTo, "wants">): ResendRoom {
    let isWanted = false;
    for (const leader of leaders.sendTargets) {
      if (!leader.live || !to.wants(leader.target)) continue;
      if (leader.takesResends) return "room";
      isWanted = true;
    }
    return isWanted ? "full" : "none";
  }

  function recordSend(packet: Packet, sent: SendRecord, sentNs: number): void {
    const { sendTargets } = leaders;
    const nowNs = clock.nowNs();
    counters.packetsAccepted += 1;
    for (let index = 0; index < sent.count; index += 1) {
      const isOnWire = ((sent.status >>> index) & 1) === 1;
      const waits = ((sent.status >>> (16 + index)) & 1) === 1;
      if (!isOnWire && !waits) continue;
      counters.deliveries += 1;
      transport.recordSend?.(sent.peers[index] ?? 0, packet, sent.number, sentNs, !isOnWire);
    }
    // Leaders of the plan that it did not reach.
    let missing = 0;
    for (let index = 0; index < sendTargets.length; index += 1) {
      const leader = sendTargets[index];
      results[index] = "accepted";
      if (leader === undefined || leader.sentElsewhereId === packet.id) continue;
      missing += 1;
      counters.deliveries += 1;
      results[index] = running ? leader.trySend(packet, nowNs) : "not_connected";
      if (results[index] === "accepted") leader.reportSent(packet, nowNs);
    }
    if (missing > 0) queueRest(packet, sendTargets, results, nowNs);
    pollIfQueued();
  }

  const isDrained = (): boolean =>
    leaders.all().every((leader) => leader.inFlight === 0 && leader.queued === 0);

  /** Resolves when nothing is queued or in flight, or the time is up. */
  function drained(): Promise<void> {
    const untilNs = clock.nowNs() + settings.stopMs * NS_PER_MS;
    return new Promise((resolve) => {
      const check = (): void => {
        if (isDrained() || clock.nowNs() >= untilNs) resolve();
        else clock.after(STOP_POLL_MS, check);
      };
      check();
    });
  }

  if (targetTable !== null) targetTable.afterEvents = check;

  return withFastProperties({
    accept,
    report,
    resend,
    roomFor,
    recordSend,
    flushEvents() {
      transport.flushEvents?.();
    },
    useLandedShares(changed) {
      if (changed.size > 0) transport.useLandedShares?.(changed);
    },
    usePlan(plan) {
      const nowNs = clock.nowNs();
      leaders.use(plan, nowNs);
      if (!running) return;
      leaders.connect(nowNs);
      check();
      // Leader windows have moved, and connections may have been started.
      pollTimer.within(leaders.nextPollMs(nowNs));
    },
    useIdentity(identity) {
      transport.useIdentity(identity);
      counters.identityChanges += 1;
      leaders.outdate();
      pollTimer.within(POLL_FAST_MS);
    },
    get outdatedCount() {
      return leaders.all().filter((leader) => leader.outdated).length;
    },
    get liveCount() {
      return leaders.all().filter((leader) => leader.live).length;
    },
    get sendableCount() {
      return leaders.sendTargets.filter(({ live }) => live).length;
    },
    get openingCount() {
      return leaders.openingCount;
    },
    counters,
    losses: () => transport.losses?.() ?? NO_LOSSES,
    leaders: () =>
      leaders.all().map((leader) => ({
        identity: leader.identity,
        address: leader.address,
        state: leader.state,
        rttUs: leader.rttUs,
        queued: leader.queued,
        inFlight: leader.inFlight,
        failures: leader.failures,
        wanted: leader.leftNs === 0,
      })),
    async start() {
      await transport.start();
      running = true;
      pollTimer.start();
      leaders.connect(clock.nowNs());
    },
    async stop() {
      if (!running) return;
      running = false;
      check();
      await drained();
      pollTimer.stop();
      leaders.shutDown();
      await transport.stop();
      log.info(
        { deliveries: counters.deliveries, acked: counters.deliveriesAcked },
        "sender stopped",
      );
    },
  });
}
