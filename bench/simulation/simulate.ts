/**
 * An edge's own planner, sender and landing stage with a simulated cluster, on a virtual clock: the
 * same seed gives the same results on any machine.
 *
 * The deciding parts are real: slot clock, planner, leaders with their pacing and reactions, leader
 * stats, and landing with its resends, polls and expiry, joined as in `src/edge/leaders.ts`.
 * Simulated are the network, the leaders and the RPC node.
 */

import { NS_PER_MS, NS_PER_S } from "../../src/core/clock.ts";
import { encodeSignature } from "../../src/core/encoding.ts";
import type { FinalState } from "../../src/core/flow.ts";
import type { Log } from "../../src/core/log.ts";
import { createLanding, type Landing } from "../../src/landing/landing.ts";
import { createRouter, type Router } from "../../src/route/router.ts";
import { LeaderStatsTable } from "../../src/send/leader-stats.ts";
import { createSender, type Sender } from "../../src/send/sender.ts";
import { SimulatedCluster } from "./cluster.ts";
import { SimulatedNetwork } from "./network.ts";
import { type Chances, chancesOf, type SimulationOptions, share } from "./options.ts";
import { drawTransaction } from "./transactions.ts";
import { createVirtualClock, type VirtualClock } from "./virtual-clock.ts";

/** Value to number of occurrences. */
export type Counts = ReadonlyMap<number, number>;

export interface SimulationResult {
  readonly options: SimulationOptions;
  readonly accepted: number;
  /** No leader accepted them: their clients get an immediate rejection. */
  readonly refused: number;
  readonly landed: number;
  readonly expired: number;
  readonly dropped: number;
  readonly inFlight: number;
  readonly reasons: Readonly<Record<string, number>>;
  /** Slots from the one in progress at receipt to that of the block. */
  readonly deltas: Counts;
  /** The same for a sender that always reaches every live leader immediately. */
  readonly floor: Counts;
  readonly deliveries: number;
  readonly deliveryReasons: Readonly<Record<string, number>>;
  readonly resends: number;
  readonly forked: number;
  readonly connections: number;
  readonly ignored: number;
  readonly lostShare: number;
  readonly outOfTurn: number;
  readonly heldLost: number;
  readonly events: number;
}

const SILENT: Log = { info: () => {}, warn: () => {}, error: () => {} };
/** Slots before the first transaction: the edge learns the cluster's state. */
const WARM_UP_SLOTS = 200;
/** Slots after the last transaction, so that each reaches a final state. */
const COOL_DOWN_SLOTS = 400;
/** The configuration's defaults. */
const LANDING = { countMax: 65_536, trackForMs: 120_000, pollMs: 400, resendsPerSecond: 2_000 };
const WARM_WINDOWS = 4;
const COPY_TTL_MS = 800;

export const SLOTS_MIN = 2 * (WARM_UP_SLOTS + COOL_DOWN_SLOTS);

interface Simulated {
  readonly clock: VirtualClock;
  readonly cluster: SimulatedCluster;
  readonly network: SimulatedNetwork;
  readonly router: Router;
  readonly sender: Sender;
  readonly landing: Landing;
}

/** @throws RangeError for fewer slots than warm-up and cool-down take */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  if (options.slots < SLOTS_MIN || options.slots % 4 !== 0) {
    throw new RangeError(`${options.slots} slots: needed are ${SLOTS_MIN} or more, in fours`);
  }
  const chances = chancesOf(options.seed);
  const finalStates: FinalState[] = [];
  const parts = join(options, chances, (end) => finalStates.push(end));
  const { clock, cluster, router, sender, landing } = parts;
  await sender.start();
  landing.start();
  router.start();
  router.setEpoch(cluster.epoch);
  router.setContacts(cluster.leaders);
  cluster.start((kind, slot) => router.slotEvent(kind, slot));
  const traffic = new Traffic(options, chances, parts);
  traffic.start();
  await clock.runUntil(cluster.startNs(cluster.firstSlot + options.slots) - 1);
  return resultOf(options, parts, traffic, finalStates);
}

