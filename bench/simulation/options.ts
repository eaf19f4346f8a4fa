/** The properties of a simulated cluster and of its load. */

import { createRng, type Rng } from "../../test/support/rng.ts";

export interface SimulationOptions {
  readonly seed: number;
  /** Leaders of the cluster, with equal stakes. */
  readonly leaders: number;
  readonly slotMs: number;
  /** Round trip between the edge and every leader. */
  readonly rttMs: number;
  /** A packet takes longer by up to this share, drawn for each. */
  readonly jitter: number;
  /** Share of packets that are lost, in both directions. */
  readonly loss: number;
  /** Share of leaders that never respond and produce no blocks. */
  readonly dead: number;
  /** Share of leaders that produce blocks and grant twenty streams a second. */
  readonly saturated: number;
  /** Share of the slots of live leaders that have no block. */
  readonly skip: number;
  /** Share of windows whose last block the cluster forks away. */
  readonly forks: number;
  readonly slots: number;
  readonly transactions: number;
  /** `[send] leaders`. */
  readonly sendLeaders: number;
}

/** An epoch, as an edge on another continent sees it. */
export const SIMULATION_DEFAULTS: SimulationOptions = {
  seed: 1,
  leaders: 50,
  slotMs: 250,
  rttMs: 100,
  jitter: 0.1,
  loss: 0,
  dead: 0,
  saturated: 0,
  skip: 0.01,
  forks: 0.002,
  slots: 432_000,
  transactions: 20_000,
  sendLeaders: 2,
};

/** Independent random streams: draws from one do not change the others. */
export interface Chances {
  readonly schedule: Rng;
  readonly network: Rng;
  readonly traffic: Rng;
  readonly policy: Rng;
}

export function chancesOf(seed: number): Chances {
  const rng = (stream: number): Rng => createRng(Math.imul(seed, 0x9e3779b1) + stream);
  return { schedule: rng(1), network: rng(2), traffic: rng(3), policy: rng(4) };
}

const STEPS = 2 ** 32;

/** From 0 to below 1. */
export function share(rng: Rng): number {
  return rng.below(STEPS) / STEPS;
}
