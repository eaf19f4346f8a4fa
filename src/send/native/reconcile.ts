/**
 * What the sender has to do with fronts: it tells them where they may send (`check`), and enters
 * what they sent into its books (`recordSend`), as if it had sent it itself.
 *
 * Fronts send to each leader of the plan that has a live connection and takes copies as they
 * come. One that keeps more of them waiting than it takes in a moment is left out: who pays best
 * is to go first there, which one thread has to see to, so its copies are placed when a packet is
 * adopted, and fronts have that done at once. Leaders without a connection are left out, too, and
 * for them nobody hurries.
 *
 * The surprise: a front's word comes up to 210 ms late. Meanwhile plans and connections change, so
 * the routes of the last versions are kept, and each copy is entered where it was sent, though that
 * connection may be over. So that leaders which come and go do not use the versions up, one that
 * kept copies waiting stays out for a while. Where all do, the routes are only closed, which makes
 * no version, and opened as soon as none does.
 */

import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import type { Packet, Target } from "../../core/flow.ts";
import { SHARED_TARGETS_MAX } from "../../core/limits.ts";
import type { TrySendResult } from "../deliveries.ts";
import type { Leader } from "../leader.ts";
import type { LeaderConnection } from "../leader-connection.ts";
import type { SendTarget } from "../leader-pool.ts";
import { TARGET_EXCLUDED_MS_MIN, TARGET_VERSIONS_KEPT } from "../limits.ts";
import type { SendCounters } from "../send-counters.ts";
import type { SharedConnection } from "../transport.ts";
import type { SendRecord } from "./send-record.ts";
import type { SharedTargetTable } from "./shared-target-table.ts";

/** A route of one version; `link` is null for a leader that was left out. */
interface VersionTarget {
  readonly leader: Leader;
  readonly target: Target;
  readonly connection: LeaderConnection | null;
}

/** Where a leader stands: what is higher is better. */
const NOT_LIVE = 0;
/** Copies wait there, they did a moment ago, or they go out as they come. */
const BACKLOGGED = 1;
const RECENTLY_BACKLOGGED = 2;
const IDLE = 3;

interface Version {
  readonly version: number;
  /** Those that fronts send to come first. */
  readonly sendTargets: readonly VersionTarget[];
}

export interface SendReconcilerDeps {
  readonly clock: Clock;
  readonly shared: SharedTargetTable;
  readonly counters: SendCounters;
  readonly leaders: { readonly sendTargets: readonly SendTarget[] };
  /** For each route that did not take the packet: keeps a copy, or tells that there is none. */
  readonly queueRest: (
    packet: Packet,
    sendTargets: readonly SendTarget[],
    results: readonly TrySendResult[],
    nowNs: number,
  ) => void;
}

export class SendReconciler {
  readonly #deps: SendReconcilerDeps;
  readonly #copyTtlMs: number;
  /** By version, in turn. */
  readonly #versions: (Version | undefined)[] = new Array(TARGET_VERSIONS_KEPT);
  readonly #results: TrySendResult[] = [];
  /** Leaders that kept copies waiting, and until when they are left out. */
  readonly #excludedUntilNs = new WeakMap<Leader, number>();
  /** Where each route stands. */
  readonly #availabilities: number[] = [];
  // As published last.
  #engine = 0;
  #sendTargets: readonly SendTarget[] = [];
  /** Of each of them the live connection, and whether fronts are to send over it. */
  readonly #connections: (LeaderConnection | null)[] = [];
  readonly #isPublished: boolean[] = [];
  #published: readonly VersionTarget[] = [];
  #bytesMax = 0;
  #isOpen = false;

  constructor(deps: SendReconcilerDeps, copyTtlMs: number) {
    this.#deps = deps;
    this.#copyTtlMs = copyTtlMs;
  }

  /** Leaders that are connected and that fronts leave to this thread. */
  get excluded(): number {
    const live = this.#connections.reduce(
      (count, connection) => count + (connection === null ? 0 : 1),
      0,
    );
    return live - (this.#isOpen ? this.#published.length : 0);
  }

