/**
 * An edge on a simulated cluster with Alpenglow, where windows are skipped, slots have two banks,
 * no slot passes for seconds, the node is behind, and the cluster migrates and uses slot numbers
 * again, while the RPC goes down and kill -9 ends the edge. Afterwards: every accepted transaction
 * whose blockhash stayed valid has landed, and every receipt says what the chain says.
 *
 * CHAOS_SEEDS and CHAOS_SEED choose the number of seeds and the first one. The cluster, the faults
 * and their times are the same for a seed; the machine determines what is in flight then. After a
 * kill the client submits again what has no final receipt: an edge keeps receipts in memory.
 */

import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import type { ClusterOptions } from "../../src/sandbox/cluster.ts";
import type { BankCounters } from "../../src/sandbox/cluster-bank.ts";
import { fromBase58 } from "../support/base58.ts";
import { type ClusterGeyser, startClusterGeyser } from "../support/cluster-geyser.ts";
import { type EdgeProcess, startEdgeProcess, untilReady } from "../support/edge-process.ts";
import { WIDE_KEY } from "../support/flow.ts";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import { type LandingNetwork, startLandingNetwork } from "../support/landing-network.ts";
import { freePort } from "../support/ports.ts";
import { createRng, type Rng } from "../support/rng.ts";
import { pause } from "./processes.ts";

const SEEDS = Number(process.env["CHAOS_SEEDS"] ?? 2);
const FIRST_SEED = Number(process.env["CHAOS_SEED"] ?? 1);
/** Any number except 0. */
const CLIENT_SEED = 1_000_003;
const SLOT_MS = 100;
/** How long the client sends. */
const WORK_MS = 15_000;
/** Longer than a blockhash lives, with stalls. */
const SETTLE_MS = 120_000;

interface Plan {
  readonly cluster: Partial<ClusterOptions>;
  /** Whether the edge has gRPC too. */
  readonly grpc: boolean;
  /** When the edge is killed and how long it is away; null: never. */
  readonly kill: Outage | null;
  readonly rpcOutage: Outage | null;
}

interface Outage {
  readonly afterMs: number;
  readonly awayMs: number;
}

/**
 * Every second seed migrates, the others have Alpenglow from the first slot on; two of four have
 * gRPC.
 */
function planOf(seed: number): Plan {
  const rng = createRng(seed);
  const outage = (awayMs: number): Outage => ({
    afterMs: 2_000 + rng.below(WORK_MS - 4_000),
    awayMs: rng.below(awayMs),
  });
  const migration = { afterSlots: 40 + rng.below(20), voteOnlySlots: 30 + rng.below(40) };
  const alpenglow = {
    skipTimeoutMs: 400 + rng.below(300),
    stallShare: 0.05,
    stallMs: 1_500 + rng.below(2_000),
    twoBanksShare: 0.4,
    behindShare: 0.2,
    migration: seed % 2 === 0 ? migration : null,
  };
  const cluster = { slotMs: SLOT_MS, skipShare: 0.15, seed, alpenglow } as const;
  return {
    cluster: { ...cluster, consensus: "alpenglow" },
    grpc: seed % 4 >= 2,
    kill: rng.chance(2) ? outage(500) : null,
    rpcOutage: rng.chance(2) ? outage(2_000) : null,
  };
}

/** A transaction that an edge accepted. */
interface Accepted {
  readonly signature: string;
  readonly bytes: Uint8Array;
  /** Whether its blockhash is that of a confirmed block, which is never given up. */
  readonly isSafe: boolean;
  /** Its final receipt. */
  end: Receipt | null;
}

/** The fields that the test reads of a receipt. */
interface Receipt {
  readonly state: string;
  readonly landing: { readonly slot: number | null; readonly reason: string | null };
}

const FINAL: ReadonlySet<string> = new Set(["landed", "expired", "dropped"]);

const undo: (() => unknown)[] = [];
const totals: Partial<Record<keyof BankCounters, number>> = {};

afterEach(async () => {
  for (const act of undo.splice(0).toReversed()) await act();
});
async function setUp(plan: Plan) {
  const geyser: ClusterGeyser | null = plan.grpc ? await startClusterGeyser() : null;
  if (geyser !== null) undo.push(() => geyser.geyser.stop());
  const observer = geyser?.observer ?? null;
  const network = await startLandingNetwork({ cluster: { ...plan.cluster, observer } });
  undo.push(() => network.stop());
  const httpPort = await freePort();
  const cluster = geyser === null ? "" : `grpc_url = "${geyser.geyser.url}"`;
  const start = async (): Promise<EdgeProcess> => {
    const edge = await startEdgeProcess(network, {
      ...{ httpPort, cluster },
      more: '[landing]\npoll = "200ms"\n',
    });
    undo.push(() => edge.remove());
    return edge;
  };
  return { network, start };
}

/** Sends transactions and reads their receipts, of whichever edge runs. */
class Client {
  readonly accepted: Accepted[] = [];
  readonly #network: LandingNetwork;
  readonly #rng: Rng;
  #edge: EdgeProcess;

  constructor(network: LandingNetwork, rng: Rng, edge: EdgeProcess) {
    this.#network = network;
    this.#rng = rng;
    this.#edge = edge;
  }

