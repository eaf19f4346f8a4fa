/**
 * The edge under load and its cluster, as separate processes, with a configuration made for the
 * run: one key with a limit that never applies, receipts for every transaction.
 */

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Child, freePort, LIKE_THE_IMAGE, startChild, untilReady } from "./children.ts";
import type { LeaderMessage } from "./leader-process.ts";
import type { LoadOptions } from "./options.ts";

export interface BenchFixture {
  readonly url: string;
  readonly key: string;
  /** The edge's process; null for an edge that this run did not start. */
  readonly edgePid: number | null;
  /** First arrivals at a leader by transaction; null without leaders. */
  arrivals(): Promise<Float64Array | null>;
  /** Has the edge replaced; resolves when the successor serves. */
  upgrade(): Promise<void>;
  stop(): Promise<void>;
}

const READY_MS = 60_000;
const ANSWER_MS = 30_000;

/** Starts a cluster for `count` transactions, and an edge on it. */
export async function startFixture(
  options: LoadOptions,
  count: number,
  tipAccount: string,
): Promise<BenchFixture> {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-load-"));
  const children: Child[] = [];
  /** The processes that serve, and those that did: the first is also a child. */
  const pids: number[] = [];
  const stop = async (): Promise<void> => {
    for (const pid of pids) killQuietly(pid);
    // Stops the edge first: it would log errors about a stopped cluster.
    for (const child of children.toReversed()) await child.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const script = fileURLToPath(new URL("./leader-process.ts", import.meta.url));
    // Nothing lands there: with short slots a replaced edge learns soon that it has expired.
    const slotMs = options.upgrades > 0 ? [String(UPGRADE_SLOT_MS)] : [];
    const args = ["--import", "tsx", script, String(options.leaders), String(count), ...slotMs];
    const leaders = startChild(args, true);
    children.push(leaders);
    const cluster = await receive(leaders, "ready");
    const [httpPort, adminPort] = [await freePort(), await freePort()];
    const key = `td_${randomBytes(18).toString("base64url")}`;
    writeFileSync(join(folder, "keys.toml"), keysFile(key));
    if (options.tls) writeCertificate(folder);
    const config = join(folder, "edge.toml");
    writeFileSync(config, edgeConfig(options, count, tipAccount, cluster, httpPort, adminPort));
    const edge = startChild([...LIKE_THE_IMAGE, "dist/main.js", "edge", "--config", config]);
    children.push(edge);
    await untilReady(edge, `http://127.0.0.1:${adminPort}/readyz`, READY_MS);
    return {
      url: `${options.tls ? "https" : "http"}://127.0.0.1:${httpPort}`,
      key,
      // Of several processes the time and memory of one say nothing.
      edgePid: options.upgrades === 0 ? edge.pid : null,
      async upgrade() {
        const old = pids.at(-1) ?? edge.pid;
        process.kill(old, "SIGUSR2");
        pids.push(await successorOf(old, `http://127.0.0.1:${adminPort}/upgrade`));
      },
      arrivals: async () => {
        leaders.process.send("collect");
        return (await receive(leaders, "arrivals")).arrivedNs;
      },
      stop,
    };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

/** A self-signed certificate of the kind that most authorities issue: ECDSA with P-256. */
function writeCertificate(folder: string): void {
  execFileSync(
    "openssl",
    [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", join(folder, "key.pem"), "-out", join(folder, "cert.pem")],
      ...["-days", "30", "-subj", "/CN=127.0.0.1"],
    ],
    { stdio: "ignore" },
  );
}

/** Slots of the cluster during upgrades, in milliseconds. */
const UPGRADE_SLOT_MS = 100;

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGTERM");
  } catch {
    // It has ended.
  }
}

/** The process that serves instead of that one; throws an Error when there is none in time. */
async function successorOf(old: number, url: string): Promise<number> {
  const untilMs = Date.now() + READY_MS;
  while (Date.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    // For a moment neither process has the admin listener open.
    const body: unknown = await fetch(url)
      .then((response) => response.json())
      .catch(() => null);
    const text = JSON.stringify(body);
    const pid = Number(/"process":\{"pid":(\d+)/.exec(text)?.[1] ?? old);
    if (pid !== old) return pid;
    if (text.includes('"state":"failed"')) throw new Error(`not upgraded: ${text}`);
  }
  throw new Error(`process ${old} was not replaced within ${READY_MS} ms`);
}

/** An edge that this run did not start: only its responses are known. */
export function foreignFixture(url: string, key: string): BenchFixture {
  return {
    url,
    key,
    edgePid: null,
    arrivals: async () => null,
    upgrade: () => Promise.reject(new Error("--upgrades needs an edge that this run starts")),
    stop: async () => undefined,
  };
}

function keysFile(key: string): string {
  return [
    "[plans.Load]",
    "rate_per_second = 1000000",
    "burst = 1000000",
    "",
    "[[keys]]",
    `token = "${key}"`,
    'account = "load"',
    'plan = "Load"',
    "",
  ].join("\n");
}

function edgeConfig(
  options: LoadOptions,
  count: number,
  tipAccount: string,
  cluster: { readonly rpcUrl: string; readonly wsUrl: string },
  httpPort: number,
  adminPort: number,
): string {
  const text = JSON.stringify;
  return [
    'region = "load"',
    "[http]",
    `listen = ${text(`127.0.0.1:${httpPort}`)}`,
    'drain_grace = "0s"',
    ...(options.tls ? ["[http.tls]", 'certificate = "cert.pem"', 'key = "key.pem"'] : []),
    "[admin]",
    `listen = ${text(`127.0.0.1:${adminPort}`)}`,
    "[cluster]",
    `rpc_url = ${text(cluster.rpcUrl)}`,
    `ws_url = ${text(cluster.wsUrl)}`,
    "[tip]",
    `accounts = [${text(tipAccount)}]`,
    "[accounts]",
    'keys_file = "keys.toml"',
    "[decode]",
    `inline = ${text(options.inline)}`,
    "[send]",
    `engine = ${text(options.engine)}`,
    `leaders = ${options.fanOut}`,
    "[receipts]",
    'keep = "1h"',
    `count_max = ${Math.max(count, 100)}`,
    "",
  ].join("\n");
}

type MessageOf<Kind> = Extract<LeaderMessage, { readonly kind: Kind }>;

/** The next message of that kind; an Error if the child ends or sends none in time. */
async function receive<Kind extends LeaderMessage["kind"]>(
  child: Child,
  kind: Kind,
): Promise<MessageOf<Kind>> {
  const signal = AbortSignal.timeout(ANSWER_MS);
  const exit = once(child.process, "exit", { signal }).then(() => {
    throw new Error(`the leaders' process ended\n${child.output()}`);
  });
  const message = once(child.process, "message", { signal }).then(([value]) => value);
  // Ignores the promise that settles second.
  exit.catch(() => undefined);
  message.catch(() => undefined);
  // Both ends of the channel are in this folder, and the type describes what they send.
  const received = (await Promise.race([message, exit])) as LeaderMessage;
  if (received.kind !== kind)
    throw new Error(`the leaders' process sent ${received.kind}, not ${kind}`);
  return received as MessageOf<Kind>;
}
