/**
 * One leader's address: its connection, the copies that wait for it and those in flight. Hot path:
 * `offer`, `#settle`, `#drain`.
 *
 *            attempt              handshake             streams granted
 *   idle ───────────▶ connecting ───────────▶ waiting ─────────────────▶ live
 *    ▲                    │                      │                        │
 *    └────────────────────┴──────────────────────┴────────────────────────┘
 *                  ended, timed out or closed: back to idle, paced
 *
 * A peer that is `live` takes copies, and keeps them for a while when it is out of credit. Before
 * that it may keep copies that another leader's connection took as well. A live connection that
 * has grown old is replaced by a second one, made before the first is closed. Nothing here blocks
 * or throws, so one peer cannot delay another.
 */

import { type Clock, NS_PER_MS } from "../core/clock.ts";
import { COPY_REASONS, type CopyReason } from "../core/errors.ts";
import type { Outcome, Packet, Target } from "../core/flow.ts";
import { COPIES_IN_FLIGHT_MAX, RESENDS_IN_FLIGHT_MAX } from "../core/limits.ts";
import { Link } from "./link.ts";
import { Pace, type PaceOptions } from "./pace.ts";
import { type FlyingCopy, Waiting, type WaitingCopy } from "./rings.ts";
import type { SendCounters } from "./send-counters.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  DROPPED,
  type Ending,
  type Fate,
  STOPPED,
  TOO_LARGE,
  type Transport,
} from "./transport.ts";

/** As the engines number them. The keys of a literal are its own names. */
const DROP_REASONS = Object.keys(COPY_REASONS) as readonly CopyReason[];

export interface PeerOptions extends PaceOptions {
  readonly queuePerPeer: number;
  readonly copyTtlMs: number;
  readonly handshakeMs: number;
  readonly keepAliveMs: number;
  /** Age at which a connection is replaced. */
  readonly lifetimeMs: number;
  /** How long a connection that is to be closed may wait for its acknowledgements. */
  readonly lingerMs: number;
}

/** Tells what became of a copy. */
export type ReportCopy = (
  packetId: number,
  target: Target,
  kind: Outcome["kind"],
  reason: CopyReason | null,
  rttUs: number,
  connectionAgeMs: number,
) => void;

export interface PeerDeps {
  readonly clock: Clock;
  readonly transport: Transport;
  readonly counters: SendCounters;
  readonly report: ReportCopy;
}

export type PeerState = "idle" | "connecting" | "waiting" | "live";

/** Answers of `offer`: taken, or the reason why not. */
export type Offer = "taken" | "queue_full" | "stream_too_large" | "not_connected";

export class Peer {
  readonly address: string;
  /** The leader that the plan last named for this address. */
  identity: string;
  /** When the plan dropped this address; 0 while it is in the plan. */
  leftNs = 0;
  readonly #deps: PeerDeps;
  readonly #options: PeerOptions;
  readonly #pace: Pace;
  readonly #waiting: Waiting;
  // Made once, so that settling a connection's copies makes no closure.
  readonly #onWire: (copy: FlyingCopy) => void;
  readonly #settled: (copy: FlyingCopy, fate: Fate) => void;
  readonly #lost: (copy: FlyingCopy) => void;
  #link: Link | null = null;
  /** The second connection while the first is being replaced. */
  #successor: Link | null = null;
  /** A connection that takes no more copies and awaits its acknowledgements. */
  #retiring: Link | null = null;

