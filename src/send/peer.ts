/**
 * One leader's address: its connection, and the copies that go over it. Hot path: `offer`,
 * `#progress`.
 *
 *            attempt              handshake             streams granted
 *   idle ───────────▶ connecting ───────────▶ waiting ─────────────────▶ live
 *    ▲                    │                      │                        │
 *    └────────────────────┴──────────────────────┴────────────────────────┘
 *                  ended, timed out or closed: back to idle, paced
 *
 * A peer that is `live` takes copies, and keeps them for a while when it is out of credit. Before
 * that it may keep copies that another leader's connection took as well. A live connection that
 * has grown old, or does not answer just before the leader's turn, is replaced by a second one,
 * made before the first is closed. Nothing here blocks or throws, so one peer cannot delay another.
 */

import { NS_PER_MS, NS_PER_US } from "../core/clock.ts";
import type { Packet, Target } from "../core/flow.ts";
import { LEGACY_TRANSACTION_BYTES_MAX } from "../core/limits.ts";
import { endNameOf, REACTIONS } from "./close-policy.ts";
import { Copies, type CopiesDeps, type CopiesOptions, type Offer } from "./copies.ts";
import { Link } from "./leader-connection.ts";
import type { Scorecard } from "./leader-stats.ts";
import { createTurnCheck } from "./liveness-probe.ts";
import { Pace, type PaceOptions } from "./reconnect-backoff.ts";
import { LOOK_LATE_MS, LOOK_SOON_MS } from "./ticker.ts";
import type { Ending, Transport } from "./transport.ts";

export interface PeerOptions extends PaceOptions, CopiesOptions {
  readonly handshakeMs: number;
  readonly keepAliveMs: number;
  /** Age at which a connection is replaced. */
  readonly lifetimeMs: number;
  /** How long a connection that is to be closed may wait for its acknowledgements. */
  readonly lingerMs: number;
  /** How long it waits for copies that fronts sent and nobody here knows of yet. */
  readonly unseenMs: number;
  /** Copies of one connection whose acknowledgement is awaited. */
  readonly inFlightMax: number;
}

export interface PeerDeps extends CopiesDeps {
  readonly transport: Transport;
  readonly scorecard: Scorecard;
  /** A connection became live, or a live one ended. */
  readonly onChange: () => void;
  /** A leader that took copies is not at its address any more, as it seems. */
  readonly onMissed: () => void;
}

export type PeerState = "idle" | "connecting" | "waiting" | "live";

export class Peer {
  readonly address: string;
  /** When the plan dropped this address; 0 while it is in the plan. */
  leftNs = 0;
  /** When the leader's next turn begins, as the plan has it; in the past while it lasts. */
  turnNs = 0;
  /** The leader that the plan last named for this address. */
  #identity: string;
  readonly #deps: PeerDeps;
  readonly #options: PeerOptions;
  readonly #pace: Pace;
  readonly #copies: Copies;
  readonly #check = createTurnCheck();
  /** Said by the leader: no second connection beside the one that lives. */
  #single = false;
  #link: Link | null = null;
  /** The second connection while the first is being replaced. */
  #successor: Link | null = null;
  /** A connection that takes no more copies and awaits its acknowledgements. */
  #retiring: Link | null = null;

  constructor(target: Target, deps: PeerDeps, options: PeerOptions) {
    this.address = target.address;
    this.#identity = target.identity;
    this.#deps = deps;
    this.#options = options;
    this.#pace = new Pace(options);
    this.#copies = new Copies(deps.scorecard.card(target.identity, this.address), deps, options);
  }

  get identity(): string {
    return this.#identity;
  }

