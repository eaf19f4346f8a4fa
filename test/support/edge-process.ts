/**
 * An edge as a process, as an operator runs it, and a simulated cluster in this process for it to
 * send to. All its output is kept.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/core/clock.ts";
import { encodeKey } from "../../src/core/encoding.ts";
import { createSimulatedCluster, type SimulatedCluster } from "../../src/sandbox/cluster.ts";
import { createSimulatedLeader, type SimulatedLeader } from "../../src/sandbox/leader.ts";
import { LEADER_CONNECTIONS_MAX } from "../../src/sandbox/limits.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { ENGINE, keysToml, THREADS, untilResponse, WIDE_KEY } from "./flow.ts";
import { freePort } from "./ports.ts";
import { type Family, parsePrometheus } from "./prometheus.ts";
import { type BuiltTransaction, buildTransaction, memo, newKeypair } from "./transactions.ts";
import { until } from "./wait.ts";

export const MAIN = join(import.meta.dirname, "../../dist/main.js");

export interface Network {
  readonly cluster: SimulatedCluster;
  readonly leaders: readonly SimulatedLeader[];
  readonly rpcUrl: string;
  readonly wsUrl: string;
  /** Base58. */
  readonly tipAccount: string;
  deliveriesOf(bytes: Uint8Array): number;
  /** A tipped transaction, another one per call. */
  tipped(): BuiltTransaction;
  stop(): Promise<void>;
}

/** A cluster whose leaders listen, with the RPC up unless configured otherwise. */
export async function startNetwork(leaderCount = 2): Promise<Network> {
  const clock = systemClock;
  const received: Buffer[] = [];
  const leaders: SimulatedLeader[] = [];
  const contacts: { readonly identity: string; readonly address: string }[] = [];
  for (let index = 0; index < leaderCount; index += 1) {
    const identity = freshIdentity();
    // All edges of a file connect from one address, and a leader keeps the connections of a killed
    // one for 30 s.
    const behaviour = { connectionsPerAddressMax: LEADER_CONNECTIONS_MAX };
    const leader = createSimulatedLeader({ clock, identity, behaviour });
    const { address } = await leader.start();
    leader.onTransaction((bytes) => received.push(Buffer.from(bytes)));
    leaders.push(leader);
    contacts.push({ identity: encodeKey(identity.publicKey), address });
  }
  // Its RPC may restart.
  const [rpcPort, wsPort] = [await freePort(), await freePort()];
  const cluster = await createSimulatedCluster({ clock, leaders: contacts, rpcPort, wsPort });
  const urls = await cluster.start();
  const tipAccount = newKeypair().address;
  let made = 0;
  return {
    cluster,
    leaders,
    ...urls,
    tipAccount,
    deliveriesOf: (bytes) => received.filter((it) => it.equals(bytes)).length,
    tipped() {
      made += 1;
      return buildTransaction({
        payer: newKeypair(22),
        tips: [{ to: tipAccount, lamports: 1_000_000 }],
        extraInstructions: [memo(`process ${made}`)],
      });
    },
    async stop() {
      await cluster.stop();
      for (const leader of leaders) await leader.stop();
    },
  };
}

export interface EdgeProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly port: number;
  readonly adminUrl: string;
  readonly keysFile: string;
  /** Its configuration. */
  readonly file: string;
  /** Everything printed so far, on both streams. */
  output(): string;
  /** The exit code, null while it runs. */
  readonly exitCode: number | null;
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>;
  /** The status of `/readyz`, with its text. */
  readyz(): Promise<{ readonly status: number; readonly text: string }>;
  metrics(): Promise<ReadonlyMap<string, Family>>;
  post(bytes: Uint8Array, key?: string): Promise<number>;
  /** Ends it, if it still runs, and removes its files. */
  remove(): Promise<void>;
}

