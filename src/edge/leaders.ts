/**
 * The part of an edge between the cluster and the wire: what the chain says makes the plan, the
 * plan makes connections, and what becomes of each copy goes to the receipts.
 */

import { availableParallelism } from "node:os";
import type { Usage } from "../accounts/usage/usage.ts";
import { createChain } from "../cluster/chain.ts";
import type { Config } from "../config/config.ts";
import { formatListen, type ListenAddress } from "../config/kinds.ts";
import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Landing } from "../landing/landing.ts";
import type { EngineChoice } from "../native/choose.ts";
import { createReceipts } from "../receipts/receipts.ts";
import { createRouter, type Router } from "../route/router.ts";
import { createRounds } from "../runtime/coalesced-timers.ts";
import type { Identity } from "../send/identity.ts";
import { Scorecard } from "../send/leader-stats.ts";
import type { SharedRoutes } from "../send/native/shared-route-table.ts";
import { createNativeTransport } from "../send/native/transport-native.ts";
import { QUIC_TRANSPORT_DEFAULTS } from "../send/portable/transport-quic-options.ts";
import { createSender, SENDER_DEFAULTS, type Sender } from "../send/sender.ts";
import type { Transport } from "../send/transport.ts";
import { createIdentityHolder, readIdentity } from "./identity.ts";
import { buildLanding } from "./landing.ts";
import { BUSY_POLL_PROCESSORS_MIN, BUSY_POLL_US } from "./limits.ts";
import { type EdgeParts, needed } from "./optional-modules.ts";
import { createOutcomeRelay } from "./outcome-buffer.ts";

/** One step of starting and its reverse. */
export interface Step {
  start(): unknown;
  stop(): unknown;
}

export interface LeaderSideDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly engine: EngineChoice;
  readonly parts: EdgeParts;
  /** Counts for each key what becomes of its transactions; null when nobody does. */
  readonly usage: Pick<Usage, "outcome" | "ended"> | null;
  /** Where fronts send by themselves; null where there are none. */
  readonly routes: SharedRoutes | null;
}

export function buildLeaderSide(config: Config, deps: LeaderSideDeps) {
  const { clock, log, usage } = deps;
  const { send } = config;
  // Whoever is woken takes in what has happened, for which the engine then wakes nobody.
  const rounds = createRounds(clock, () => sender.settle());
  const identity = readIdentity(config.identity.keypair);
  const receipts = createReceipts(
    { clock: rounds, slot: (nowNs) => router.currentSlot(nowNs) },
    { keepMs: config.receipts.keepMs, entriesMax: config.receipts.countMax },
  );
  const scorecard = new Scorecard({ versionOf: (identity) => router.versionOf(identity) });
  const outcomes = createOutcomeRelay((outcome) => {
    receipts.record(outcome);
    landing.outcome(outcome);
    usage?.outcome(outcome);
    // What a leader has is what can land with it.
    if (outcome.kind === "acked") scorecard.targeted(outcome.identity);
  });
  const sender: Sender = createSender(
    {
      clock: rounds,
      log,
      scorecard,
      transport: transportOf(config, identity, deps),
      onMissed: () => chain.hastenContacts(),
      onOutcome: outcomes.tell,
      routes: deps.routes,
    },
    {
      queuePerPeer: send.queuePerPeer,
      copyTtlMs: send.copyTtlMs,
      connectionsMax: send.connections,
      slotTimeMs: () => router.slotTimeMs,
      stakeShareOf: (identity) => router.stakeShareOf(identity),
    },
  );
  const router: Router = createRouter(
    {
      clock,
      times: scorecard,
      onPlan(plan) {
        // What fronts sent by the plan before has to be known, to be sent by this one too.
        deps.routes?.beforeDrain();
        sender.usePlan(plan ?? NO_PLAN);
        landing.usePlan(plan ?? NO_PLAN);
      },
    },
    {
      leaders: send.leaders,
      warmWindows: send.warmWindows,
      deny: send.deny,
      slotOrigins: slotOriginsOf(config.cluster),
    },
  );
  const chain = createChain(
    {
      clock,
      rounds,
      log,
      router,
      onLanded: (signature, slot, error) =>
        landing.seen(signature, { slot, confirmed: false, error }),
      onConfirmed: (slot) => landing.confirmed(slot),
      busy: () => landing.inFlight > 0,
      native: deps.engine.native,
      openGeyser: deps.parts.openGeyser,
    },
    { ...config.cluster, accounts: config.tip.accounts },
  );
  const holder = createIdentityHolder({ log, sender }, identity, config.identity.keypair);
  const adopt = (): void => deps.routes?.beforeDrain();
  const stages = { chain, router, sender, scorecard, receipts, adopt, usage };
  const landing: Landing = buildLanding(config, { clock: rounds, log, ...stages });
  const sending = sendingStep(sender, send.bind);
  const bottomUp: readonly Step[] = [receipts, sending, landing, router, chain];
  return { receipts, sender, outcomes, scorecard, router, chain, holder, landing, bottomUp };
}

/** Which node each source of slots speaks for: sources of one host have one vote together. */
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

/** The sender, whose start fails where its address is not one of this machine. */
function sendingStep(sender: Step, binds: readonly ListenAddress[]): Step {
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

/** Without a current slot nobody is sent to. */
const NO_PLAN = { slot: 0, send: [], warm: [] } as const;

function transportOf({ host, send }: Config, identity: Identity, deps: LeaderSideDeps): Transport {
  const { clock, log, engine, parts } = deps;
  const { idleTimeoutMs } = QUIC_TRANSPORT_DEFAULTS;
  const busyPollUs = busyPollOf(host, engine, availableParallelism());
  if (engine.name === "portable") {
    const options = { ...QUIC_TRANSPORT_DEFAULTS, ...portableBindOf(send.bind) };
    return needed(parts.createQuicTransport)({ clock, identity }, options);
  }
  const { keepAliveMs, handshakeMs } = SENDER_DEFAULTS;
  return createNativeTransport(
    { native: engine.native, identity, log, routes: deps.routes },
    {
      binds: send.bind.map(formatListen),
      busyPollUs,
      idleTimeoutMs,
      keepAliveMs,
      admissionTimeoutMs: handshakeMs + idleTimeoutMs,
      queuePerPeer: send.queuePerPeer,
      copyTtlMs: send.copyTtlMs,
    },
  );
}

/**
 * The portable engine has one socket for each family; an address of one leaves the other to its
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
 * How long a thread looks for work before it sleeps; 0: not at all.
 *
 * @throws SetupError where that would take the time of others
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
