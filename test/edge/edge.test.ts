import { createSocket } from "node:dgram";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { configFromValues } from "../../src/config/load.ts";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { SetupError } from "../../src/core/errors.ts";
import type { Log } from "../../src/core/log.ts";
import { type Edge, startEdge } from "../../src/edge/edge.ts";
import { CERTIFICATE_LOOK_MS } from "../../src/edge/limits.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { connectRaw, plainPost as postBytes } from "../conformance/http-fixture.ts";
import { createAuthority } from "../support/authority.ts";
import { type Network, startNetwork } from "../support/edge-process.ts";
import { ENGINE, keysToml, RAW_PATH, THREADS, untilResponse, WIDE_KEY } from "../support/flow.ts";
import { freePort } from "../support/ports.ts";
import { parsePrometheus, seriesValue } from "../support/prometheus.ts";
import { newKeypair } from "../support/transactions.ts";
import { until } from "../support/wait.ts";

let network: Network;
/** The handles that the network has open, by kind. */
let baseline: readonly number[] = [];
beforeAll(async () => {
  network = await startNetwork(2);
  baseline = openHandles();
});
afterAll(() => network?.stop());

let folder = "";
const lines: { readonly level: string; readonly fields: object; readonly message: string }[] = [];
const note =
  (level: string) =>
  (fields: object, message: string): void =>
    void lines.push({ level, fields, message });
const log: Log = { info: note("info"), warn: note("warn"), error: note("error") };

const undo: (() => unknown)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-edge-"));
  writeFileSync(join(folder, "keys.toml"), keysToml());
  lines.length = 0;
});
afterEach(async () => {
  for (const act of undo.splice(0).toReversed()) await act();
  rmSync(folder, { recursive: true });
});

type Sections = Readonly<Record<string, object>>;

function configOf(over: Sections = {}) {
  const own: Sections = {
    http: { listen: "127.0.0.1:0", threads: THREADS },
    admin: { listen: "127.0.0.1:0" },
    cluster: { rpc_url: network.rpcUrl, ws_url: network.wsUrl },
    tip: { accounts: [network.tipAccount] },
    accounts: { keys_file: "keys.toml" },
    decode: { workers: 1 },
    send: { bind: "127.0.0.1:0", engine: ENGINE },
  };
  const sections = { ...own };
  for (const [name, section] of Object.entries(over)) {
    sections[name] = { ...own[name], ...section };
  }
  return configFromValues(sections, folder, {});
}

async function start(over: Sections = {}): Promise<Edge> {
  const edge = await startEdge(configOf(over), { log });
  undo.push(() => edge.stop());
  return edge;
}

async function startReady(over: Sections = {}): Promise<Edge> {
  const edge = await start(over);
  await until("being ready", () => edge.readiness().ok);
  return edge;
}

async function post(edge: Edge, bytes: Uint8Array, key = WIDE_KEY) {
  const response = await fetch(`http://${edge.httpAddress}${RAW_PATH}`, {
    method: "POST",
    headers: { "api-x-token": key },
    body: Uint8Array.from(bytes),
  });
  return { status: response.status, text: await response.text() };
}

const page = async (edge: Edge, path: string) => {
  const response = await fetch(`http://${edge.adminAddress}${path}`);
  return { status: response.status, text: await response.text() };
};

/** Handles of this process that would outlive a failed start. */
const KINDS = ["TCPServerWrap", "UDPWrap", "MessagePort", "Worker"] as const;

function openHandles(): readonly number[] {
  const all = process.getActiveResourcesInfo();
  return KINDS.map((kind) => all.filter((other) => other === kind).length);
}

/** LongPolls until only the handles of the tests' own network are open. */
async function untilClosed(): Promise<void> {
  const isClosed = () => openHandles().every((count, index) => count <= (baseline[index] ?? 0));
  await until("everything to be closed", isClosed);
}

/** Calls `act` with a port of 127.0.0.1 that is in use meanwhile. */
async function withTakenPort(act: (port: number) => Promise<void>): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  await act(address.port);
  await new Promise((resolve) => server.close(resolve));
}

