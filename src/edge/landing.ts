/**
 * Landing, connected to the rest of an edge: its view of the chain, its resends, and the consumers
 * of a transaction's final state.
 */

import type { Usage } from "../accounts/usage/usage.ts";
import type { ClusterClient } from "../cluster/cluster-client.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { createLanding, type Landing } from "../landing/landing.ts";
import type { ClusterView, CopyGate } from "../landing/ports.ts";
import type { Receipts } from "../receipts/receipts.ts";
import type { Router } from "../route/router.ts";
import type { LeaderStatsTable } from "../send/leader-stats.ts";
import type { Sender } from "../send/sender.ts";

export interface EdgeLandingDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly cluster: Pick<
    ClusterClient,
    "blockHeight" | "blockHeightNs" | "lastValidHeight" | "fetchStatuses" | "statusReporting"
  >;
  readonly router: Pick<Router, "currentSlot" | "leaderAt">;
  readonly leaderStats: Pick<LeaderStatsTable, "landed">;
  readonly sender: Pick<Sender, "resend">;
  readonly copyGate: CopyGate;
  readonly receipts: Pick<Receipts, "end" | "processed" | "rolledBack">;
  /** Reconciles accounting, so that transactions sent by ingress threads are tracked. */
  readonly reconcile: () => void;
  /** Counts final states by key; null: usage is not counted. */
  readonly usage: Pick<Usage, "ended"> | null;
}

/** The stage that tracks each transaction to its final state. */
export function buildLanding(config: Config, deps: EdgeLandingDeps): Landing {
  const { clock, log, cluster, router, sender, copyGate } = deps;
  const { leaderStats, receipts, reconcile, usage } = deps;
  const view: ClusterView = {
    blockHeight: () => cluster.blockHeight(),
    blockHeightNs: () => cluster.blockHeightNs(),
    currentSlot: (nowNs) => router.currentSlot(nowNs),
    lastValidHeight: (blockhash) => cluster.lastValidHeight(blockhash),
    fetchStatuses: (signatures) => cluster.fetchStatuses(signatures),
    statusReporting: () => cluster.statusReporting(),
  };
  return createLanding(
    {
      clock,
      log,
      cluster: view,
      resender: sender,
      copyGate,
      reconcile,
      onFinalState(end) {
        receipts.end(end);
        const leader = end.kind === "landed" ? router.leaderAt(end.slot) : null;
        if (leader !== null) leaderStats.landed(leader);
        usage?.ended(end);
      },
      onProcessed: (event) => receipts.processed(event),
      onRolledBack: (packetId, atNs) => receipts.rolledBack(packetId, atNs),
    },
    { ...config.landing, leaders: config.send.leaders, copyTtlMs: config.send.copyTtlMs },
  );
}
