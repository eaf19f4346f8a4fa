/**
 * The life cycle of an edge as an operator sees it: the process, its signals, its port, its files
 * and its output.
 */

import { rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { connectRaw, plainPost as post } from "../conformance/http-fixture.ts";
import {
  type EdgeProcess,
  type EdgeProcessOptions,
  type Network,
  spawnEdge,
  startEdgeProcess,
  startNetwork,
  untilReady,
} from "../support/edge-process.ts";
import { keysToml, keyToml, RAW_PATH, THREADS, untilResponse, WIDE_KEY } from "../support/flow.ts";
import { freePort } from "../support/ports.ts";
import { type Family, seriesValue } from "../support/prometheus.ts";
import { until } from "../support/wait.ts";

let network: Network;
beforeAll(async () => {
  network = await startNetwork(2);
});
afterAll(() => network?.stop());

const running: EdgeProcess[] = [];
afterEach(async () => {
  for (const edge of running.splice(0)) await edge.remove();
});

/** Starts an edge that the test need not stop. */
async function start(options: EdgeProcessOptions = {}, of = network): Promise<EdgeProcess> {
  const edge = await startEdgeProcess(of, options);
  running.push(edge);
  return edge;
}

const notReady = ({ status }: { readonly status: number }): boolean => status === 503;

/** A POST of these bytes as sent on the wire. */
const submission = (bytes: Uint8Array): Buffer =>
  post(RAW_PATH, bytes, [`api-x-token: ${WIDE_KEY}`]);

/** POSTs on one keep-alive connection: what a client with a pool sees while an edge drains. */
function keptClient(edge: EdgeProcess) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    post: (bytes: Uint8Array): Promise<{ status: number; body: string }> =>
      new Promise((resolve, reject) => {
        const sent = request(
          edge.url + RAW_PATH,
          { agent, method: "POST", headers: { "api-x-token": WIDE_KEY } },
          (response) => {
            let body = "";
            response.on("data", (chunk: Buffer) => {
              body += chunk.toString();
            });
            response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
          },
        );
        sent.on("error", reject);
        sent.end(bytes);
      }),
    close: () => agent.destroy(),
  };
}

describe("start", () => {
  it("sets only flags of V8 that this Node knows", async () => {
    const edge = await startEdgeProcess(network);
    try {
      await untilReady(edge);
      expect(edge.output()).not.toContain("unrecognized flag");
    } finally {
      await edge.remove();
    }
  });

  it("is not ready before leaders are known, reports why, and then is ready", async () => {
    const own = await startNetwork(2);
    try {
      await own.cluster.stopRpc();
      const edge = await start({}, own);
      const early = await edge.readyz();
      expect(early.status).toBe(503);
      expect(early.text).toContain('"status":"not ready"');
      expect(JSON.parse(early.text).failing.map(({ name }: { name: string }) => name)).toEqual([
        "slot",
        "schedule",
        "contacts",
        "live",
      ]);
      const { bytes } = own.tipped();
      expect(await edge.post(bytes)).toBe(503);

      await own.cluster.startRpc();
      await untilReady(edge);
      expect(await edge.post(bytes)).toBe(200);
      await until("the bytes at a leader", () => own.deliveriesOf(bytes) > 0);
    } finally {
      await own.stop();
    }
  });

  it("on a port in use exits with 1 and a message, and takes no connection", async () => {
    const edge = await start();
    await untilReady(edge);
    const second = spawnEdge(network, { httpPort: edge.port });
    const statuses: number[] = [];
    const load = async (): Promise<void> => {
      while (second.child.exitCode === null) {
        statuses.push(await edge.post(network.tipped().bytes));
      }
    };
    await Promise.all([load(), load()]);
    expect(await second.exited).toBe(1);
    expect(second.output()).toContain(
      `touchdown edge: http.listen: cannot listen on 127.0.0.1:${edge.port}`,
    );
    expect(second.output()).toContain("the port is in use");
    expect(second.output()).not.toContain("this is a bug");
    rmSync(second.folder, { recursive: true });
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(statuses.length).toBeGreaterThan(2);
  });

  it("says which ports it was given, so that `check` knows them from those of others", async () => {
    const [httpPort, adminPort] = [await freePort(), await freePort()];
    const edge = await start({ httpPort, adminPort });
    const answer = (await (await fetch(`${edge.adminUrl}/upgrade`)).json()) as object;
    expect(answer).toMatchObject({ ports: [`tcp ${httpPort}`, `tcp ${adminPort}`] });
  });

  it("with an invalid keys file exits with 1 and names the problem without the key", async () => {
    const keys = '[[keys]]\ntoken = "a-secret-token-in-a-broken-file"\nplan = "None"\n';
    const { exited, output, folder } = spawnEdge(network, { keys });
    expect(await exited).toBe(1);
    expect(output()).toContain("keys.toml");
    expect(output()).not.toContain("a-secret-token");
    rmSync(folder, { recursive: true });
  });
});

