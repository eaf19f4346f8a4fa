/**
 * Runs every micro bench: each `*.bench.ts` below this folder exports `build`, which makes its
 * Bench, asserts that the measured code is correct, and adds its tasks. Prints a table, and appends
 * a line of JSON per task to `bench/results/micro.ndjson`. Words on the command line select the
 * files whose path contains one of them: `npm run bench -- decode`.
 */

import { appendFileSync, mkdirSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import type { Bench, Task } from "tinybench";
import { commit, machine } from "../machine.ts";

interface Row {
  readonly file: string;
  readonly task: string;
  readonly samples: number;
  readonly mean_ns: number;
  readonly p50_ns: number;
  readonly p99_ns: number;
  readonly p999_ns: number;
  /** The half width of the mean's 95 % interval, in percent of the mean. */
  readonly spread_percent: number;
  readonly per_second: number;
}

const HERE = import.meta.dirname;
const RESULTS = join(HERE, "../results");

const words = process.argv.slice(2);
const files = readdirSync(HERE, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".bench.ts"))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort();
if (files.length === 0) throw new Error(`no bench has ${words.join(" or ")} in its path`);

const rows: Row[] = [];
for (const file of files) {
  const bench = await (await builderOf(join(HERE, file)))();
  await bench.run();
  for (const task of bench.tasks) rows.push(rowOf(file, task));
}
print(rows);
keep(rows);

/** The `build` of a file, imported by name and therefore untyped until it is checked. */
async function builderOf(path: string): Promise<() => Promise<Bench>> {
  const module: unknown = await import(pathToFileURL(path).href);
  if (typeof module === "object" && module !== null && "build" in module) {
    // The convention of this folder; a violation fails immediately.
    if (typeof module.build === "function") return module.build as () => Promise<Bench>;
  }
  throw new Error(`${relative(process.cwd(), path)} exports no function build`);
}

function rowOf(file: string, task: Task): Row {
  const { result } = task;
  if (result.state === "errored") {
    throw new Error(`${file}: ${task.name} failed`, { cause: result.error });
  }
  if (result.state !== "completed") throw new Error(`${file}: ${task.name} is ${result.state}`);
  const { latency } = result;
  const ns = (ms: number): number => Math.round(ms * 1e7) / 10;
  return {
    file: file.replace(/\.bench\.ts$/, ""),
    task: task.name,
    samples: latency.samplesCount,
    mean_ns: ns(latency.mean),
    p50_ns: ns(latency.p50),
    p99_ns: ns(latency.p99),
    p999_ns: ns(latency.p999),
    spread_percent: Math.round(latency.rme * 100) / 100,
    per_second: Math.round(1_000 / latency.mean),
  };
}

function print(list: readonly Row[]): void {
  console.table(
    Object.fromEntries(
      list.map(({ file, task, ...stats }) => [`${file}: ${task}`, stats] as const),
    ),
  );
}

function keep(list: readonly Row[]): void {
  const run = {
    at: new Date().toISOString(),
    machine: machine(),
    node: process.version,
    commit: commit(),
  };
  mkdirSync(RESULTS, { recursive: true });
  const lines = list.map((row) => `${JSON.stringify({ ...run, ...row })}\n`);
  appendFileSync(join(RESULTS, "micro.ndjson"), lines.join(""));
}
