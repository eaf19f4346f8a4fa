/** One turn of one side: a load through it, measured at both ends and in its process. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Side, Stage } from "./sides.ts";

export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** All times in microseconds, without the warm-up. */
export interface Turn {
  readonly count: number;
  readonly accepted: number;
  readonly refused: number;
  readonly first_refusal: string | null;
  readonly lost: number;
  readonly copies: number;
  /** From the write to the leader's receive. */
  readonly one_way_us: Quantiles;
  /** From the due time. */
  readonly from_due_us: Quantiles;
  /** From due time to write: how late the generator was, itself or for lack of responses. */
  readonly late_us: Quantiles;
  /** Processor time of the side's process per transaction. */
  readonly cpu_us: number;
  readonly held_per_second: number;
  /** The share of all processors' time, 0 to 1, that the host took. */
  readonly stolen: number;
}

export interface TurnOptions {
  readonly rate: number;
  readonly seconds: number;
  readonly json: boolean;
  /** Transactions before those that are measured; by default those of 0.4 s. */
  readonly warm?: number;
  /** Whether to scrape the side's metrics in the middle; by default where `warm` is not given. */
  readonly scraped?: boolean;
}

const CONNECTIONS = 64;
const WARM_SECONDS = 0.4;
/** A usual scrape interval of Prometheus. */
const SCRAPE_SECONDS = 15;

let lastRun = 0;
/** Seconds of turns of each side since its last scrape. */
const unscraped = new Map<Side, number>();

/** @throws Error when the generator could not finish */
export async function takeTurn(stage: Stage, side: Side, options: TurnOptions): Promise<Turn> {
  const { rate, seconds, json, scraped = options.warm === undefined } = options;
  lastRun += 1;
  const warm = options.warm ?? Math.ceil(rate * WARM_SECONDS);
  const count = warm + rate * seconds;
  stage.ends.say(
    JSON.stringify({
      run: lastRun,
      address: side.address,
      transport: json ? "json" : "raw",
      groups: [{ rate, accounts: [{ key: stage.key }], connections: CONNECTIONS }],
      count,
      warm,
      pid: side.pid,
    }),
  );
  const scrape = scraped ? scrapeWhenDue(side, seconds) : null;
  const line = await stage.ends.line();
  await scrape;
  // The Rust program in this folder writes it.
  const turn = JSON.parse(line) as Turn | { readonly failed: string };
  if ("failed" in turn) throw new Error(`${side.name} at ${rate}/s: ${turn.failed}`);
  return turn;
}

/** Scrapes as a collector would: once per interval of a side's own turns, in the middle of one. */
async function scrapeWhenDue(side: Side, seconds: number): Promise<void> {
  const since = (unscraped.get(side) ?? SCRAPE_SECONDS) + seconds;
  const isDue = since > SCRAPE_SECONDS;
  unscraped.set(side, isDue ? 0 : since);
  if (side.metricsUrl === null || !isDue) return;
  await sleep((WARM_SECONDS + seconds / 2) * 1000);
  const response = await fetch(side.metricsUrl);
  await response.text();
}
