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
  /** Whether generator and leader run at real-time priority: as if on processors of their own. */
  readonly realtimeEnds: boolean;
  /** Whether to find the highest sustained rate. */
  readonly capacity: boolean;
  /** How long to watch an edge for what grows; 0: not. */
  readonly soakSeconds: number;
  /** Transactions a second meanwhile. */
  readonly soakRate: number;
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
  --realtime-ends  generator and leader run at real-time priority, as if on processors of their own;
                   needs the privilege, and prints only
  --no-capacity    does not look for the highest rate held
  --soak N         loads the edge for N seconds, at least 300, and watches memory, open files and
                   event loop (0: not)
  --soak-rate N    transactions a second meanwhile (6000)
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
      "realtime-ends": { type: "boolean", default: false },
      "no-capacity": { type: "boolean", default: false },
      soak: { type: "string", default: "0" },
      "soak-rate": { type: "string", default: "6000" },
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
    realtimeEnds: values["realtime-ends"],
    capacity: !values["no-capacity"] && !fresh,
    soakSeconds: values.soak === "0" ? 0 : wholeNumber("soak", values.soak, 300, 86_400),
    soakRate: wholeNumber("soak-rate", values["soak-rate"], 100, 100_000),
    // The tables of docs/benchmarks.md are of warm sides of one commit, all at one priority.
    keep: !values.dry && before === "" && !fresh && node === "lands" && !values["realtime-ends"],
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

/** An option's number; throws an Error if it is out of bounds. */
export function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new Error(`--${name}: found ${text}, a whole number of ${min} to ${max} is needed`);
}
