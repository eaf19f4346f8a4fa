/**
 * Puts transactions on the wire: one copy for each leader of the plan. Hot path: `accept`.
 *
 * A packet is first offered to the live connections; only when one of them took it may others keep
 * a copy for later, so an answer of 0 or less means that nothing of it will ever be sent. Every
 * copy is told of through `onOutcome`, in part while `accept` runs: perhaps `sent`, and then
 * exactly one of acked, failed and dropped. A packet that no connection took has no copies.
 */

import type { Clock } from "../core/clock.ts";
import { NS_PER_MS } from "../core/clock.ts";
import type { DeliveryReason } from "../core/errors.ts";
import type { Outcome, Packet, Plan, Target } from "../core/flow.ts";
import { DELIVERIES_QUEUED_MAX, LEADERS_CONNECTED_MAX } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import { withFastProperties } from "../runtime/fast-object.ts";
import type { TrySendResult } from "./deliveries.ts";
import type { Identity } from "./identity.ts";
import type { LeaderState } from "./leader.ts";
import { LeaderPool, type LeaderPoolOptions, type SendTarget } from "./leader-pool.ts";
import { LeaderStatsTable } from "./leader-stats.ts";
import {
  DELIVERIES_IN_FLIGHT_MAX,
  NATIVE_DELIVERIES_IN_FLIGHT_MAX,
  RECORD_DELAY_MS_MAX,
} from "./limits.ts";
import { SendReconciler } from "./native/reconcile.ts";
import type { SendRecord } from "./native/send-record.ts";
import type { SharedTargetTable } from "./native/shared-target-table.ts";
import { createPollTimer, POLL_FAST_MS } from "./poll-timer.ts";
import { newSendCounters, type SendCounters } from "./send-counters.ts";
import { type Losses, NO_LOSSES, type Transport } from "./transport.ts";

export interface SenderDeps {
  readonly clock: Clock;
  readonly transport: Transport;
  /** Called while `accept` runs, too. Must not throw, nor call the sender. */
  readonly onOutcome: (outcome: Outcome) => void;
  readonly log: Log;
  /** A leader that took copies is not at its address any more, as it seems. Must not throw. */
  readonly onLeaderUnreachable?: () => void;
  /** Where dealings with leaders are noted; one of its own when none is given. */
  readonly leaderStats?: LeaderStatsTable;
  /** Where fronts learn what to send to; the transport's one. None where it is not given. */
  readonly targetTable?: SharedTargetTable | null;
}

export interface SenderOptions extends LeaderPoolOptions {
  /** How long `stop` waits for copies in flight. */
  readonly stopMs: number;
}

/** Where nobody tells another. SIMD-0525's step live on mainnet in 2026-09. */
const SLOT_TIME_MS = 250;

/** What differs where fronts send: their copies are known of late, and many at once. */
const WITH_INGRESS_THREADS = {
  unseenMs: RECORD_DELAY_MS_MAX,
  inFlightMax: NATIVE_DELIVERIES_IN_FLIGHT_MAX,
} as const;

/** Times are those of Anza's `tpu-client-next` where it has them (2026-11). */
export const SENDER_DEFAULTS: SenderOptions = {
  queuePerPeer: DELIVERIES_QUEUED_MAX,
  copyTtlMs: 800,
  reconnectMs: 8_000,
  reconnectMsMax: 64_000,
  handshakeMs: 3_000,
  // Twice within the 10 s after which silence ends a connection. The library pings each second,
  // which with a thousand connections is a twentieth of a processor; whether a leader answers is
  // asked before its turn all the same.
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
};

/** What can be told of one peer. */
export interface LeaderView {
  readonly identity: string;
  readonly address: string;
  readonly state: LeaderState;
  readonly rttUs: number;
  readonly queued: number;
  readonly inFlight: number;
  /** Connections in a row that ended soon. */
  readonly failures: number;
  /** Whether the plan still names it. */
  readonly wanted: boolean;
}

/** Who is to get a packet again; called while `resend` runs. */
export interface ResendTo {
  /** Which resend of the packet it is, from 1 on. */
  readonly ordinal: number;
  wants(target: Target): boolean;
  /** That leader's connection took the copy. */
  accepted(target: Target): void;
}

export interface Sender {
  /**
   * Sends a packet to the leaders of the plan. Answers how many live connections took it, now or
   * as soon as they have credit. Otherwise nothing of it is sent or kept: ALL_FULL where a
   * connection is live and has as much waiting for it as may, 0 where none takes it at all. Never
   * throws.
   */
  accept(packet: Packet): number;
  /**
   * Offers a packet once more, to those leaders of the plan that `to` wants. Takes only credit that
   * no first send waits for, and keeps nothing: a leader that cannot take it now gets no copy, and
   * nothing is told of it. Answers how many took it. Never throws.
   */
  resend(packet: Packet, to: ResendTo): number;
  /**
   * Enters a packet that a front sent at `sentNs`, as if `accept` had sent it then: its copies are
   * told of from now on, and leaders that the front did not reach get theirs. To be called within
   * 210 ms, and before `stop` for all that was sent. Never throws.
   */
  recordSend(packet: Packet, sent: SendRecord, sentNs: number): void;
  /**
   * Has all that is known of copies told now, and what fronts sent entered: for who looks at what
   * became of them. Not to be called from `onOutcome`. Never throws.
   */
  flushEvents(): void;
  /** Replaces the plan; connections are made and closed accordingly. */
  usePlan(plan: Plan): void;
  /**
   * Shows another identity to leaders: new connections carry it at once, and each open one is
   * replaced by such a one and closed when what it carries is acknowledged.
   *
   * @throws Error when it makes no certificate; the one before stays
   */
  useIdentity(identity: Identity): void;
  /** Live connections that still show the identity of before. */
  readonly outdatedCount: number;
  /** Connections that take transactions. */
  readonly warmCount: number;
  /** Those of them that the plan sends to now. */
  readonly sendableCount: number;
  /** Those of these that fronts leave to this thread, because copies wait there or did just now. */
  readonly excludedCount: number;
  readonly counters: Readonly<SendCounters>;
  /** What the engine gave up. */
  losses(): Losses;
  leaders(): readonly LeaderView[];
  /** @throws Error when the transport cannot start */
  start(): Promise<void>;
  /** Takes nothing more, waits a moment for acknowledgements, then ends every copy. */
  stop(): Promise<void>;
}