describe("an open-file limit", () => {
  it("leaves the edge what it needs besides client connections", async () => {
    const edge = await start({
      filesMax: 300,
      http: "connections_per_address = 300",
      more: "[decode]\nworkers = 1",
    });
    const clients = [];
    // Ingress threads use half of these 150 files for proxied requests.
    const clientsMax = THREADS > 0 ? 76 : 150;
    for (let count = 0; count < 170; count += 1) clients.push(await connectRaw(edge.port));
    await untilResponse(
      "the end of those that are too many",
      () => edge.metrics(),
      (metrics) =>
        seriesValue(metrics, "touchdown_client_connections") === clientsMax &&
        seriesValue(metrics, "touchdown_client_connections_closed_total", {
          reason: "too_many",
        }) ===
          170 - clientsMax,
    );
    for (const client of clients) client.close();
  });
});

describe("SIGHUP", () => {
  const NEW_KEY = "a-key-that-comes-with-reload";

  it("reloads the keys; an invalid file is reported and the old keys stay", async () => {
    const edge = await start();
    await untilReady(edge);
    const answer = (key: string) => () => edge.post(network.tipped().bytes, key);
    expect(await answer(WIDE_KEY)()).toBe(200);
    expect(await answer(NEW_KEY)()).toBe(401);

    const plan = "[plans.Wide]\nrate_per_second = 1000\nburst = 1000\n";
    writeFileSync(edge.keysFile, plan + keyToml(NEW_KEY, "newcomer", "Wide"));
    edge.child.kill("SIGHUP");
    await untilResponse("the new key", answer(NEW_KEY), (status) => status === 200);
    expect(await answer(WIDE_KEY)()).toBe(401);

    writeFileSync(edge.keysFile, `${plan}[[keys]]\ntoken = "${WIDE_KEY}"\n`);
    edge.child.kill("SIGHUP");
    await until("the complaint", () => edge.output().includes("what was read before stays"));
    expect(edge.output()).not.toContain(WIDE_KEY);
    expect(await answer(NEW_KEY)()).toBe(200);
    expect(await answer(WIDE_KEY)()).toBe(401);
    const loads = (families: ReadonlyMap<string, Family>, result: string) =>
      seriesValue(families, "touchdown_keys_loads_total", { result });
    const metrics = await edge.metrics();
    expect(loads(metrics, "ok")).toBe(2);
    expect(loads(metrics, "failed")).toBe(1);

    writeFileSync(edge.keysFile, keysToml());
    edge.child.kill("SIGHUP");
    await untilResponse("the mended file", answer(WIDE_KEY), (status) => status === 200);
    expect(edge.exitCode).toBeNull();
  });
});

describe("SIGTERM", () => {
  it("turns readiness off, accepts work during the grace, finishes it, exits with 0", async () => {
    // Long enough for this test on any machine.
    const edge = await start({ http: 'drain_grace = "5s"' });
    await untilReady(edge);
    const client = keptClient(edge);
    expect((await client.post(network.tipped().bytes)).status).toBe(200);
    // Half a request; the other half follows after the grace period.
    const slow = await connectRaw(edge.port);
    const built = network.tipped();
    const whole = submission(built.bytes);
    slow.write(whole.subarray(0, whole.length - 20));
    // No response can close it before.
    const idle = await connectRaw(edge.port);
    const open = async () => seriesValue(await edge.metrics(), "touchdown_requests_in_flight");
    await untilResponse("half a request", open, (count) => count === 1);

    edge.child.kill("SIGTERM");
    const drained = await untilResponse("not being ready", () => edge.readyz(), notReady);
    expect(drained.text).toContain("draining");
    const during = network.tipped();
    expect((await client.post(during.bytes)).status).toBe(200);

    const isOver = (): Promise<boolean> =>
      edge.post(network.tipped().bytes).then(
        () => false,
        () => true,
      );
    await untilResponse("the end of the grace", isOver, (it) => it);
    idle.write(submission(network.tipped().bytes));
    expect(await idle.response()).toMatchObject({
      status: 503,
      body: expect.stringMatching(/"reason":"overloaded"/),
    });
    expect(edge.exitCode).toBeNull();
    slow.write(whole.subarray(whole.length - 20));
    const late = await slow.response();
    expect(late.status).toBe(200);
    expect(late.body).toContain(built.signature);
    expect(await edge.exited).toBe(0);
    client.close();
    slow.close();
    idle.close();
    for (const { bytes } of [built, during]) expect(network.deliveriesOf(bytes)).toBeGreaterThan(0);
    await expect(edge.post(network.tipped().bytes)).rejects.toThrow();
  });

  it("exits immediately with 0 without a grace period and without work", async () => {
    const edge = await start({ http: 'drain_grace = "0s"' });
    edge.child.kill("SIGTERM");
    expect(await edge.exited).toBe(0);
  });

  it("exits with 0 when no leader is left", async () => {
    const own = await startNetwork(1);
    const edge = await start({ http: 'drain_grace = "0s"' }, own);
    await untilReady(edge);
    await own.stop();
    edge.child.kill("SIGINT");
    expect(await edge.exited).toBe(0);
  });

  it("stops immediately when received twice, whatever is pending", async () => {
    const edge = await start({ http: 'drain_grace = "10m"' });
    const slow = await connectRaw(edge.port);
    slow.write(submission(network.tipped().bytes).subarray(0, 150));
    edge.child.kill("SIGTERM");
    await untilResponse(
      "draining",
      () => edge.readyz(),
      ({ text }) => text.includes("draining"),
    );
    edge.child.kill("SIGTERM");
    expect(await edge.exited).toBe(1);
    expect(edge.output()).toContain("stopping immediately");
    slow.close();
  });

  it("answers every accepted request of many clients before it exits", async () => {
    const edge = await start({ http: 'drain_grace = "100ms"', more: '[decode]\ninline = "never"' });
    await untilReady(edge);
    const accepted: Uint8Array[] = [];
    const reasons = new Set<string>();
    const load = async (): Promise<void> => {
      const client = keptClient(edge);
      for (;;) {
        const { bytes } = network.tipped();
        const answer = await client.post(bytes).catch(() => null);
        if (answer === null) break;
        if (answer.status === 200) accepted.push(bytes);
        else reasons.add(JSON.parse(answer.body).reason);
        if (accepted.length === 200) edge.child.kill("SIGTERM");
      }
      client.close();
    };
    await Promise.all(Array.from({ length: 8 }, load));
    expect(await edge.exited).toBe(0);
    expect([...reasons].filter((reason) => reason !== "overloaded")).toEqual([]);
    expect(accepted.filter((bytes) => network.deliveriesOf(bytes) === 0)).toEqual([]);
  });
});

