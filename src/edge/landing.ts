/**
 * Landing, joined to the rest of an edge: what it knows of the chain, whom it sends again through,
 * and who is told of a transaction's end.
 */

import type { Usage } from "../accounts/usage/usage.ts";
import type { Chain } from "../cluster/chain.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { createLanding, type Landing } from "../landing/landing.ts";
import type { ChainView } from "../landing/ports.ts";
import type { Receipts } from "../receipts/receipts.ts";
import type { Router } from "../route/router.ts";
import type { Scorecard } from "../send/leader-stats.ts";
import type { Sender } from "../send/sender.ts";

export interface EdgeLandingDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly chain: Pick<
    Chain,
    "blockHeight" | "blockHeightNs" | "lastValidHeight" | "fetchStatuses" | "statusTelling"
  >;
  readonly router: Pick<Router, "currentSlot" | "leaderAt">;
  readonly scorecard: Pick<Scorecard, "landed">;
  readonly sender: Pick<Sender, "again">;
  readonly receipts: Pick<Receipts, "end" | "sighted" | "vanished">;
  /** Has what fronts sent tracked. */
  readonly adopt: () => void;
  /** Counts ends by key; null when nobody does. */
  readonly usage: Pick<Usage, "ended"> | null;
}

/** The stage that follows each transaction to its end. */
export function buildLanding(config: Config, deps: EdgeLandingDeps): Landing {
  const { clock, log, chain, router, sender, scorecard, receipts, adopt, usage } = deps;
  const view: ChainView = {
    blockHeight: () => chain.blockHeight(),
    blockHeightNs: () => chain.blockHeightNs(),
    currentSlot: (nowNs) => router.currentSlot(nowNs),
    lastValidHeight: (blockhash) => chain.lastValidHeight(blockhash),
    fetchStatuses: (signatures) => chain.fetchStatuses(signatures),
    statusTelling: () => chain.statusTelling(),
  };
  return createLanding(
    {
      clock,
      log,
      chain: view,
      resender: sender,
      adopt,
      onEnd(end) {
        receipts.end(end);
        const leader = end.kind === "landed" ? router.leaderAt(end.slot) : null;
        if (leader !== null) scorecard.landed(leader);
        usage?.ended(end);
      },
      onSighted: (sighting) => receipts.sighted(sighting),
      onVanished: (packetId, atNs) => receipts.vanished(packetId, atNs),
    },
    { ...config.landing, leaders: config.send.leaders, copyTtlMs: config.send.copyTtlMs },
  );
}
