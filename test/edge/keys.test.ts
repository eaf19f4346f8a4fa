import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../src/accounts/database/database.ts";
import type { LimitStore } from "../../src/accounts/global-limits/sync.ts";
import { generateToken } from "../../src/accounts/keys/format.ts";
import { tokenSha256 } from "../../src/accounts/keys/keys-file.ts";
import { configFromValues } from "../../src/config/load.ts";
import { systemClock } from "../../src/core/clock.ts";
import { type Edge, startEdge } from "../../src/edge/edge.ts";
import { openKeys } from "../../src/edge/keys.ts";
import { type Network, startNetwork } from "../support/edge-process.ts";
import { ENGINE, keysToml, RAW_PATH, THREADS, untilResponse } from "../support/flow.ts";
import { silent, type TestDatabase, testDatabase } from "../support/postgres.ts";
import { stub } from "../support/stub.ts";
import { until } from "../support/wait.ts";

let network: Network;
let there: TestDatabase;
let folder = "";
let edge: Edge | null = null;

beforeAll(async () => {
  network = await startNetwork(1);
  there = await testDatabase();
});
afterAll(() => network?.stop());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-edge-keys-"));
});
afterEach(async () => {
  await edge?.stop();
  edge = null;
  rmSync(folder, { recursive: true, force: true });
});

const configOf = (accounts: object, over: Readonly<Record<string, object>> = {}) =>
  configFromValues(
    {
      name: "one",
      region: "fra",
      http: { listen: "127.0.0.1:0", threads: THREADS },
      admin: { listen: "127.0.0.1:0" },
      cluster: { rpc_url: network.rpcUrl, ws_url: network.wsUrl },
      tip: { accounts: [network.tipAccount] },
      accounts,
      decode: { workers: 1 },
      send: { bind: "127.0.0.1:0", engine: ENGINE },
      ...over,
    },
    folder,
    {},
  );

async function startReady(url = there.edgeUrl): Promise<Edge> {
  const config = configOf({ database_url: url, usage_period: "1s" });
  const started = await startEdge(config, { log: silent });
  edge = started;
  await until("being ready", () => started.readiness().ok);
  return started;
}

async function makeKey(token: string, networks: readonly string[] = []): Promise<void> {
  await there.owner.query(
    `with made as (insert into touchdown.accounts (name, plan, created_at)
       values ('acme', 'Beta', now()) returning id)
     insert into touchdown.keys (id, account_id, sha256, hint, label, created_at, cidrs)
     select gen_random_uuid(), id, $1, 'td_…', '', now(), $2::text[]::cidr[] from made`,
    [tokenSha256(token), networks],
  );
}

async function post(at: Edge, token: string, body: Uint8Array): Promise<number> {
  const response = await fetch(`http://${at.httpAddress}${RAW_PATH}`, {
    method: "POST",
    headers: { "api-x-token": token },
    body: Buffer.from(body),
  });
  await response.arrayBuffer();
  return response.status;
}

/** The same from an address of this machine, on a separate connection each time. */
function postFrom(at: Edge, localAddress: string, token: string, body: Uint8Array) {
  return new Promise<number>((resolve, reject) => {
    const [host = "", port = ""] = at.httpAddress.split(":");
    const headers = { "api-x-token": token };
    const to = { host, port, path: RAW_PATH, method: "POST", headers, localAddress, agent: false };
    const answered = ({ statusCode = 0 }: IncomingMessage): void => resolve(statusCode);
    request(to, (answer) => answered(answer.resume()))
      .on("error", reject)
      .end(body);
  });
}

