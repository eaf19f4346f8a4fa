import { X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { encodeKey, encodeSignature } from "../../src/core/encoding.ts";
import { SetupError } from "../../src/core/errors.ts";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../src/sandbox/sandbox.ts";
import { ENGINE, SILENT } from "../support/flow.ts";
import { connectTouchdown } from "../support/touchdown-client.ts";
import { until } from "../support/wait.ts";

const BASE = { port: 0, log: SILENT, edge: { send: { engine: ENGINE } } };

const running: Sandbox[] = [];
const temporaries: string[] = [];
afterEach(async () => {
  for (const sandbox of running.splice(0)) await sandbox.stop();
  vi.unstubAllEnvs();
  for (const folder of temporaries.splice(0)) rmSync(folder, { recursive: true });
});

/** A folder for this test alone: other sandboxes come and go among the usual temporary folders. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-sandboxes-"));
  temporaries.push(folder);
  vi.stubEnv("TMPDIR", folder);
  return folder;
}

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const { edge, ...rest } = options;
  const sandbox = await startSandbox({ ...BASE, ...rest, edge: { ...BASE.edge, ...edge } });
  running.push(sandbox);
  return sandbox;
}

async function send(sandbox: Sandbox, bytes: Uint8Array): Promise<Response> {
  return await fetch(`${sandbox.url}/api/v1/sendRawTransaction`, {
    method: "POST",
    headers: { "api-x-token": sandbox.key },
    body: Uint8Array.from(bytes),
  });
}

describe("the sandbox", () => {
  it("is ready once it has started", async () => {
    const sandbox = await start();
    expect(sandbox.edge.readiness().ok).toBe(true);
    expect((await fetch(`${sandbox.adminUrl}/readyz`)).status).toBe(200);
    expect(sandbox.leaders).toHaveLength(4);
  });

  it("does not take production's cluster, keys and accounts from the environment", async () => {
    vi.stubEnv("TOUCHDOWN_ACCOUNTS_DATABASE_URL", "postgres://edge@127.0.0.1:1/touchdown");
    vi.stubEnv("TOUCHDOWN_LIMITS_REDIS_URL", "redis://127.0.0.1:1");
    vi.stubEnv("TOUCHDOWN_CLUSTER_RPC_URL", "http://127.0.0.1:1");
    vi.stubEnv("TOUCHDOWN_RECEIPTS_KEEP", "11s");
    const sandbox = await start({ leaderCount: 2 });
    expect((await send(sandbox, sandbox.transaction())).status).toBe(200);
  });

  it("takes QUIC clients, with a certificate of its own authority, by the engine", async () => {
    const { edge, quic, url, key, lines } = await start();
    expect(edge.ingressThreads > 0).toBe(quic !== null);
    const printed = lines.join("\n");
    if (ENGINE !== "native" || availableParallelism() < 2) {
      expect(quic).toBeNull();
      expect(printed).not.toContain("QUIC");
      return;
    }
    const client = await connectTouchdown(quic?.address ?? "");
    const presented = new X509Certificate(Buffer.from(client.certificates[0] ?? []));
    client.close();
    const authority = new X509Certificate(readFileSync(quic?.authorityFile ?? ""));
    expect(presented.verify(authority.publicKey)).toBe(true);
    expect(printed).toContain(`QUIC         ${quic?.address}  (authority: ${quic?.authorityFile})`);
    expect(printed).toContain(`EDGE=${quic?.address} AUTHORITY=${quic?.authorityFile} \\\n`);
    expect(printed).toContain(`  KEY=${key} python3 examples/quic.py transaction.bin`);
    expect(presented.subjectAltName).toBe("IP Address:127.0.0.1");
    // HTTP stays without TLS.
    expect((await fetch(`${url}/ping`)).ok).toBe(true);
  });

  it("lands what it is sent although four of its six leaders have a fault", async () => {
    const sandbox = await start({ faults: true });
    expect(sandbox.leaders).toHaveLength(6);
    const all = Array.from({ length: 10 }, () => sandbox.transaction());
    for (const bytes of all) expect((await send(sandbox, bytes)).status).toBe(200);
    for (const bytes of all) {
      const signature = encodeSignature(bytes, 1);
      await until("its landing", () => sandbox.cluster.statusOf(signature) !== null);
    }
  });

  it("lands what it is sent with Alpenglow", async () => {
    const sandbox = await start({ alpenglow: true });
    const bytes = sandbox.transaction();
    expect((await send(sandbox, bytes)).status).toBe(200);
    const path = `/api/v1/transactions/${encodeSignature(bytes, 1)}?wait=landed&timeout=60s`;
    const response = await fetch(sandbox.url + path, { headers: { "api-x-token": sandbox.key } });
    expect(await response.json()).toMatchObject({ state: "landed" });
    const [, rpcUrl = ""] = /cluster RPC +(\S+)/.exec(sandbox.lines.join("\n")) ?? [];
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getAgGenesisCert" });
    const certificate = await (await fetch(rpcUrl, { method: "POST", body })).json();
    expect(certificate).toMatchObject({ result: { block: {} } });
  });

  it("lands and executes the transaction that it offers", async () => {
    const printed: string[] = [];
    const sandbox = await start({ print: (line) => printed.push(line) });
    const before = sandbox.cluster.balance(sandbox.tipAccount);
    const bytes = sandbox.transaction();
    const signature = encodeSignature(bytes, 1);
    expect(await (await send(sandbox, bytes)).json()).toEqual({ success: true, signature });
    await until("its landing", () => sandbox.cluster.statusOf(signature) !== null);
    expect(sandbox.cluster.statusOf(signature)).toMatchObject({ signature, err: null });
    if (sandbox.cluster.executes) {
      expect(sandbox.cluster.balance(sandbox.tipAccount) - before).toBe(1_000_001n);
    }
    expect(printed).toEqual([
      expect.stringMatching(new RegExp(`^${signature} landed in slot \\d+$`)),
    ]);
  });

  it("offers another transaction each time, and all of them land", async () => {
    const sandbox = await start();
    const all = Array.from({ length: 5 }, () => sandbox.transaction());
    const signatures = all.map((bytes) => encodeSignature(bytes, 1));
    expect(new Set(signatures).size).toBe(5);
    for (const bytes of all) expect((await send(sandbox, bytes)).status).toBe(200);
    await until("their landings", () =>
      signatures.every((signature) => sandbox.cluster.statusOf(signature)?.err === null),
    );
  });

  it("prints every address, the key and the tip account, and the key nowhere else", async () => {
    const sandbox = await start();
    const text = sandbox.lines.join("\n");
    const { url, adminUrl, key, tipAccount } = sandbox;
    for (const fact of [url, adminUrl, key, tipAccount]) expect(text).toContain(fact);
    expect(text).toMatch(/cluster RPC +http:\/\/127\.0\.0\.1:\d+ +ws:\/\/127\.0\.0\.1:\d+/);
    expect(text).toMatch(/leaders +(127\.0\.0\.1:\d+ *){4}/);
    for (const path of ["/metrics", "/leaders", "/readyz"]) {
      expect(await (await fetch(adminUrl + path)).text()).not.toContain(key);
    }
  });

  it("generates new keys, payer and tip account", async () => {
    const [one, other] = [await start(), await start()];
    expect(one.key).not.toBe(other.key);
    expect(one.tipAccount).not.toBe(other.tipAccount);
    expect(encodeKey(one.payer.publicKey)).not.toBe(encodeKey(other.payer.publicKey));
    expect((await send(one, one.transaction())).status).toBe(200);
    const elsewhere = await fetch(`${other.url}/api/v1/sendRawTransaction`, {
      method: "POST",
      headers: { "api-x-token": one.key },
      body: "x",
    });
    expect(elsewhere.status).toBe(401);
  });

  it("prefers keys of the edge's configuration over its own", async () => {
    const sandbox = await start({
      leaderCount: 1,
      edge: { region: "elsewhere", tip: { lamports_min: 5_000_000 } },
    });
    expect(sandbox.leaders).toHaveLength(1);
    const about = await (await fetch(sandbox.url)).json();
    expect(about).toMatchObject({ region: "elsewhere" });
    const tip = await (await fetch(`${sandbox.url}/api/v1/tip`)).json();
    expect(tip).toEqual({ accounts: [sandbox.tipAccount], lamportsMin: 5_000_000 });
  });

  it("rejects a wrong key in the configuration and leaves nothing behind", async () => {
    const temporary = temporaryFolder();
    const starting = startSandbox({ ...BASE, edge: { http: { listne: "x" } } });
    await expect(starting).rejects.toThrow(/http\.listne/);
    await expect(starting).rejects.toBeInstanceOf(SetupError);
    expect(readdirSync(temporary)).toEqual([]);
  });

  it("rejects a configured port that is in use", async () => {
    const first = await start();
    const port = Number(new URL(first.url).port);
    const starting = startSandbox({ ...BASE, port });
    await expect(starting).rejects.toThrow(`127.0.0.1:${port}`);
    expect((await send(first, first.transaction())).status).toBe(200);
  });

  it("uses a free port when none is configured and the default is in use", async () => {
    const isUsual = ({ url }: Sandbox): boolean => url === "http://127.0.0.1:8080";
    const usual = createServer();
    const isOurs = await new Promise<boolean>((resolve) => {
      usual.once("error", () => resolve(false));
      usual.listen(8080, "127.0.0.1", () => resolve(true));
    });
    let sandbox = await startSandbox({ log: SILENT, edge: BASE.edge });
    running.push(sandbox);
    if (!isOurs && isUsual(sandbox)) {
      // The holder released the port meanwhile, so this sandbox has it, and the next cannot.
      sandbox = await startSandbox({ log: SILENT, edge: BASE.edge });
      running.push(sandbox);
    }
    expect(isUsual(sandbox)).toBe(false);
    expect((await send(sandbox, sandbox.transaction())).status).toBe(200);
    if (isOurs) await new Promise((resolve) => usual.close(resolve));
  });

  it("stops everything when it is stopped, once or twice", async () => {
    const temporary = temporaryFolder();
    const sandbox = await startSandbox(BASE);
    expect(readdirSync(temporary)).toEqual([expect.stringMatching(/^touchdown-sandbox-/)]);
    await sandbox.stop();
    await sandbox.stop();
    await expect(fetch(sandbox.url)).rejects.toThrow();
    await expect(fetch(`${sandbox.adminUrl}/livez`)).rejects.toThrow();
    for (const leader of sandbox.leaders) expect(leader.connectionCount).toBe(0);
    expect(readdirSync(temporary)).toEqual([]);
  });
});
