/** The command line of the comparison, with its bounds. */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BEFORE, SIDES, type SideName, VARIANTS } from "./sides.ts";

export interface CompareOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly rates: readonly number[];
  readonly endpoint: "raw" | "json";
  readonly sides: readonly SideName[];
  /** A built checkout of another commit, for the sides "…, before". */
  readonly before: string;
  /** Whether each turn is that of a process that has just started. */
  readonly fresh: boolean;
  /** Whether the node reports every transaction as landed, or knows none of them. */
  readonly lands: boolean;
  /** Whether to find the highest sustained rate. */
  readonly capacity: boolean;
  /** Transactions of the memory run; 0 for none. */
  readonly memory: number;
  /** Transactions per second of the memory run. */
  readonly memoryRate: number;
  /** Whether to rewrite docs/benchmarks.md and keep the results. */
  readonly keep: boolean;
}

export const USAGE = `usage: npm run bench:compare -- [options]

  --rounds N       turns of each side at each rate (5)
  --seconds N      length of a turn (2)
  --rates LIST     transactions a second (100,1000,5000); none for none
  --endpoint KIND  json, as most clients speak, or raw (json)
  --sides LIST     ${SIDES.join(",")}
                   (the default is without the real-time threads where the system refuses them);
                   also: ${VARIANTS.join(", ")}
  --before FOLDER  adds edges from a built checkout of another commit; prints only
  --fresh          starts a side anew for each turn, and measures from its 1,001st transaction on
  --node KIND      lands: every transaction has landed when the edge asks for its status;
                   unknown: the node knows none of them (lands)
  --no-capacity    does not look for the highest rate held
  --memory N       sends N transactions through the edge and watches its memory (0)
  --memory-rate N  that many of them a second (6000)
  --dry            prints, and writes neither results nor documents`;

/** Parses a command line; returns an Error that names what is wrong. */
export function readOptions(args: readonly string[]): CompareOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: "string", default: "5" },
      seconds: { type: "string", default: "2" },
      rates: { type: "string", default: "100,1000,5000" },
      endpoint: { type: "string", default: "json" },
      sides: { type: "string", default: possibleSides().join(",") },
      before: { type: "string", default: "" },
      fresh: { type: "boolean", default: false },
      node: { type: "string", default: "lands" },
      "no-capacity": { type: "boolean", default: false },
      memory: { type: "string", default: "0" },
      "memory-rate": { type: "string", default: "6000" },
      dry: { type: "boolean", default: false },
    },
  });
  const { endpoint, before, fresh, node } = values;
  if (endpoint !== "raw" && endpoint !== "json") throw new Error("--endpoint is raw or json");
  if (node !== "lands" && node !== "unknown") throw new Error("--node is lands or unknown");
  if (before !== "" && !existsSync(join(before, "dist/main.js"))) {
    throw new Error(`--before: ${before} has no dist/main.js: run npm run build there`);
  }
  const sides = values.sides.split(",").map(sideOf);
  const repeated = Object.entries(BEFORE).filter(([, side]) => sides.includes(side));
  const added = before === "" ? [] : repeated.map(([name]) => sideOf(name));
  const rates = values.rates === "none" ? [] : values.rates.split(",");
  return {
    rounds: wholeNumber("rounds", values.rounds, 1, 100),
    seconds: wholeNumber("seconds", values.seconds, 1, 60),
    rates: rates.map((rate) => wholeNumber("rates", rate, 1, 100_000)),
    endpoint,
    sides: [...sides, ...added],
    before,
    fresh,
    lands: node === "lands",
    capacity: !values["no-capacity"] && !fresh,
    memory: wholeNumber("memory", values.memory, 0, 10_000_000),
    memoryRate: wholeNumber("memory-rate", values["memory-rate"], 100, 100_000),
    // The tables of docs/benchmarks.md are of warm sides of one commit.
    keep: !values.dry && before === "" && !fresh && node === "lands",
  };
}

/** The sides that can start on this machine: a real-time thread requires a privilege. */
function possibleSides(): readonly SideName[] {
  const isRealtimePossible = spawnSync("chrt", ["--rr", "1", "true"]).status === 0;
  return SIDES.filter((name) => name !== "real-time threads" || isRealtimePossible);
}

function sideOf(name: string): SideName {
  const sides = [...SIDES, ...VARIANTS, ...(Object.keys(BEFORE) as SideName[])];
  const side = sides.find((known) => known === name);
  if (side === undefined) throw new Error(`--sides: ${name} is none of ${SIDES.join(", ")}`);
  return side;
}

function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new Error(`--${name}: found ${text}, a whole number of ${min} to ${max} is needed`);
}
