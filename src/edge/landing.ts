/**
 * Landing, connected to the rest of an edge: its view of the chain, its resends, and the consumers
 * of a transaction's final state.
 */

import type { Usage } from "../accounts/usage/usage.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { createLanding, type Landing } from "../landing/landing.ts";
import type { LandingShares } from "../landing/landing-shares.ts";
import type { ClusterView, DeliveryGate, Resender } from "../landing/ports.ts";
import type { Receipts } from "../receipts/receipts.ts";
import type { Router } from "../route/router.ts";
import type { LeaderStatsTable } from "../send/leader-stats.ts";

export interface EdgeLandingDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly cluster: Omit<Required<ClusterView>, "currentSlot">;
  readonly router: Pick<Router, "currentSlot" | "leaderAt">;
  readonly leaderStats: Pick<LeaderStatsTable, "landed">;
  readonly resender: Resender;
  readonly deliveryGate: DeliveryGate;
  readonly receipts: Pick<Receipts, "end" | "processed" | "rolledBack">;
  /** The landed shares of accounts, for resends. */
  readonly shares: Pick<LandingShares, "shareOf" | "ended">;
  /** Reads the engine's events, so that all transactions sent so far are tracked. */
  readonly flushEvents: () => void;
  /** Counts final states by key; null: usage is not counted. */
  readonly usage: Pick<Usage, "ended"> | null;
}

/** The stage that tracks each transaction to its final state. */
export function buildLanding(config: Config, deps: EdgeLandingDeps): Landing {
  const { clock, log, cluster, router, resender, deliveryGate } = deps;
  const { leaderStats, receipts, flushEvents, usage } = deps;
  const view: ClusterView = {
    blockHeight: () => cluster.blockHeight(),
    blockHeightNs: () => cluster.blockHeightNs(),
    currentSlot: (nowNs) => router.currentSlot(nowNs),
    lastValidHeight: (blockhash) => cluster.lastValidHeight(blockhash),
    fetchStatuses: (signatures) => cluster.fetchStatuses(signatures),
    checkBlockhashes: (blockhashes) => cluster.checkBlockhashes(blockhashes),
    statusReporting: () => cluster.statusReporting(),
    contentOf: (fromSlot, toSlot) => cluster.contentOf(fromSlot, toSlot),
  };
  return createLanding(
    {
      clock,
      log,
      cluster: view,
      resender,
      shares: deps.shares,
      deliveryGate,
      flushEvents,
      onFinalState(end, signature) {
        receipts.end(end, signature);
        // One that had landed before it was received did not land by a delivery of this edge.
        const isOwn = end.kind === "landed" && end.slotDelta !== null;
        const leader = isOwn ? router.leaderAt(end.slot) : null;
        if (leader !== null) leaderStats.landed(leader);
        usage?.ended(end);
      },
      onProcessed: (event, signature) => receipts.processed(event, signature),
      onRolledBack: (signature, atNs) => receipts.rolledBack(signature, atNs),
    },
    { ...config.landing, leaders: config.send.leaders, deliveryTtlMs: config.send.deliveryTtlMs },
  );
}
