/**
 * `npm run simulate` runs an epoch with simulated leaders in about a minute, and prints the final
 * states of the transactions. The same options print the same lines on every machine.
 */

import { parseArgs } from "node:util";
import { SIMULATION_DEFAULTS, type SimulationOptions } from "./options.ts";
import { report } from "./report.ts";
import { simulate } from "./simulate.ts";

/** By option: the key of SimulationOptions. */
const NUMBERS = {
  seed: "seed",
  leaders: "leaders",
  "slot-ms": "slotMs",
  "rtt-ms": "rttMs",
  jitter: "jitter",
  loss: "loss",
  dead: "dead",
  saturated: "saturated",
  skip: "skip",
  forks: "forks",
  slots: "slots",
  transactions: "transactions",
  "send-leaders": "sendLeaders",
} as const satisfies Record<string, keyof SimulationOptions>;

function optionsOf(args: readonly string[]): SimulationOptions {
  const names = Object.keys(NUMBERS);
  const options = Object.fromEntries(names.map((name) => [name, { type: "string" } as const]));
  const { values } = parseArgs({ args: [...args], options, strict: true });
  const given: Partial<Record<keyof SimulationOptions, number>> = {};
  for (const [name, key] of Object.entries(NUMBERS)) {
    const text = values[name];
    if (text === undefined) continue;
    const value = Number(text);
    if (!Number.isFinite(value) || value < 0) {
      throw new RangeError(`--${name} must be a number, is ${JSON.stringify(text)}`);
    }
    given[key] = value;
  }
  return { ...SIMULATION_DEFAULTS, ...given };
}

const options = optionsOf(process.argv.slice(2));
process.stdout.write(`${report(await simulate(options)).join("\n")}\n`);
