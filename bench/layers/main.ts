/**
 * `npm run bench:layers` measures the same transactions at each depth, from the Rust function to
 * the complete path, so that the cost of each layer is visible. Writes results, a plot and the
 * table of docs/benchmarks.md.
 *
 * The inner layers are measured in a tight loop, one transaction per turn of the event loop where
 * turns matter; the last two at 1,000 tx/s by processes that sleep in between, so those include
 * wake-ups.
 */

import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildProgram } from "../compare/program.ts";
import { startStage } from "../compare/sides.ts";
import { type Quantiles, takeTurn } from "../compare/turn.ts";
import { commit, machine } from "../machine.ts";
import { drawSpans } from "../plot.ts";
import { writeMeasured } from "../readme.ts";
import { addonLayer, decodeLayer, httpLayer, notesLayers, type Sample } from "./layers.ts";

/** The maximum is unknown for some layers. */
type Stats = Omit<Quantiles, "max"> & Partial<Pick<Quantiles, "max">>;

interface Layer extends Stats {
  readonly layer: string;
  readonly what: string;
}

const COUNT = 20_000;
const RATE = 1_000;
const SECONDS = 5;
const ROUNDS = 3;
const RESULTS = join(import.meta.dirname, "../results");

const layers = await measure();
report(layers);

async function measure(): Promise<readonly Layer[]> {
  const program = buildProgram();
  const { stats, sample } = readSample(program);
  const [opened, followed] = notesLayers(sample);
  const found: Layer[] = [
    { layer: "Rust: parse", what: "form and tip, no signature", ...stats.parsed },
    { layer: "Rust: decode", what: "and the signature of a known key", ...stats.verified },
    { layer: "addon call", what: "the same, called from JavaScript", ...addonLayer(sample) },
    { layer: "decode stage", what: "and the verdict as an object", ...decodeLayer(sample) },
    { layer: "plan and receipt", what: "the plan read, a receipt opened", ...opened },
    { layer: "receipt's news", what: "afterwards: two copies sent and acknowledged", ...followed },
    {
      layer: "HTTP",
      what: "a request and its answer on loopback, key and limit, nothing behind",
      ...(await httpLayer(sample)),
    },
    { layer: "QUIC", what: "call to receive in a real Agave server", ...quicLayer(program) },
  ];
  found.push({
    layer: "whole path",
    what: "client's send to receive, everything on",
    ...(await wholeLayer(program)),
  });
  return found;
}

interface RustStats {
  readonly tip_account: string;
  readonly parsed: Quantiles;
  readonly verified: Quantiles;
}

function readSample(program: string): { stats: RustStats; sample: Sample } {
  const options = { encoding: "utf8", maxBuffer: 1e9 } as const;
  const text = execFileSync(program, ["layers", String(COUNT)], options);
  const [first = "", ...lines] = text.trimEnd().split("\n");
  // The program in bench/compare writes it.
  const stats = JSON.parse(first) as RustStats;
  const transactions = lines.map((line) => new Uint8Array(Buffer.from(line, "base64")));
  return { stats, sample: { transactions, tipAccount: stats.tip_account } };
}

/** One-way, from the senders' comparison, whose last line for Touchdown is the median. */
function quicLayer(program: string): Stats {
  const args = [String(ROUNDS), String(SECONDS), String(RATE)];
  const text = execFileSync(program, args, { encoding: "utf8" });
  const line = text.split("\n").find((each) => each.includes("median:touchdown")) ?? "";
  const [p50 = 0, p99 = 0, p999 = 0] = line.split(" ").slice(4, 7).map(Number);
  return { p50, p99, p999 };
}

async function wholeLayer(program: string): Promise<Quantiles> {
  const stage = await startStage(program, ["everything on"]);
  try {
    const [side] = stage.sides;
    if (side === undefined) throw new Error("the edge did not start");
    await takeTurn(stage, side, { rate: 2_000, seconds: 2, json: false });
    const turns: Quantiles[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const turn = await takeTurn(stage, side, { rate: RATE, seconds: SECONDS, json: false });
      turns.push(turn.one_way_us);
    }
    const median = (pick: (turn: Quantiles) => number): number =>
      turns.map(pick).sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
    return {
      p50: median((turn) => turn.p50),
      p99: median((turn) => turn.p99),
      p999: median((turn) => turn.p999),
      max: median((turn) => turn.max),
    };
  } finally {
    await stage.stop();
  }
}

function report(rows: readonly Layer[]): void {
  const about = {
    at: new Date().toISOString(),
    machine: machine(),
    node: process.version,
    commit: commit(),
  };
  mkdirSync(RESULTS, { recursive: true });
  const lines = rows.map((row) => `${JSON.stringify({ ...about, ...row })}\n`).join("");
  appendFileSync(join(RESULTS, "layers.ndjson"), lines);
  const spans = rows.map((row) => ({ ...row, group: "", name: row.layer }));
  const title = "The same transaction at each depth: p50, p99, p99.9 in microseconds";
  writeFileSync(join(RESULTS, "layers.svg"), drawSpans(title, spans));
  const us = (value: number): string =>
    value < 100 ? value.toFixed(1) : String(Math.round(value));
  const table = [
    "| layer | is | p50 | p99 | p99.9 |",
    "|---|---|---|---|---|",
    ...rows.map(
      ({ layer, what, p50, p99, p999 }) =>
        `| ${layer} | ${what} | ${us(p50)} us | ${us(p99)} us | ${us(p999)} us |`,
    ),
  ].join("\n");
  console.log(table);
  writeMeasured("layers", table);
}