export interface EdgeProcessOptions {
  /** Lines of the configuration after those that every edge here has. */
  readonly more?: string;
  /** Further lines of the section `[cluster]`. */
  readonly cluster?: string;
  /** Lines of the section `[http]`. */
  readonly http?: string;
  readonly httpPort?: number;
  readonly adminPort?: number;
  readonly keys?: string;
  /** The system's limit of its open files. */
  readonly filesMax?: number;
  /** Ingress threads are off; the engine defaults to the one that `TEST_ENGINE` names. */
  readonly engine?: "native" | "portable";
  /** Variables in addition to those of this process. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** The configuration of an edge of this network; files are in the same folder. */
function configToml(network: Network, options: EdgeProcessOptions): string {
  return `
region = "test"
[http]
listen = "127.0.0.1:${options.httpPort ?? 0}"
threads = ${options.engine === undefined ? THREADS : 0}
${options.http ?? ""}
[admin]
listen = "127.0.0.1:${options.adminPort ?? 0}"
[cluster]
rpc_url = "${network.rpcUrl}"
ws_url = "${network.wsUrl}"
${options.cluster ?? ""}
[tip]
accounts = ["${network.tipAccount}"]
[accounts]
keys_file = "keys.toml"
[send]
bind = "127.0.0.1:0"
engine = "${options.engine ?? ENGINE}"
${options.more ?? ""}
`;
}

/** Only the process, without waiting for anything but its start. */
export function spawnEdge(network: Network, options: EdgeProcessOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-process-"));
  const file = join(folder, "edge.toml");
  const keysFile = join(folder, "keys.toml");
  writeFileSync(file, configToml(network, options));
  writeFileSync(keysFile, options.keys ?? keysToml());
  const command = [process.execPath, MAIN, "edge", "--config", file];
  const limit = options.filesMax === undefined ? ":" : `ulimit -n ${options.filesMax}`;
  const child = spawn("sh", ["-c", `${limit}; exec "$@"`, "sh", ...command], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...options.environment },
  });
  let output = "";
  const keep = (data: Buffer): void => {
    output += data.toString();
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const exited = new Promise<number | null>((resolve) => {
    child.once("close", (code) => resolve(code));
  });
  return { child, folder, file, keysFile, exited, output: () => output };
}

/** Starts an edge of this network and waits until it listens. */
export async function startEdgeProcess(
  network: Network,
  options: EdgeProcessOptions = {},
): Promise<EdgeProcess> {
  const { child, folder, file, keysFile, exited, output } = spawnEdge(network, options);
  const listening = () => /HTTPS? on (\S+?),(?: QUIC on \S+,)? admin on (\S+)/.exec(output());
  await until("the edge to listen", () => listening() !== null || child.exitCode !== null);
  const [, http, admin] = listening() ?? [];
  if (http === undefined) throw new Error(`the edge did not start: ${output()}`);
  const url = `http://${http}`;
  const adminUrl = `http://${admin}`;
  return {
    child,
    url,
    port: Number(new URL(url).port),
    adminUrl,
    keysFile,
    file,
    output,
    get exitCode() {
      return child.exitCode;
    },
    exited,
    async readyz() {
      // A kept connection may be closed while a busy test does not look.
      const response = await fetch(`${adminUrl}/readyz`, { headers: { connection: "close" } });
      return { status: response.status, text: await response.text() };
    },
    metrics: async () => parsePrometheus(await (await fetch(`${adminUrl}/metrics`)).text()),
    async post(bytes, key = WIDE_KEY) {
      const response = await fetch(`${url}/api/v1/sendRawTransaction`, {
        method: "POST",
        headers: { "api-x-token": key },
        body: Uint8Array.from(bytes),
      });
      await response.arrayBuffer();
      return response.status;
    },
    async remove() {
      if (child.exitCode === null) child.kill("SIGKILL");
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Waits until the edge is ready. */
export async function untilReady(edge: EdgeProcess): Promise<void> {
  await untilResponse(
    "the edge to be ready",
    () => edge.readyz(),
    ({ status }) => status === 200,
  );
}
