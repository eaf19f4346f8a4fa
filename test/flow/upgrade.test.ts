/**
 * One edge process replaced by another, with real processes: under load, with a successor that does
 * not become ready, and with signals in between.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { request as requestTls, Agent as TlsAgent } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { REJECTIONS } from "../../src/core/errors.ts";
import { type Authority, createAuthority } from "../support/authority.ts";
import {
  type EdgeProcess,
  type EdgeProcessOptions,
  MAIN,
  type Network,
  spawnEdge,
  startEdgeProcess,
  startNetwork,
  untilReady,
} from "../support/edge-process.ts";
import { ENGINE, OTHER_KEY, RAW_PATH, THREADS, WIDE_KEY } from "../support/flow.ts";
import { freePort } from "../support/ports.ts";
import { connectTouchdown, type TouchdownClient } from "../support/touchdown-client.ts";
import { until } from "../support/wait.ts";

let network: Network;
beforeAll(async () => {
  network = await startNetwork(2);
});
afterAll(() => network?.stop());

const running: EdgeProcess[] = [];
afterEach(async () => {
  for (const edge of running.splice(0)) {
    for (const pid of successorsOf(edge)) kill(pid, "SIGKILL");
    await edge.remove();
  }
});

async function start(options: EdgeProcessOptions = {}): Promise<EdgeProcess> {
  const edge = await startEdgeProcess(network, { adminPort: await freePort(), ...options });
  running.push(edge);
  await untilReady(edge);
  return edge;
}

/** The process numbers of all successors so far, the latest last. */
function successorsOf(edge: EdgeProcess): readonly number[] {
  const found = edge.output().matchAll(/process (\d+) starts as the successor/g);
  return [...found].map(([, pid]) => Number(pid));
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

function parentOf(pid: number): number {
  const [, parent] = /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(parent);
}

/** The names of the threads of a process; none once it has ended. */
function threadsOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/task`;
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map((id) => readFileSync(`${folder}/${id}/comm`, "utf8").trim());
}

function pidOf({ child }: EdgeProcess): number {
  if (child.pid === undefined) throw new Error("the edge was not started");
  return child.pid;
}

const failuresOf = (edge: EdgeProcess): number => edge.output().split("upgrade failed").length - 1;

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a command of the built program to its end. */
const command = (...args: readonly string[]): Promise<Ran> => startCommand(...args).ended;

function startCommand(...args: readonly string[]) {
  const child: ChildProcess = spawn(process.execPath, [MAIN, ...args]);
  let [out, err] = ["", ""];
  child.stdout?.on("data", (data: Buffer) => {
    out += data;
  });
  child.stderr?.on("data", (data: Buffer) => {
    err += data;
  });
  const ended = new Promise<Ran>((resolve) => {
    child.once("close", (code) => resolve({ code, out, err }));
  });
  return { ended, out: () => out };
}

/** With ingress threads where there were none, and without where there were some. */
const withOtherServer = (config: string): string =>
  config.replace(`threads = ${THREADS}`, `threads = ${THREADS === 0 ? 1 : 0}`);

interface Sent {
  readonly bytes: Uint8Array;
  readonly status: number;
  readonly closes: boolean;
}

/** Clients with kept connections that send one transaction after the other until stopped. */
function load(edge: EdgeProcess, clients: number, authority: Authority | null = null) {
  const kept = { keepAlive: true, maxSockets: clients };
  const agent =
    authority === null ? new Agent(kept) : new TlsAgent({ ...kept, ca: authority.certificate });
  const ask = authority === null ? request : requestTls;
  const sent: Sent[] = [];
  const failures: string[] = [];
  let isOver = false;

  function post(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      const asked = ask(
        (authority === null ? edge.url : edge.url.replace("http:", "https:")) + RAW_PATH,
        { agent, method: "POST", headers: { "api-x-token": WIDE_KEY } },
        (response) => {
          response.resume().on("end", () => {
            const closes = response.headers.connection === "close";
            sent.push({ bytes, status: response.statusCode ?? 0, closes });
            resolve();
          });
        },
      );
      asked.on("error", (error) => {
        failures.push(String(error));
        resolve();
      });
      asked.end(bytes);
    });
  }

  async function client(): Promise<void> {
    while (!isOver) await post(network.tipped().bytes);
  }

  const ended = Promise.all(Array.from({ length: clients }, client));
  return {
    sent,
    failures,
    async stop() {
      isOver = true;
      await ended;
      agent.destroy();
    },
  };
}

/** A client of `touchdown/1` that the edge knows. */
async function greetedBy(address: string): Promise<TouchdownClient> {
  const client = await connectTouchdown(address);
  const frames = client.hello(WIDE_KEY);
  await until("the limits and the tips", () => frames().length >= 2);
  return client;
}

/** The account's stream of receipts; `ended` resolves with the last event's id. */
async function eventsOf(edge: EdgeProcess, lastEventId = "") {
  const abort = new AbortController();
  const response = await fetch(`${edge.url}/api/v1/receipts`, {
    headers: { "api-x-token": WIDE_KEY, "last-event-id": lastEventId },
    signal: abort.signal,
  });
  expect(response.status).toBe(200);
  let text = "";
  const read = async (): Promise<string> => {
    try {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
    } catch (error) {
      if (!abort.signal.aborted) throw error;
    }
    return [...text.matchAll(/^id: (\S+)$/gm)].at(-1)?.[1] ?? "";
  };
  return { ended: read(), text: () => text, close: () => abort.abort() };
}

/** Sends a transaction over a connection that stays open until the agent is destroyed. */
async function holdConnection(edge: EdgeProcess): Promise<Agent> {
  const kept = new Agent({ keepAlive: true });
  const headers = { "api-x-token": WIDE_KEY };
  await new Promise((resolve) => {
    const asked = request(edge.url + RAW_PATH, { agent: kept, method: "POST", headers }, (from) =>
      from.resume().on("end", resolve),
    );
    asked.end(network.tipped().bytes);
  });
  return kept;
}

describe("upgrade", () => {
  it("replaces the process under load without one failed or refused request", async () => {
    const edge = await start();
    const clients = load(edge, 4);
    await until("the load to begin", () => clients.sent.length > 50);
    const exit = new Promise((resolve) => edge.child.once("exit", resolve));
    const upgraded = command("upgrade", "--config", edge.file);
    await until("the successor to serve", () => edge.output().includes("finishes its work"));
    // systemd supervises its own children alone, and the shell between is gone.
    const parent = parentOf(successorsOf(edge)[0] ?? 0);
    expect([parent, parentOf(parent)]).not.toContain(pidOf(edge));
    expect(edge.exitCode).toBeNull();
    const before = clients.sent.length;
    await until("the load to go on", () => clients.sent.length > before + 50);
    await clients.stop();
    const { code, out, err } = await upgraded;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(await exit).toBe(0);
    const [successor = 0] = successorsOf(edge);
    expect(out).toContain(`process ${successor} serves`);
    expect(clients.failures).toEqual([]);
    expect(new Set(clients.sent.map(({ status }) => status))).toEqual(new Set([200]));
    expect(clients.sent.some(({ closes }) => closes)).toBe(true);
    for (const { bytes } of clients.sent) {
      await until("the transaction to arrive", () => network.deliveriesOf(bytes) > 0);
    }
    // The successor can be replaced in turn.
    expect((await command("upgrade", "--config", edge.file)).code).toBe(0);
    expect(successorsOf(edge)).toHaveLength(2);
    expect(await edge.post(network.tipped().bytes)).toBe(200);
  });

  it.skipIf(THREADS === 0)("does so with clients over TLS, whose files it reads anew", async () => {
    const [authority, next] = [createAuthority(), createAuthority()];
    const folder = mkdtempSync(join(tmpdir(), "touchdown-upgrade-tls-"));
    const files = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") };
    writeFileSync(files.certificate, authority.server.certificate);
    writeFileSync(files.key, authority.server.key);
    const { certificate, key } = files;
    const edge = await start({ http: `tls = { certificate = "${certificate}", key = "${key}" }` });
    const clients = load(edge, 4, authority);
    await until("the load to begin", () => clients.sent.length > 50);
    const upgraded = command("upgrade", "--config", edge.file);
    await until("the successor to serve", () => edge.output().includes("finishes its work"));
    const before = clients.sent.length;
    await until("the load to go on", () => clients.sent.length > before + 50);
    await clients.stop();
    expect((await upgraded).code).toBe(0);
    expect(clients.failures).toEqual([]);
    expect(new Set(clients.sent.map(({ status }) => status))).toEqual(new Set([200]));
    expect(clients.sent.some(({ closes }) => closes)).toBe(true);
    writeFileSync(files.certificate, next.server.certificate);
    writeFileSync(files.key, next.server.key);
    expect((await command("upgrade", "--config", edge.file)).code).toBe(0);
    const others = load(edge, 1, next);
    await until("an answer of the new one", () => others.sent.length > 0);
    await others.stop();
    expect([others.failures, others.sent[0]?.status]).toEqual([[], 200]);
    rmSync(folder, { recursive: true });
  });

  it.skipIf(THREADS === 0 || ENGINE !== "native")(
    "refuses no QUIC client, and closes the old process's with a code",
    async () => {
      const address = `127.0.0.1:${await freePort()}`;
      const edge = await start({ more: `[quic]\nlisten = "${address}"` });
      const old = await Promise.all(Array.from({ length: 4 }, () => greetedBy(address)));
      const upgraded = command("upgrade", "--config", edge.file);
      await until("the successor", () => successorsOf(edge).length > 0);
      for (const client of old) {
        expect((await client.submit(network.tipped().bytes)).code).toBe(0);
      }
      await until("the successor to serve", () => edge.output().includes("finishes its work"));
      for (let count = 0; count < 20; count += 1) {
        const client = await greetedBy(address);
        expect((await client.submit(network.tipped().bytes)).code).toBe(0);
        client.close();
      }
      await until("the ends", () => old.every((client) => client.closeCode() !== null));
      expect(old.map((client) => client.closeCode())).toEqual(
        old.map(() => REJECTIONS.overloaded.quicCode),
      );
      for (const client of old) client.close();
      expect((await upgraded).code).toBe(0);
    },
  );

  it("keeps receipts, and streams of them lose nothing", async () => {
    const edge = await start();
    const stream = await eventsOf(edge);
    const sent = Array.from({ length: 20 }, () => network.tipped());
    for (const { bytes } of sent.slice(0, 10)) expect(await edge.post(bytes)).toBe(200);
    const upgraded = command("upgrade", "--config", edge.file);
    await until("the successor to serve", () => edge.output().includes("finishes its work"));
    const lastId = await stream.ended;
    for (const { bytes } of sent.slice(10)) expect(await edge.post(bytes)).toBe(200);
    const later = await eventsOf(edge, lastId);
    const receiptStatus = async (signature: string): Promise<number> => {
      const headers = { "api-x-token": WIDE_KEY, connection: "close" };
      const url = `${edge.url}/api/v1/transactions/${signature}`;
      return (await fetch(url, { headers })).status;
    };
    for (const { signature } of sent) expect(await receiptStatus(signature)).toBe(200);
    expect((await upgraded).code).toBe(0);
    for (const { signature } of sent) expect(await receiptStatus(signature)).toBe(200);
    const seen = (): string => stream.text() + later.text();
    for (const { signature } of sent) {
      await until("its acceptance", () => seen().includes(`"signature":"${signature}"`));
    }
    expect(seen()).not.toContain("event: gap");
    later.close();
  });

  it("leaves the running process as it is when the successor does not start", async () => {
    const edge = await start();
    const whole = readFileSync(edge.file, "utf8");
    const broken = [
      [whole.replace("[tip]", "[tip]\nno_such_key = 1"), "no_such_key"],
      [whole.replace('listen = "127.0.0.1:0"', 'listen = "127.0.0.1:1"'), "keeps the address"],
      [whole.replace('keys_file = "keys.toml"', 'keys_file = "none.toml"'), "none.toml"],
      ...(ENGINE === "native" ? [[withOtherServer(whole), "both need the native engine"]] : []),
    ] as [string, string][];
    for (const [text, why] of broken) {
      const failures = failuresOf(edge);
      writeFileSync(edge.file, text);
      process.kill(pidOf(edge), "SIGUSR2");
      await until("the failure", () => failuresOf(edge) > failures);
      expect(edge.output()).toContain(why);
      await untilReady(edge);
      expect(await edge.post(network.tipped().bytes)).toBe(200);
    }
    expect(edge.exitCode).toBeNull();
  });

  it.skipIf(ENGINE !== "native")("revokes a key for the successor, too, as it starts", async () => {
    const edge = await start();
    const keys = readFileSync(edge.keysFile, "utf8");
    const postAnew = (): Promise<number> => edge.post(network.tipped().bytes, OTHER_KEY);
    expect(await postAnew()).toBe(200);
    // Without the node it reads its files, and then waits.
    await network.cluster.stopRpc();
    process.kill(pidOf(edge), "SIGUSR2");
    await until("the successor", () => successorsOf(edge).length > 0);
    const [successor = 0] = successorsOf(edge);
    await until("its engine, which starts later than it reads its keys", () =>
      threadsOf(successor).includes("td-io"),
    );
    const [before = "", ...others] = keys.split("[[keys]]");
    const kept = others.filter((each) => !each.includes('account = "other"'));
    writeFileSync(edge.keysFile, [before, ...kept].join("[[keys]]"));
    process.kill(pidOf(edge), "SIGHUP");
    await until("the revocation", () => edge.output().includes("keys read again"));
    expect(await postAnew()).toBe(401);
    await network.cluster.startRpc();
    await until("the successor to serve", () => edge.output().includes("finishes its work"));
    // The old process answers the first one, and closes the connection with it.
    expect(await edge.post(network.tipped().bytes)).toBe(200);
    expect(await postAnew()).toBe(401);
  });

  it("ends a successor that is not ready in time, and says what it waited for", async () => {
    // Enough for a busy machine to load the program and to become ready the second time.
    const edge = await start({ http: 'upgrade_timeout = "20s"' });
    const whole = readFileSync(edge.file, "utf8");
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    // The running process decides how long it waits.
    const other = whole.replace('upgrade_timeout = "20s"', 'upgrade_timeout = "1s"');
    writeFileSync(edge.file, other.replace(network.rpcUrl, nowhere));
    const first = command("upgrade", "--config", edge.file);
    await until("the successor", () => successorsOf(edge).length > 0);
    const second = await command("upgrade", "--config", edge.file);
    expect(second.err).toContain("an upgrade is on its way");
    for (const { code, err } of [await first, second]) {
      expect(code).toBe(1);
      expect(err).toMatch(/not upgraded: not ready within 20000 ms; it waits for: .*contacts/);
    }
    const [successor = 0] = successorsOf(edge);
    expect(isAlive(successor)).toBe(false);
    expect(await edge.post(network.tipped().bytes)).toBe(200);
    // The next attempt may succeed.
    writeFileSync(edge.file, whole);
    expect((await command("upgrade", "--config", edge.file)).code).toBe(0);
  });

  it("goes on when the successor is killed while it starts", async () => {
    const edge = await start();
    const upgraded = command("upgrade", "--config", edge.file);
    await until("the successor", () => successorsOf(edge).length > 0);
    kill(successorsOf(edge)[0] ?? 0, "SIGKILL");
    const { code, err } = await upgraded;
    expect(code).toBe(1);
    expect(err).toContain("it ended by SIGKILL");
    expect(await edge.post(network.tipped().bytes)).toBe(200);
  });

  it("goes on when the shell between the processes gets a signal for the edge", async () => {
    const edge = await start();
    const upgraded = command("upgrade", "--config", edge.file);
    await until("the successor", () => successorsOf(edge).length > 0);
    const [successor = 0] = successorsOf(edge);
    const shell = parentOf(successor);
    // As `systemctl kill` sends them to each process of the service.
    for (const signal of ["SIGHUP", "SIGUSR2"] as const) kill(shell, signal);
    kill(pidOf(edge), "SIGHUP");
    const { code, out, err } = await upgraded;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain(`process ${successor} serves`);
  });

  it("fails when the successor is killed while the old process finishes its work", async () => {
    const edge = await start();
    const kept = await holdConnection(edge);
    const upgrade = startCommand("upgrade", "--config", edge.file);
    await until("the successor to serve", () => upgrade.out().includes("finishes its work"));
    const [successor = 0] = successorsOf(edge);
    kill(successor, "SIGKILL");
    const { code, err } = await upgrade.ended;
    expect(code).toBe(1);
    expect(err).toContain(`process ${successor} has ended, and none serves in its place`);
    expect(edge.exitCode).toBeNull();
    kept.destroy();
  });

  it("is refused to a file of control, and where no edge runs", async () => {
    const edge = await start();
    const whole = readFileSync(edge.file, "utf8");
    writeFileSync(edge.file, whole.replace(/(\[admin\]\nlisten = "127\.0\.0\.1:)\d+/, "$11"));
    const { code, err } = await command("upgrade", "--config", edge.file);
    expect(code).toBe(1);
    expect(err).toContain("no edge answers at http://127.0.0.1:1/upgrade");
  });
});

describe("a second edge", () => {
  it("is refused while the first runs, and after that was replaced", async () => {
    const edge = await start();
    for (const round of [1, 2]) {
      const second = spawnEdge(network, { httpPort: edge.port });
      try {
        expect(await second.exited, `round ${round}`).toBe(1);
        expect(second.output()).toContain("the port is in use");
      } finally {
        rmSync(second.folder, { recursive: true });
      }
      if (round === 1) await command("upgrade", "--config", edge.file);
    }
    expect(await edge.post(network.tipped().bytes)).toBe(200);
  });
});

describe("SIGTERM during an upgrade", () => {
  it("stops both processes before the successor serves", async () => {
    const edge = await start({ http: 'drain_grace = "0s"' });
    const exit = new Promise((resolve) => edge.child.once("exit", resolve));
    process.kill(pidOf(edge), "SIGUSR2");
    await until("the successor", () => successorsOf(edge).length > 0);
    process.kill(pidOf(edge), "SIGTERM");
    expect(await exit).toBe(0);
    await until("the successor's end", () => !isAlive(successorsOf(edge)[0] ?? 0));
    expect(edge.output()).not.toContain("finishes its work");
  });

  it("ends the old process without its grace once the successor serves", async () => {
    const edge = await start({ http: 'drain_grace = "10m"' });
    const exit = new Promise((resolve) => edge.child.once("exit", resolve));
    const kept = await holdConnection(edge);
    process.kill(pidOf(edge), "SIGUSR2");
    await until("the successor to serve", () => edge.output().includes("finishes its work"));
    process.kill(pidOf(edge), "SIGTERM");
    expect(await exit).toBe(0);
    kept.destroy();
    expect(await edge.post(network.tipped().bytes)).toBe(200);
  });
});