async function failure(over: Sections): Promise<Error> {
  const error: unknown = await startEdge(configOf(over), { log }).then(
    (edge) => edge.stop(),
    (thrown: unknown) => thrown,
  );
  if (error instanceof Error) return error;
  throw new Error("it started");
}

describe("start", () => {
  it("listens, and becomes ready with the checks shown to the operator", async () => {
    const edge = await startReady();
    expect(edge.httpAddress).toMatch(/^127\.0\.0\.1:[1-9]\d*$/);
    expect(edge.adminAddress).toMatch(/^127\.0\.0\.1:[1-9]\d*$/);
    const { status, text } = await page(edge, "/readyz");
    expect(status).toBe(200);
    expect(JSON.parse(text).checks.map(({ name }: { name: string }) => name)).toEqual([
      "serving",
      "slot",
      "schedule",
      "contacts",
      "live",
      "statuses",
      "engine",
    ]);
    expect(lines).toContainEqual({
      level: "info",
      fields: { http: edge.httpAddress, admin: edge.adminAddress },
      message: "edge started",
    });
  });

  it("delivers a transaction to a leader", async () => {
    const edge = await startReady();
    const { bytes, signature } = network.tipped();
    expect(await post(edge, bytes)).toMatchObject({
      status: 200,
      text: expect.stringContaining(signature),
    });
    await until("the bytes at a leader", () => network.deliveriesOf(bytes) > 0);
    const shown = JSON.parse((await page(edge, "/leaders")).text);
    expect(shown.plan.send.length).toBeGreaterThan(0);
    expect(shown.peers.some(({ state }: { state: string }) => state === "live")).toBe(true);
    const { leaders } = JSON.parse((await page(edge, "/leaders/stats")).text);
    expect(leaders[0]).toMatchObject({ reachable: true, sent: expect.any(Number) });
    expect(leaders[0].handshakeMs).toBeGreaterThan(0);
    expect(JSON.parse((await page(edge, "/cluster")).text)).toMatchObject({
      slot: expect.any(Number),
      consensus: expect.stringMatching(/^(unknown|tower_bft|alpenglow)$/),
      confirmation_stalled: false,
    });
    const families = parsePrometheus((await page(edge, "/metrics")).text);
    const [tips] = families.get("touchdown_tips_accepted_lamports_total")?.samples ?? [];
    expect(tips?.labels).toEqual({ plan: "Wide" });
    expect(tips?.value).toBeGreaterThan(0);
    const threads = families.get("touchdown_thread_cpu_seconds_total")?.samples ?? [];
    const kinds = threads.map(({ labels }) => labels["thread"]);
    expect(kinds).toEqual(expect.arrayContaining(["main", "cluster"]));
  });

  it("presents the identity of the file to leaders", async () => {
    const pair = newKeypair(99);
    const file = join(folder, "identity.json");
    writeFileSync(file, JSON.stringify([...pair.seed, ...pair.publicKey]));
    const seen: string[] = [];
    const [leader] = network.leaders;
    const edge = await startReady({ identity: { keypair: "identity.json" }, send: { leaders: 2 } });
    leader?.onTransaction((_, { peerPubkey }) =>
      seen.push(Buffer.from(peerPubkey ?? []).toString("hex")),
    );
    expect(edge.identity.publicKey).toEqual(pair.publicKey);
    const send = () => post(edge, network.tipped().bytes);
    await untilResponse("a transaction at that leader", send, () => seen.length > 0);
    expect(seen[0]).toBe(Buffer.from(pair.publicKey).toString("hex"));
    const families = parsePrometheus((await page(edge, "/metrics")).text);
    expect(seriesValue(families, "touchdown_identity_info", { identity: pair.address })).toBe(1);
  });

  it("counts a rejected handshake once, and never decrements the counter", async () => {
    const silent = await startNetwork(1);
    undo.push(() => silent.stop());
    silent.leaders[0]?.setBehaviour({ admission: "refuse" });
    const edge = await start({ cluster: { rpc_url: silent.rpcUrl, ws_url: silent.wsUrl } });
    const handshakes = async (result: string) => {
      const families = parsePrometheus((await page(edge, "/metrics")).text);
      return seriesValue(families, "touchdown_connection_attempts_total", { result });
    };
    const failed = await untilResponse(
      "a failed handshake",
      () => handshakes("failed"),
      (count) => count > 0,
    );
    const { leaders } = JSON.parse((await page(edge, "/leaders/stats")).text);
    expect(failed).toBeLessThanOrEqual(leaders[0].attempts);
    expect(await handshakes("failed")).toBeGreaterThanOrEqual(failed);
    expect(await handshakes("live")).toBe(0);
  });
});

