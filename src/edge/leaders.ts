/**
 * The part of an edge between the cluster and the network: chain data makes the plan, the plan
 * makes connections, and the outcome of each delivery goes to the receipts.
 */

import type { Usage } from "../accounts/usage/usage.ts";
import { type ClusterThread, createClusterThread } from "../cluster/cluster-thread.ts";
import type { ClusterWorker } from "../cluster/cluster-worker.ts";
import type { Config } from "../config/config.ts";
import { encodeBase58 } from "../core/encoding.ts";
import { createEngine, type EngineDeps } from "../engine/create-engine.ts";
import type { Engine } from "../engine/engine.ts";
import type { Landing } from "../landing/landing.ts";
import { createLandingShares } from "../landing/landing-shares.ts";
import type { DeliveryGate, Resender } from "../landing/ports.ts";
import { createReceipts } from "../receipts/receipts.ts";
import { createRouter, type Router } from "../route/router.ts";
import { createCoalescedClock } from "../runtime/coalesced-timers.ts";
import type { Identity } from "../send/identity.ts";
import { LeaderStatsTable } from "../send/leader-stats.ts";
import { clusterOptionsOf } from "./cluster-worker.ts";
import { createIdentityHolder, type IdentityHolder, readIdentity } from "./identity.ts";
import { buildLanding } from "./landing.ts";
import { Tracker, type TrackerDeps } from "./tracker.ts";

/** One start step and its reverse. */
export interface Lifecycle {
  start(): unknown;
  stop(): unknown;
}

export interface LeaderSideDeps
  extends Pick<TrackerDeps, "latency" | "rejected">,
    Omit<EngineDeps, "identity" | "events"> {
  /** Counts the outcomes of transactions per key; null: usage is not counted. */
  readonly usage: Pick<Usage, "request" | "taken" | "outcome" | "ended"> | null;
  /** A cluster thread that loads already; null: none. */
  readonly clusterWorker: ClusterWorker | null;
}

/** What landing needs of the engine, which is built after it. */
function resendsThrough(engine: () => Engine): { resender: Resender; deliveryGate: DeliveryGate } {
  return {
    resender: {
      roomFor: (to) => engine().roomFor(to),
      resend: (packet, to) => engine().resend(packet, to),
    },
    deliveryGate: {
      renew: (bytes, sinceNs, nowNs) => engine().renew(bytes, sinceNs, nowNs),
      forget: (bytes, sinceNs) => engine().forget(bytes, sinceNs),
    },
  };
}

export function buildLeaderSide(config: Config, deps: LeaderSideDeps) {
  const { clock, log, usage } = deps;
  const { send } = config;
  // Any timer that fires also reads the engine's events, which then need no wake-up of their own.
  const coalescedClock = createCoalescedClock(clock, () => engine.flushEvents());
  const identity = readIdentity(config.identity.keypair);
  const shares = createLandingShares();
  const landedShareOf = shares.shareOf;
  const receipts = createReceipts(
    { clock: coalescedClock, slot: (nowNs) => router.currentSlot(nowNs), landedShareOf },
    { keepMs: config.receipts.keepMs, entriesMax: config.receipts.countMax },
  );
  const leaderStats = new LeaderStatsTable({ versionOf: (identity) => router.versionOf(identity) });
  const router: Router = createRouter(
    {
      clock,
      times: leaderStats,
      onPlan(plan) {
        // Sends under the previous plan must be recorded first, to be sent under this one too.
        engine.flushEvents();
        engine.useLandedShares(shares.renew());
        engine.usePlan(plan ?? NO_PLAN);
        landing.usePlan(plan ?? NO_PLAN);
      },
      onSlotBack: () => landing.slotWentBack(),
    },
    {
      leaders: send.leaders,
      warmWindows: send.warmWindows,
      deny: send.deny,
      slotOrigins: slotOriginsOf(config.cluster),
    },
  );
  const cluster = createClusterThread(
    {
      clock,
      log,
      router,
      processed: (signature, slot, error, bank) =>
        landing.seen(signature, { slot, confirmed: false, error }, bank),
      confirmed: (slot, bank) => landing.confirmed(slot, bank),
      forgetBanks: () => landing.forgetBanks(),
      onConsensus: (consensus) => router.setAlpenglow(consensus === "alpenglow"),
      onConfirmationStalled(isStalled) {
        router.setConfirmationStalled(isStalled);
        landing.setConfirmationStalled(isStalled);
      },
      busy: () => landing.inFlight > 0,
      worker: deps.clusterWorker,
    },
    clusterOptionsOf(config),
  );
  const flushEvents = (): void => engine.flushEvents();
  const sources = { cluster, router, leaderStats, receipts, shares };
  const landing: Landing = buildLanding(config, {
    ...{ clock: coalescedClock, log, ...sources, flushEvents, usage },
    ...resendsThrough(() => engine),
  });
  const tracker = new Tracker({ ...deps, receipts, landing });
  const engine: Engine = createEngine(
    config,
    {
      ...{ ...deps, identity, leaderStats, events: tracker, timers: coalescedClock },
      onLeaderUnreachable: () => cluster.pollContactsNow(),
    },
    {
      slotTimeMs: () => router.slotTimeMs,
      stakeShareOf: (identity) => router.stakeShareOf(identity),
      landedShareOf,
    },
  );
  const holder = identityHolderOf(config, { log, engine, cluster }, identity);
  const startOrder: readonly Lifecycle[] = [receipts, engine, landing, router, cluster];
  return { ...sources, engine, tracker, holder, landing, startOrder };
}

/** The identity, of which leaders see the key and the cluster thread reports the stake. */
function identityHolderOf(
  config: Config,
  parts: Pick<LeaderSideDeps, "log"> & {
    readonly engine: Pick<Engine, "useIdentity">;
    readonly cluster: Pick<ClusterThread, "useIdentity">;
  },
  first: Identity,
): IdentityHolder {
  const { log, engine, cluster } = parts;
  const useIdentity = (next: Identity): void => {
    engine.useIdentity(next);
    cluster.useIdentity(encodeBase58(next.publicKey));
  };
  cluster.useIdentity(encodeBase58(first.publicKey));
  return createIdentityHolder({ log, engine: { useIdentity } }, first, config.identity.keypair);
}

/** The node behind each slot source: sources of one host have one vote together. */
export function slotOriginsOf({ rpcUrl, wsUrl, grpcUrl }: SlotUrls) {
  const socket = new URL(wsUrl).hostname;
  return {
    slotsUpdates: socket,
    slot: socket,
    polling: new URL(rpcUrl).hostname,
    grpc: grpcUrl === null ? "" : new URL(grpcUrl).hostname,
  };
}

type SlotUrls = Pick<Config["cluster"], "rpcUrl" | "wsUrl" | "grpcUrl">;

/** Without a current slot there are no targets. */
const NO_PLAN = { slot: 0, send: [], warm: [] } as const;
