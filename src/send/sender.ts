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
import type { CopyReason } from "../core/errors.ts";
import type { Outcome, Packet, Plan, Target } from "../core/flow.ts";
import { COPIES_QUEUED_MAX, PEER_CONNECTIONS_MAX } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import { quick } from "../runtime/fast-object.ts";
import type { Offer } from "./copies.ts";
import type { Identity } from "./identity.ts";
import { Scorecard } from "./leader-stats.ts";
import { ADOPTION_MS_MAX, COPIES_IN_FLIGHT_MAX, NATIVE_COPIES_IN_FLIGHT_MAX } from "./limits.ts";
import { Adoption } from "./native/reconcile.ts";
import type { FrontSend } from "./native/send-record.ts";
import type { SharedRoutes } from "./native/shared-route-table.ts";
import type { PeerState } from "./peer.ts";
import { Peers, type PeersOptions, type Route } from "./peers.ts";
import { newSendCounters, type SendCounters } from "./send-counters.ts";
import { createTicker, LOOK_SOON_MS } from "./ticker.ts";
import { type Losses, NO_LOSSES, type Transport } from "./transport.ts";

export interface SenderDeps {
  readonly clock: Clock;
  readonly transport: Transport;
  /** Called while `accept` runs, too. Must not throw, nor call the sender. */
  readonly onOutcome: (outcome: Outcome) => void;
  readonly log: Log;
  /** A leader that took copies is not at its address any more, as it seems. Must not throw. */
  readonly onMissed?: () => void;
  /** Where dealings with leaders are noted; one of its own when none is given. */
  readonly scorecard?: Scorecard;
  /** Where fronts learn what to send to; the transport's one. None where it is not given. */
  readonly routes?: SharedRoutes | null;
}

export interface SenderOptions extends PeersOptions {
  /** How long `stop` waits for copies in flight. */
  readonly stopMs: number;
}

/** Where nobody tells another. SIMD-0525's step live on mainnet in 2026-09. */
const SLOT_TIME_MS = 250;

/** What differs where fronts send: their copies are known of late, and many at once. */
const WITH_FRONTS = {
  unseenMs: ADOPTION_MS_MAX,
  inFlightMax: NATIVE_COPIES_IN_FLIGHT_MAX,
} as const;

/** Times are those of Anza's `tpu-client-next` where it has them (2026-11). */
export const SENDER_DEFAULTS: SenderOptions = {
  queuePerPeer: COPIES_QUEUED_MAX,
  copyTtlMs: 800,
  reconnectMs: 8_000,
  reconnectMsMax: 64_000,
  handshakeMs: 3_000,
  // Twice within the 10 s after which silence ends a connection. The library pings each second,
  // which with a thousand connections is a twentieth of a processor; whether a leader answers is
  // asked before its turn all the same.
  keepAliveMs: 4_000,
  lifetimeMs: 15 * 60_000,
  lingerMs: 2_000,
  unseenMs: 0,
  inFlightMax: COPIES_IN_FLIGHT_MAX,
  leaveGraceMs: 2_000,
  connectionsMax: PEER_CONNECTIONS_MAX,
  stopMs: 500,
  random: Math.random,
  slotTimeMs: () => SLOT_TIME_MS,
  stakeShareOf: () => 0,
};

/** What can be told of one peer. */
export interface PeerView {
  readonly identity: string;
  readonly address: string;
  readonly state: PeerState;
  readonly rttUs: number;
  readonly queued: number;
  readonly inFlight: number;
  /** Connections in a row that ended soon. */
  readonly failures: number;
  /** Whether the plan still names it. */
  readonly wanted: boolean;
}

/** Who is to get a packet again; called while `again` runs. */
export interface ResendTo {
  /** Which resend of the packet it is, from 1 on. */
  readonly ordinal: number;
  wants(target: Target): boolean;
  /** That leader's connection took the copy. */
  took(target: Target): void;
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
  again(packet: Packet, to: ResendTo): number;
  /**
   * Enters a packet that a front sent at `sentNs`, as if `accept` had sent it then: its copies are
   * told of from now on, and leaders that the front did not reach get theirs. To be called within
   * 210 ms, and before `stop` for all that was sent. Never throws.
   */
  adopt(packet: Packet, sent: FrontSend, sentNs: number): void;
  /**
   * Has all that is known of copies told now, and what fronts sent entered: for who looks at what
   * became of them. Not to be called from `onOutcome`. Never throws.
   */
  settle(): void;
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
  readonly leftOutCount: number;
  readonly counters: Readonly<SendCounters>;
  /** What the engine gave up. */
  losses(): Losses;
  peers(): readonly PeerView[];
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
  const shared = deps.routes ?? null;
  const fronts = shared === null ? {} : WITH_FRONTS;
  const settings: SenderOptions = { ...SENDER_DEFAULTS, ...fronts, ...options };
  const counters = newSendCounters();
  const scorecard = deps.scorecard ?? new Scorecard();
  const onMissed = deps.onMissed ?? ((): void => {});
  const peers = new Peers({ clock, transport, counters, report, onMissed, scorecard }, settings);
  /** What each leader of the plan answered to the packet at hand. */
  const offers: Offer[] = [];
  const ticker = createTicker(clock, () => {
    const nextMs = peers.tick(clock.nowNs());
    look();
    return nextMs;
  });
  const adoption =
    shared === null
      ? null
      : new Adoption({ clock, counters, peers, shared, placeRest }, settings.copyTtlMs);
  let running = false;
  /** Copies that waited so far, as the ticker knows. */
  let queuedKnown = 0;