  /** Tells fronts where they may send, as far as that has changed. */
  check(running: boolean): void {
    const { clock, shared } = this.#deps;
    const least = this.#survey(clock.nowNs());
    if (this.#isStale(least)) this.#publish(least);
    this.#isOpen = running && this.#published.length > 0 && this.#mayGo();
    shared.open(this.#isOpen);
  }

  /** Enters a packet that a front sent at `sentNs`. */
  recordSend(packet: Packet, sent: SendRecord, sentNs: number, running: boolean): void {
    const { clock, counters, queueRest } = this.#deps;
    const kept = this.#versions[sent.version % TARGET_VERSIONS_KEPT];
    counters.packetsAccepted += 1;
    if (kept?.version !== sent.version) {
      counters.packetsRecordedLate += 1;
      return;
    }
    const { sendTargets } = kept;
    const results = this.#results;
    const nowNs = clock.nowNs();
    counters.deliveries += sendTargets.length;
    let missing = 0;
    for (let index = 0; index < sendTargets.length; index += 1) {
      const sendTarget = sendTargets[index];
      if (sendTarget === undefined) continue;
      results[index] = "accepted";
      const isOnWire = index < sent.count && ((sent.status >>> index) & 1) === 1;
      const isQueued = index < sent.count && ((sent.status >>> (16 + index)) & 1) === 1;
      const stream = sent.streams[index] ?? 0;
      if ((isOnWire || isQueued) && sendTarget.connection !== null) {
        sendTarget.leader.deliveries.recordSend(
          sendTarget.connection,
          packet,
          sendTarget.target,
          stream,
          sentNs,
          !isOnWire,
        );
        continue;
      }
      if (running) results[index] = sendTarget.leader.trySend(packet, sendTarget.target, nowNs);
      else results[index] = "not_connected";
      missing += 1;
    }
    if (missing > 0) queueRest(packet, sendTargets, results, nowNs);
    // A front may have closed the routes because copies wait.
    if (missing > 0 || sent.status >>> 16 !== 0) this.check(running);
  }

  /** Looks where each leader stands; answers where the best ones do, of those that may be given. */
  #survey(nowNs: number): number {
    const { sendTargets } = this.#deps.leaders;
    let least = RECENTLY_BACKLOGGED;
    for (let index = 0; index < sendTargets.length; index += 1) {
      const leader = sendTargets[index]?.leader;
      const availability = leader === undefined ? NOT_LIVE : this.#availabilityOf(leader, nowNs);
      this.#availabilities[index] = availability;
      if (availability === IDLE) least = IDLE;
    }
    return least;
  }

  #availabilityOf(leader: Leader, nowNs: number): number {
    const connection = leader.liveConnection;
    if (connection === null) return NOT_LIVE;
    // Asked in any case: how many may wait there depends on it.
    const isBacklogged = connection.engineConnection?.shared?.isBacklogged(nowNs) ?? true;
    if (leader.deliveries.isIdle && !isBacklogged) {
      return nowNs >= (this.#excludedUntilNs.get(leader) ?? 0) ? IDLE : RECENTLY_BACKLOGGED;
    }
    this.#excludedUntilNs.set(leader, nowNs + TARGET_EXCLUDED_MS_MIN * NS_PER_MS);
    return BACKLOGGED;
  }

  #isStale(least: number): boolean {
    const { leaders, shared } = this.#deps;
    const { sendTargets } = leaders;
    if (sendTargets !== this.#sendTargets || shared.engine !== this.#engine) return true;
    // While copies wait everywhere, or did, who is given stays so.
    const isKept = least === RECENTLY_BACKLOGGED && this.#published.length > 0;
    for (let index = 0; index < sendTargets.length; index += 1) {
      if (sendTargets[index]?.leader.liveConnection !== this.#connections[index]) return true;
      const isPublished = (this.#availabilities[index] ?? NOT_LIVE) >= least;
      if (!isKept && isPublished !== this.#isPublished[index]) return true;
    }
    return bytesMaxOf(this.#published) !== this.#bytesMax;
  }

  /** Whether copies wait nowhere where fronts send to. */
  #mayGo(): boolean {
    for (let index = 0; index < this.#sendTargets.length; index += 1) {
      if (this.#isPublished[index] === true && this.#availabilities[index] === BACKLOGGED)
        return false;
    }
    return true;
  }

  #publish(least: number): void {
    const { leaders, shared } = this.#deps;
    this.#engine = shared.engine;
    this.#sendTargets = leaders.sendTargets;
    this.#connections.length = 0;
    this.#isPublished.length = 0;
    const published: VersionTarget[] = [];
    const unpublished: VersionTarget[] = [];
    const connections: SharedConnection[] = [];
    let excluded = 0;
    for (const [index, { leader, target }] of this.#sendTargets.entries()) {
      const connection = leader.liveConnection;
      const isPublished = (this.#availabilities[index] ?? NOT_LIVE) >= least;
      this.#connections.push(connection);
      this.#isPublished.push(isPublished);
      const engineConnection = isPublished ? (connection?.engineConnection?.shared ?? null) : null;
      if (
        engineConnection !== null &&
        shared.engine !== 0 &&
        published.length < SHARED_TARGETS_MAX
      ) {
        published.push({ leader, target, connection });
        connections.push(engineConnection);
      } else {
        unpublished.push({ leader, target, connection: null });
        if (connection !== null) excluded += 1;
      }
    }
    this.#published = published;
    this.#bytesMax = bytesMaxOf(published);
    const version = shared.publish(connections, this.#copyTtlMs, this.#bytesMax, excluded);
    this.#versions[version % TARGET_VERSIONS_KEPT] = {
      version,
      sendTargets: [...published, ...unpublished],
    };
  }
}

/** The largest transaction that all of them take; 0 where there is none. */
function bytesMaxOf(sendTargets: readonly VersionTarget[]): number {
  let bytesMax = sendTargets.length === 0 ? 0 : Number.POSITIVE_INFINITY;
  for (const { leader, connection } of sendTargets) {
    const streamBytesMax = connection?.engineConnection?.shared?.streamBytesMax ?? 0;
    bytesMax = Math.min(bytesMax, leader.deliveries.bytesMax, streamBytesMax);
  }
  return bytesMax;
}
