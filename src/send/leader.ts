/**
 * One leader address: its connection, and the deliveries sent over it. Hot path: `trySend`,
 * `#progress`.
 *
 *            attempt              handshake             streams granted
 *   idle ───────────▶ connecting ───────────▶ waiting ─────────────────▶ live
 *    ▲                    │                      │                        │
 *    └────────────────────┴──────────────────────┴────────────────────────┘
 *                  ended, timed out or closed: back to idle, with backoff
 *
 * A `live` leader accepts deliveries, and queues them for a limited time when it is out of credit.
 * In the other states it may queue deliveries that another leader's connection also accepted. A
 * live connection that reached its lifetime, or does not respond just before the leader window, is
 * replaced: the second connection opens before the first closes. Nothing here blocks or throws, so
 * one leader cannot delay another.
 */

import { NS_PER_MS, NS_PER_US } from "../core/clock.ts";
import type { Packet, Target } from "../core/flow.ts";
import { LEGACY_TRANSACTION_BYTES_MAX } from "../core/limits.ts";
import { CLOSE_POLICIES, closeReasonOf } from "./close-policy.ts";
import {
  Deliveries,
  type DeliveriesDeps,
  type DeliveriesOptions,
  type ResendResult,
  type TrySendResult,
} from "./deliveries.ts";
import { LeaderConnection } from "./leader-connection.ts";
import type { LeaderStatsTable } from "./leader-stats.ts";
import { createLivenessProbe } from "./liveness-probe.ts";
import { POLL_FAST_MS, POLL_SLOW_MS } from "./poll-timer.ts";
import { ReconnectBackoff, type ReconnectBackoffOptions } from "./reconnect-backoff.ts";
import type { CloseCause, Transport } from "./transport.ts";

export interface LeaderOptions extends ReconnectBackoffOptions, DeliveriesOptions {
  readonly handshakeMs: number;
  readonly keepAliveMs: number;
  /** Age at which a connection is replaced. */
  readonly lifetimeMs: number;
  /** How long a retiring connection may wait for its acknowledgements. */
  readonly closeTimeoutMs: number;
  /**
   * How long it waits for deliveries that the native engine made and this thread has not recorded
   * yet.
   */
  readonly unseenMs: number;
  /** Deliveries of one connection that await acknowledgement. */
  readonly inFlightMax: number;
}

export interface LeaderDeps extends DeliveriesDeps {
  readonly transport: Transport;
  readonly leaderStats: LeaderStatsTable;
  /** A connection became live, or a live one ended. */
  readonly onChange: () => void;
  /** A leader that accepted deliveries no longer responds at its address. */
  readonly onLeaderUnreachable: () => void;
}

export type LeaderState = "idle" | "connecting" | "waiting" | "live";

export class Leader {
  readonly address: string;
  /** When this address left the plan; 0 while it is in the plan. */
  leftNs = 0;
  /** When the next leader window begins, according to the plan; in the past while it lasts. */
  windowStartNs = 0;
  /** The last packet that another thread sent to it. */
  sentElsewhereId = 0;
  /** What the plan last said of this address. */
  #target: Target;
  readonly #deps: LeaderDeps;
  readonly #options: LeaderOptions;
  readonly #backoff: ReconnectBackoff;
  readonly #deliveries: Deliveries;
  readonly #probe = createLivenessProbe();
  /** Required by the leader: no second connection next to a live one. */
  #single = false;
  #connection: LeaderConnection | null = null;
  /** The second connection while the first is being replaced. */
  #successor: LeaderConnection | null = null;
  /** A connection that accepts no more deliveries and awaits its acknowledgements. */
  #retiring: LeaderConnection | null = null;

