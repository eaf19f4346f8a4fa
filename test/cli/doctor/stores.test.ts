import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "iovalkey";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { controlFindings, edgeStoreFindings } from "../../../src/cli/doctor/stores.ts";
import { configFromValues, controlFromValues } from "../../../src/config/load.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { program, title } from "../../support/limit-server.ts";
import { freePort } from "../../support/ports.ts";
import { type TestDatabase, testDatabase } from "../../support/postgres.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";
const folder = mkdtempSync(join(tmpdir(), "touchdown-stores-"));

let migrated: TestDatabase;
let empty: TestDatabase;
beforeAll(async () => {
  migrated = await testDatabase();
  empty = await testDatabase({ migrated: false });
});

let provider: Server | null = null;
afterEach(() => {
  provider?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A provider that calls itself `issuer`, or as it is reached. */
async function startProvider(issuer?: string): Promise<string> {
  let url = "";
  const server = createServer((request, response) => {
    const isKeys = request.url === "/keys";
    const document = { issuer: issuer ?? url, jwks_uri: `${url}/keys` };
    response.end(JSON.stringify(isKeys ? { keys: [{ kid: "1" }] } : document));
  });
  provider = server;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  return url;
}

const edgeOf = (url: string) =>
  edgeStoreFindings(
    systemClock,
    configFromValues({ tip: { accounts: [TIP] }, accounts: { database_url: url } }, folder, {}),
  );

async function controlOf(issuer: string) {
  const control = {
    public_url: "https://dash.example",
    oidc_issuer: issuer,
    oidc_client_id: "td",
    vault_file: "vault.toml",
    owner_url: migrated.url,
  };
  const accounts = { database_url: migrated.controlUrl };
  return controlFindings(systemClock, controlFromValues({ control, accounts }, folder, {}));
}

describe("the accounts database", () => {
  it("is in order where an edge's role sees the tables", async () => {
    expect(await edgeOf(migrated.edgeUrl)).toMatchObject([{ check: "database", level: "ok" }]);
  });

  it("without tables needs the control process once", async () => {
    const [finding] = await edgeOf(empty.url);
    expect(finding).toMatchObject({ level: "error" });
    expect(finding?.fix).toContain("touchdown control");
  });
});

describe(`the store of shared limits (${title})`, () => {
  it.skipIf(program === undefined)("is asked for its edges, and keeps them", async () => {
    const port = await freePort();
    const url = `redis://127.0.0.1:${port}`;
    const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", ""];
    const server = spawn(program ?? "", args, { stdio: "ignore", cwd: tmpdir() });
    const direct = new Redis(url);
    direct.on("error", () => undefined);
    const list = "touchdown:bucket:edges";
    const edges = ["fra 1", String(Date.now()), "fra 2", String(Date.now() - 2_000)];
    await direct.zadd(list, edges[1] ?? "", "fra 1", edges[3] ?? "", "fra 2");
    const keys = { database_url: migrated.edgeUrl };
    const tables = { tip: { accounts: [TIP] }, accounts: keys, limits: { redis_url: url } };
    const found = await edgeStoreFindings(systemClock, configFromValues(tables, folder, {}));
    expect(found.at(-1)).toMatchObject({
      check: "shared_limits",
      level: "ok",
      message: "limits.redis_url answers; 2 edges share limits",
    });
    const left = await direct.zrange(list, "0", "-1", "WITHSCORES");
    expect(left.toSorted()).toEqual(edges.toSorted());
    direct.disconnect();
    const ended = new Promise((resolve) => server.once("exit", resolve));
    server.kill();
    await ended;
  });
});

describe("a store that cannot be reached", () => {
  it("is reported with why the connection failed", async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    const keys = { database_url: migrated.edgeUrl };
    const tables = { tip: { accounts: [TIP] }, accounts: keys, limits: { redis_url: url } };
    const found = await edgeStoreFindings(systemClock, configFromValues(tables, folder, {}));
    expect(found.at(-1)).toMatchObject({ check: "shared_limits", level: "error" });
    expect(found.at(-1)?.message).toContain("ECONNREFUSED");
  });
});

describe("the control process", () => {
  it("has database, owner, vault and provider checked", async () => {
    const found = await controlOf(await startProvider());
    expect(found.map(({ check, level }) => [check, level])).toEqual([
      ["database", "ok"],
      ["database", "ok"],
      ["vault", "warning"],
      ["discovery", "ok"],
    ]);
  });

  it("has a provider of another name reported", async () => {
    const found = await controlOf(await startProvider("https://other.example"));
    expect(found.at(-1)).toMatchObject({ check: "discovery", level: "error" });
    expect(found.at(-1)?.message).toContain("https://other.example");
  });

  it("has a provider that does not answer reported, with the reason", async () => {
    const found = await controlOf(`http://127.0.0.1:${await freePort()}`);
    expect(found.at(-1)).toMatchObject({ check: "discovery", level: "error" });
    expect(found.at(-1)?.message).toMatch(/openid-configuration: ECONNREFUSED$/);
  });
});
