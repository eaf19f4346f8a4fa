/** The command line of the load over QUIC, with its bounds. */

import { parseArgs } from "node:util";
import { wholeNumber } from "../compare/options.ts";

export interface QuicLoadOptions {
  /** Transactions a second, each a row of the table. */
  readonly rates: readonly number[];
  readonly rounds: number;
  /** Length of a turn; 0.4 s of load before it are not measured. */
  readonly seconds: number;
  readonly accounts: number;
  /** Connections of each account. */
  readonly connections: number;
  /** The endpoint over HTTP beside it; the table of `libraries` has both. */
  readonly endpoint: "raw" | "json";
  /**
   * Whether libraries send, as in customers' programs: `reqwest` over HTTP to both endpoints, and
   * `touchdown-client` with either ALPN.
   */
  readonly libraries: boolean;
  /** Whether the edge speaks TLS over HTTP. */
  readonly tls: boolean;
  /** Ingress threads of the edge. */
  readonly threads: number;
  /** Whether the leader is Agave's own server, which needs the crates of `bench/compare`. */
  readonly agave: boolean;
  /** Handshakes a second that never finish, beside the load; 0: none. */
  readonly handshakes: number;
  /** The limit of each of ten accounts, of which one sends 20 times as much; 0: none. */
  readonly greedy: number;
  /** Transactions a second with a wrong signature, beside the load; 0: none. */
  readonly flood: number;
  /** Silent connections whose cost is measured; 0: none. */
  readonly idle: number;
  /** Connections of a key that is revoked; 0: none. */
  readonly revoke: number;
}

export const USAGE = `usage: npm run load -- --quic [options]

  The same load over QUIC (ALPN solana-tpu) and over HTTP, in turns, through one edge. Needs cargo
  and the native engine.

  --rates LIST      transactions a second (1000); none for no table
  --rounds N        turns of each side at each rate (3)
  --seconds N       length of a turn (5)
  --accounts N      accounts that send, each with its own keys (1)
  --connections N   connections of each account (4)
  --endpoint KIND   raw or json, for HTTP; the table of --libraries has both (raw)
  --libraries       reqwest over HTTP to both endpoints, and touchdown-client over QUIC (tpu)
                    and with verdicts (touchdown), in place of the senders that work least
                    (off); for the table alone
  --tls             HTTP speaks TLS, as QUIC always does (off)
  --threads N       ingress threads of the edge (1)
  --agave           Agave's TPU server as the leader, instead of a simulated one
  --handshakes N    then: a client's latency while N handshakes a second never finish, in turns
                    with none (0)
  --greedy N        then: ten accounts with a limit of N a second, of which one sends 20 times
                    as much, in turns with none that does, and with what is above the limit
                    sent to a server that takes nothing (0)
  --flood N         then, over either: a client's latency while another account sends N
                    transactions a second with a wrong signature (0)
  --idle N          before: memory and CPU of the edge for N silent connections (0)
  --revoke N        then: the time until N connections of a revoked key are closed (0)`;

/** Parses a command line; throws an Error that names what is wrong. */
export function readOptions(args: readonly string[]): QuicLoadOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quic: { type: "boolean" },
      rates: { type: "string", default: "1000" },
      rounds: { type: "string", default: "3" },
      seconds: { type: "string", default: "5" },
      accounts: { type: "string", default: "1" },
      connections: { type: "string", default: "4" },
      endpoint: { type: "string", default: "raw" },
      libraries: { type: "boolean", default: false },
      tls: { type: "boolean", default: false },
      threads: { type: "string", default: "1" },
      agave: { type: "boolean", default: false },
      handshakes: { type: "string", default: "0" },
      greedy: { type: "string", default: "0" },
      flood: { type: "string", default: "0" },
      idle: { type: "string", default: "0" },
      revoke: { type: "string", default: "0" },
    },
  });
  const { endpoint } = values;
  if (endpoint !== "raw" && endpoint !== "json") throw new Error("--endpoint is raw or json");
  const rates = values.rates === "none" ? [] : values.rates.split(",");
  return {
    rates: rates.map((rate) => wholeNumber("rates", rate, 1, 100_000)),
    rounds: wholeNumber("rounds", values.rounds, 1, 100),
    seconds: wholeNumber("seconds", values.seconds, 1, 120),
    accounts: wholeNumber("accounts", values.accounts, 1, 100),
    connections: wholeNumber("connections", values.connections, 1, 1000),
    endpoint,
    libraries: values.libraries,
    tls: values.tls,
    threads: wholeNumber("threads", values.threads, 1, 8),
    agave: values.agave,
    handshakes: wholeNumber("handshakes", values.handshakes, 0, 20_000),
    greedy: wholeNumber("greedy", values.greedy, 0, 5_000),
    flood: wholeNumber("flood", values.flood, 0, 20_000),
    idle: wholeNumber("idle", values.idle, 0, 4_000),
    revoke: wholeNumber("revoke", values.revoke, 0, 4_000),
  };
}
