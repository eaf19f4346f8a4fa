import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run } from "../../src/cli/run.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createFakeIo } from "../support/fake-io.ts";
import { freePort } from "../support/ports.ts";
import { testDatabase } from "../support/postgres.ts";
import { until } from "../support/wait.ts";

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "touchdown-control-"));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

function started(text: string) {
  const file = join(directory, "touchdown.toml");
  writeFileSync(file, text);
  const io = createFakeIo(systemClock);
  return { io, code: run(["control", "--config", file], io) };
}

function configOf(port: number, databaseUrl: string): string {
  return `[control]
listen = "127.0.0.1:${port}"
public_url = "http://127.0.0.1:${port}"
oidc_issuer = "http://127.0.0.1:1"
oidc_client_id = "td"
vault_file = "vault"
drain_grace = "0s"
[admin]
listen = "127.0.0.1:0"
[accounts]
database_url = "${databaseUrl}"
[log]
level = "silent"
`;
}

describe("control", () => {
  it("rejects a wrong configuration, and requires nothing of an edge", async () => {
    const { io, code } = started('[control]\nlisten = 1\npublic_url = "x"\n');
    expect(await code).toBe(1);
    const err = io.errLines.join("\n");
    for (const key of ["control.listen", "control.public_url", "accounts.database_url"]) {
      expect(err).toContain(`  ${key}: `);
    }
    expect(err).not.toContain("tip.accounts");
  });

  it("reports a database that cannot be reached", async () => {
    const { io, code } = started(configOf(1, "postgres://u:s3cret@127.0.0.1:1/x"));
    expect(await code).toBe(1);
    const err = io.errLines.join("\n");
    expect(err).toContain("accounts.database_url: ");
    expect(err).not.toContain("s3cret");
    expect(err).not.toContain("bug");
  });

  it("creates the schema as the owner of a new database, serves with fewer rights", async () => {
    const { owner, open, url } = await testDatabase();
    const name = `operator_${randomBytes(4).toString("hex")}`;
    const login = (role: string) => `create role ${name}_${role} login password 'p'`;
    await owner.query(login("owner"));
    await owner.query(`${login("dashboard")} in role touchdown_control`);
    await owner.query(`create database ${name} owner ${name}_owner`);
    const as = (role: string): string => {
      const at = new URL(url);
      Object.assign(at, { username: `${name}_${role}`, password: "p", pathname: `/${name}` });
      return at.href;
    };
    const port = await freePort();
    const text = configOf(port, as("dashboard"));
    const refused = started(text);
    expect(await refused.code).toBe(1);
    expect(refused.io.errLines.join("\n")).toContain("control.owner_url");
    const { io, code } = started(
      text.replace("[control]", `[control]\nowner_url = "${as("owner")}"`),
    );
    await until("a log line of control", () =>
      io.errLines.some((line) => line.startsWith("control:")),
    );
    const logged = (await open(as("dashboard")).query("select from touchdown.plans")).length;
    expect(logged).toBe(1);
    io.emit("SIGTERM");
    expect(await code).toBe(0);
    expect(io.errLines.join("\n")).not.toContain(":p@");
  });

  it("serves until a signal while the identity provider is unreachable", async () => {
    const { url } = await testDatabase();
    const port = await freePort();
    const { io, code } = started(configOf(port, url));
    await until("a log line of control", () =>
      io.errLines.some((line) => line.startsWith("control:")),
    );
    const [, admin = ""] = /admin on (\S+)/.exec(io.errLines.join("\n")) ?? [];
    expect((await fetch(`http://${admin}/readyz`)).status).toBe(200);
    expect(await (await fetch(`http://${admin}/metrics`)).text()).toContain(
      "touchdown_control_ready 1",
    );
    const site = await fetch(`http://127.0.0.1:${port}/api/v1/site`);
    expect(await site.json()).toMatchObject({ login: { available: false } });
    io.emit("SIGTERM");
    expect(await code).toBe(0);
    await expect(fetch(`http://127.0.0.1:${port}/api/v1/site`)).rejects.toThrow();
  });
});
