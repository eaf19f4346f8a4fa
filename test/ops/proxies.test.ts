/**
 * The configurations for nginx and HAProxy, run by those programs before two edges that are
 * restarted one after the other under load.
 *
 * PROXY_RATE=2000 PROXY_ROLLS=10 sends that many transactions a second through ten restarts of each
 * edge; without them the load is what four clients send one after the other.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createAuthority } from "../support/authority.ts";
import {
  type EdgeProcess,
  type Network,
  startEdgeProcess,
  startNetwork,
  untilReady,
} from "../support/edge-process.ts";
import { RAW_PATH, untilResponse, WIDE_KEY } from "../support/flow.ts";
import { freePort } from "../support/ports.ts";
import { ROOT } from "../support/source-tree.ts";
import { everyMoment, until } from "../support/wait.ts";

const RATE = Number(process.env["PROXY_RATE"] ?? 0);
const ROLLS = Number(process.env["PROXY_ROLLS"] ?? 1);
/** The bound of a run at a rate. */
const RATE_MS_MAX = 900_000;
const CLIENTS = RATE === 0 ? 4 : 32;

interface Proxy {
  readonly port: number;
  readonly isRunning: boolean;
  output(): string;
  stop(): Promise<void>;
}

interface Places {
  readonly folder: string;
  readonly port: number;
  readonly edges: readonly [number, number];
}

const authority = createAuthority();
const folder = mkdtempSync(join(tmpdir(), "touchdown-proxies-"));
const certificateFile = join(folder, "server.pem");
const keyFile = join(folder, "key.pem");
writeFileSync(keyFile, authority.server.key);
// HAProxy reads both from one file.
writeFileSync(certificateFile, `${authority.server.certificate}${authority.server.key}`);

/** A file of ops with each placeholder replaced; a placeholder that is not there is an error. */
function filled(path: string, values: Readonly<Record<string, string>>): string {
  let text = readFileSync(join(ROOT, path), "utf8");
  for (const [name, value] of Object.entries(values)) {
    if (!text.includes(name)) throw new Error(`${path} does not contain ${name}`);
    text = text.replaceAll(name, value);
  }
  return text;
}

function nginxConfiguration({ folder, port, edges }: Places): string {
  const site = filled("ops/nginx/touchdown.conf", {
    EDGE_A: `127.0.0.1:${edges[0]}`,
    EDGE_B: `127.0.0.1:${edges[1]}`,
    SERVER_NAME: "localhost",
    CERTIFICATE_FILE: certificateFile,
    PRIVATE_KEY_FILE: keyFile,
    ACCESS_LOG: join(folder, "access.log"),
    "listen 443": `listen 127.0.0.1:${port}`,
    "    listen [::]:443 ssl http2;\n": "",
  });
  const file = join(folder, "nginx.conf");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join("\n");
  writeFileSync(
    file,
    `daemon off;\npid ${folder}/pid;\nerror_log stderr warn;\nworker_processes 1;
events { worker_connections 1024; }\nhttp {\n${temporary}\n${site}\n}\n`,
  );
  return file;
}

const PROGRAMS = {
  nginx: (places: Places) => ({
    command: "nginx",
    words: ["-p", places.folder, "-c", nginxConfiguration(places)],
    environment: {},
  }),
  haproxy: ({ port, edges }: Places) => ({
    command: "haproxy",
    words: ["-db", "-f", join(ROOT, "ops/haproxy/haproxy.cfg")],
    environment: {
      LISTEN: `127.0.0.1:${port}`,
      CERTIFICATE_FILE: certificateFile,
      EDGE_A: `127.0.0.1:${edges[0]}`,
      EDGE_B: `127.0.0.1:${edges[1]}`,
    },
  }),
} as const;

type Program = keyof typeof PROGRAMS;

function hasProgram(name: Program): boolean {
  return spawnSync(name, ["-v"]).status === 0;
}

async function startProxy(name: Program, edges: readonly [number, number]): Promise<Proxy> {
  const own = mkdtempSync(join(folder, `${name}-`));
  const port = await freePort();
  const { command, words, environment } = PROGRAMS[name]({ folder: own, port, edges });
  const child: ChildProcess = spawn(command, words, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (data: Buffer) => {
      output += data.toString();
    });
  }
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  return {
    port,
    get isRunning() {
      return child.exitCode === null;
    },
    output: () => output,
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

interface Reply {
  /** 0 when there was no response. */
  readonly status: number;
  readonly text: string;
}

type Clients = ReturnType<typeof createClients>;

/** Clients of a proxy over TLS, each with one connection that is kept. */
function createClients(port: number) {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: CLIENTS,
    ca: authority.certificate,
    scheduling: "fifo",
  });
  return {
    send: (method: string, path: string, body: Uint8Array | null): Promise<Reply> =>
      new Promise((resolve) => {
        const headers = { "api-x-token": WIDE_KEY };
        const sent = request({ agent, method, host: "127.0.0.1", port, path, headers }, (from) => {
          let text = "";
          from.on("data", (chunk: Buffer) => {
            text += chunk.toString();
          });
          from.on("error", (error) => resolve({ status: 0, text: String(error) }));
          from.on("end", () => resolve({ status: from.statusCode ?? 0, text }));
        });
        sent.on("error", (error) => resolve({ status: 0, text: String(error) }));
        sent.end(body ?? undefined);
      }),
    close: () => agent.destroy(),
  };
}

let network: Network;
/** The signatures that arrived at a leader, in base64. */
const arrived = new Set<string>();
const signatureOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.subarray(1, 65)).toString("base64");

