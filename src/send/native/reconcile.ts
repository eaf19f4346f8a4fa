/**
 * Coordinates the sender with the ingress threads: publishes the leaders that they may send to
 * (`check`), and records what they sent (`recordSend`), as if the sender had sent it.
 *
 * Ingress threads send to each leader of the plan that has a live connection and no backlog. A
 * leader with more queued deliveries than its drain rate allows is excluded: there the highest
 * priority must go first, which one thread has to order, so its deliveries are queued when the
 * packet is recorded, and such records wake the main thread immediately. Leaders without a
 * connection are excluded as well, but do not need an immediate wake-up.
 *
 * Note: a record may be up to 210 ms old. Plans and connections change meanwhile, so recent
 * versions of the target table are kept, and each delivery is recorded against the connection that
 * carried it, even if that connection has closed. A backlogged leader stays excluded for a while,
 * so that leaders which alternate do not exhaust the versions. Where all leaders are backlogged,
 * the table is only closed, which creates no version, and reopened as soon as no leader is.
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

/** A target of one version; `connection` is null for an excluded leader. */
interface VersionTarget {
  readonly leader: Leader;
  readonly target: Target;
  readonly connection: LeaderConnection | null;
}

/** Availability of a leader: higher is better. */
const NOT_LIVE = 0;
/** Deliveries are queued there, were queued recently, or are sent immediately. */
const BACKLOGGED = 1;
const RECENTLY_BACKLOGGED = 2;
const IDLE = 3;

interface Version {
  readonly version: number;
  /** Published targets come first. */
  readonly sendTargets: readonly VersionTarget[];
}

export interface SendReconcilerDeps {
  readonly clock: Clock;
  readonly shared: SharedTargetTable;
  readonly counters: SendCounters;
  readonly leaders: { readonly sendTargets: readonly SendTarget[] };
  /**
   * For each target that did not accept the packet: queues a delivery, or reports that none exists.
   */
  readonly queueRest: (
    packet: Packet,
    sendTargets: readonly SendTarget[],
    results: readonly TrySendResult[],
    nowNs: number,
  ) => void;
}

export class SendReconciler {
  readonly #deps: SendReconcilerDeps;
  readonly #deliveryTtlMs: number;
  /** Ring, indexed by version. */
  readonly #versions: (Version | undefined)[] = new Array(TARGET_VERSIONS_KEPT);
  readonly #results: TrySendResult[] = [];
  /** Backlogged leaders, and until when they are excluded. */
  readonly #excludedUntilNs = new WeakMap<Leader, number>();
  /** The availability of each target. */
  readonly #availabilities: number[] = [];
  // As last published.
  #engine = 0;
  #sendTargets: readonly SendTarget[] = [];
  /** The live connection of each target, and whether ingress threads send over it. */
  readonly #connections: (LeaderConnection | null)[] = [];
  readonly #isPublished: boolean[] = [];
  #published: readonly VersionTarget[] = [];
  #bytesMax = 0;
  #isOpen = false;

  constructor(deps: SendReconcilerDeps, deliveryTtlMs: number) {
    this.#deps = deps;
    this.#deliveryTtlMs = deliveryTtlMs;
  }

  /** Connected leaders that ingress threads must not send to. */
  get excluded(): number {
    const live = this.#connections.reduce(
      (count, connection) => count + (connection === null ? 0 : 1),
      0,
    );
    return live - (this.#isOpen ? this.#published.length : 0);
  }

  /** Publishes where ingress threads may send, if that changed. */
  check(running: boolean): void {
    const { clock, shared } = this.#deps;
    const least = this.#survey(clock.nowNs());
    if (this.#isStale(least)) this.#publish(least);
    this.#isOpen = running && this.#published.length > 0 && this.#mayGo();
    shared.open(this.#isOpen);
  }

  /** Records a packet that an ingress thread sent at `sentNs`. */
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
    // An ingress thread may have closed the table because deliveries are queued.
    if (missing > 0 || sent.status >>> 16 !== 0) this.check(running);
  }

  /** Updates the availability of each leader; returns the best one that may be published. */
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
    // Queried in any case: it updates the limit of queued deliveries.
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
    // While deliveries are or were queued everywhere, the published leaders stay.
    const isKept = least === RECENTLY_BACKLOGGED && this.#published.length > 0;
    for (let index = 0; index < sendTargets.length; index += 1) {
      if (sendTargets[index]?.leader.liveConnection !== this.#connections[index]) return true;
      const isPublished = (this.#availabilities[index] ?? NOT_LIVE) >= least;
      if (!isKept && isPublished !== this.#isPublished[index]) return true;
    }
    return bytesMaxOf(this.#published) !== this.#bytesMax;
  }

  /** Whether no published leader has queued deliveries. */
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
    const version = shared.publish(connections, this.#deliveryTtlMs, this.#bytesMax, excluded);
    this.#versions[version % TARGET_VERSIONS_KEPT] = {
      version,
      sendTargets: [...published, ...unpublished],
    };
  }
}

/** The largest transaction that all of them accept; 0 where there is none. */
function bytesMaxOf(sendTargets: readonly VersionTarget[]): number {
  let bytesMax = sendTargets.length === 0 ? 0 : Number.POSITIVE_INFINITY;
  for (const { leader, connection } of sendTargets) {
    const streamBytesMax = connection?.engineConnection?.shared?.streamBytesMax ?? 0;
    bytesMax = Math.min(bytesMax, leader.deliveries.bytesMax, streamBytesMax);
  }
  return bytesMax;
}