  constructor(target: Target, deps: LeaderDeps, options: LeaderOptions) {
    this.address = target.address;
    this.#target = target;
    this.#deps = deps;
    this.#options = options;
    this.#backoff = new ReconnectBackoff(options);
    this.#deliveries = new Deliveries(
      deps.leaderStats.stats(target.identity, this.address),
      deps,
      options,
    );
  }

  get identity(): string {
    return this.#target.identity;
  }

  get target(): Target {
    return this.#target;
  }

  /** Leaders may share an address: from now on this one has the leader window. */
  set target(target: Target) {
    const { identity } = this.#target;
    this.#target = target;
    if (identity !== target.identity)
      this.#deliveries.stats = this.#deps.leaderStats.stats(target.identity, this.address);
  }

  get state(): LeaderState {
    const connection = this.#connection;
    if (connection === null) return "idle";
    if (connection.liveNs !== 0) return "live";
    return connection.engineConnection?.established === true ? "waiting" : "connecting";
  }

  get live(): boolean {
    return this.liveConnection !== null;
  }

  /**
   * Whether the first attempt may still lead to a live connection soon: within the time for a
   * handshake. One that grants no streams may become live later, but is not waited for here.
   */
  isOpening(nowNs: number): boolean {
    if (this.live || this.failures > 0) return false;
    const attemptNs = this.#connection?.attemptNs ?? nowNs;
    return nowNs - attemptNs < this.#options.handshakeMs * NS_PER_MS;
  }

  /** The connection that accepts deliveries; null: none does. */
  get liveConnection(): LeaderConnection | null {
    return this.#connection !== null && this.#connection.liveNs !== 0 ? this.#connection : null;
  }

  get deliveries(): Deliveries {
    return this.#deliveries;
  }

  /** Open connections of this leader, which count towards the bound of the pool. */
  get openConnections(): number {
    return Number(this.#connection !== null) + Number(this.#successor !== null);
  }

  get rttUs(): number {
    return this.#connection?.engineConnection?.rttUs ?? 0;
  }

  get queued(): number {
    const inEngine =
      (this.#connection?.deliveries.waiting ?? 0) + (this.#retiring?.deliveries.waiting ?? 0);
    return this.#deliveries.queued + inEngine;
  }

  get inFlight(): number {
    return (this.#connection?.deliveries.onWire ?? 0) + (this.#retiring?.deliveries.onWire ?? 0);
  }

  get failures(): number {
    return this.#backoff.failures;
  }

  /** Whether a connection is missing and may be attempted now. */
  mayConnect(nowNs: number): boolean {
    return this.#connection === null && nowNs >= this.#backoff.nextAttemptNs;
  }

  /** Whether the leader window is near enough for a connection, according to its statistics. */
  isDue(nowNs: number): boolean {
    const leadMs = this.#deps.leaderStats.leadMs(this.identity);
    return this.windowStartNs - nowNs <= leadMs * NS_PER_MS;
  }

  /** Whether the backoff of this address must still be remembered. */
  inBackoff(nowNs: number): boolean {
    return nowNs < this.#backoff.nextAttemptNs;
  }

  connect(nowNs: number): void {
    this.#connection = this.#attempt(nowNs);
  }

  /** Whether the connection must be replaced: it is old, degraded, or has a previous identity. */
  mayRecycle(nowNs: number): boolean {
    const connection = this.#connection;
    if (connection === null || connection.liveNs === 0) return false;
    if (connection.outdated) return this.#mayReplace(nowNs) || this.#mayRetire(nowNs);
    const { lifetimeMs, reconnectMs } = this.#options;
    // Not before the leader grants one more: on a lossy path it soon is degraded again.
    const enoughMs = connection.engineConnection?.isDegraded === true ? reconnectMs : lifetimeMs;
    return nowNs - connection.liveNs >= enoughMs * NS_PER_MS && this.#mayReplace(nowNs);
  }

  recycle(nowNs: number): void {
    this.#deps.counters.connectionsRecycled += 1;
    if (this.#single && this.#connection !== null) this.#retire(this.#connection, nowNs);
    else this.#successor = this.#attempt(nowNs);
  }

  /** The identity of this edge changed: the current connection must be replaced. */
  outdate(): void {
    for (const connection of [this.#connection, this.#successor])
      if (connection !== null) connection.outdated = true;
  }

  /** Whether the connection has a previous identity. */
  get outdated(): boolean {
    return this.#connection?.outdated === true;
  }

  /** As `Deliveries.trySend`. */
  trySend(packet: Packet, nowNs: number): TrySendResult {
    const connection = this.#connection;
    if (connection === null || connection.liveNs === 0) return "not_connected";
    return this.#deliveries.trySend(connection, packet, this.#target, nowNs);
  }

  /** Reports the delivery that `trySend` accepted at `nowNs`. */
  reportSent(packet: Packet, nowNs: number): void {
    if (this.#connection !== null)
      this.#deliveries.reportSent(this.#connection, packet, this.#target, nowNs);
  }

  /** As `Deliveries.takesResends`. */
  get takesResends(): boolean {
    return this.#deliveries.takesResends;
  }

  /** As `Deliveries.resend`. */
  resend(packet: Packet, nowNs: number, resend: number): ResendResult {
    const connection = this.#connection;
    if (connection === null || connection.liveNs === 0) return "refused";
    return this.#deliveries.resend(connection, packet, this.#target, nowNs, resend);
  }

  /** Queues a delivery until the connection that is being opened is live. */
  queueUntilLive(packet: Packet, nowNs: number): TrySendResult {
    if (this.#connection === null) return "not_connected";
    if (packet.bytes.length > this.#deliveries.bytesMax) return "stream_too_large";
    return this.#deliveries.keep(packet, this.#target, nowNs, "queue_full")
      ? "accepted"
      : "queue_full";
  }

  /** Milliseconds until `tick` may have work. */
  nextPollMs(nowNs: number): number {
    const connection = this.#connection;
    const isMoving =
      this.#successor !== null || this.#retiring !== null || this.#deliveries.queued > 0;
    if (isMoving || connection?.liveNs === 0 || connection?.outdated === true) return POLL_FAST_MS;
    if (connection === null) return POLL_SLOW_MS;
    const pingMs = connection.nextPingMs(nowNs, this.#options.keepAliveMs * NS_PER_MS);
    if (this.leftNs !== 0) return pingMs;
    const { leaderStats } = this.#deps;
    const checkMs = this.#probe.nextPollMs(this.windowStartNs, nowNs, this.identity, leaderStats);
    return Math.min(pingMs, checkMs);
  }

  /**
   * Runs all time-driven work; called several times per `deliveryTtlMs` while some are queued, when
   * all events are read.
   */
  tick(nowNs: number): void {
    const connection = this.#connection;
    this.#deliveries.expire(nowNs, connection?.engineConnection?.established === true);
    if (connection !== null) this.#watch(connection, nowNs);
    if (this.#successor !== null) this.#watch(this.#successor, nowNs);
    for (const each of [this.#connection, this.#retiring])
      if (each !== null) this.#deliveries.endUnreported(each, nowNs);
    this.#probeLiveness(nowNs);
    if (this.#connection !== null && this.live) this.#deliveries.drain(this.#connection, nowNs);
    const retiring = this.#retiring;
    if (retiring === null) return;
    const closingNs = nowNs - retiring.retiredNs;
    const { closeTimeoutMs, unseenMs } = this.#options;
    const isIdle = retiring.pending === 0 && closingNs >= unseenMs * NS_PER_MS;
    if (isIdle || closingNs >= closeTimeoutMs * NS_PER_MS) {
      this.#retiring = null;
      if (retiring.shut()) this.#deliveries.lose(retiring);
    }
  }

  /** Closes all connections: the address left the plan. */
  leave(): void {
    for (const connection of this.#takeAll())
      if (connection.shut()) this.#deliveries.lose(connection);
    this.#deliveries.clear("not_connected");
    this.#deps.onChange();
  }

  /** Closes all connections: this edge stops. */
  shutDown(): void {
    for (const connection of this.#takeAll())
      if (connection.shut()) this.#deliveries.cut(connection);
    this.#deliveries.clear("shutting_down");
  }

  #takeAll(): readonly LeaderConnection[] {
    const openConnections = [this.#connection, this.#successor, this.#retiring];
    this.#connection = null;
    this.#successor = null;
    this.#retiring = null;
    return openConnections.filter((connection) => connection !== null);
  }

  /** Ends the connection on a handshake timeout, or keeps it alive. */
  #watch(connection: LeaderConnection, nowNs: number): void {
    const established = connection.engineConnection?.established === true;
    if (!established && nowNs - connection.attemptNs >= this.#options.handshakeMs * NS_PER_MS) {
      this.#deps.counters.handshakeTimeouts += 1;
      connection.engineConnection?.close();
      this.#ended(connection, { kind: "silence", code: 0 });
    } else {
      connection.keepAlive(nowNs, this.#options.keepAliveMs * NS_PER_MS);
    }
  }

  /** Probes the connection just before the leader window and replaces it if it does not respond. */
  #probeLiveness(nowNs: number): void {
    const connection = this.#connection;
    if (connection === null || connection.liveNs === 0 || this.leftNs !== 0) return;
    const { leaderStats, counters } = this.#deps;
    if (
      !this.#probe.isUnresponsive(connection, this.windowStartNs, nowNs, this.identity, leaderStats)
    )
      return;
    counters.silentBeforeWindow += 1;
    this.#deliveries.stats.silentBeforeWindow += 1;
    if (this.#mayReplace(nowNs)) this.#successor = this.#attempt(nowNs);
  }

  /** Where the leader allows no second connection, the first ends once it is idle. */
  #mayRetire(nowNs: number): boolean {
    const isIdle = this.#connection?.pending === 0 && this.queued === 0;
    return this.#single && isIdle && this.#retiring === null && !this.inBackoff(nowNs);
  }

  #retire(connection: LeaderConnection, nowNs: number): void {
    connection.retiredNs = nowNs;
    this.#connection = null;
    this.#retiring = connection;
    this.#deps.onChange();
  }

  #mayReplace(nowNs: number): boolean {
    if (this.#single || this.#successor !== null || this.#retiring !== null) return false;
    return nowNs >= this.#backoff.nextAttemptNs;
  }

  #attempt(nowNs: number): LeaderConnection | null {
    this.#backoff.recordAttempt(nowNs);
    this.#deps.counters.connectionsAttempted += 1;
    this.#deliveries.stats.attempts += 1;
    const { inFlightMax, queuePerLeader } = this.#options;
    // The engine may hold as many again for the thread that drives the connection.
    const connection = new LeaderConnection(nowNs, inFlightMax, 2 * queuePerLeader);
    connection.engineConnection = this.#deps.transport.connect(this.address, {
      progress: () => this.#progress(connection),
      result: (delivery, result, atNs) =>
        this.#deliveries.result(connection, delivery, result, atNs),
      sentElsewhere: (packet, delivery, sentNs, waits) => {
        this.sentElsewhereId = packet.id;
        const target = this.#target;
        this.#deliveries.sentElsewhere(connection, packet, target, delivery, sentNs, waits);
      },
      ended: (cause) => this.#ended(connection, cause),
    });
    if (connection.over) return null;
    if (connection.engineConnection !== null) return connection;
    // No leader saw this attempt, but it shows that the leader cannot be reached from here.
    this.#backoff.ended("local", 0, false, nowNs);
    this.#deliveries.stats.end("local", false, false);
    this.#deps.counters.connectionsFailed += 1;
    return null;
  }

  #progress(connection: LeaderConnection): void {
    const engineConnection = connection.engineConnection;
    if (engineConnection === null) return;
    const nowNs = this.#deps.clock.nowNs();
    if (connection.liveNs === 0) this.#advance(connection, nowNs);
    if (engineConnection.rttUs > 0) this.#deliveries.stats.rttUs = engineConnection.rttUs;
    if (connection === this.#connection && connection.liveNs !== 0)
      this.#deliveries.drain(connection, nowNs);
  }

  /** The handshake completed, or the first streams are granted. */
  #advance(connection: LeaderConnection, nowNs: number): void {
    const { engineConnection } = connection;
    if (engineConnection === null) return;
    const { stats, window } = this.#deliveries;
    const late = connection.establishedNs !== 0;
    if (engineConnection.established && !late) {
      connection.establishedNs = nowNs;
      stats.established((nowNs - connection.attemptNs) / NS_PER_US, engineConnection.retried);
    }
    if (!engineConnection.admitted) return;
    connection.liveNs = nowNs;
    this.#single = false;
    window.setCredit(engineConnection.streamsLeft);
    stats.admit(window.streamsMax, late);
    this.#deps.counters.connectionsAdmitted += 1;
    if (connection === this.#successor) this.#succeed(connection);
    this.#deps.onChange();
  }

  #succeed(connection: LeaderConnection): void {
    const old = this.#connection;
    this.#successor = null;
    this.#connection = connection;
    if (old === null) return;
    old.retiredNs = connection.liveNs;
    this.#retiring = old;
  }

  #ended(connection: LeaderConnection, cause: CloseCause): void {
    if (connection.over) return;
    const nowNs = this.#deps.clock.nowNs();
    connection.over = true;
    this.#recordClose(connection, cause, nowNs);
    this.#deliveries.lose(connection);
    if (connection === this.#retiring) this.#retiring = null;
    if (connection === this.#successor) this.#successor = null;
    if (connection !== this.#connection) return;
    // A successor that is being opened takes over, including the queued deliveries.
    this.#connection = this.#successor;
    this.#successor = null;
    if (this.#connection === null && !this.mayConnect(nowNs))
      this.#deliveries.clear("not_connected");
    this.#deps.onChange();
  }

  #recordClose(connection: LeaderConnection, cause: CloseCause, nowNs: number): void {
    const { counters } = this.#deps;
    const { stats } = this.#deliveries;
    const name = closeReasonOf(cause, connection.establishedNs !== 0);
    const policy = CLOSE_POLICIES[name];
    counters.connectionsEnded += 1;
    counters.ends[name] += 1;
    if (connection.liveNs === 0) counters.connectionsNotAdmitted += 1;
    stats.end(name, connection.liveNs !== 0, connection.carried);
    if (stats.markUnreachable(name, connection.liveNs !== 0, connection.carried))
      this.#deps.onLeaderUnreachable();
    if (connection !== this.#retiring)
      this.#backoff.ended(name, connection.liveNs, connection.carried, nowNs);
    if (policy.single) this.#single = true;
    // The leader does not report which one was too large; the legacy size is always accepted.
    if (name === "invalid_stream" && connection.bytesMax > LEGACY_TRANSACTION_BYTES_MAX) {
      this.#deliveries.bytesMax = LEGACY_TRANSACTION_BYTES_MAX;
    }
  }
}