  constructor(target: Target, deps: PeerDeps, options: PeerOptions) {
    this.address = target.address;
    this.identity = target.identity;
    this.#deps = deps;
    this.#options = options;
    this.#pace = new Pace(options);
    this.#waiting = new Waiting(options.queuePerPeer);
    const { report } = deps;
    this.#onWire = ({ packetId, target, ageMs }) =>
      report(packetId, target, "sent", null, this.rttUs, ageMs);
    this.#settled = ({ packetId, target, ageMs }, fate) => {
      const { rttUs } = this;
      if (fate === ACKED) report(packetId, target, "acked", null, rttUs, ageMs);
      else if (fate === STOPPED) report(packetId, target, "failed", "stream_stopped", rttUs, ageMs);
      else report(packetId, target, "dropped", DROP_REASONS[fate - DROPPED] ?? "expired", 0, ageMs);
    };
    this.#lost = ({ packetId, target, sent, ageMs }) => {
      if (sent) report(packetId, target, "failed", "connection_lost", 0, ageMs);
      else report(packetId, target, "dropped", "not_connected", 0, ageMs);
    };
  }

  get state(): PeerState {
    const link = this.#link;
    if (link === null) return "idle";
    if (link.liveNs !== 0) return "live";
    return link.connection?.established === true ? "waiting" : "connecting";
  }

  get live(): boolean {
    return this.#link !== null && this.#link.liveNs !== 0;
  }

  /** Connections that this peer holds, of the bound on all peers. */
  get links(): number {
    return Number(this.#link !== null) + Number(this.#successor !== null);
  }

  get rttUs(): number {
    return this.#link?.connection?.rttUs ?? 0;
  }

  get queued(): number {
    return this.#waiting.size;
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

  /** Whether the pacing of this address still has to be remembered. */
  paced(nowNs: number): boolean {
    return nowNs < this.#pace.nextAttemptNs;
  }

  connect(nowNs: number): void {
    this.#link = this.#attempt(nowNs);
  }

  /** Whether the connection is old enough to be replaced. */
  mayRecycle(nowNs: number): boolean {
    if (this.#successor !== null || this.#retiring !== null) return false;
    const liveNs = this.#link?.liveNs ?? 0;
    const isOld = liveNs !== 0 && nowNs - liveNs >= this.#options.lifetimeMs * NS_PER_MS;
    return isOld && nowNs >= this.#pace.nextAttemptNs;
  }

  recycle(nowNs: number): void {
    this.#deps.counters.connectionsRecycled += 1;
    this.#successor = this.#attempt(nowNs);
  }

  /** Writes a copy now, or keeps it while a live connection is out of credit. */
  offer(packet: Packet, target: Target, nowNs: number): Offer {
    const link = this.#link;
    if (link === null || link.liveNs === 0) return "not_connected";
    if (this.#waiting.size === 0) {
      const stream = link.send(packet.bytes, nowNs);
      if (stream >= 0) {
        this.#sent(link, packet.id, target, stream, nowNs);
        return "taken";
      }
      if (stream === CLOSED) return "not_connected";
      if (stream === TOO_LARGE) return "stream_too_large";
    }
    return this.#keep(packet, target, nowNs) ? "taken" : "queue_full";
  }

  /** Writes a copy only where that takes nothing from a first send: now, with credit to spare. */
  spare(packet: Packet, target: Target, nowNs: number): boolean {
    const link = this.#link;
    if (link === null || link.liveNs === 0 || this.#waiting.size > 0) return false;
    if (link.inFlight.size >= RESENDS_IN_FLIGHT_MAX) return false;
    const stream = link.send(packet.bytes, nowNs);
    if (stream < 0) return false;
    this.#sent(link, packet.id, target, stream, nowNs);
    return true;
  }

  /** Keeps a copy until the connection that is being made is live. */
  awaitLive(packet: Packet, target: Target, nowNs: number): Offer {
    if (this.#link === null) return "not_connected";
    return this.#keep(packet, target, nowNs) ? "taken" : "queue_full";
  }

  /** Everything that time brings; called a few times in each `copyTtlMs`. */
  tick(nowNs: number): void {
    this.#expire(nowNs);
    for (const link of [this.#link, this.#successor]) {
      if (link === null) continue;
      const ageNs = nowNs - link.attemptNs;
      const established = link.connection?.established === true;
      if (!established && ageNs >= this.#options.handshakeMs * NS_PER_MS) {
        this.#deps.counters.handshakeTimeouts += 1;
        link.connection?.close();
        this.#ended(link, { kind: "silence", code: 0 });
      } else {
        link.keepAlive(nowNs, this.#options.keepAliveMs * NS_PER_MS);
      }
    }
    const retiring = this.#retiring;
    if (retiring === null) return;
    const lingeredNs = nowNs - retiring.retiredNs;
    if (retiring.inFlight.size === 0 || lingeredNs >= this.#options.lingerMs * NS_PER_MS) {
      this.#retiring = null;
      this.#close(retiring, this.#lost);
    }
  }

  /** Closes whatever is open: the plan has moved on. */
  leave(): void {
    this.#closeAll(this.#lost, "not_connected");
  }

  /** Closes whatever is open: this edge is stopping. */
  shutDown(): void {
    const { report } = this.#deps;
    const failed = (copy: FlyingCopy): void => {
      const kind = copy.sent ? "failed" : "dropped";
      report(copy.packetId, copy.target, kind, "shutting_down", 0, copy.ageMs);
    };
    this.#closeAll(failed, "shutting_down");
  }

  #closeAll(failed: (copy: FlyingCopy) => void, reason: CopyReason): void {
    const links = [this.#link, this.#successor, this.#retiring];
    this.#link = null;
    this.#successor = null;
    this.#retiring = null;
    for (const link of links) if (link !== null) this.#close(link, failed);
    this.#dropWaiting(reason);
  }

  #attempt(nowNs: number): Link | null {
    this.#pace.attempted(nowNs);
    this.#deps.counters.connectionsAttempted += 1;
    const link = new Link(nowNs, COPIES_IN_FLIGHT_MAX);
    link.connection = this.#deps.transport.connect(this.address, {
      progress: () => this.#progress(link),
      ended: (ending) => this.#ended(link, ending),
    });
    if (link.over) return null;
    if (link.connection !== null) return link;
    this.#pace.ended({ kind: "local", code: 0 }, 0, nowNs);
    this.#deps.counters.connectionsFailed += 1;
    return null;
  }

  #progress(link: Link): void {
    const connection = link.connection;
    if (connection === null) return;
    if (link.liveNs === 0 && connection.admitted) {
      link.liveNs = this.#deps.clock.nowNs();
      this.#deps.counters.connectionsAdmitted += 1;
      if (link === this.#successor) this.#succeed(link);
    }
    link.settle(this.#onWire, this.#settled);
    if (link === this.#link && link.liveNs !== 0) this.#drain(link);
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
    this.#countEnding(ending);
    if (link.liveNs === 0) this.#deps.counters.connectionsNotAdmitted += 1;
    if (link !== this.#retiring) this.#pace.ended(ending, link.liveNs, nowNs);
    link.failAll(this.#lost);
    if (link === this.#retiring) this.#retiring = null;
    if (link === this.#successor) this.#successor = null;
    if (link !== this.#link) return;
    // A successor that is on its way takes the place, and with it the copies that wait.
    this.#link = this.#successor;
    this.#successor = null;
    if (this.#link === null && !this.mayConnect(nowNs)) this.#dropWaiting("not_connected");
  }

  #countEnding(ending: Ending): void {
    const counters = this.#deps.counters;
    counters.connectionsEnded += 1;
    if (ending.kind === "silence") counters.endedSilent += 1;
    else if (ending.kind === "local") counters.endedLocal += 1;
    else if (ending.kind === "transport") counters.endedTransport += 1;
    else if (ending.code === 1) counters.endedDropped += 1;
    else if (ending.code === 2) counters.endedDisallowed += 1;
    else if (ending.code === 4) counters.endedTooMany += 1;
    else if (ending.code === 5) counters.endedInvalidStream += 1;
    else counters.endedOtherCode += 1;
  }

  /** `givenNs` is when this peer was given the copy. */
  #sent(link: Link, packetId: number, target: Target, stream: number, givenNs: number): void {
    const onWire = !link.waits(stream);
    const ageMs = (givenNs - link.liveNs) / NS_PER_MS;
    if (!link.inFlight.push(packetId, target, stream, onWire, ageMs)) {
      const oldest = link.inFlight.oldest();
      if (oldest !== null) this.#end(oldest, "failed", "too_many_in_flight");
      link.inFlight.drop();
      link.inFlight.push(packetId, target, stream, onWire, ageMs);
    }
    if (!onWire) return;
    const rttUs = link.connection?.rttUs ?? 0;
    this.#deps.report(packetId, target, "sent", null, rttUs, ageMs);
  }

  #keep(packet: Packet, target: Target, nowNs: number): boolean {
    if (!this.#waiting.push(packet.id, target, packet.bytes, nowNs)) return false;
    this.#deps.counters.copiesQueued += 1;
    return true;
  }

  /** Sends what waits, as far as the credit goes. */
  #drain(link: Link): void {
    const nowNs = this.#deps.clock.nowNs();
    this.#expire(nowNs);
    for (let row = this.#waiting.oldest(); row !== null; row = this.#waiting.oldest()) {
      const stream = link.send(row.bytes, nowNs);
      if (stream === BLOCKED || stream === CLOSED) return;
      if (stream === TOO_LARGE) this.#end(row, "dropped", "stream_too_large");
      else this.#sent(link, row.packetId, row.target, stream, row.sinceNs);
      this.#waiting.drop();
    }
  }

  #expire(nowNs: number): void {
    const bornNs = nowNs - this.#options.copyTtlMs * NS_PER_MS;
    // Out of credit is the leader's doing; anything else is a connection that came too late.
    const saturated = this.#link?.connection?.established === true;
    const reason: CopyReason = saturated ? "leader_saturated" : "expired";
    for (let row = this.#waiting.oldest(); row !== null; row = this.#waiting.oldest()) {
      if (row.sinceNs > bornNs) return;
      this.#end(row, "dropped", reason);
      this.#waiting.drop();
    }
  }

  #end(copy: FlyingCopy | WaitingCopy, kind: "failed" | "dropped", reason: CopyReason): void {
    const ageMs = "ageMs" in copy ? copy.ageMs : Number.NaN;
    this.#deps.report(copy.packetId, copy.target, kind, reason, 0, ageMs);
  }

  #dropWaiting(reason: CopyReason): void {
    for (let row = this.#waiting.oldest(); row !== null; row = this.#waiting.oldest()) {
      this.#end(row, "dropped", reason);
      this.#waiting.drop();
    }
  }

  #close(link: Link, failed: (copy: FlyingCopy) => void): void {
    if (link.over) return;
    link.over = true;
    link.connection?.close();
    link.failAll(failed);
  }
}
