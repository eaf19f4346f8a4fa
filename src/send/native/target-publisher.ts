/**
 * Publishes the leaders that ingress threads may send to: each leader of the plan that has a live
 * connection, however much waits for it, because the engine's queue orders the deliveries of all
 * threads.
 */

import { SHARED_TARGETS_MAX } from "../../core/limits.ts";
import type { Leader } from "../leader.ts";
import type { LeaderConnection } from "../leader-connection.ts";
import type { SharedTargetTable } from "./shared-target-table.ts";

export class TargetPublisher {
  readonly #shared: SharedTargetTable;
  readonly #leaders: { readonly sendTargets: readonly Leader[] };
  readonly #deliveryTtlMs: number;
  // As last published.
  #engine = 0;
  #sendTargets: readonly Leader[] = [];
  /** The live connection of each leader. */
  readonly #connections: (LeaderConnection | null)[] = [];
  #count = 0;
  #bytesMax = 0;

  constructor(
    shared: SharedTargetTable,
    leaders: { readonly sendTargets: readonly Leader[] },
    deliveryTtlMs: number,
  ) {
    this.#shared = shared;
    this.#leaders = leaders;
    this.#deliveryTtlMs = deliveryTtlMs;
  }

  /** Publishes where ingress threads may send, if that changed. */
  check(running: boolean): void {
    if (this.#isStale()) this.#publish();
    this.#shared.open(running && this.#count > 0);
  }

  #isStale(): boolean {
    const { sendTargets } = this.#leaders;
    if (sendTargets !== this.#sendTargets || this.#shared.engine !== this.#engine) return true;
    for (let index = 0; index < sendTargets.length; index += 1) {
      if (sendTargets[index]?.liveConnection !== this.#connections[index]) return true;
    }
    return this.#bytesMaxNow() !== this.#bytesMax;
  }

  #publish(): void {
    const { engine } = this.#shared;
    this.#engine = engine;
    this.#sendTargets = this.#leaders.sendTargets;
    this.#connections.length = 0;
    const peers: number[] = [];
    for (const { liveConnection } of this.#sendTargets) {
      this.#connections.push(liveConnection);
      const peer = liveConnection?.engineConnection?.peer ?? 0;
      if (peer !== 0 && engine !== 0 && peers.length < SHARED_TARGETS_MAX) peers.push(peer);
    }
    this.#count = peers.length;
    this.#bytesMax = this.#bytesMaxNow();
    this.#shared.publish(peers, this.#deliveryTtlMs, this.#bytesMax);
  }

  /** The largest transaction that all connected leaders accept; 0 where there is none. */
  #bytesMaxNow(): number {
    let bytesMax = Number.POSITIVE_INFINITY;
    for (const { liveConnection, deliveries } of this.#sendTargets) {
      const size = liveConnection?.engineConnection?.streamBytesMax;
      if (size !== undefined) bytesMax = Math.min(bytesMax, deliveries.bytesMax, size);
    }
    return bytesMax === Number.POSITIVE_INFINITY ? 0 : bytesMax;
  }
}
