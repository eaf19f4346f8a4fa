/**
 * Agave's own TPU client, `tpu-client-next`, unchanged, sends to an edge as to a validator; the
 * leaders are Agave's own servers.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { configFromValues } from "../../src/config/load.ts";
import { systemClock } from "../../src/core/clock.ts";
import { encodeKey } from "../../src/core/encoding.ts";
import { type Edge, startEdge } from "../../src/edge/edge.ts";
import { loadNative } from "../../src/native/load.ts";
import { createSimulatedCluster } from "../../src/sandbox/cluster.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { ENGINE, untilResponse } from "../support/flow.ts";
import { parsePrometheus, seriesValue } from "../support/prometheus.ts";
import { buildTransaction, memo, newKeypair } from "../support/transactions.ts";
import { until } from "../support/wait.ts";
import { buildClient, leaderProgram } from "./build.ts";
import { type AgaveLeaders, startLeaders } from "./harness.ts";

const COUNT = 10_000;
const LEADERS = 2;
const log = { info() {}, warn() {}, error() {} };
const release = dirname(leaderProgram());
const isNative = ENGINE === "native" && loadNative().kind === "loaded";

/** What the client counted: transactions written, streams and connections that the edge ended. */
interface ClientCounts {
  readonly sent: number;
  readonly stopped: number;
  readonly lost: number;
  readonly closed: number;
}

describe.skipIf(!isNative)("tpu-client-next at an edge", () => {
  const client = freshIdentity();
  const tip = newKeypair(9);
  const folder = mkdtempSync(join(tmpdir(), "touchdown-submission-"));
  const stops: (() => unknown)[] = [];
  let leaders: AgaveLeaders;
  let edge: Edge;

  beforeAll(buildClient);
  afterEach(async () => {
    for (const stop of stops.splice(0).toReversed()) await stop();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function writeKeypair(name: string, { seed, publicKey }: Identity): string {
    const file = join(folder, name);
    writeFileSync(file, JSON.stringify([...seed, ...publicKey]));
    return file;
  }

  async function start(): Promise<void> {
    const identity = freshIdentity();
    leaders = await startLeaders(LEADERS, [
      "--stake",
      `${encodeKey(identity.publicKey)}=1000000000`,
    ]);
    stops.push(() => leaders.close());
    const cluster = await createSimulatedCluster({
      clock: systemClock,
      leaders: leaders.addresses.map((address) => {
        return { identity: encodeKey(freshIdentity().publicKey), address };
      }),
    });
    const { rpcUrl, wsUrl } = await cluster.start();
    stops.push(() => cluster.stop());
    const key = `public_key = "${encodeKey(client.publicKey)}"`;
    // Slower than the client: the edge's stream credit has to hold it back.
    const plan = "[plans.Paced]\nrate_per_second = 1_000\nburst = 64\n";
    writeFileSync(
      join(folder, "keys.toml"),
      `${plan}[[keys]]\n${key}\naccount = "tpu"\nplan = "Paced"\n`,
    );
    const values = {
      http: { listen: "127.0.0.1:0", threads: 1 },
      admin: { listen: "127.0.0.1:0" },
      quic: { listen: "127.0.0.1:0" },
      cluster: { rpc_url: rpcUrl, ws_url: wsUrl },
      tip: { accounts: [encodeKey(tip.publicKey)] },
      accounts: { keys_file: "keys.toml" },
      identity: { keypair: writeKeypair("identity.json", identity) },
      send: { bind: "127.0.0.1:0", engine: "native" },
      landing: { resends_per_second: 0 },
    };
    edge = await startEdge(configFromValues(values, folder, {}), { log });
    stops.push(() => edge.stop());
    await untilResponse("each leader's connection", metrics, (families) => {
      return seriesValue(families, "touchdown_connections_live") === LEADERS;
    });
  }

  /** Sends these with the client, and returns what it counted once it has ended. */
  async function send(identity: Identity, transactions: readonly Uint8Array[]) {
    const keypair = writeKeypair("keypair.json", identity);
    const { quicAddress } = edge;
    if (quicAddress === null) throw new Error("the edge serves no QUIC clients");
    const child = spawn(join(release, "agave-client"), [quicAddress, keypair]);
    let output = "";
    child.stdout.on("data", (data: Buffer) => {
      output += data.toString();
    });
    child.stderr.pipe(process.stderr);
    for (const bytes of transactions) {
      child.stdin.write(`${Buffer.from(bytes).toString("base64")}\n`);
    }
    child.stdin.end();
    await once(child, "close");
    const counts: ClientCounts = JSON.parse(output);
    return counts;
  }

  function tipped(number: number): Uint8Array {
    return buildTransaction({
      payer: newKeypair(21),
      tips: [{ to: tip.publicKey, lamports: 1_000_000 }],
      extraInstructions: [memo(String(number))],
    }).bytes;
  }

  async function metrics() {
    return parsePrometheus(await (await fetch(`http://${edge.adminAddress}/metrics`)).text());
  }

  async function requests(outcome: string): Promise<number> {
    return seriesValue(await metrics(), "touchdown_requests_total", { outcome }) ?? 0;
  }

  it("sends ten thousand, as fast as its limit allows, and leaders receive each", async () => {
    await start();
    const sent = Array.from({ length: COUNT }, (_, number) => tipped(number));
    const counts = await send(client, sent);
    expect(counts).toEqual({ sent: COUNT, stopped: 0, lost: 0, closed: 0 });
    expect(await requests("accepted")).toBe(COUNT);
    const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");
    const received = () => new Set(leaders.received.map(({ bytes }) => textOf(bytes)));
    await until("each is at a leader", () => received().size === COUNT);
    expect(received()).toEqual(new Set(sent.map(textOf)));
    expect(leaders.received.every(({ staked }) => staked)).toBe(true);
    const copies = leaders.received.map(({ leader, bytes }) => `${leader} ${textOf(bytes)}`);
    expect(copies).toHaveLength(new Set(copies).size);
  });

  it("is closed without a registered key, and nothing is accepted", async () => {
    await start();
    const { closed } = await send(freshIdentity(), [tipped(0)]);
    expect(closed).toBeGreaterThan(0);
    expect(await requests("accepted")).toBe(0);
    expect(await requests("unauthorized")).toBeGreaterThan(0);
  });
});
