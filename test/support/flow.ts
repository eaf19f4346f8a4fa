/**
 * A complete edge with simulated leaders on loopback, with its own keys and a record of what the
 * leaders received, for end-to-end tests.
 */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/core/clock.ts";
import type { Log } from "../../src/core/log.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { type Family, parsePrometheus, seriesValue } from "./prometheus.ts";
import { type BuiltTransaction, buildTransaction, memo, newKeypair } from "./transactions.ts";

export const RAW_PATH = "/api/v1/sendRawTransaction";
export const RPC_PATH = "/api/v1/sendTransaction";

/** The engine that edges in these tests use, which TEST_ENGINE names. */
export const ENGINE = process.env["TEST_ENGINE"] ?? "portable";
/** The number of ingress threads, from TEST_THREADS; without it 0. */
export const THREADS = Number(process.env["TEST_THREADS"] ?? 0);

export const SILENT: Log = { info: () => {}, warn: () => {}, error: () => {} };

/** A key with an effectively unlimited rate. */
export const WIDE_KEY = "flow-test-key-wide";
/** The same for another account. */
export const OTHER_KEY = "flow-test-key-other";

/** A key that allows one request and then none for a quarter of an hour. */
export function slowKey(number: number): string {
  return `flow-test-key-slow-${number}`;
}
const SLOW_KEYS = 16;
/** A key that allows one request every quarter of a second. */
export const BRISK_KEY = "flow-test-key-brisk";

/** A key that allows FEW requests and then none for a quarter of an hour. */
export function fewKey(number: number): string {
  return `flow-test-key-few-${number}`;
}
export const FEW = 20;
const FEW_KEYS = 4;

/** The text of a keys file with the keys above. */
export function keysToml(): string {
  const keys = [
    keyToml(WIDE_KEY, "acme", "Wide"),
    keyToml(OTHER_KEY, "other", "Wide"),
    keyToml(BRISK_KEY, "brisk", "Brisk"),
    ...Array.from({ length: SLOW_KEYS }, (_, i) => keyToml(slowKey(i), `slow-${i}`, "Slow")),
    ...Array.from({ length: FEW_KEYS }, (_, i) => keyToml(fewKey(i), `few-${i}`, "Few")),
  ];
  const wide = "[plans.Wide]\nrate_per_second = 1_000_000\nburst = 1_000_000\n";
  const slow = "[plans.Slow]\nrate_per_second = 0.001\nburst = 1\n";
  const brisk = "[plans.Brisk]\nrate_per_second = 1\nburst = 1\n";
  const few = `[plans.Few]\nrate_per_second = 0.001\nburst = ${FEW}\n`;
  return [wide, slow, brisk, few, ...keys].join("\n");
}

/** One key as an entry of a keys file. */
export function keyToml(token: string, account: string, plan: string): string {
  return `[[keys]]\ntoken = "${token}"\naccount = "${account}"\nplan = "${plan}"\n`;
}

export interface Received {
  /** The leader's index in the sandbox. */
  readonly leader: number;
  readonly bytes: Buffer;
  /**
   * The number of its stream, which rises in the order of sending. Arrivals have another order
   * where a datagram is lost, as a busy machine loses some.
   */
  readonly stream: number;
}

export interface EdgeResponse {
  readonly status: number;
  readonly statusText: string;
  readonly retryAfter: string | null;
  readonly json: Readonly<Record<string, unknown>>;
}

export interface Flow {
  readonly sandbox: Sandbox;
  readonly keysFile: string;
  readonly url: string;
  /** What the leaders received, in order. */
  readonly received: Received[];
  /** How many deliveries of exactly these bytes the leaders received. */
  deliveriesOf(bytes: Uint8Array): number;
  /** A tipped transaction, another one per call, all of one size. */
  tipped(spec?: Parameters<typeof buildTransaction>[0]): BuiltTransaction;
  postRaw(bytes: Uint8Array, key?: string): Promise<EdgeResponse>;
  postRpc(params: unknown, key?: string): Promise<EdgeResponse>;
  receipt(signature: string, key?: string): Promise<EdgeResponse>;
  /** Gives the edge another identity, as an operator does: its file is replaced, and read again. */
  changeIdentity(): void;
  metrics(): Promise<ReadonlyMap<string, Family>>;
  stop(): Promise<void>;
}