beforeAll(async () => {
  network = await startNetwork(2);
  for (const leader of network.leaders) {
    leader.onTransaction((bytes) => void arrived.add(signatureOf(bytes)));
  }
});
afterAll(async () => {
  await network?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** An edge that drains for two seconds, and is ready. */
async function startEdge(httpPort: number): Promise<EdgeProcess> {
  const http = 'drain_grace = "2s"\nconnections_per_address = 20000';
  const edge = await startEdgeProcess(network, { httpPort, http });
  ends.push(() => edge.remove());
  await untilReady(edge);
  return edge;
}

/** Clients of a proxy that has found an edge. */
async function untilServed(proxy: Proxy): Promise<Clients> {
  const clients = createClients(proxy.port);
  ends.push(() => clients.close());
  await untilResponse(
    "a response through the proxy",
    () => clients.send("GET", "/ping", null),
    ({ status }) => {
      if (!proxy.isRunning) throw new Error(`the proxy ended: ${proxy.output()}`);
      return status === 200;
    },
  );
  return clients;
}

/** Transactions until it is stopped; the replies by status, and what was accepted. */
function startLoad(send: (bytes: Uint8Array) => Promise<Reply>) {
  const replies = new Map<string, number>();
  const accepted: Uint8Array[] = [];
  let isOver = false;
  async function once(): Promise<void> {
    const { bytes } = network.tipped();
    const { status, text } = await send(bytes);
    const what = status === 200 ? "200" : `${status} ${text.slice(0, 200)}`;
    replies.set(what, (replies.get(what) ?? 0) + 1);
    if (status === 200) accepted.push(bytes);
  }
  async function client(): Promise<void> {
    while (!isOver) await once();
  }
  async function atRate(): Promise<void> {
    const open = new Set<Promise<void>>();
    const startMs = performance.now();
    let sent = 0;
    const stop = everyMoment(() => {
      const due = ((performance.now() - startMs) / 1000) * RATE;
      for (; sent < due; sent += 1) {
        const one: Promise<void> = once().finally(() => open.delete(one));
        open.add(one);
      }
    });
    await until("the end of the load", () => isOver, RATE_MS_MAX);
    stop();
    await Promise.all(open);
  }
  const done = RATE === 0 ? Promise.all(Array.from({ length: CLIENTS }, client)) : atRate();
  return {
    count: () => [...replies.values()].reduce((sum, each) => sum + each, 0),
    async stop() {
      isOver = true;
      await done;
      return { replies, accepted };
    },
  };
}

describe.each(Object.keys(PROGRAMS) as Program[])("%s in front of two edges", (name) => {
  const canRun = hasProgram(name) || process.env["CI"] === "true";

  it.skipIf(!canRun)("loses no request while each edge is restarted", async () => {
    const ports = [await freePort(), await freePort()] as const;
    const edges = [await startEdge(ports[0]), await startEdge(ports[1])];
    const proxy = await startProxy(name, ports);
    ends.push(() => proxy.stop());
    const clients = await untilServed(proxy);

    const load = startLoad((bytes) => clients.send("POST", RAW_PATH, bytes));
    for (let roll = 0; roll < ROLLS * 2; roll += 1) {
      const index = roll % 2;
      const before = load.count();
      await until("some responses", () => load.count() > before + 100);
      edges[index]?.child.kill("SIGTERM");
      expect(await edges[index]?.exited).toBe(0);
      edges[index] = await startEdge(ports[index] ?? 0);
      const served = load.count();
      await until("responses after the restart", () => load.count() > served + 1000);
    }
    const { replies, accepted } = await load.stop();
    expect([...replies.keys()]).toEqual(["200"]);
    await until("each accepted transaction at a leader", () =>
      accepted.every((bytes) => arrived.has(signatureOf(bytes))),
    );
  });

  it.skipIf(!canRun)("speaks HTTP/2 to clients and HTTP/1.1 to edges", async () => {
    const edge = await startEdge(await freePort());
    const proxy = await startProxy(name, [edge.port, edge.port]);
    ends.push(() => proxy.stop());
    await untilServed(proxy);
    const session = connect(`https://127.0.0.1:${proxy.port}`, { ca: authority.certificate });
    ends.push(() => session.close());
    const { bytes } = network.tipped();
    const stream = session.request({
      ":method": "POST",
      ":path": RAW_PATH,
      "content-length": bytes.length,
      "api-x-token": WIDE_KEY,
    });
    stream.end(bytes);
    let text = "";
    for await (const chunk of stream) text += String(chunk);
    expect(session.alpnProtocol).toBe("h2");
    expect(text).toContain(`"success":true`);
  });

  it.skipIf(!canRun)("passes each receipt of a stream on when it comes", async () => {
    const edge = await startEdge(await freePort());
    const proxy = await startProxy(name, [edge.port, edge.port]);
    ends.push(() => proxy.stop());
    const clients = await untilServed(proxy);
    let streamed = "";
    const agent = new Agent({ ca: authority.certificate });
    ends.push(() => agent.destroy());
    const headers = { "api-x-token": WIDE_KEY };
    const path = "/api/v1/receipts";
    request({ agent, host: "127.0.0.1", port: proxy.port, path, headers }, (from) => {
      from.on("data", (chunk: Buffer) => {
        streamed += chunk.toString();
      });
      from.on("error", () => undefined);
    })
      .on("error", () => undefined)
      .end();
    await until("the stream's first bytes", () => streamed !== "");
    const { bytes, signature } = network.tipped();
    expect(await clients.send("POST", RAW_PATH, bytes)).toMatchObject({ status: 200 });
    await until("the receipt in the stream", () => streamed.includes(signature));
  });
});
