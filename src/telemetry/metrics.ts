/**
 * The metrics page: reads the stages' plain counters only when scraped.
 *
 * The hot path does not use it. The Prometheus client's metric types store their own values, so the
 * registry receives objects whose `get()` reads the sources instead. A table row without a source,
 * or a source without a row, is an error immediately, at compile time and at run time; a source
 * that violates its row's definition (a missing label, a counter that is not a number) fails the
 * scrape rather than writing a wrong value.
 *
 * All sources are read at one time, so that the values of a page are consistent. Formatting takes
 * milliseconds and is spread over event-loop turns, a few metrics each, so that transactions are
 * processed in between.
 */

import { strict as assert } from "node:assert";
import { setImmediate as nextTurn } from "node:timers/promises";
import { collectDefaultMetrics, type Metric, Registry } from "@prometheus-io/client";
import { NS_PER_S } from "../core/clock.ts";
import type { MetricRow } from "./metric-rows.ts";
import { METRICS } from "./metric-table.ts";

/** A duration histogram as a stage keeps it; `src/runtime/histogram.ts` is one. */
export interface HistogramSource {
  /** Upper bounds in nanoseconds, inclusive, ascending. */
  readonly boundsNs: ArrayLike<number>;
  /** Observations per bound, not cumulative; the last one counts those above every bound. */
  readonly counts: ArrayLike<number>;
  readonly sumNs: number;
}

export interface Sample<Label extends string = string> {
  readonly labels: Readonly<Record<Label, string>>;
  readonly value: number;
}

type Source<Row extends MetricRow> = Row["kind"] extends "histogram"
  ? () => HistogramSource
  : [Row["labels"][number]] extends [never]
    ? () => number
    : () => readonly Sample<Row["labels"][number]>[];

/** One function for each row of a table, called at each scrape. */
export type SourcesOf<Table extends readonly MetricRow[]> = {
  readonly [Name in Table[number]["name"]]: Source<Extract<Table[number], { readonly name: Name }>>;
};

/** The sources of an edge's metrics. */
export type MetricSources = SourcesOf<typeof METRICS>;

export interface Metrics {
  readonly contentType: string;
  /** The page in Prometheus text format 0.0.4; concurrent callers receive the same page. */
  text(): Promise<string>;
}

interface Value {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** `process` adds the client's metrics of the process and its event loop, once per process. */
export function createMetrics(
  sources: MetricSources,
  options: { readonly process: boolean } = { process: true },
): Metrics {
  return createMetricsOf(METRICS, sources, options);
}

/** As `createMetrics`, for the table of another process. */
export function createMetricsOf<const Table extends readonly MetricRow[]>(
  table: Table,
  sources: SourcesOf<Table>,
  options: { readonly process: boolean } = { process: true },
): Metrics {
  const registry = new Registry();
  const readers: (() => void)[] = [];
  const rows = new Set<string>(table.map((row) => row.name));
  const given = new Map<string, unknown>(Object.entries(sources));
  for (const name of given.keys()) {
    assert(rows.has(name), `the source ${name} has no row in the metric table`);
  }
  for (const row of table) {
    const source = given.get(row.name);
    assert(typeof source === "function", `the metric ${row.name} has no source`);
    const { metric, read } = metricOf(row, () => source());
    registry.registerMetric(metric);
    readers.push(read);
  }
  if (options.process) collectProcess(registry);
  let underWay: Promise<string> | null = null;
  return {
    contentType: registry.contentType,
    text() {
      underWay ??= page(registry, readers).finally(() => {
        underWay = null;
      });
      return underWay;
    },
  };
}

/** Formatted in one event-loop turn: about 0.2 ms of work. */
const METRICS_PER_SLICE = 8;

async function page(registry: Registry, readers: readonly (() => void)[]): Promise<string> {
  for (const read of readers) read();
  const parts: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    if (parts.length % METRICS_PER_SLICE === 0) await nextTurn();
    parts.push(await registry.getSingleMetricAsString(name));
  }
  return `${parts.join("\n\n")}\n`;
}

/** Samples of a row with one label, from a stage's record of counters. */
export function samplesBy<Label extends string>(
  label: Label,
  counters: Readonly<Record<string, number>>,
): readonly Sample<Label>[] {
  return Object.entries(counters).map(([name, value]) => ({
    // A computed key widens to string; it is the given label.
    labels: { [label]: name } as Record<Label, string>,
    value,
  }));
}

