/**
 * The load generator's command line, with its bounds; the error for a value out of bounds names it.
 */

import { parseArgs } from "node:util";
import type { ProxyName } from "../../test/support/proxies.ts";

export interface LoadOptions {
  /** Transactions a second, at a fixed interval. */
  readonly rate: number;
  /** Requests a second with a wrong signature besides, which are not measured. */
  readonly flood: number;
  /** How long to measure, and how long the load runs before that. */
  readonly seconds: number;
  readonly warmup: number;
  /** Keep-alive connections to the edge; each has one request in flight at a time. */
  readonly connections: number;
  readonly endpoint: "raw" | "json";
  /** The number of payers, used in turn: senders sign with few keys, and an edge may cache them. */
  readonly payers: number;
  /** Where each transaction is decoded; see `[decode] inline`. */
  readonly inline: "auto" | "never" | "always";
  /** `[send] engine` of the edge; auto selects the native one where it is built. */
  readonly engine: "auto" | "native" | "portable";
  /** `[send] leaders` of the edge, and the number of leaders of the simulated cluster. */
  readonly fanOut: number;
  readonly leaders: number;
  /** `[send] queue_per_leader` of the edge; null: the default. */
  readonly queue: number | null;
  /** Upgrades of the edge during the measured time. */
  readonly upgrades: number;
  /** Whether the edge speaks TLS. */
  readonly tls: boolean;
  /** Two edges behind this proxy; null: one, without a proxy. */
  readonly proxy: ProxyName | null;
  /** Drained restarts during the measured time, of both edges in turn. */
  readonly restarts: number;
  /** Keep-alive connections besides, which send nothing. */
  readonly idle: number;
  /** Kills of the edge during the measured time, each with a restart. */
  readonly kills: number;
  /** The URL of a running edge; null starts one, with a simulated cluster. */
  readonly url: string | null;
  readonly key: string | null;
  /** Appends the result to this file; null only prints. */
  readonly results: string | null;
}

export const USAGE = `usage: npm run load -- [options]

  --rate N          transactions a second (1000)
  --flood N         requests a second with a wrong signature besides, not measured (0)
  --seconds N       measured time (10)
  --warmup N        load before that, not measured (2)
  --connections N   HTTP connections (16)
  --endpoint KIND   raw or json (raw)
  --payers N        different signers (16)
  --inline WHEN     auto, never or always (auto)
  --engine NAME     portable, native or auto (portable)
  --fan-out N       leaders that a transaction goes to (2)
  --leaders N       simulated leaders (4)
  --queue N         deliveries that wait for one leader, at most (the edge's default)
  --upgrades N      upgrades of the edge during the measured time (0)
  --tls             the edge speaks TLS (off)
  --proxy NAME      two edges behind nginx or haproxy, with the configuration of ops
  --restarts N      drained restarts of the edges, in turn, during the measured time (0)
  --kills N         kill -9 of the edge during the measured time, each with a restart (0)
  --idle N          keep-alive connections besides, which are silent (0)
  --url URL --key KEY   load an edge that runs already, without a cluster
  --quic            the same load over QUIC and HTTP; --quic --help lists its options
  --results FILE    where the result line goes (bench/results/load.ndjson); "none" for nowhere`;

/** Maximum transactions of one run; they are signed before it and kept in memory. */
const TRANSACTIONS_MAX = 500_000;

/** Parses a command line; returns an Error that names what is wrong. */
export function readOptions(args: readonly string[]): LoadOptions {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      rate: text,
      flood: text,
      seconds: text,
      warmup: text,
      connections: text,
      endpoint: text,
      payers: text,
      inline: text,
      engine: text,
      "fan-out": text,
      leaders: text,
      queue: text,
      upgrades: text,
      tls: { type: "boolean" },
      proxy: text,
      restarts: text,
      kills: text,
      idle: text,
      url: text,
      key: text,
      results: text,
    },
  });
  const url = values.url ?? null;
  const key = values.key ?? null;
  if ((url === null) !== (key === null)) throw new Error("--url and --key go together");
  const results = values.results ?? "bench/results/load.ndjson";
  const options: LoadOptions = {
    rate: whole("--rate", values.rate, 1000, 1, 100_000),
    flood: whole("--flood", values.flood, 0, 0, 100_000),
    seconds: whole("--seconds", values.seconds, 10, 1, 600),
    warmup: whole("--warmup", values.warmup, 2, 0, 60),
    connections: whole("--connections", values.connections, 16, 1, 1024),
    endpoint: oneOf("--endpoint", values.endpoint, ["raw", "json"]),
    payers: whole("--payers", values.payers, 16, 1, 10_000),
    inline: oneOf("--inline", values.inline, ["auto", "never", "always"]),
    engine: oneOf("--engine", values.engine, ["portable", "native", "auto"]),
    fanOut: whole("--fan-out", values["fan-out"], 2, 1, 16),
    leaders: whole("--leaders", values.leaders, 4, 1, 16),
    queue: values.queue === undefined ? null : whole("--queue", values.queue, 0, 1, 65_536),
    upgrades: whole("--upgrades", values.upgrades, 0, 0, 100),
    tls: values.tls ?? false,
    proxy:
      values.proxy === undefined
        ? null
        : oneOf<ProxyName>("--proxy", values.proxy, ["nginx", "haproxy"]),
    restarts: whole("--restarts", values.restarts, 0, 0, 100),
    kills: whole("--kills", values.kills, 0, 0, 100),
    idle: whole("--idle", values.idle, 0, 0, 19_000),
    url,
    key,
    results: results === "none" ? null : results,
  };
  const count = (options.rate + options.flood) * (options.seconds + options.warmup);
  if (count > TRANSACTIONS_MAX) {
    throw new Error(`${count} transactions are more than ${TRANSACTIONS_MAX}`);
  }
  return options;
}

function whole(
  name: string,
  text: string | undefined,
  otherwise: number,
  min: number,
  max: number,
): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < min || value > max || text.trim() === "") {
    throw new Error(`${name} is ${text}, needed is a whole number from ${min} to ${max}`);
  }
  return value;
}

/** Defaults to the first of `known`. */
function oneOf<Choice extends string>(
  name: string,
  text: string | undefined,
  known: readonly [Choice, ...Choice[]],
): Choice {
  if (text === undefined) return known[0];
  const choice = known.find((candidate) => candidate === text);
  if (choice === undefined) throw new Error(`${name} is ${text}, needed is one of ${known}`);
  return choice;
}
