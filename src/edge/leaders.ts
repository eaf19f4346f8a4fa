/**
 * The part of an edge between the cluster and the network: chain data makes the plan, the plan
 * makes connections, and the outcome of each delivery goes to the receipts.
 */

import { availableParallelism } from "node:os";
import type { Usage } from "../accounts/usage/usage.ts";
import { type ClusterThread, createClusterThread } from "../cluster/cluster-thread.ts";
import type { ClusterWorker } from "../cluster/cluster-worker.ts";
import type { Config } from "../config/config.ts";
import { formatListen, type ListenAddress } from "../config/value-types.ts";
import type { Clock } from "../core/clock.ts";
import { encodeBase58 } from "../core/encoding.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Landing } from "../landing/landing.ts";
import { createLandingShares } from "../landing/landing-shares.ts";
import type { DeliveryGate } from "../landing/ports.ts";
import type { EngineChoice } from "../native/choose.ts";
import { createReceipts } from "../receipts/receipts.ts";
import { createRouter, type Router } from "../route/router.ts";
import { createCoalescedClock } from "../runtime/coalesced-timers.ts";
import type { Identity } from "../send/identity.ts";
import { LeaderStatsTable } from "../send/leader-stats.ts";
import type { SharedTargetTable } from "../send/native/shared-target-table.ts";
import { createNativeTransport } from "../send/native/transport-native.ts";
import { QUIC_TRANSPORT_DEFAULTS } from "../send/portable/transport-quic-options.ts";
import { createSender, SENDER_DEFAULTS, type Sender } from "../send/sender.ts";
import type { Transport } from "../send/transport.ts";
import { clusterOptionsOf } from "./cluster-worker.ts";
import { createIdentityHolder, type IdentityHolder, readIdentity } from "./identity.ts";
import { buildLanding } from "./landing.ts";
import { BUSY_POLL_PROCESSORS_MIN, BUSY_POLL_US } from "./limits.ts";
import { type OptionalModules, requireModule } from "./optional-modules.ts";
import { Tracker, type TrackerDeps } from "./tracker.ts";

/** One start step and its reverse. */
export interface Lifecycle {
  start(): unknown;
  stop(): unknown;
}

export interface LeaderSideDeps extends Pick<TrackerDeps, "latency" | "rejected" | "planName"> {
  readonly clock: Clock;
  readonly log: Log;
  readonly engine: EngineChoice;
  readonly modules: OptionalModules;
  /** Counts the outcomes of transactions per key; null: usage is not counted. */
  readonly usage: Pick<Usage, "request" | "taken" | "outcome" | "ended"> | null;
  /** Targets that ingress threads send to; null without ingress threads. */
  readonly targetTable: SharedTargetTable | null;
  readonly deliveryGate: DeliveryGate;
  /** A cluster thread that loads already; null: none. */
  readonly clusterWorker: ClusterWorker | null;
}

