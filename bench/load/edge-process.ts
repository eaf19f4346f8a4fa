/**
 * The edge under load and its cluster, as separate processes, with a configuration made for the
 * run: one key with a limit that never applies, receipts for every transaction. With a proxy there
 * are two edges behind it, and clients use TLS.
 */

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type RunningProxy, startProxy } from "../../test/support/proxies.ts";
import { type Child, freePort, LIKE_THE_IMAGE, startChild, untilReady } from "./children.ts";
import type { LeaderMessage } from "./leader-process.ts";
import type { LoadOptions } from "./options.ts";

export interface BenchFixture {
  readonly url: string;
  /** PEM of the authority that clients must trust; null: no TLS. */
  readonly certificate: string | null;
  readonly key: string;
  /** The edge's process; null for an edge that this run did not start. */
  readonly edgePid: number | null;
  /** What the leaders saw; null without leaders. */
  arrivals(): Promise<Omit<MessageOf<"arrivals">, "kind"> | null>;
  /** Has the edge replaced; resolves when the successor serves. */
  upgrade(): Promise<void>;
  /** Drains one of the edges, another one each time; resolves when its replacement is ready. */
  restart(): Promise<void>;
  /** Kills the edge and starts it again; resolves when it answers. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

const READY_MS = 60_000;
const ANSWER_MS = 30_000;

/** A supervisor starts a killed edge after this time, as `RestartSec` of the systemd unit says. */
const RESTART_MS = 10;

/** Starts a cluster for `count` transactions, and an edge on it, or two behind a proxy. */
export async function startFixture(
  options: LoadOptions,
  count: number,
  tipAccount: string,
): Promise<BenchFixture> {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-load-"));
  const stops: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const each of stops.toReversed()) await each();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const leaders = await startLeaders(options, count);
    // Stops the edges first: they would log errors about a stopped cluster.
    stops.push(() => leaders.child.stop());
    const key = `td_${randomBytes(18).toString("base64url")}`;
    writeFileSync(join(folder, "keys.toml"), keysFile(key));
    const certificate = options.tls ? writeCertificate(folder) : null;
    const edges: RunningEdge[] = [];
    for (let index = 0; index < (options.proxy === null ? 1 : 2); index += 1) {
      const ports = { http: await freePort(), admin: await freePort() };
      const config = join(folder, `edge-${index}.toml`);
      writeFileSync(config, edgeConfig(options, count, tipAccount, leaders, ports));
      const edge = new RunningEdge(config, ports, options.tls);
      stops.push(() => edge.stop());
      await edge.start();
      edges.push(edge);
    }
    const [first, second] = edges;
    if (first === undefined) throw new Error("no edge");
    let proxy: RunningProxy | null = null;
    if (options.proxy !== null && second !== undefined) {
      proxy = await startProxy(options.proxy, [first.ports.http, second.ports.http]);
      stops.push(() => proxy?.stop());
    }
    let restarts = 0;
    return {
      url: proxy === null ? first.url : `https://127.0.0.1:${proxy.port}`,
      certificate: proxy?.certificate ?? certificate,
      key,
      // Of several processes the time and memory of one say nothing.
      edgePid: disturbancesOf(options) === 0 ? first.pid : null,
      upgrade: () => first.upgrade(),
      restart: async () => {
        restarts += 1;
        await edges[(restarts - 1) % edges.length]?.restart();
      },
      kill: () => first.kill(),
      async arrivals() {
        leaders.child.process.send("collect");
        return await receive(leaders.child, "arrivals");
      },
      stop,
    };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

/** A self-signed certificate as most authorities issue: ECDSA with P-256. Returns it as PEM. */
export function writeCertificate(folder: string): string {
  const certificate = join(folder, "cert.pem");
  execFileSync(
    "openssl",
    [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", join(folder, "key.pem"), "-out", certificate],
      ...["-days", "30", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
      ...["-addext", "basicConstraints=critical,CA:FALSE"],
    ],
    { stdio: "ignore" },
  );
  return readFileSync(certificate, "utf8");
}

function disturbancesOf({ upgrades, restarts, kills }: LoadOptions): number {
  return upgrades + restarts + kills;
}

/**
 * Leaders are other machines in production: here they must not wait for a processor while an edge
 * starts. Where the system refuses that, `nice` reports it and they start with the usual priority.
 */
const FIRST = ["nice", "-n", "-15"];

async function startLeaders(options: LoadOptions, count: number) {
  const script = fileURLToPath(new URL("./leader-process.ts", import.meta.url));
  // Nothing lands there: with short slots a replaced edge learns soon that it has expired.
  const slotMs = disturbancesOf(options) > 0 ? [String(SHORT_SLOT_MS)] : [];
  const args = ["--import", "tsx", script, String(options.leaders), String(count), ...slotMs];
  const child = startChild(args, true, FIRST);
  return { child, ...(await receive(child, "ready")) };
}

/** An edge, whichever process it is at the time. */
class RunningEdge {
  readonly ports: { readonly http: number; readonly admin: number };
  readonly #config: string;
  readonly #isTls: boolean;
  #child: Child | null = null;
  /** Successors of upgrades. */
  readonly #successors: number[] = [];

  constructor(config: string, ports: RunningEdge["ports"], isTls: boolean) {
    this.#config = config;
    this.#isTls = isTls;
    this.ports = ports;
  }

  get url(): string {
    return `${this.#isTls ? "https" : "http"}://127.0.0.1:${this.ports.http}`;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Resolves when it is ready. */
  async start(): Promise<void> {
    const child = this.#spawn();
    await untilReady(child, `http://127.0.0.1:${this.ports.admin}/readyz`, READY_MS);
  }

  async upgrade(): Promise<void> {
    const old = this.#successors.at(-1) ?? this.pid;
    if (old === null) throw new Error("no edge runs");
    process.kill(old, "SIGUSR2");
    const url = `http://127.0.0.1:${this.ports.admin}/upgrade`;
    this.#successors.push(await successorOf(old, url));
  }

  async restart(): Promise<void> {
    const child = this.#child?.process;
    const ended = child && once(child, "exit");
    child?.kill("SIGTERM");
    await ended;
    await this.start();
  }

  /** Resolves when it answers, ready or not. */
  async kill(): Promise<void> {
    const child = this.#child?.process;
    const ended = child && once(child, "exit");
    child?.kill("SIGKILL");
    await ended;
    await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
    await untilReady(this.#spawn(), `${this.url}/ping`, READY_MS);
  }

  async stop(): Promise<void> {
    for (const pid of this.#successors) killQuietly(pid);
    await this.#child?.stop();
  }

  #spawn(): Child {
    this.#child = startChild([...LIKE_THE_IMAGE, "dist/main.js", "edge", "--config", this.#config]);
    return this.#child;
  }
}

/** Slots of the cluster while edges are replaced, in milliseconds. */
const SHORT_SLOT_MS = 100;

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
  const foreign = () => Promise.reject(new Error("this run did not start the edge"));
  return {
    url,
    certificate: null,
    key,
    edgePid: null,
    arrivals: async () => null,
    upgrade: foreign,
    restart: foreign,
    kill: foreign,
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
  ports: { readonly http: number; readonly admin: number },
): string {
  const text = JSON.stringify;
  return [
    'region = "load"',
    "[http]",
    `listen = ${text(`127.0.0.1:${ports.http}`)}`,
    `drain_grace = ${text(options.proxy === null ? "0s" : "2s")}`,
    ...(options.proxy === null && options.idle === 0 ? [] : ["connections_per_address = 20000"]),
    ...(options.idle === 0 ? [] : ['idle_timeout = "10m"']),
    ...(options.tls ? ["[http.tls]", 'certificate = "cert.pem"', 'key = "key.pem"'] : []),
    "[admin]",
    `listen = ${text(`127.0.0.1:${ports.admin}`)}`,
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
    ...(options.queue === null ? [] : [`queue_per_leader = ${options.queue}`]),
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