/** The leader-side stages of an edge. */
function join(
  options: SimulationOptions,
  chances: Chances,
  onFinalState: (end: FinalState) => void,
): Simulated {
  const clock = createVirtualClock();
  const cluster = new SimulatedCluster(options, clock, chances);
  const network = new SimulatedNetwork(options, clock, chances, cluster);
  const leaderStats = new LeaderStatsTable();
  const log = SILENT;
  const sender: Sender = createSender(
    {
      clock,
      transport: network,
      log,
      leaderStats,
      onOutcome: (outcome) => landing.outcome(outcome),
    },
    {
      deliveryTtlMs: COPY_TTL_MS,
      random: () => share(chances.policy),
      slotTimeMs: () => router.slotTimeMs,
      stakeShareOf: (identity) => router.stakeShareOf(identity),
    },
  );
  const router: Router = createRouter(
    {
      clock,
      times: leaderStats,
      onPlan(plan) {
        const now = plan ?? { slot: 0, send: [], warm: [] };
        sender.usePlan(now);
        landing.usePlan(now);
      },
    },
    { leaders: options.sendLeaders, warmWindows: WARM_WINDOWS },
  );
  const landing: Landing = createLanding(
    {
      clock,
      log,
      resender: sender,
      cluster: { ...cluster.view, currentSlot: () => router.currentSlot() },
      onFinalState(end) {
        onFinalState(end);
        const leader = end.kind === "landed" ? router.leaderAt(end.slot) : null;
        if (leader !== null) leaderStats.landed(leader);
      },
      onProcessed: () => {},
      onRolledBack: () => {},
    },
    { ...LANDING, leaders: options.sendLeaders, deliveryTtlMs: COPY_TTL_MS },
  );
  return { clock, cluster, network, router, sender, landing };
}

/** Transactions at random times, as from many clients. */
class Traffic {
  refused = 0;
  readonly receivedNs: Float64Array;
  readonly #options: SimulationOptions;
  readonly #chances: Chances;
  readonly #parts: Simulated;

  constructor(options: SimulationOptions, chances: Chances, parts: Simulated) {
    this.#options = options;
    this.#chances = chances;
    this.#parts = parts;
    this.receivedNs = new Float64Array(options.transactions);
  }

  start(): void {
    const { slots, slotMs, transactions } = this.#options;
    const { cluster, clock } = this.#parts;
    const fromNs = cluster.startNs(cluster.firstSlot + WARM_UP_SLOTS);
    const spanNs = (slots - WARM_UP_SLOTS - COOL_DOWN_SLOTS) * slotMs * NS_PER_MS;
    const times = Array.from(
      { length: transactions },
      () => fromNs + share(this.#chances.traffic) * spanNs,
    ).sort((a, b) => a - b);
    const next = (sequence: number): void => {
      const atNs = times[sequence];
      if (atNs === undefined) return;
      clock.after((atNs - clock.nowNs()) / NS_PER_MS, () => {
        this.#submit(sequence);
        next(sequence + 1);
      });
    };
    next(0);
  }

  #submit(sequence: number): void {
    const { cluster, clock, landing, sender } = this.#parts;
    const nowNs = clock.nowNs();
    this.receivedNs[sequence] = nowNs;
    // The client signed half a second ago, over a blockhash that was confirmed then.
    const height = cluster.heightAt(cluster.slotAt(nowNs - NS_PER_S));
    const { packet, accepted } = drawTransaction(sequence, height, nowNs, this.#chances.traffic);
    cluster.open(packet.bytes, encodeSignature(packet.bytes, accepted.signatureOffset));
    if (sender.accept(packet) > 0) {
      landing.track(packet, accepted, nowNs, "Beta");
      sender.report(packet);
    } else this.refused += 1;
  }
}

function resultOf(
  options: SimulationOptions,
  { clock, cluster, network, sender, landing }: Simulated,
  traffic: Traffic,
  finalStates: readonly FinalState[],
): SimulationResult {
  const { counters } = landing;
  const deltas = new Map<number, number>();
  const floor = new Map<number, number>();
  for (const { kind, packetId, slot } of finalStates) {
    if (kind !== "landed") continue;
    count(deltas, slot - cluster.slotAt(traffic.receivedNs[packetId - 1] ?? 0));
  }
  for (const atNs of traffic.receivedNs)
    count(floor, cluster.earliest(atNs) - cluster.slotAt(atNs));
  return {
    options,
    accepted: counters.accepted,
    refused: traffic.refused,
    landed: counters.landed,
    expired: counters.expired,
    dropped: counters.dropped,
    inFlight: landing.inFlight,
    reasons: positive(counters.reasons),
    deltas,
    floor,
    deliveries: sender.counters.deliveries,
    deliveryReasons: positive(sender.counters.reasons),
    resends: counters.resends,
    forked: cluster.forked,
    connections: network.counters.connections,
    ignored: network.counters.ignored,
    lostShare: network.counters.lost / Math.max(1, network.counters.packets),
    outOfTurn: cluster.outOfTurn,
    heldLost: cluster.heldLost,
    events: clock.events,
  };
}

function count(counts: Map<number, number>, value: number): void {
  counts.set(value, (counts.get(value) ?? 0) + 1);
}

function positive(counts: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).filter(([, value]) => value > 0));
}

/** The smallest value that this share of all does not exceed; NaN for none. */
export function quantile(counts: Counts, part: number): number {
  const total = [...counts.values()].reduce((sum, each) => sum + each, 0);
  let seen = 0;
  for (const [value, times] of [...counts].sort(([a], [b]) => a - b)) {
    seen += times;
    if (seen >= part * total) return value;
  }
  return Number.NaN;
}