export function buildLeaderSide(config: Config, deps: LeaderSideDeps) {
  const { clock, log, usage, deliveryGate } = deps;
  const { send } = config;
  // Any timer that fires also reads the engine's events, which then need no wake-up of their own.
  const coalescedClock = createCoalescedClock(clock, () => sender.flushEvents());
  const identity = readIdentity(config.identity.keypair);
  const shares = createLandingShares();
  const landedShareOf = shares.shareOf;
  const receipts = createReceipts(
    { clock: coalescedClock, slot: (nowNs) => router.currentSlot(nowNs), landedShareOf },
    { keepMs: config.receipts.keepMs, entriesMax: config.receipts.countMax },
  );
  const leaderStats = new LeaderStatsTable({ versionOf: (identity) => router.versionOf(identity) });
  const sender: Sender = createSender(
    {
      clock: coalescedClock,
      log,
      leaderStats,
      transport: transportOf(config, identity, deps),
      onLeaderUnreachable: () => cluster.pollContactsNow(),
      onOutcome: (outcome) => tracker.outcome(outcome),
      targetTable: deps.targetTable,
    },
    {
      queuePerLeader: send.queuePerLeader,
      deliveryTtlMs: send.deliveryTtlMs,
      connectionsMax: send.connections,
      slotTimeMs: () => router.slotTimeMs,
      stakeShareOf: (identity) => router.stakeShareOf(identity),
      landedShareOf,
    },
  );
  const router: Router = createRouter(
    {
      clock,
      times: leaderStats,
      onPlan(plan) {
        // Sends under the previous plan must be recorded first, to be sent under this one too.
        deps.targetTable?.beforeEvents();
        sender.useLandedShares(shares.renew());
        sender.usePlan(plan ?? NO_PLAN);
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
      onProcessed: (signature, slot, error, bank) =>
        landing.seen(signature, { slot, confirmed: false, error }, bank),
      onConfirmed: (slot, bank) => landing.confirmed(slot, bank),
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
  const holder = identityHolderOf(config, { log, sender, cluster }, identity);
  const reconcile = (): void => void deps.targetTable?.beforeEvents();
  const sources = { cluster, router, sender, leaderStats, receipts, shares };
  const stages = { ...sources, reconcile, usage, deliveryGate };
  const landing: Landing = buildLanding(config, { clock: coalescedClock, log, ...stages });
  const tracker = new Tracker({ ...deps, receipts, landing, sender });
  const sending = sendingLifecycle(sender, send.bind);
  const startOrder: readonly Lifecycle[] = [receipts, sending, landing, router, cluster];
  return { ...sources, tracker, holder, landing, startOrder, reconcile };
}

/** The identity, of which leaders see the key and the cluster thread reports the stake. */
function identityHolderOf(
  config: Config,
  parts: Pick<LeaderSideDeps, "log"> & {
    readonly sender: Pick<Sender, "useIdentity">;
    readonly cluster: Pick<ClusterThread, "useIdentity">;
  },
  first: Identity,
): IdentityHolder {
  const { log, sender, cluster } = parts;
  const useIdentity = (next: Identity): void => {
    sender.useIdentity(next);
    cluster.useIdentity(encodeBase58(next.publicKey));
  };
  cluster.useIdentity(encodeBase58(first.publicKey));
  return createIdentityHolder({ log, sender: { useIdentity } }, first, config.identity.keypair);
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

/** The sender, whose start fails if its address does not belong to this machine. */
function sendingLifecycle(sender: Lifecycle, binds: readonly ListenAddress[]): Lifecycle {
  return {
    async start() {
      try {
        await sender.start();
      } catch (cause) {
        const why = cause instanceof Error ? cause.message : String(cause);
        const from = binds.map(formatListen).join(", ");
        throw new SetupError(`send.bind: cannot send from ${from}: ${why}`, { cause });
      }
    },
    stop: () => sender.stop(),
  };
}

/** Without a current slot there are no targets. */
const NO_PLAN = { slot: 0, send: [], warm: [] } as const;

/** The engine's connections to leaders. @throws SetupError as `busyPollOf`, `portableBindOf` */
export function transportOf(
  { host, send }: Pick<Config, "host" | "send">,
  identity: Identity,
  deps: Pick<LeaderSideDeps, "clock" | "log" | "engine" | "modules" | "targetTable">,
): Transport {
  const { clock, log, engine, modules } = deps;
  const { idleTimeoutMs } = QUIC_TRANSPORT_DEFAULTS;
  const busyPollUs = busyPollOf(host, engine, availableParallelism());
  if (engine.name === "portable") {
    const options = { ...QUIC_TRANSPORT_DEFAULTS, ...portableBindOf(send.bind) };
    return requireModule(modules.createQuicTransport)({ clock, identity }, options);
  }
  const { keepAliveMs, handshakeMs } = SENDER_DEFAULTS;
  return createNativeTransport(
    { native: engine.native, identity, log, targetTable: deps.targetTable },
    {
      binds: send.bind.map(formatListen),
      busyPollUs,
      idleTimeoutMs,
      keepAliveMs,
      admissionTimeoutMs: handshakeMs + idleTimeoutMs,
      queuePerLeader: send.queuePerLeader,
      deliveryTtlMs: send.deliveryTtlMs,
    },
  );
}

/**
 * The portable engine has one socket per address family; an address of one leaves the other at its
 * default. @throws SetupError for two of a family
 */
export function portableBindOf(binds: readonly ListenAddress[]) {
  const [first, second, ...more] = binds;
  if (first === undefined) return {};
  const isIpv6 = ({ host }: ListenAddress): boolean => host.includes(":");
  if (more.length > 0 || (second !== undefined && isIpv6(first) === isIpv6(second))) {
    throw new SetupError(
      `send.bind: the portable engine sends from one address of each family, not from ` +
        `${binds.map(formatListen).join(", ")}; the native one takes them all`,
    );
  }
  const optionsOf = (bind: ListenAddress) =>
    isIpv6(bind)
      ? { bindIpv6: bind.host, portIpv6: bind.port }
      : { bindIpv4: bind.host, portIpv4: bind.port };
  return { ...optionsOf(first), ...(second === undefined ? {} : optionsOf(second)) };
}

/**
 * How long a thread polls for work before it sleeps; 0: not at all.
 *
 * @throws SetupError where polling would starve other threads
 */
export function busyPollOf(
  { busyPoll }: Pick<Config["host"], "busyPoll">,
  engine: EngineChoice,
  processors: number,
): number {
  if (!busyPoll) return 0;
  if (engine.native === null) {
    throw new SetupError("host.busy_poll: the portable engine cannot poll, the native one can");
  }
  if (processors >= BUSY_POLL_PROCESSORS_MIN) return BUSY_POLL_US;
  throw new SetupError(
    `host.busy_poll: polling needs ${BUSY_POLL_PROCESSORS_MIN} processors or more, this machine ` +
      `has ${processors}`,
  );
}
