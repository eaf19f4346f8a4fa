/**
 * Coordinates the sender with the ingress threads: publishes the leaders that they may send to
 * (`check`), and records what they sent (`recordSend`), as if the sender had sent it.
 *
 * Ingress threads send to each leader of the plan that has a live connection, however much waits
 * for it: the engine's queue orders their deliveries and the sender's alike. Deliveries to other
 * leaders are queued here when the packet is recorded.
 *
 * Note: a record may be up to 210 ms old. Plans and connections change meanwhile, so recent
 * versions of the target table are kept, and each delivery is recorded against the connection that
 * carried it, even if that connection has closed.
 */

import type { Clock } from "../../core/clock.ts";
import type { Packet, Target } from "../../core/flow.ts";
import { SHARED_TARGETS_MAX } from "../../core/limits.ts";
import type { TrySendResult } from "../deliveries.ts";
import type { Leader } from "../leader.ts";
import type { LeaderConnection } from "../leader-connection.ts";
import type { SendTarget } from "../leader-pool.ts";
import { TARGET_VERSIONS_KEPT } from "../limits.ts";
import type { SendCounters } from "../send-counters.ts";
import type { SharedConnection } from "../transport.ts";
import type { SendRecord } from "./send-record.ts";
import type { SharedTargetTable } from "./shared-target-table.ts";

/** A target of one version; `connection` is null for a leader that is not published. */
interface VersionTarget {
  readonly leader: Leader;
  readonly target: Target;
  readonly connection: LeaderConnection | null;
}

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
  // As last published.
  #engine = 0;
  #sendTargets: readonly SendTarget[] = [];
  /** The live connection of each target. */
  readonly #connections: (LeaderConnection | null)[] = [];
  #published: readonly VersionTarget[] = [];
  #bytesMax = 0;

  constructor(deps: SendReconcilerDeps, deliveryTtlMs: number) {
    this.#deps = deps;
    this.#deliveryTtlMs = deliveryTtlMs;
  }

  /** Publishes where ingress threads may send, if that changed. */
  check(running: boolean): void {
    if (this.#isStale()) this.#publish();
    this.#deps.shared.open(running && this.#published.length > 0);
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
      results[index] = "not_connected";
      if (running) results[index] = sendTarget.leader.trySend(packet, sendTarget.target, nowNs);
      if (results[index] === "accepted")
        sendTarget.leader.reportSent(packet, sendTarget.target, nowNs);
      missing += 1;
    }
    if (missing > 0) queueRest(packet, sendTargets, results, nowNs);
    // An ingress thread may have closed the table because the engine accepted nothing.
    if (missing > 0) this.check(running);
  }

  #isStale(): boolean {
    const { leaders, shared } = this.#deps;
    const { sendTargets } = leaders;
    if (sendTargets !== this.#sendTargets || shared.engine !== this.#engine) return true;
    for (let index = 0; index < sendTargets.length; index += 1) {
      if (sendTargets[index]?.leader.liveConnection !== this.#connections[index]) return true;
    }
    return bytesMaxOf(this.#published) !== this.#bytesMax;
  }

  #publish(): void {
    const { leaders, shared } = this.#deps;
    this.#engine = shared.engine;
    this.#sendTargets = leaders.sendTargets;
    this.#connections.length = 0;
    const published: VersionTarget[] = [];
    const unpublished: VersionTarget[] = [];
    const connections: SharedConnection[] = [];
    let excluded = 0;
    for (const { leader, target } of this.#sendTargets) {
      const connection = leader.liveConnection;
      this.#connections.push(connection);
      const engineConnection = connection?.engineConnection?.shared ?? null;
      const hasRoom = shared.engine !== 0 && published.length < SHARED_TARGETS_MAX;
      if (engineConnection !== null && hasRoom) {
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