/** What `accept` answers where leaders are connected, and none has room for one more. */
export const ALL_FULL = -1;

const STOP_POLL_MS = 10;

export function createSender(deps: SenderDeps, options: Partial<SenderOptions> = {}): Sender {
  const { clock, transport, onOutcome, log } = deps;
  const shared = deps.targetTable ?? null;
  const ingressOptions = shared === null ? {} : WITH_INGRESS_THREADS;
  const settings: SenderOptions = { ...SENDER_DEFAULTS, ...ingressOptions, ...options };
  const counters = newSendCounters();
  const leaderStats = deps.leaderStats ?? new LeaderStatsTable();
  const onLeaderUnreachable = deps.onLeaderUnreachable ?? ((): void => {});
  const leaders = new LeaderPool(
    { clock, transport, counters, report, onLeaderUnreachable, leaderStats },
    settings,
  );
  /** What each leader of the plan answered to the packet at hand. */
  const results: TrySendResult[] = [];
  const pollTimer = createPollTimer(clock, () => {
    const nextMs = leaders.tick(clock.nowNs());
    check();
    return nextMs;
  });
  const reconciler =
    shared === null
      ? null
      : new SendReconciler({ clock, counters, leaders, shared, queueRest }, settings.copyTtlMs);
  let running = false;
  /** Copies that waited so far, as the ticker knows. */
  let queuedKnown = 0;

  function report(
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

  /** The leaders that did not take the packet: those still connecting may keep a copy. */
  function queueRest(
    packet: Packet,
    sendTargets: readonly SendTarget[],
    results: readonly TrySendResult[],
    nowNs: number,
  ): void {
    for (let index = 0; index < sendTargets.length; index += 1) {
      const sendTarget = sendTargets[index];
      let result = results[index] ?? "accepted";
      if (sendTarget === undefined || result === "accepted") continue;
      if (result === "not_connected")
        result = sendTarget.leader.queueUntilLive(packet, sendTarget.target, nowNs);
      if (result !== "accepted")
        report(packet.id, sendTarget.target, "dropped", result, 0, Number.NaN, 0);
    }
  }

  function accept(packet: Packet): number {
    if (!running) return 0;
    const nowNs = clock.nowNs();
    const { sendTargets } = leaders;
    let acceptedCount = 0;
    let refusal = 0;
    for (let index = 0; index < sendTargets.length; index += 1) {
      const sendTarget = sendTargets[index];
      if (sendTarget === undefined) continue;
      const result = sendTarget.leader.trySend(packet, sendTarget.target, nowNs);
      results[index] = result;
      if (result === "accepted") acceptedCount += 1;
      else if (result === "leader_saturated") refusal = ALL_FULL;
    }
    if (acceptedCount === 0) {
      counters.packetsRefused += 1;
      return refusal;
    }
    counters.packetsAccepted += 1;
    counters.deliveries += sendTargets.length;
    if (acceptedCount < sendTargets.length) queueRest(packet, sendTargets, results, nowNs);
    pollIfQueued();
    check();
    return acceptedCount;
  }

  /** What waits from now on calls for a look soon. */
  function pollIfQueued(): void {
    if (counters.deliveriesQueued === queuedKnown) return;
    queuedKnown = counters.deliveriesQueued;
    pollTimer.within(POLL_FAST_MS);
  }

  /** Whatever may have changed where fronts may send. */
  function check(): void {
    if (reconciler !== null) reconciler.check(running);
  }

  function resend(packet: Packet, to: ResendTo): number {
    if (!running) return 0;
    const nowNs = clock.nowNs();
    let acceptedCount = 0;
    for (const { leader, target } of leaders.sendTargets) {
      if (!leader.live || !to.wants(target)) continue;
      if (!leader.trySendIdle(packet, target, nowNs, to.ordinal)) continue;
      to.accepted(target);
      acceptedCount += 1;
    }
    counters.deliveries += acceptedCount;
    return acceptedCount;
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

  if (shared !== null) shared.afterDrain = check;

  return withFastProperties({
    accept,
    resend,
    recordSend(packet, sent, sentNs) {
      reconciler?.recordSend(packet, sent, sentNs, running);
      pollIfQueued();
    },
    flushEvents() {
      transport.flushEvents?.();
    },
    usePlan(plan) {
      const nowNs = clock.nowNs();
      leaders.use(plan, nowNs);
      if (!running) return;
      leaders.connect(nowNs);
      check();
      // Turns have moved, and connections may have begun.
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
    get warmCount() {
      return leaders.all().filter((leader) => leader.live).length;
    },
    get sendableCount() {
      return leaders.sendTargets.filter((sendTarget) => sendTarget.leader.live).length;
    },
    get excludedCount() {
      return reconciler?.excluded ?? 0;
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
      log.info({ copies: counters.deliveries, acked: counters.deliveriesAcked }, "sender stopped");
    },
  });
}