describe("a failed start", () => {
  it.each(["http", "admin"])(
    "reports that the port of [%s] is in use, and leaves nothing running",
    async (section) => {
      await untilClosed();
      await withTakenPort(async (port) => {
        const error = await failure({ [section]: { listen: `127.0.0.1:${port}` } });
        expect(error).toBeInstanceOf(SetupError);
        expect(error.message).toContain(`127.0.0.1:${port}`);
        expect(error.message).toContain(section);
      });
      await untilClosed();
      expect(lines.map(({ message }) => message)).not.toContain("edge started");
    },
  );

  it.each(["192.0.2.1:0", "[2001:db8::1]:0"])(
    "reports that %s is not a local address to send from",
    async (bind) => {
      const error = await failure({ send: { bind } });
      expect(error).toBeInstanceOf(SetupError);
      expect(error.message).toContain(`send.bind: cannot send from ${bind}`);
      await untilClosed();
    },
  );

  it("reports an invalid keys file by its name, without any key", async () => {
    writeFileSync(join(folder, "keys.toml"), '[[keys]]\ntoken = "a-secret-that-must-not-show"\n');
    const error = await failure({});
    expect(error).toBeInstanceOf(SetupError);
    expect(error.message).toContain("keys.toml");
    expect(error.message).not.toContain("a-secret");
  });

  it.each([
    ["is not there", null, "cannot be read (ENOENT): solana-keygen new makes one"],
    ["is no keypair", "[1,2,3]", "not an array of 64 bytes"],
    ["is not JSON", "seventy words", "not JSON"],
  ])("because the identity file %s names the key and the file", async (_, text, why) => {
    const file = join(folder, "identity.json");
    if (text !== null) writeFileSync(file, text);
    const error = await failure({ identity: { keypair: "identity.json" } });
    expect(error).toBeInstanceOf(SetupError);
    expect(error.message).toContain(`identity.keypair: ${file}`);
    expect(error.message).toContain(why);
  });
});

describe("the source address", () => {
  it("has the configured port", async () => {
    const port = await freePort();
    const taken = createSocket("udp4");
    await new Promise<void>((resolve) => taken.bind(port, "127.0.0.1", resolve));
    const bind = `127.0.0.1:${port}`;
    expect((await failure({ send: { bind } })).message).toContain("EADDRINUSE");
    await new Promise<void>((resolve) => taken.close(resolve));
    await startReady({ send: { bind } });
  });
});

describe("keys", () => {
  it("are reloaded on request, and the log reports their count", async () => {
    const edge = await startReady();
    const token = "a-key-that-was-not-there";
    expect((await post(edge, network.tipped().bytes, token)).status).toBe(401);
    const plan = "[plans.P]\nrate_per_second = 5\nburst = 5\n";
    const key = `[[keys]]\ntoken = "${token}"\naccount = "new"\nplan = "P"\n`;
    writeFileSync(join(folder, "keys.toml"), plan + key);
    edge.reloadKeys();
    expect((await post(edge, network.tipped().bytes, token)).status).toBe(200);
    expect((await post(edge, network.tipped().bytes)).status).toBe(401);
    expect(lines).toContainEqual({
      level: "info",
      fields: { keys: 1 },
      message: "keys read again",
    });
  });

  it("are unchanged when the file is invalid, empty or missing, however often", async () => {
    const edge = await startReady();
    for (const text of ["[[keys", '[[keys]]\ntoken = "short"\n', ""]) {
      writeFileSync(join(folder, "keys.toml"), text);
      expect(() => edge.reloadKeys()).toThrow(SetupError);
      expect((await post(edge, network.tipped().bytes)).status).toBe(200);
    }
    rmSync(join(folder, "keys.toml"));
    expect(() => edge.reloadKeys()).toThrow(SetupError);
    expect((await post(edge, network.tipped().bytes)).status).toBe(200);
    const families = parsePrometheus((await page(edge, "/metrics")).text);
    const loads = (result: string) =>
      seriesValue(families, "touchdown_keys_loads_total", { result });
    expect([loads("ok"), loads("failed")]).toEqual([1, 4]);
  });
});