  function report(
    packetId: number,
    target: Target,
    kind: Outcome["kind"],
    reason: CopyReason | null,
    rttUs: number,
    connectionAgeMs: number,
    resend: number,
    atNs = clock.nowNs(),
  ): void {
    if (kind === "sent") counters.copiesSent += 1;
    else if (kind === "acked") counters.copiesAcked += 1;
    else if (kind === "failed") counters.copiesFailed += 1;
    else counters.copiesDropped += 1;
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
  function placeRest(
    packet: Packet,
    routes: readonly Route[],
    offers: readonly Offer[],
    nowNs: number,
  ): void {
    for (let index = 0; index < routes.length; index += 1) {
      const route = routes[index];
      let offer = offers[index] ?? "taken";
      if (route === undefined || offer === "taken") continue;
      if (offer === "not_connected") offer = route.peer.awaitLive(packet, route.target, nowNs);
      if (offer !== "taken") report(packet.id, route.target, "dropped", offer, 0, Number.NaN, 0);
    }
  }

  function accept(packet: Packet): number {
    if (!running) return 0;
    const nowNs = clock.nowNs();
    const { routes } = peers;
    let taken = 0;
    let refusal = 0;
    for (let index = 0; index < routes.length; index += 1) {
      const route = routes[index];
      if (route === undefined) continue;
      const offer = route.peer.offer(packet, route.target, nowNs);
      offers[index] = offer;
      if (offer === "taken") taken += 1;
      else if (offer === "leader_saturated") refusal = ALL_FULL;
    }
    if (taken === 0) {
      counters.packetsRefused += 1;
      return refusal;
    }
    counters.packetsTaken += 1;
    counters.copies += routes.length;
    if (taken < routes.length) placeRest(packet, routes, offers, nowNs);
    noteQueued();
    look();
    return taken;
  }

  /** What waits from now on calls for a look soon. */
  function noteQueued(): void {
    if (counters.copiesQueued === queuedKnown) return;
    queuedKnown = counters.copiesQueued;
    ticker.within(LOOK_SOON_MS);
  }

  /** Whatever may have changed where fronts may send. */
  function look(): void {
    if (adoption !== null) adoption.look(running);
  }

  function again(packet: Packet, to: ResendTo): number {
    if (!running) return 0;
    const nowNs = clock.nowNs();
    let taken = 0;
    for (const { peer, target } of peers.routes) {
      if (!peer.live || !to.wants(target)) continue;
      if (!peer.spare(packet, target, nowNs, to.ordinal)) continue;
      to.took(target);
      taken += 1;
    }
    counters.copies += taken;
    return taken;
  }

  const isQuiet = (): boolean =>
    peers.all().every((peer) => peer.inFlight === 0 && peer.queued === 0);

  /** Resolves when nothing is queued or in flight, or the time is up. */
  function quiet(): Promise<void> {
    const untilNs = clock.nowNs() + settings.stopMs * NS_PER_MS;
    return new Promise((resolve) => {
      const look = (): void => {
        if (isQuiet() || clock.nowNs() >= untilNs) resolve();
        else clock.after(STOP_POLL_MS, look);
      };
      look();
    });
  }

  if (shared !== null) shared.afterDrain = look;

  return quick({
    accept,
    again,
    adopt(packet, sent, sentNs) {
      adoption?.adopt(packet, sent, sentNs, running);
      noteQueued();
    },
    settle() {
      transport.settle?.();
    },
    usePlan(plan) {
      const nowNs = clock.nowNs();
      peers.use(plan, nowNs);
      if (!running) return;
      peers.connect(nowNs);
      look();
      // Turns have moved, and connections may have begun.
      ticker.within(peers.nextLookMs(nowNs));
    },
    useIdentity(identity) {
      transport.useIdentity(identity);
      counters.identityChanges += 1;
      peers.outdate();
      ticker.within(LOOK_SOON_MS);
    },
    get outdatedCount() {
      return peers.all().filter((peer) => peer.outdated).length;
    },
    get warmCount() {
      return peers.all().filter((peer) => peer.live).length;
    },
    get sendableCount() {
      return peers.routes.filter((route) => route.peer.live).length;
    },
    get leftOutCount() {
      return adoption?.leftOut ?? 0;
    },
    counters,
    losses: () => transport.losses?.() ?? NO_LOSSES,
    peers: () =>
      peers.all().map((peer) => ({
        identity: peer.identity,
        address: peer.address,
        state: peer.state,
        rttUs: peer.rttUs,
        queued: peer.queued,
        inFlight: peer.inFlight,
        failures: peer.failures,
        wanted: peer.leftNs === 0,
      })),
    async start() {
      await transport.start();
      running = true;
      ticker.start();
      peers.connect(clock.nowNs());
    },
    async stop() {
      if (!running) return;
      running = false;
      look();
      await quiet();
      ticker.stop();
      peers.shutDown();
      await transport.stop();
      log.info({ copies: counters.copies, acked: counters.copiesAcked }, "sender stopped");
    },
  });
}