describe("an RPC node that becomes unreachable", () => {
  it("shows in readiness and metrics while transactions are still sent, and recovers", async () => {
    const own = await startNetwork(2);
    try {
      const edge = await start({}, own);
      await untilReady(edge);
      await own.cluster.stopRpc();
      const stale = await untilResponse("not being ready", () => edge.readyz(), notReady);
      const { failing } = JSON.parse(stale.text);
      expect(failing).toEqual([
        { name: "slot", ok: false, detail: expect.stringMatching(/last event \d+ ms ago/) },
      ]);
      const metrics = await edge.metrics();
      expect(seriesValue(metrics, "touchdown_ready")).toBe(0);
      expect(seriesValue(metrics, "touchdown_slot_age_seconds")).toBeGreaterThan(4.9);
      const failures = seriesValue(metrics, "touchdown_feed_failures_total", { feed: "slots" });
      expect(failures).toBeGreaterThan(0);
      // The schedule is still known and slots are estimated: an edge does not stop for this.
      const { bytes } = own.tipped();
      expect(await edge.post(bytes)).toBe(200);
      await until("the bytes at a leader", () => own.deliveriesOf(bytes) > 0);

      await own.cluster.startRpc();
      await untilReady(edge);
    } finally {
      await own.stop();
    }
  });
});

describe("keys", () => {
  it("are never in the output or on a page", async () => {
    const canary = "canary-key-0123456789-canary";
    const secrets = [canary, `${canary}-unknown`];
    const edge = await start({
      keys: `${keysToml()}${keyToml(canary, "canary", "Slow")}`,
      more: '[log]\nlevel = "debug"',
      http: 'drain_grace = "100ms"',
    });
    await untilReady(edge);
    const pages: string[] = [];
    const ask = async (url: string, init: RequestInit = {}): Promise<void> => {
      const response = await fetch(url, init);
      pages.push(JSON.stringify([...response.headers]) + (await response.text()));
    };
    for (const secret of secrets) {
      const headers = { "api-x-token": secret };
      const body = Uint8Array.from(network.tipped().bytes);
      const rpc = `${edge.url}/api/v1/sendTransaction`;
      await ask(edge.url + RAW_PATH, { method: "POST", headers, body });
      await ask(edge.url + RAW_PATH, { method: "POST", headers, body: secret });
      await ask(rpc, { method: "POST", headers, body: `{"id":"x","method":"${secret}"` });
      await ask(`${edge.url}/nowhere`, { headers });
      await ask(`${edge.url}/api/v1/transactions/x`, { headers });
      await ask(`${edge.adminUrl}/readyz`, { headers });
      await ask(`${edge.adminUrl}/leaders`, { headers });
    }
    writeFileSync(edge.keysFile, `[[keys]]\ntoken = "${canary}\naccount = 7\n`);
    edge.child.kill("SIGHUP");
    await until("the complaint", () => edge.output().includes("what was read before stays"));
    await ask(`${edge.adminUrl}/metrics`);
    edge.child.kill("SIGTERM");
    expect(await edge.exited).toBe(0);
    expect(edge.output()).toContain("edge started");
    for (const text of [edge.output(), ...pages]) expect(text).not.toContain("canary-key");
  });
});