describe("the identity", () => {
  it("is reloaded on request, and transactions are sent meanwhile", async () => {
    const [before, after] = [freshIdentity(), freshIdentity()];
    const path = join(folder, "identity.json");
    const write = ({ seed, publicKey }: typeof before): void =>
      writeFileSync(path, JSON.stringify([...seed, ...publicKey]));
    write(before);
    const edge = await startReady({ identity: { keypair: "identity.json" } });
    write(after);
    edge.reloadIdentity();
    expect(edge.identity).toEqual(after);
    const outdated = async () =>
      seriesValue(
        parsePrometheus((await page(edge, "/metrics")).text),
        "touchdown_connections_outdated",
      );
    await untilResponse(
      "the new identity everywhere",
      async () => {
        expect((await post(edge, network.tipped().bytes)).status).toBe(200);
        return outdated();
      },
      (count) => count === 0,
    );
    writeFileSync(path, "[1, 2]");
    expect(() => edge.reloadIdentity()).toThrow(SetupError);
    expect(edge.identity).toEqual(after);
  });
});

describe("stop", () => {
  it("turns readiness off first, and accepts requests until stop is called", async () => {
    const edge = await startReady();
    const ask = async (path: string, call?: object) => {
      const init = call === undefined ? {} : { method: "POST", body: JSON.stringify(call) };
      const response = await fetch(`http://${edge.httpAddress}${path}`, init);
      return `${response.status} ${await response.text()}`;
    };
    const health = { jsonrpc: "2.0", id: 1, method: "getHealth" };
    expect(await ask("/readyz")).toBe('200 {"status":"ready"}');
    expect(await ask("/", health)).toContain('"result":"ok"');
    edge.drain();
    expect((await page(edge, "/readyz")).status).toBe(503);
    expect(await ask("/readyz")).toBe('503 {"status":"not ready","failing":["serving"]}');
    await untilResponse(
      "an unhealthy edge",
      () => ask("/", health),
      (text) => text.includes("unhealthy"),
    );
    expect(await ask("/api/v1/sendTransaction", health)).toContain('"code":-32005');
    expect(await ask("/ping")).toBe("200 ok");
    expect((await post(edge, network.tipped().bytes)).status).toBe(200);
    await edge.stop();
    await expect(post(edge, network.tipped().bytes)).rejects.toThrow();
    await expect(page(edge, "/livez")).rejects.toThrow();
  });

  it("is announced to clients with a key too, in a call of any form and in batches", async () => {
    const edge = await startReady();
    const health = '{"jsonrpc":"2.0","id":1,"method":"getHealth"}';
    const ask = async (body: string) => {
      const headers = { "api-x-token": WIDE_KEY };
      const url = `http://${edge.httpAddress}/api/v1/sendTransaction`;
      return (await fetch(url, { method: "POST", headers, body })).text();
    };
    const unhealthy = '"error":{"code":-32005,"message":"Node is unhealthy"';
    const forms = [health, health.replace("H", "\\u0048"), `[${health},{},${health}]`];
    // An ingress thread has the key after the first request.
    for (let round = 0; round < 8; round += 1) {
      for (const form of forms) expect(await ask(form)).toContain('"result":"ok"');
    }
    edge.drain();
    for (const form of forms) {
      const answer = await untilResponse(
        "an unhealthy edge",
        () => ask(form),
        (text) => text.includes(unhealthy),
      );
      expect(answer).not.toContain('"ok"');
    }
  });

  it("waits for a partly received request while not ready, and sends it", async () => {
    const edge = await startReady();
    const { bytes, signature } = network.tipped();
    const whole = postBytes(RAW_PATH, bytes, [`api-x-token: ${WIDE_KEY}`]);
    const client = await connectRaw(Number(edge.httpAddress.split(":")[1]));
    client.write(whole.subarray(0, whole.length - 20));
    const arrived = async () => {
      const families = parsePrometheus((await page(edge, "/metrics")).text);
      return seriesValue(families, "touchdown_requests_in_flight");
    };
    await untilResponse("half a request", arrived, (count) => count === 1);

    const stopped = edge.stop();
    expect(edge.readiness().ok).toBe(false);
    expect((await page(edge, "/readyz")).status).toBe(503);
    client.write(whole.subarray(whole.length - 20));
    const answer = await client.response();
    expect(answer).toMatchObject({ status: 200, body: expect.stringContaining(signature) });
    await stopped;
    expect(network.deliveriesOf(bytes)).toBeGreaterThan(0);
    client.close();
  });

  it("leaves nothing open, and its ports can be bound immediately", async () => {
    const [http, admin] = [await freePort(), await freePort()];
    const sections = {
      http: { listen: `127.0.0.1:${http}` },
      admin: { listen: `127.0.0.1:${admin}` },
    };
    const edge = await startReady(sections);
    await edge.stop();
    await untilClosed();
    const next = await start(sections);
    expect(next.httpAddress).toBe(`127.0.0.1:${http}`);
  });

  it("runs once, however often it is called", async () => {
    const edge = await startReady();
    await Promise.all([edge.stop(), edge.stop()]);
    await edge.stop();
    expect(lines.filter(({ message }) => message === "edge stopped")).toHaveLength(1);
    expect(lines.filter(({ level }) => level === "error")).toEqual([]);
  });
});

