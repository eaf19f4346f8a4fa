/**
 * The result of a run as one line of JSON: the machine, the options, the measurements. All
 * latencies are in microseconds, without the warm-up.
 */

import { appendFileSync, mkdirSync } from "node:fs";
import { loadavg } from "node:os";
import { dirname } from "node:path";
import { build } from "hdr-histogram-js";
import { commit, type Machine, machine } from "../machine.ts";
import type { Shots } from "./generator.ts";
import type { LoadOptions } from "./options.ts";

const LOAD_BEFORE = round(loadavg()[0] ?? 0);

export interface Quantiles {
  readonly count: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export interface LoadResult {
  readonly at: string;
  readonly machine: Machine & {
    /** The load average over the minute before the run; above 0 other processes disturbed it. */
    readonly load_before: number;
  };
  readonly node: string;
  readonly commit: string | null;
  readonly options: LoadOptions;
  /** Responses a second over the measured time: the part of the offered rate that the edge held. */
  readonly rate_held: number;
  readonly sent: number;
  readonly accepted: number;
  /** Accepted, but never at a leader; null where the run has no leader. */
  readonly lost: number | null;
  /** Requests that were not accepted, by reason. */
  readonly errors: Readonly<Record<string, number>>;
  /** From due to written: the generator's own lateness. */
  readonly late_us: Quantiles | null;
  /** From due to the response. */
  readonly answer_us: Quantiles | null;
  /** From due to the first arrival at a leader. */
  readonly leader_us: Quantiles | null;
  /** From the request's last byte at the edge to the first delivery on the wire, by the edge. */
  readonly wire_us: Quantiles | null;
  /** CPU time of the complete edge process per accepted transaction. */
  readonly edge_cpu_us: number | null;
  readonly edge_rss_mb: number | null;
}

/** Observations of the edge's process and of the leaders. */
export interface Seen {
  /** First arrival at a leader by transaction, NaN for none; null without leaders. */
  readonly arrivedNs: Float64Array | null;
  /** Receipt to wire by transaction in microseconds, NaN for none. */
  readonly wireUs: Float64Array | null;
  readonly edgeCpuUs: number | null;
  readonly edgeRssMb: number | null;
}

/** Summarizes the requests from `first` on. */
export function summarize(
  shots: Shots,
  first: number,
  options: LoadOptions,
  seen: Seen,
): LoadResult {
  const { dueNs, sentNs, respondedNs, faults } = shots;
  const indexes = Array.from({ length: dueNs.length - first }, (_, offset) => first + offset);
  const accepted = indexes.filter((index) => faults[index] === "");
  const since = (endNs: Float64Array) => (index: number) =>
    ((endNs[index] ?? Number.NaN) - (dueNs[index] ?? Number.NaN)) / 1000;
  const { arrivedNs, wireUs } = seen;
  const lost = accepted.filter((index) => Number.isNaN(arrivedNs?.[index] ?? Number.NaN)).length;
  return {
    at: new Date().toISOString(),
    machine: { ...machine(), load_before: LOAD_BEFORE },
    node: process.version,
    commit: commit(),
    // The kept line contains no key, which is a secret of the edge's user, and no path of a
    // machine.
    options: { ...options, key: null, results: null },
    rate_held: round(heldRate(indexes, dueNs, respondedNs)),
    sent: indexes.filter((index) => !Number.isNaN(sentNs[index])).length,
    accepted: accepted.length,
    lost: arrivedNs === null ? null : lost,
    errors: countFaults(indexes, faults),
    late_us: quantiles(indexes.map(since(sentNs))),
    answer_us: quantiles(accepted.map(since(respondedNs))),
    leader_us: arrivedNs === null ? null : quantiles(accepted.map(since(arrivedNs))),
    wire_us: wireUs === null ? null : quantiles(accepted.map((index) => wireUs[index] ?? NaN)),
    edge_cpu_us: seen.edgeCpuUs === null ? null : round(seen.edgeCpuUs / accepted.length),
    edge_rss_mb: seen.edgeRssMb === null ? null : round(seen.edgeRssMb),
  };
}

/** Quantiles of all values but NaN, to three digits; null for none. */
export function quantiles(valuesUs: readonly number[]): Quantiles | null {
  // In tenths of a microsecond, because the histogram stores integers.
  const histogram = build({ highestTrackableValue: 6e9, numberOfSignificantValueDigits: 3 });
  for (const value of valuesUs) {
    if (!Number.isNaN(value)) histogram.recordValue(Math.max(0, Math.round(value * 10)));
  }
  if (histogram.totalCount === 0) return null;
  const at = (percentile: number): number => histogram.getValueAtPercentile(percentile) / 10;
  return {
    count: histogram.totalCount,
    p50: at(50),
    p90: at(90),
    p99: at(99),
    p999: at(99.9),
    max: histogram.maxValue / 10,
  };
}

/** Appends the result to a file of one JSON object per line. */
export function keep(result: LoadResult, file: string): void {
  mkdirSync(dirname(file), { recursive: true });
  appendFileSync(file, `${JSON.stringify(result)}\n`);
}

function heldRate(
  indexes: readonly number[],
  dueNs: Float64Array,
  respondedNs: Float64Array,
): number {
  let lastNs = 0;
  let responses = 0;
  for (const index of indexes) {
    const atNs = respondedNs[index] ?? Number.NaN;
    if (Number.isNaN(atNs)) continue;
    responses += 1;
    if (atNs > lastNs) lastNs = atNs;
  }
  const firstNs = dueNs[indexes[0] ?? 0] ?? 0;
  // At least the schedule's own length: no rate above the offered one was held.
  const periodNs = (dueNs[1] ?? 0) - (dueNs[0] ?? 0);
  const lengthNs = Math.max(lastNs - firstNs, indexes.length * periodNs);
  return lengthNs > 0 ? (responses * 1e9) / lengthNs : 0;
}

function countFaults(
  indexes: readonly number[],
  faults: readonly (string | null)[],
): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const index of indexes) {
    const fault = faults[index] ?? (faults[index] === null ? "no_answer" : "");
    if (fault !== "") counts[fault] = (counts[fault] ?? 0) + 1;
  }
  return counts;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