describe("an edge on the accounts database", () => {
  it("releases the journal when its start fails, at any step", async () => {
    const accounts = {
      database_url: "postgres://nobody@127.0.0.1:1/none",
      journal: "keys.journal",
    };
    const started = (over = {}) => startEdge(configOf(accounts, over), { log: silent });
    const keypair = "identity.json";
    await expect(started({ identity: { keypair } })).rejects.toThrow("identity.keypair");
    const send = { bind: "192.0.2.1:0", engine: ENGINE };
    await expect(started({ send })).rejects.toThrow("send.bind");
    edge = await started();
  });

  it("accepts a key once it is created, and rejects it once it is revoked", async () => {
    const token = generateToken("test");
    const at = await startReady();
    expect(await post(at, token, network.tipped().bytes)).toBe(401);
    await makeKey(token);
    const ask = () => post(at, token, network.tipped().bytes);
    await untilResponse("the new key is served", ask, (status) => status === 200);
    await there.owner.query("update touchdown.keys set revoked_at = now() where sha256 = $1", [
      tokenSha256(token),
    ]);
    await untilResponse("the revoked key is rejected", ask, (status) => status === 401);
  });

  it("accepts a key with networks only from those, by the client's address", async () => {
    const token = generateToken("test");
    await makeKey(token, ["127.0.0.0/31", "127.0.0.4/32"]);
    const at = await startReady();
    const from = (address: string) => postFrom(at, address, token, network.tipped().bytes);
    // Several times: no answer depends on those before.
    for (let asked = 0; asked < 6; asked += 1) {
      expect([await from("127.0.0.1"), await from("127.0.0.4")]).toEqual([200, 200]);
      expect([await from("127.0.0.2"), await from("127.0.0.5")]).toEqual([401, 401]);
    }
    const rows = await there.owner.query<{ id: string }>(
      "select account_id::text as id from touchdown.keys where sha256 = $1",
      [tokenSha256(token)],
    );
    const page = await fetch(`http://${at.adminAddress}/refusals?account=${rows[0]?.id}`);
    // Of a series of such rejections the account sees the latest.
    expect(await page.json()).toMatchObject({
      refusals: [
        {
          reason: "unauthorized",
          message:
            "the key may be used from 127.0.0.0/31, 127.0.0.4/32 only, " +
            "a request with it came from 127.0.0.5",
        },
      ],
    });
  });

  it("writes the key's usage: requests by outcome, bytes, and send times", async () => {
    const token = generateToken("test");
    await makeKey(token);
    const at = await startReady();
    const { bytes } = network.tipped();
    expect(await post(at, token, bytes)).toBe(200);
    expect(await post(at, token, Buffer.from("nonsense"))).toBe(400);
    await at.stop();
    edge = null;
    const rows = await there.owner.query(
      `select sum(u.requests) as requests, sum(accepted) as accepted, sum(refused) as refused,
         sum(bytes) as bytes, sum((select sum(n) from unnest(wire) n)) as wired,
         min(region) as region, min(edge) as edge
       from touchdown.usage_minutes u join touchdown.keys k on k.id = u.key_id
       where k.sha256 = $1`,
      [tokenSha256(token)],
    );
    const [row] = rows.map((it) => Object.fromEntries(Object.entries(it).map(numbered)));
    expect(row).toEqual({
      requests: 2,
      accepted: 1,
      refused: 1,
      bytes: bytes.length + 8,
      wired: 1,
      region: "fra",
      edge: "one",
    });
  });

  it("accepts known keys after a restart without the database, and no other", async () => {
    const token = generateToken("test");
    await makeKey(token);
    await startReady();
    await edge?.stop();
    const at = await startReady("postgres://nobody:none@127.0.0.1:1/none");
    expect(await post(at, token, network.tipped().bytes)).toBe(200);
    expect(await post(at, generateToken("test"), network.tipped().bytes)).toBe(401);
  });
});

/** Sums arrive as text. */
function numbered([name, value]: [string, unknown]): [string, unknown] {
  return [name, typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value];
}

const NO_PARTS = {
  createDatabase: null,
  createLimitStore: null,
  openGeyser: null,
  createQuicTransport: null,
};

describe("an edge on a keys file", () => {
  it("has its keys immediately, and neither a key feed nor usage", () => {
    const path = join(folder, "keys.toml");
    writeFileSync(path, keysToml());
    const keys = openKeys(configOf({ keys_file: path }), {
      clock: systemClock,
      log: silent,
      modules: NO_PARTS,
    });
    expect(keys.table.counters.keys).toBeGreaterThan(0);
    expect([keys.feed, keys.usage, keys.globalLimits]).toEqual([null, null, null]);
  });
});

describe("limits shared by edges", () => {
  it("count two edges of the same name as two", async () => {
    const heartbeats: string[] = [];
    const store: LimitStore = {
      start() {},
      spend: () => Promise.resolve([]),
      heartbeat: (name) => Promise.resolve(heartbeats.push(name)),
      stop() {},
    };
    const modules = {
      ...NO_PARTS,
      createDatabase: () => stub<Database>({}),
      createLimitStore: () => store,
    };
    const limits = { redis_url: "redis://127.0.0.1:1" };
    const opened = ["one.journal", "other.journal"].map((journal) => {
      const accounts = { database_url: "postgres://127.0.0.1:1/none", journal };
      return openKeys(configOf(accounts, { limits }), { clock: systemClock, log: silent, modules });
    });
    for (const { globalLimits } of opened) globalLimits?.start();
    await until("a sign of life of each", () => heartbeats.length >= 2);
    for (const { globalLimits } of opened) await globalLimits?.stop();
    expect(new Set(heartbeats.slice(0, 2)).size).toBe(2);
  });
});
