/**
 * Formats the results as a table in Markdown: the latest run of each kind, slowest rate first. Run
 * as a program it prints the table of the given file.
 */

import { readFileSync } from "node:fs";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import type { LoadResult, Quantiles } from "./results.ts";

const QUANTILES = "p50 / p99 / p99.9";
const COLUMNS = [
  "tx/s",
  "endpoint",
  "engine",
  "decode",
  "held",
  "lost",
  `receipt to wire ${QUANTILES}`,
  `client to leader ${QUANTILES}`,
  `client to answer ${QUANTILES}`,
  "edge CPU a tx",
  "edge memory",
];
const HEAD = [`| ${COLUMNS.join(" | ")} |`, `|${"---|".repeat(COLUMNS.length)}`];

/** The table of the results in NDJSON text; throws an Error for lines that are not a load. */
export function drawTable(ndjson: string): string {
  const latest = new Map<string, LoadResult>();
  for (const [index, line] of ndjson.split("\n").entries()) {
    if (line.trim() === "") continue;
    const result = readLine(line, index + 1);
    const { rate, endpoint, inline, engine } = result.options;
    latest.set([rate, endpoint, inline, engine].join(), result);
  }
  const sorted = [...latest.values()].sort((a, b) => a.options.rate - b.options.rate);
  return [...HEAD, ...sorted.map(drawRow)].join("\n");
}

/** One row; all times in milliseconds except CPU time. */
export function drawRow(result: LoadResult): string {
  const { options } = result;
  const cells = [
    options.rate.toLocaleString("en"),
    options.endpoint,
    options.engine,
    options.inline,
    `${((100 * result.rate_held) / options.rate).toFixed(1)}%`,
    result.lost === null ? "–" : result.lost,
    drawQuantiles(result.wire_us),
    drawQuantiles(result.leader_us),
    drawQuantiles(result.answer_us),
    result.edge_cpu_us === null ? "–" : `${Math.round(result.edge_cpu_us)} us`,
    result.edge_rss_mb === null ? "–" : `${Math.round(result.edge_rss_mb)} MB`,
  ];
  return `| ${cells.join(" | ")} |`;
}

/** One sentence on the machine, for beneath the table. */
export function drawMachine({ machine, node, commit, at }: LoadResult): string {
  const built = commit === null ? "" : `, commit ${commit}`;
  return `${machine.cores} cores of ${machine.cpu}, Node ${node}${built}, ${at.slice(0, 10)}.`;
}

function drawQuantiles(of: Quantiles | null): string {
  if (of === null) return "–";
  return `${[of.p50, of.p99, of.p999].map((us) => (us / 1000).toFixed(2)).join(" / ")} ms`;
}

function readLine(line: string, number: number): LoadResult {
  // This bench writes the file; the check detects another file.
  const result = JSON.parse(line) as Partial<LoadResult>;
  if (result.options?.rate === undefined || result.rate_held === undefined) {
    throw new Error(`line ${number} is no result of a load`);
  }
  return result as LoadResult;
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  console.log(drawTable(readFileSync(argv[2] ?? "bench/results/load.ndjson", "utf8")));
}