  async work(untilMs: number): Promise<void> {
    while (systemClock.nowNs() / 1e6 < untilMs) {
      await this.#submit();
      await pause(20 + this.#rng.below(40));
    }
  }

  /** Submits again what has no final receipt, until the edge accepts it. */
  async moveTo(edge: EdgeProcess): Promise<void> {
    this.#edge = edge;
    for (const each of this.open()) {
      while ((await this.#post(each.bytes)) !== 200) await pause(20);
    }
  }

  open(): readonly Accepted[] {
    return this.accepted.filter(({ end }) => end === null);
  }

  async readReceipts(): Promise<void> {
    for (const each of this.open()) each.end = await this.#finalReceipt(each.signature);
  }

  async #submit(): Promise<void> {
    const { cluster } = this.#network;
    const isSafe = !this.#rng.chance(8);
    const commitment = isSafe ? "confirmed" : "processed";
    const { bytes, signature } = this.#network.tipped(
      fromBase58(cluster.latestBlockhash(commitment)),
    );
    if ((await this.#post(bytes)) !== 200) return;
    this.accepted.push({ signature, bytes, isSafe, end: null });
  }

  async #post(bytes: Uint8Array): Promise<number | null> {
    // Null: the edge was killed, or has not started yet.
    return this.#edge.post(bytes).catch(() => null);
  }

  async #finalReceipt(signature: string): Promise<Receipt | null> {
    try {
      const url = `${this.#edge.url}/api/v1/transactions/${signature}`;
      const response = await fetch(url, { headers: { "api-x-token": WIDE_KEY } });
      if (response.status !== 200) return null;
      // The receipt, as docs/api.md shows it.
      const receipt = (await response.json()) as Receipt;
      return FINAL.has(receipt.state) ? receipt : null;
    } catch {
      // It was killed, or has not started yet.
      return null;
    }
  }
}

/** Resolves once the time since `startMs` has passed. */
function pauseUntil(startMs: number, afterMs: number): Promise<void> {
  return pause(Math.max(0, startMs + afterMs - systemClock.nowNs() / 1e6));
}

async function runSeed(seed: number): Promise<void> {
  const plan = planOf(seed);
  const { network, start } = await setUp(plan);
  const { cluster } = network;
  let edge = await start();
  await untilReady(edge);
  const client = new Client(network, createRng(seed + CLIENT_SEED), edge);
  const startMs = systemClock.nowNs() / 1e6;

  const killEdge = async ({ afterMs, awayMs }: Outage): Promise<void> => {
    await pauseUntil(startMs, afterMs);
    await client.readReceipts();
    edge.child.kill("SIGKILL");
    await edge.exited;
    await pause(awayMs);
    edge = await start();
    await client.moveTo(edge);
  };
  const stopRpc = async ({ afterMs, awayMs }: Outage): Promise<void> => {
    await pauseUntil(startMs, afterMs);
    await cluster.stopRpc();
    await pause(awayMs);
    await cluster.startRpc();
  };
  await Promise.all([
    client.work(startMs + WORK_MS),
    plan.kill === null ? null : killEdge(plan.kill),
    plan.rpcOutage === null ? null : stopRpc(plan.rpcOutage),
  ]);

  const lastMs = systemClock.nowNs() / 1e6 + SETTLE_MS;
  while (client.open().length > 0 && systemClock.nowNs() / 1e6 < lastMs) {
    await client.readReceipts();
    await pause(200);
  }
  for (const [name, count] of Object.entries(cluster.counters)) {
    const key = name as keyof BankCounters;
    totals[key] = (totals[key] ?? 0) + count;
  }
  const { accepted } = client;
  const ends = accepted.map(({ end }) => end?.state ?? "none");
  const countOf = (state: string): number => ends.filter((each) => each === state).length;
  const { grpc, kill, rpcOutage } = plan;
  const facts = {
    ...{ seed, grpc, kill: kill !== null, rpcOutage: rpcOutage !== null },
    ...{ accepted: accepted.length, landed: countOf("landed"), expired: countOf("expired") },
    ...{ dropped: countOf("dropped"), open: client.open().length, chain: cluster.counters },
  };
  process.stdout.write(`${JSON.stringify(facts)}\n`);
  expect(accepted.length).toBeGreaterThan(10);
  // What a receipt says, and what the chain says.
  const says = accepted.map(({ signature, end }) => ({
    signature,
    slot: end?.state === "landed" ? end.landing.slot : null,
    hasEnded: end !== null,
  }));
  expect(says).toEqual(
    accepted.map(({ signature }) => ({
      signature,
      slot: cluster.statusOf(signature)?.slot ?? null,
      hasEnded: true,
    })),
  );
  const lost = accepted.filter(({ isSafe, end }) => isSafe && end?.state !== "landed");
  expect(lost.map(({ signature, end }) => ({ signature, end }))).toEqual([]);
  expectScrapedBalance(await edge.metrics());
}

describe(`Alpenglow, ${SEEDS} seeds from ${FIRST_SEED} on`, () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) {
    it(`seed ${seed}: nothing accepted is lost, and receipts agree with the chain`, async () => {
      await runSeed(seed);
    });
  }

  it.runIf(SEEDS > 1)("went through every event", () => {
    for (const name of [
      "skipped",
      "stalls",
      "blocksGivenUp",
      "landedGivenUp",
      "behind",
      "migrations",
      "voteOnlyLost",
    ] as const) {
      expect([name, totals[name]]).toEqual([name, expect.toSatisfy((count) => Number(count) > 0)]);
    }
  });
});