describe.runIf(ENGINE === "native" && THREADS > 0)("the certificates", () => {
  it("are each read again when their files have changed", async () => {
    const authority = createAuthority();
    const sections = ["http", "quic"] as const;
    const write = (): void => {
      for (const name of sections) {
        const { certificate, key } = authority.issue(Date.now() - 60_000, Date.now() + 5e9);
        writeFileSync(join(folder, `${name}.pem`), certificate);
        writeFileSync(join(folder, `${name}.key`), key);
      }
    };
    const tlsOf = (name: string) => ({ certificate: `${name}.pem`, key: `${name}.key` });
    write();
    const looks: (() => void)[] = [];
    const clock: Clock = {
      ...systemClock,
      every(ms, act) {
        if (ms === CERTIFICATE_LOOK_MS) looks.push(act);
        return systemClock.every(ms, act);
      },
    };
    const config = configOf({
      http: { tls: tlsOf("http") },
      quic: { listen: "127.0.0.1:0", tls: tlsOf("quic") },
    });
    const edge = await startEdge(config, { log, clock });
    undo.push(() => edge.stop());
    write();
    // A change counts once it has lasted from one look to the next.
    for (const look of [...looks, ...looks]) look();
    const families = parsePrometheus((await page(edge, "/metrics")).text);
    const loads = sections.map((protocol) =>
      seriesValue(families, "touchdown_tls_certificate_loads_total", { protocol, result: "ok" }),
    );
    expect(loads).toEqual([2, 2]);
  });
});

describe("a dashboard query to the admin listener", () => {
  it("returns a transaction to the account that sent it, and to no other", async () => {
    const edge = await startReady();
    expect(await post(edge, new Uint8Array([1, 2, 3]))).toMatchObject({ status: 400 });
    const mine = JSON.parse((await page(edge, "/refusals?account=acme")).text);
    expect(mine.refusals).toEqual([
      {
        at: expect.any(String),
        key_id: expect.any(String),
        reason: "undecodable",
        message: expect.any(String),
      },
    ]);
    const other = JSON.parse((await page(edge, "/refusals?account=somebody")).text);
    expect(other.refusals).toEqual([]);
    const receipt = await page(edge, `/receipts/${"1".repeat(64)}?account=acme`);
    expect(receipt.status).toBe(404);
  });
});