/** Starts it; `edge` are sections of the configuration over those of the sandbox. */
export async function startFlow(
  options: {
    readonly leaderCount?: number;
    readonly edge?: Record<string, object>;
    /** More entries of the keys file. */
    readonly keys?: string;
  } = {},
): Promise<Flow> {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-flow-"));
  const keysFile = join(folder, "keys.toml");
  writeFileSync(keysFile, keysToml() + (options.keys ?? ""));
  const identityFile = join(folder, "identity.json");
  writeFreshIdentity(identityFile);
  const sandbox = await startSandbox({
    port: 0,
    log: SILENT,
    leaderCount: options.leaderCount ?? 4,
    edge: {
      ...options.edge,
      http: { threads: THREADS, ...options.edge?.["http"] },
      send: { engine: ENGINE, ...options.edge?.["send"] },
      accounts: { keys_file: keysFile },
      identity: { keypair: identityFile },
    },
  });
  const received: Received[] = [];
  for (const [leader, { onTransaction }] of bound(sandbox.leaders)) {
    onTransaction((bytes, { stream }) => {
      received.push({ leader, bytes: Buffer.from(bytes), stream });
    });
  }
  const { url, adminUrl } = sandbox;
  const metrics = async () => parsePrometheus(await (await fetch(`${adminUrl}/metrics`)).text());
  await untilResponse("every leader's connection", metrics, (families) => {
    return seriesValue(families, "touchdown_connections_live") === sandbox.leaders.length;
  });
  let made = 0;
  return {
    sandbox,
    keysFile,
    url,
    received,
    deliveriesOf: (bytes) => received.filter((it) => it.bytes.equals(bytes)).length,
    tipped(spec = {}) {
      made += 1;
      return buildTransaction({
        payer: newKeypair(21),
        tips: [{ to: sandbox.tipAccount, lamports: 1_000_000 }],
        extraInstructions: [memo(`${process.pid} ${String(made).padStart(6, "0")}`)],
        ...spec,
      });
    },
    postRaw: (bytes, key = WIDE_KEY) =>
      answerOf(
        fetch(url + RAW_PATH, {
          method: "POST",
          headers: { "api-x-token": key },
          body: Uint8Array.from(bytes),
        }),
      ),
    postRpc: (params, key = WIDE_KEY) =>
      answerOf(
        fetch(url + RPC_PATH, {
          method: "POST",
          headers: { "api-x-token": key },
          body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "sendTransaction", params }),
        }),
      ),
    receipt: (signature, key = WIDE_KEY) =>
      answerOf(
        fetch(`${url}/api/v1/transactions/${signature}`, { headers: { "api-x-token": key } }),
      ),
    changeIdentity() {
      writeFreshIdentity(identityFile);
      sandbox.edge.reloadIdentity();
    },
    metrics,
    async stop() {
      await sandbox.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function writeFreshIdentity(file: string): void {
  const { seed, publicKey } = freshIdentity();
  writeFileSync(file, JSON.stringify([...seed, ...publicKey]));
}

function bound(leaders: Sandbox["leaders"]) {
  return leaders.map((leader, index) => {
    const onTransaction = leader.onTransaction.bind(leader);
    return [index, { onTransaction }] as const;
  });
}

async function answerOf(pending: Promise<Response>): Promise<EdgeResponse> {
  const response = await pending;
  const { status, statusText } = response;
  const retryAfter = response.headers.get("retry-after");
  return { status, statusText, retryAfter, json: JSON.parse(await response.text()) };
}

/** Requests repeatedly until the response satisfies; fails after `deadlineMs` with the last one. */
export async function untilResponse<T>(
  what: string,
  ask: () => Promise<T>,
  satisfies: (answer: T) => boolean,
  deadlineMs = 60_000,
): Promise<T> {
  const endNs = systemClock.nowNs() + deadlineMs * 1e6;
  for (;;) {
    const answer = await ask();
    if (satisfies(answer)) return answer;
    if (systemClock.nowNs() > endNs) {
      throw new Error(`timed out waiting for ${what}; last: ${JSON.stringify(answer)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export interface Finished {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a program to its end; never rejects for its exit code. */
export function runProgram(file: string, args: readonly string[], input = ""): Promise<Finished> {
  // Proxies cannot reach loopback.
  const options = { timeout: 150_000, env: { ...process.env, no_proxy: "127.0.0.1" } };
  return new Promise((resolve) => {
    const child = execFile(file, [...args], options, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : 255;
      resolve({ code, out, err });
    });
    // A program may end without reading it.
    child.stdin?.on("error", () => undefined).end(input);
  });
}
