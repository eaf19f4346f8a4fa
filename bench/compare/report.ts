/** The output of a comparison: lines of results, the table of docs/benchmarks.md, and a plot. */

import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { commit, machine } from "../machine.ts";
import { drawSpans } from "../plot.ts";
import { writeMeasured } from "../readme.ts";
import type { CompareOptions } from "./options.ts";
import type { SideName } from "./sides.ts";
import { type Soak, type SoakSample, trendOf } from "./soak.ts";
import type { Turn } from "./turn.ts";
import { disturbance, type KeptTurn } from "./undisturbed.ts";

/** The numbers of a row; times in microseconds. */
export interface Stats {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly cpu: number;
  readonly late_p50: number;
  readonly lost: number;
  readonly refused: number;
}

export interface Row {
  readonly side: SideName;
  readonly rate: number;
  /** The median of each number over the rounds; losses are summed. */
  readonly median: Stats;
  readonly rounds: readonly KeptTurn[];
}

export interface Held {
  readonly side: SideName;
  readonly rate: number;
  readonly p99_us: number;
  readonly cpu_us: number;
  /** Whether it was the last rate tried. */
  readonly is_end: boolean;
}

const LOAD_BEFORE = loadavg()[0] ?? 0;
const RESULTS = join(import.meta.dirname, "../results");

export function medianOf(rounds: readonly Turn[]): Stats {
  const median = (pick: (turn: Turn) => number): number => {
    const values = rounds.map(pick).sort((a, b) => a - b);
    return Math.round((values[Math.floor(values.length / 2)] ?? 0) * 10) / 10;
  };
  const sum = (pick: (turn: Turn) => number): number =>
    rounds.reduce((all, turn) => all + pick(turn), 0);
  return {
    p50: median((turn) => turn.one_way_us.p50),
    p99: median((turn) => turn.one_way_us.p99),
    p999: median((turn) => turn.one_way_us.p999),
    cpu: median((turn) => turn.cpu_us),
    late_p50: median((turn) => turn.late_us.p50),
    lost: sum((turn) => turn.lost),
    refused: sum((turn) => turn.refused),
  };
}

export function rowText({ side, rate, median }: Row): string {
  const { p50, p99, p999, cpu, lost, refused, late_p50 } = median;
  return (
    `${String(rate).padStart(6)} ${side.padEnd(16)} p50 ${p50} p99 ${p99} p99.9 ${p999} ` +
    `cpu ${cpu} late ${late_p50} lost ${lost} refused ${refused}`
  );
}

/** Appends the results, and rewrites the plot and the part of docs/benchmarks.md. */
export function keep(
  options: CompareOptions,
  rows: readonly Row[],
  held: readonly Held[],
  soaked: Soak | null,
): void {
  const about = {
    at: new Date().toISOString(),
    machine: { ...machine(), load_before: LOAD_BEFORE },
    node: process.version,
    commit: commit(),
    endpoint: options.endpoint,
    seconds: options.seconds,
  };
  const lines = [
    ...rows.map((row) => ({ ...about, kind: "latency", ...row })),
    ...held.map((row) => ({ ...about, kind: "capacity", ...row })),
    ...(soaked === null ? [] : [{ ...about, kind: "soak", ...soaked }]),
  ];
  mkdirSync(RESULTS, { recursive: true });
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  appendFileSync(join(RESULTS, "compare.ndjson"), text);
  if (rows.length > 0) {
    const spans = rows.map((row) => ({ ...row.median, group: `${row.rate} tx/s`, name: row.side }));
    const title = "Client's send to Agave's receive: p50, p99, p99.9 in microseconds";
    writeFileSync(join(RESULTS, "compare.svg"), drawSpans(title, spans));
    writeMeasured("compare", tableOf(rows));
  }
  if (held.length > 0) writeMeasured("capacity", heldTable(held));
  if (soaked !== null) writeMeasured("soak", soakText(soaked));
}

function tableOf(rows: readonly Row[]): string {
  return [
    "| tx/s | path | p50 | p99 | p99.9 | CPU a tx | lost |",
    "|---|---|---|---|---|---|---|",
    ...rows.map(({ side, rate, median: { p50, p99, p999, cpu, lost } }) => {
      const us = (value: number): string => Math.round(value).toLocaleString("en-US");
      return (
        `| ${rate.toLocaleString("en-US")} | ${side} | ${us(p50)} us | ${us(p99)} us ` +
        `| ${us(p999)} us | ${us(cpu)} us | ${lost} |`
      );
    }),
    "",
    disturbance(rows.flatMap(({ rounds }) => rounds)),
  ].join("\n");
}

function heldTable(held: readonly Held[]): string {
  return [
    "| path | highest rate held | p99 there | CPU a tx |",
    "|---|---|---|---|",
    ...held.map(
      ({ side, rate, p99_us, cpu_us, is_end }) =>
        `| ${side} | ${rate.toLocaleString("en-US")} tx/s${is_end ? " or more" : ""} ` +
        `| ${(p99_us / 1000).toFixed(1)} ms | ${Math.round(cpu_us)} us |`,
    ),
  ].join("\n");
}

/** A table of what was watched, with the slope and its standard error. */
export function soakText({ rate, accepted, refused, lost, samples }: Soak): string {
  const watched: readonly [string, (sample: SoakSample) => number][] = [
    ["resident memory, MB", ({ rss_mb }) => rss_mb],
    ["open files", ({ open_files }) => open_files],
    ["event-loop delay p99, ms", ({ loop_delay_ms }) => loop_delay_ms],
  ];
  const minutes = Math.round((samples.at(-1)?.seconds ?? 0) / 60);
  const count = (value: number): string => value.toLocaleString("en-US");
  return [
    `${minutes} minutes at ${count(rate)} tx/s: ${count(accepted)} transactions accepted, ` +
      `${count(refused)} refused, ${count(lost)} lost.`,
    "",
    "| of the edge | mean | change an hour |",
    "|---|---|---|",
    ...watched.map(([name, pick]) => {
      const { mean, perHour, error } = trendOf(samples, pick);
      return `| ${name} | ${mean.toFixed(1)} | ${perHour.toFixed(2)} ± ${error.toFixed(2)} |`;
    }),
  ].join("\n");
}