/** The registry's metric, and the function that reads the source for the page. */
function metricOf(row: MetricRow, source: () => unknown): { metric: Metric; read: () => void } {
  let values: readonly Value[] = [];
  const metric = {
    name: row.name,
    help: row.help,
    type: row.kind,
    get: async () => ({ ...metric, values }),
  };
  const read = (): void => {
    values = valuesOf(row, source());
  };
  // The registry uses only a metric's name and `get()`; its declared type is the union of the
  // client's classes. A test parses the output.
  return { metric: metric as unknown as Metric, read };
}

function valuesOf(row: MetricRow, read: unknown): readonly Value[] {
  // The compiler checked the source's type against the row, through `MetricSources`.
  if (row.kind === "histogram") return histogramValues(row, read as HistogramSource);
  const samples: readonly Sample[] =
    typeof read === "number" ? [{ labels: {}, value: read }] : (read as readonly Sample[]);
  for (const { labels, value } of samples) {
    const named = Object.keys(labels);
    const fits = named.length === row.labels.length && named.every((l) => row.labels.includes(l));
    assert(fits, `${row.name} has the labels ${row.labels}, its source gave ${named}`);
    assert(typeof value === "number", `${row.name} is not a number`);
    assert(row.kind === "gauge" || value >= 0, `the counter ${row.name} is ${value}`);
  }
  return samples;
}

function histogramValues(row: MetricRow, histogram: HistogramSource): readonly Value[] {
  const { boundsNs, counts, sumNs } = histogram;
  assert(counts.length === boundsNs.length + 1, `${row.name} needs one count more than bounds`);
  const values: Value[] = [];
  let count = 0;
  for (let index = 0; index < counts.length; index += 1) {
    count += counts[index] ?? 0;
    const bound = boundsNs[index];
    const le = bound === undefined ? "+Inf" : String(bound / NS_PER_S);
    values.push({ metricName: `${row.name}_bucket`, labels: { le }, value: count });
  }
  values.push({ metricName: `${row.name}_sum`, labels: {}, value: sumNs / NS_PER_S });
  values.push({ metricName: `${row.name}_count`, labels: {}, value: count });
  return values;
}

/**
 * Sampling interval of the event-loop lag. The library's default of 10 ms would wake an idle
 * process 100 times a second.
 */
const LAG_SAMPLE_MS = 250;
const LAG_METRICS = ["min", "max", "mean", "p50", "p90", "p99"];

/**
 * The library samples event-loop utilization with a timer that cannot be disabled, every 100 ms by
 * default. Its two metrics are removed, and the timer almost never fires.
 */
const UTILIZATION_SAMPLE_MS = 24 * 3_600_000;
const UTILIZATION_METRICS = ["summary", "histogram"];

function collectProcess(registry: Registry): void {
  collectDefaultMetrics({
    register: registry,
    eventLoopMonitoringPrecision: LAG_SAMPLE_MS,
    eventLoopUtilizationTimeout: UTILIZATION_SAMPLE_MS,
  });
  for (const name of UTILIZATION_METRICS) {
    registry.removeSingleMetric(`nodejs_eventloop_utilization_${name}`);
  }
  for (const name of LAG_METRICS) withoutPause(registry, `nodejs_eventloop_lag_${name}_seconds`);
  // Gauges named like counters, which Prometheus's linter rejects.
  for (const name of ["handles", "requests", "resources"]) {
    registry.removeSingleMetric(`nodejs_active_${name}_total`);
  }
}

/**
 * Node's histogram records the time between two samples; the lag is the excess over the interval.
 */
function withoutPause(registry: Registry, name: string): void {
  const metric = registry.getSingleMetric(name);
  if (metric === undefined) return;
  registry.removeSingleMetric(name);
  const read = (): Promise<{ readonly values: readonly Value[] }> =>
    // Gauges return these fields, which the declared type of `Metric` omits.
    (metric as unknown as { get(): Promise<{ readonly values: readonly Value[] }> }).get();
  const lag = {
    name,
    get: async () => {
      const given = await read();
      const values = given.values.map((each) => ({
        ...each,
        // Without a sample since the last scrape the minimum is the largest possible number.
        value: each.value > 1e9 ? Number.NaN : Math.max(0, each.value - LAG_SAMPLE_MS / 1000),
      }));
      return { ...given, values };
    },
  };
  // As for `metricOf`.
  registry.registerMetric(lag as unknown as Metric);
}
