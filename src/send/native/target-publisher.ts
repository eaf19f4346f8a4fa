/**
 * Publishes the leaders that the native engine sends to: each leader of the plan that has a live
 * connection, however much waits for it, because the engine's queue orders the deliveries of all
 * threads.
 */

import { TARGETS_MAX } from "../../core/limits.ts";
import type { Leader } from "../leader.ts";
import type { LeaderConnection } from "../leader-connection.ts";
import type { TargetTable } from "./target-table.ts";

export class TargetPublisher {
  readonly #table: TargetTable;
  readonly #leaders: { readonly sendTargets: readonly Leader[] };
  readonly #deliveryTtlMs: number;
  // As last published.
  #engine = 0;
  #sendTargets: readonly Leader[] = [];
  /** The live connection of each leader, and the largest transaction that it accepts. */
  readonly #connections: (LeaderConnection | null)[] = [];
  readonly #bytesMax: number[] = [];

  constructor(
    table: TargetTable,
    leaders: { readonly sendTargets: readonly Leader[] },
    deliveryTtlMs: number,
  ) {
    this.#table = table;
    this.#leaders = leaders;
    this.#deliveryTtlMs = deliveryTtlMs;
  }

  /** Publishes where the engine may send, if that changed: nowhere unless the sender runs. */
  check(running: boolean): void {
    const sendTargets = running ? this.#leaders.sendTargets : NOWHERE;
    if (this.#isStale(sendTargets)) this.#publish(sendTargets);
  }

  #isStale(sendTargets: readonly Leader[]): boolean {
    if (sendTargets !== this.#sendTargets || this.#table.engine !== this.#engine) return true;
    for (let index = 0; index < sendTargets.length; index += 1) {
      const leader = sendTargets[index];
      if (leader === undefined) continue;
      if (leader.liveConnection !== this.#connections[index]) return true;
      if (bytesMaxOf(leader) !== this.#bytesMax[index]) return true;
    }
    return false;
  }

  #publish(sendTargets: readonly Leader[]): void {
    const { engine } = this.#table;
    this.#engine = engine;
    this.#sendTargets = sendTargets;
    this.#connections.length = 0;
    this.#bytesMax.length = 0;
    const peers: number[] = [];
    const sizes: number[] = [];
    for (const leader of sendTargets) {
      const { liveConnection } = leader;
      const bytesMax = bytesMaxOf(leader);
      this.#connections.push(liveConnection);
      this.#bytesMax.push(bytesMax);
      const peer = liveConnection?.engineConnection?.peer ?? 0;
      if (peer === 0 || peers.length === TARGETS_MAX) continue;
      peers.push(peer);
      sizes.push(bytesMax);
    }
    this.#table.set(peers, sizes, this.#deliveryTtlMs);
  }
}

const NOWHERE: readonly Leader[] = [];

/** The largest transaction that the leader accepts; 0 where it is not connected. */
function bytesMaxOf({ liveConnection, deliveries }: Leader): number {
  return Math.min(deliveries.bytesMax, liveConnection?.engineConnection?.streamBytesMax ?? 0);
}