  /** Leaders may share an address: from now on it is this one's turn. */
  set identity(identity: string) {
    if (identity === this.#identity) return;
    this.#identity = identity;
    this.#copies.card = this.#deps.scorecard.card(identity, this.address);
  }

  get state(): PeerState {
    const link = this.#link;
    if (link === null) return "idle";
    if (link.liveNs !== 0) return "live";
    return link.connection?.established === true ? "waiting" : "connecting";
  }

  get live(): boolean {
    return this.liveLink !== null;
  }

  /** The connection that takes copies; null: none does. */
  get liveLink(): Link | null {
    return this.#link !== null && this.#link.liveNs !== 0 ? this.#link : null;
  }

  /** Where what fronts send is entered. */
  get copies(): Copies {
    return this.#copies;
  }

  /** Connections that this peer holds, of the bound on all peers. */
  get links(): number {
    return Number(this.#link !== null) + Number(this.#successor !== null);
  }

  get rttUs(): number {
    return this.#link?.connection?.rttUs ?? 0;
  }

  get queued(): number {
    return this.#copies.queued;
  }

  get inFlight(): number {
    return (this.#link?.inFlight.size ?? 0) + (this.#retiring?.inFlight.size ?? 0);
  }

  get failures(): number {
    return this.#pace.failures;
  }

  /** Whether a connection is missing and may be attempted now. */
  mayConnect(nowNs: number): boolean {
    return this.#link === null && nowNs >= this.#pace.nextAttemptNs;
  }

  /** Whether the leader's turn is near enough for a connection, by what is known of it. */
  isDue(nowNs: number): boolean {
    const leadMs = this.#deps.scorecard.leadMs(this.#identity);
    return this.turnNs - nowNs <= leadMs * NS_PER_MS;
  }

  /** Whether the pacing of this address still has to be remembered. */
  paced(nowNs: number): boolean {
    return nowNs < this.#pace.nextAttemptNs;
  }

  connect(nowNs: number): void {
    this.#link = this.#attempt(nowNs);
  }

  /** Whether the connection is to be replaced: it is old, worn, or has the identity of before. */
  mayRecycle(nowNs: number): boolean {
    const link = this.#link;
    if (link === null || link.liveNs === 0) return false;
    if (link.outdated) return this.#mayReplace(nowNs) || this.#mayRetire(nowNs);
    const { lifetimeMs, reconnectMs } = this.#options;
    // No sooner than the leader grants one more: on a bad path it soon is worn again.
    const enoughMs = link.connection?.worn === true ? reconnectMs : lifetimeMs;
    return nowNs - link.liveNs >= enoughMs * NS_PER_MS && this.#mayReplace(nowNs);
  }

  recycle(nowNs: number): void {
    this.#deps.counters.connectionsRecycled += 1;
    if (this.#single && this.#link !== null) this.#retire(this.#link, nowNs);
    else this.#successor = this.#attempt(nowNs);
  }

  /** The edge has another identity: what is connected now is to be replaced. */
  outdate(): void {
    for (const link of [this.#link, this.#successor]) if (link !== null) link.outdated = true;
  }

  /** Whether the connection has the identity of before. */
  get outdated(): boolean {
    return this.#link?.outdated === true;
  }

  /** Writes a copy now, or keeps it while a live connection is out of credit. */
  offer(packet: Packet, target: Target, nowNs: number): Offer {
    const link = this.#link;
    if (link === null || link.liveNs === 0) return "not_connected";
    return this.#copies.offer(link, packet, target, nowNs);
  }

  /** Writes a copy only where that takes nothing from a first send: now, with credit to spare. */
  spare(packet: Packet, target: Target, nowNs: number, resend: number): boolean {
    const link = this.#link;
    if (link === null || link.liveNs === 0) return false;
    return this.#copies.spare(link, packet, target, nowNs, resend);
  }

  /** Keeps a copy until the connection that is being made is live. */
  awaitLive(packet: Packet, target: Target, nowNs: number): Offer {
    if (this.#link === null) return "not_connected";
    if (packet.bytes.length > this.#copies.bytesMax) return "stream_too_large";
    return this.#copies.keep(packet, target, nowNs, "queue_full") ? "taken" : "queue_full";
  }

  /** In how many milliseconds `tick` may have something to do. */
  nextLookMs(nowNs: number): number {
    const link = this.#link;
    const isMoving = this.#successor !== null || this.#retiring !== null || this.queued > 0;
    if (isMoving || link?.liveNs === 0 || link?.outdated === true) return LOOK_SOON_MS;
    if (link === null) return LOOK_LATE_MS;
    const pingMs = link.nextPingMs(nowNs, this.#options.keepAliveMs * NS_PER_MS);
    if (this.leftNs !== 0) return pingMs;
    const { scorecard } = this.#deps;
    const checkMs = this.#check.nextLookMs(this.turnNs, nowNs, this.#identity, scorecard);
    return Math.min(pingMs, checkMs);
  }

  /** Everything that time brings; while copies wait called a few times in each `copyTtlMs`. */
  tick(nowNs: number): void {
    const link = this.#link;
    this.#copies.expire(nowNs, link?.connection?.established === true);
    if (link !== null) this.#watch(link, nowNs);
    if (this.#successor !== null) this.#watch(this.#successor, nowNs);
    this.#checkTurn(nowNs);
    if (this.#link !== null && this.live) this.#copies.drain(this.#link, nowNs);
    const retiring = this.#retiring;
    if (retiring === null) return;
    const lingeredNs = nowNs - retiring.retiredNs;
    const { lingerMs, unseenMs } = this.#options;
    const isIdle = retiring.inFlight.size === 0 && lingeredNs >= unseenMs * NS_PER_MS;
    if (isIdle || lingeredNs >= lingerMs * NS_PER_MS) {
      this.#retiring = null;
      if (retiring.shut()) this.#copies.lose(retiring);
    }
  }

  /** Closes whatever is open: the plan has moved on. */
  leave(): void {
    for (const link of this.#takeAll()) if (link.shut()) this.#copies.lose(link);
    this.#copies.clear("not_connected");
    this.#deps.onChange();
  }

  /** Closes whatever is open: this edge is stopping. */
  shutDown(): void {
    for (const link of this.#takeAll()) if (link.shut()) this.#copies.cut(link);
    this.#copies.clear("shutting_down");
  }

  #takeAll(): readonly Link[] {
    const links = [this.#link, this.#successor, this.#retiring];
    this.#link = null;
    this.#successor = null;
    this.#retiring = null;
    return links.filter((link) => link !== null);
  }

  /** The handshake's time runs out, or the connection is kept alive. */
  #watch(link: Link, nowNs: number): void {
    const established = link.connection?.established === true;
    if (!established && nowNs - link.attemptNs >= this.#options.handshakeMs * NS_PER_MS) {
      this.#deps.counters.handshakeTimeouts += 1;
      link.connection?.close();
      this.#ended(link, { kind: "silence", code: 0 });
    } else {
      link.keepAlive(nowNs, this.#options.keepAliveMs * NS_PER_MS);
    }
  }

  /** Just before the turn the connection has to answer; one that does not is replaced. */
  #checkTurn(nowNs: number): void {
    const link = this.#link;
    if (link === null || link.liveNs === 0 || this.leftNs !== 0) return;
    const { scorecard, counters } = this.#deps;
    if (!this.#check.isSilent(link, this.turnNs, nowNs, this.#identity, scorecard)) return;
    counters.silentBeforeTurn += 1;
    this.#copies.card.silentBeforeTurn += 1;
    if (this.#mayReplace(nowNs)) this.#successor = this.#attempt(nowNs);
  }

  /** Where the leader takes no second connection, the first ends once it carries nothing. */
  #mayRetire(nowNs: number): boolean {
    const isIdle = this.#link?.inFlight.size === 0 && this.queued === 0;
    return this.#single && isIdle && this.#retiring === null && !this.paced(nowNs);
  }

  #retire(link: Link, nowNs: number): void {
    link.retiredNs = nowNs;
    this.#link = null;
    this.#retiring = link;
    this.#deps.onChange();
  }

  #mayReplace(nowNs: number): boolean {
    if (this.#single || this.#successor !== null || this.#retiring !== null) return false;
    return nowNs >= this.#pace.nextAttemptNs;
  }

  #attempt(nowNs: number): Link | null {
    this.#pace.attempted(nowNs);
    this.#deps.counters.connectionsAttempted += 1;
    this.#copies.card.attempts += 1;
    const link = new Link(nowNs, this.#options.inFlightMax);
    link.connection = this.#deps.transport.connect(this.address, {
      progress: () => this.#progress(link),
      ended: (ending) => this.#ended(link, ending),
    });
    if (link.over) return null;
    if (link.connection !== null) return link;
    // No attempt that a leader saw, but one that shows that it cannot be counted on from here.
    this.#pace.ended("local", 0, nowNs);
    this.#copies.card.end("local", false, false);
    this.#deps.counters.connectionsFailed += 1;
    return null;
  }

  #progress(link: Link): void {
    const connection = link.connection;
    if (connection === null) return;
    const nowNs = this.#deps.clock.nowNs();
    if (link.liveNs === 0) this.#advance(link, nowNs);
    this.#copies.settle(link, nowNs);
    if (link === this.#link && link.liveNs !== 0) this.#copies.drain(link, nowNs);
  }

  /** The handshake is done, or the first streams are granted. */
  #advance(link: Link, nowNs: number): void {
    const { connection } = link;
    if (connection === null) return;
    const { card, window } = this.#copies;
    const late = link.establishedNs !== 0;
    if (connection.established && !late) {
      link.establishedNs = nowNs;
      card.established((nowNs - link.attemptNs) / NS_PER_US, connection.retried);
    }
    if (!connection.admitted) return;
    link.liveNs = nowNs;
    this.#single = false;
    window.granted(connection.streamsLeft);
    card.admit(window.streamsMax, late);
    this.#deps.counters.connectionsAdmitted += 1;
    if (link === this.#successor) this.#succeed(link);
    this.#deps.onChange();
  }

  #succeed(link: Link): void {
    const old = this.#link;
    this.#successor = null;
    this.#link = link;
    if (old === null) return;
    old.retiredNs = link.liveNs;
    this.#retiring = old;
  }

  #ended(link: Link, ending: Ending): void {
    if (link.over) return;
    const nowNs = this.#deps.clock.nowNs();
    link.over = true;
    this.#noteEnd(link, ending, nowNs);
    this.#copies.lose(link);
    if (link === this.#retiring) this.#retiring = null;
    if (link === this.#successor) this.#successor = null;
    if (link !== this.#link) return;
    // A successor that is on its way takes the place, and with it the copies that wait.
    this.#link = this.#successor;
    this.#successor = null;
    if (this.#link === null && !this.mayConnect(nowNs)) this.#copies.clear("not_connected");
    this.#deps.onChange();
  }

  #noteEnd(link: Link, ending: Ending, nowNs: number): void {
    const { counters } = this.#deps;
    const { card } = this.#copies;
    const name = endNameOf(ending, link.establishedNs !== 0);
    const reaction = REACTIONS[name];
    counters.connectionsEnded += 1;
    counters[reaction.counter] += 1;
    if (link.liveNs === 0) counters.connectionsNotAdmitted += 1;
    card.end(name, link.liveNs !== 0, link.carried);
    if (card.misses(name, link.liveNs !== 0, link.carried)) this.#deps.onMissed();
    if (link !== this.#retiring) this.#pace.ended(name, link.liveNs, nowNs);
    if (reaction.single) this.#single = true;
    // It does not say which one was too large; what every leader takes is not in question.
    if (name === "invalid_stream" && link.bytesMax > LEGACY_TRANSACTION_BYTES_MAX) {
      this.#copies.bytesMax = LEGACY_TRANSACTION_BYTES_MAX;
    }
  }
}
