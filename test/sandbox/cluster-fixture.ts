/** Simulated clusters for tests: one with a manual clock, and one that runs on loopback. */

import { randomBytes } from "node:crypto";
import { Connection } from "@solana/web3.js";
import {
  type ClusterOptions,
  createSimulatedCluster,
  type SimulatedCluster,
} from "../../src/sandbox/cluster.ts";
import type { Commitment, Landed } from "../../src/sandbox/cluster-bank.ts";
import type { AlpenglowOptions } from "../../src/sandbox/cluster-timeline.ts";
import { fromBase58 } from "../support/base58.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { freePort } from "../support/ports.ts";
import { type BuiltTransaction, buildTransaction, newKeypair } from "../support/transactions.ts";
import { pace } from "../support/wait.ts";

export const SLOT_MS = 250;
export const LEADERS = [0, 1, 2, 3].map((index) => ({
  identity: newKeypair(index + 1).address,
  address: `127.0.0.1:${9000 + index}`,
}));

/** Options of a cluster with Alpenglow, in which nothing happens unless configured. */
export function alpenglow(options: Partial<AlpenglowOptions> = {}): Partial<ClusterOptions> {
  const calm = { stallShare: 0, stallMs: 3_000, twoBanksShare: 0, behindShare: 0, migration: null };
  return { consensus: "alpenglow", alpenglow: { skipTimeoutMs: 500, ...calm, ...options } };
}

const endings: (() => unknown)[] = [];

/** Registers an action for the end of the test; actions run in reverse order. */
export function atEnd(end: () => unknown): void {
  endings.push(end);
}

/** For `afterEach`. */
export async function endAll(): Promise<void> {
  for (const end of endings.splice(0).reverse()) await end();
}

/** A cluster of four leaders without skipped slots, on a manual clock. */
export async function setUpByHand(options: Partial<ClusterOptions> = {}) {
  const clock = createFakeClock();
  const landed: Landed[] = [];
  const cluster = await createSimulatedCluster({
    clock,
    leaders: LEADERS,
    slotMs: SLOT_MS,
    skipShare: 0,
    epochSlots: 64,
    onLanded: (each) => landed.push(each),
    ...options,
  });
  atEnd(() => cluster.stop());
  await cluster.start();
  const payer = newKeypair();
  cluster.airdrop(payer.address, 10_000_000_000n);
  landed.length = 0;
  const transfer = (commitment: Commitment = "processed"): BuiltTransaction =>
    buildTransaction({
      payer,
      tips: [{ to: randomBytes(32), lamports: 1_000_000 }],
      blockhash: fromBase58(cluster.latestBlockhash(commitment)),
    });
  return { clock, cluster, landed, transfer, payer };
}

/** The leader of the window `windowsAhead` after the current one. */
export function leaderOfWindow(cluster: SimulatedCluster, windowsAhead: number): string {
  return cluster.leaderAt((Math.floor(cluster.currentSlot() / 4) + windowsAhead) * 4);
}

/** A cluster that runs automatically and restarts on its ports, with slots of 50 ms. */
export async function setUpRunning(options: Partial<ClusterOptions> = {}) {
  const clock = createFakeClock();
  const cluster = await createSimulatedCluster({
    clock,
    leaders: LEADERS,
    slotMs: 50,
    skipShare: 0,
    epochSlots: 432,
    rpcPort: await freePort(),
    wsPort: await freePort(),
    ...options,
  });
  atEnd(pace(clock));
  atEnd(() => cluster.stop());
  const { rpcUrl, wsUrl } = await cluster.start();
  const web3 = new Connection(rpcUrl, { wsEndpoint: wsUrl, commitment: "processed" });
  const post = async (body: unknown) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const response = await fetch(rpcUrl, { method: "POST", body: text });
    return { status: response.status, text: await response.text() };
  };
  return { cluster, rpcUrl, wsUrl, web3, post };
}

/** Sends a funded transfer to the current leader. */
export function land(
  cluster: SimulatedCluster,
  blockhash: string,
  payer = newKeypair(),
): BuiltTransaction {
  cluster.airdrop(payer.address, 1_000_000_000n);
  const tips = [{ to: newKeypair().publicKey, lamports: 1_000_000 }];
  const built = buildTransaction({ payer, tips, blockhash: fromBase58(blockhash) });
  cluster.receive(cluster.leaderAt(cluster.currentSlot()), built.bytes);
  return built;
}
