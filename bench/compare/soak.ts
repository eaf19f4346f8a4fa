/**
 * `--soak`: a long load through one edge, which is watched for what grows: resident memory, open
 * files, and the delay of the main thread's event loop.
 */

import { readdirSync } from "node:fs";
import { parsePrometheus, seriesValue } from "../../test/support/prometheus.ts";
import { rssMb } from "../load/children.ts";
import type { Side, Stage } from "./sides.ts";
import { takeTurn } from "./turn.ts";

/** Of the edge after one portion of the load. */
export interface SoakSample {
  readonly seconds: number;
  readonly rss_mb: number;
  readonly open_files: number;
  /** p99 since the sample before: of about 120 measurements. */
  readonly loop_delay_ms: number;
}

export interface Soak {
  readonly rate: number;
  readonly accepted: number;
  readonly refused: number;
  readonly lost: number;
  readonly samples: readonly SoakSample[];
}

export interface SoakOptions {
  readonly rate: number;
  readonly seconds: number;
  readonly json: boolean;
}

/** A line fitted to the samples after the first sixth, in which caches fill. */
export interface Trend {
  readonly mean: number;
  readonly perHour: number;
  /** The standard error of `perHour`. */
  readonly error: number;
}

const SAMPLE_SECONDS = 30;
const FILLING = 1 / 6;
const HOUR_SECONDS = 3600;

export async function soak(stage: Stage, side: Side, options: SoakOptions): Promise<Soak> {
  const { rate, json } = options;
  const startMs = Date.now();
  const elapsed = (): number => (Date.now() - startMs) / 1000;
  const samples: SoakSample[] = [];
  let [accepted, refused, lost] = [0, 0, 0];
  while (elapsed() < options.seconds) {
    // A scrape in the middle would begin the measurement of the event loop anew.
    const load = { rate, seconds: SAMPLE_SECONDS, json, scraped: false };
    const turn = await takeTurn(stage, side, load);
    accepted += turn.accepted;
    refused += turn.refused;
    lost += turn.lost;
    const sample = {
      seconds: elapsed(),
      rss_mb: rssMb(side.pid) ?? Number.NaN,
      open_files: readdirSync(`/proc/${side.pid}/fd`).length,
      loop_delay_ms: await loopDelayMs(side.metricsUrl),
    };
    samples.push(sample);
    console.log(
      `${sample.seconds.toFixed(0)} s: ${accepted} accepted, ${refused} refused, ${lost} lost, ` +
        `p99 ${turn.one_way_us.p99} us, ${sample.rss_mb.toFixed(0)} MB, ` +
        `${sample.open_files} files, event loop ${sample.loop_delay_ms.toFixed(1)} ms`,
    );
  }
  return { rate, accepted, refused, lost, samples };
}

async function loopDelayMs(metricsUrl: string | null): Promise<number> {
  if (metricsUrl === null) return Number.NaN;
  const page = parsePrometheus(await (await fetch(metricsUrl)).text());
  return seriesValue(page, "nodejs_eventloop_lag_p99_seconds", {}) * 1000;
}

/** Least squares. */
export function trendOf(
  samples: readonly SoakSample[],
  pick: (sample: SoakSample) => number,
): Trend {
  const used = samples.slice(Math.floor(samples.length * FILLING));
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const hours = used.map(({ seconds }) => seconds / HOUR_SECONDS);
  const values = used.map(pick);
  const [meanHour, meanValue] = [mean(hours), mean(values)];
  const square = hours.reduce((sum, hour) => sum + (hour - meanHour) ** 2, 0);
  const perHour =
    hours.reduce((sum, hour, at) => sum + (hour - meanHour) * ((values[at] ?? 0) - meanValue), 0) /
    square;
  const residual = hours.reduce(
    (sum, hour, at) => sum + ((values[at] ?? 0) - meanValue - perHour * (hour - meanHour)) ** 2,
    0,
  );
  return { mean: meanValue, perHour, error: Math.sqrt(residual / (used.length - 2) / square) };
}
