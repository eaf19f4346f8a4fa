import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tokenSha256 } from "../../src/accounts/keys/keys-file.ts";
import { publicKeySha256 } from "../../src/accounts/keys/public-key.ts";
import { run } from "../../src/cli/run.ts";
import { createFakeIo } from "../support/fake-io.ts";
import { type TestDatabase, testDatabase } from "../support/postgres.ts";
import { createSigner } from "../support/signer.ts";

async function keys(...args: string[]) {
  const io = createFakeIo();
  const code = await run(["keys", ...args], io);
  return { code, out: io.outLines.join("\n"), err: io.errLines.join("\n") };
}

async function place() {
  const there = await testDatabase();
  const directory = mkdtempSync(join(tmpdir(), "touchdown-keys-"));
  const config = join(directory, "control.toml");
  writeFileSync(
    config,
    `[accounts]\ndatabase_url = "${there.controlUrl}"\n[control]\nvault_file = "vault.toml"\n` +
      'public_url = "http://127.0.0.1:8090"\noidc_issuer = "http://127.0.0.1:8091"\n' +
      'oidc_client_id = "touchdown"\n',
  );
  return { there, directory, config };
}

describe("keys of the accounts database", () => {
  it("are created, listed and revoked, and edges are notified", async () => {
    const { there, config } = await place();
    const made = await keys("create", "--config", config, "--account", "acme", "--label", "bot");
    expect(made).toMatchObject({
      code: 0,
      err: "",
      out: expect.stringMatching(/^td_live_\w{33}$/),
    });
    const more = await keys("create", "--config", config, "--account", "acme");
    const digits = tokenSha256(made.out).toString("hex").slice(0, 16);
    const listed = await keys("list", "--config", config);
    expect(listed.out.split("\n").slice(0, 2)).toEqual([
      "SHA256            ACCOUNT  PLAN  LABEL",
      `${digits}  acme     Beta  bot`,
    ]);
    expect(listed.out).not.toContain(made.out);
    const revoked = await keys("revoke", digits, "--config", config);
    expect(revoked).toMatchObject({ code: 0, out: `revoked ${digits}  acme  Beta  bot` });
    expect(await there.owner.query("select sha256 from touchdown.edge_keys")).toEqual([
      { sha256: tokenSha256(more.out) },
    ]);
    const again = await keys("revoke", made.out, "--config", config);
    expect(again).toMatchObject({
      code: 1,
      err: expect.stringContaining("0 keys of the database"),
    });
  });

  it("are public keys too, once their holder has signed", async () => {
    const { there, config } = await place();
    const signer = createSigner();
    const io = createFakeIo();
    const args = ["create", "--config", config, "--account", "acme", "--label", "bot"];
    const readLine = async () => signer.signOffchain(io.outLines[0]?.split("'")[1] ?? "");
    const code = await run(["keys", ...args, "--public-key", signer.publicKey], {
      ...io,
      readLine,
    });
    expect([code, io.outLines[1]]).toEqual([0, `registered ${signer.publicKey}`]);
    const digest = publicKeySha256(signer.publicKeyBytes);
    expect(await there.owner.query("select sha256 from touchdown.edge_keys")).toEqual([
      { sha256: digest },
    ]);
    const shown = `${digest.toString("hex").slice(0, 16)}  acme     Beta  ${signer.publicKey}  bot`;
    expect((await keys("list", "--config", config)).out.split("\n")[1]).toBe(shown);
    expect((await keys("revoke", signer.publicKey, "--config", config)).code).toBe(0);
    expect(await there.owner.query("select from touchdown.edge_keys")).toEqual([]);
  });

  it("belong to one account of a name; two, or another plan, are reported", async () => {
    const { there, config } = await place();
    await keys("create", "--config", config, "--account", "acme");
    const other = await keys("create", "--config", config, "--account", "acme", "--plan", "Gold");
    expect(other).toMatchObject({ code: 1, err: expect.stringContaining("is on plan Beta") });
    const gold = await keys("create", "--config", config, "--account", "new", "--plan", "Gold");
    expect(gold).toMatchObject({ code: 1, err: expect.stringContaining('no plan "Gold"') });
    const [made] = await there.owner.query<{ id: string }>(
      `insert into touchdown.accounts (name, plan, created_at)
       values ('acme', 'Beta', now()) returning id`,
    );
    const two = await keys("create", "--config", config, "--account", "acme");
    expect(two).toMatchObject({ code: 1, err: expect.stringContaining(made?.id ?? "no id") });
    expect((await keys("create", "--config", config, "--account", made?.id ?? "")).code).toBe(0);
  });

  it("belong to one account, which the first of parallel commands makes", async () => {
    const { there, config } = await place();
    // The vault is made by the first command.
    await keys("list", "--config", config);
    const create = (name: string) => keys("create", "--config", config, "--account", name);
    const made = await Promise.all(["acme", "acme", "acme", " acme "].map(create));
    expect(made.map(({ code, err }) => [code, err])).toEqual(new Array(4).fill([0, ""]));
    const accounts = await there.owner.query("select name from touchdown.accounts");
    expect(accounts).toEqual([{ name: "acme" }]);
  });

  /** An account of this name that a user logs in to, older than those of the operator. */
  async function stranger({ owner }: TestDatabase, subject: string): Promise<string> {
    const [made] = await owner.query<{ id: string }>(
      `insert into touchdown.accounts (name, plan, created_at)
       values ('acme', 'Beta', now() - interval '1 day') returning id`,
    );
    await owner.query(
      `insert into touchdown.identities (issuer, subject, account_id, created_at, last_login_at)
       values ('https://login.test', $2, $1, now(), now())`,
      [made?.id, subject],
    );
    return made?.id ?? "no id";
  }

  it("are made in the account without a login, however many users have its name", async () => {
    const { there, config } = await place();
    await keys("create", "--config", config, "--account", "acme");
    for (let n = 0; n < 20; n += 1) await stranger(there, `mallory ${n}`);
    const more = await keys("create", "--config", config, "--account", "acme");
    expect(more).toMatchObject({ code: 0, err: "" });
    const accounts = await there.owner.query("select distinct account_id from touchdown.keys");
    expect(accounts).toHaveLength(1);
  });

  it("are made in an account that has a login by its id, and not by its name", async () => {
    const { there, config } = await place();
    const id = await stranger(there, "mallory");
    const named = await keys("create", "--config", config, "--account", "acme");
    expect(named).toMatchObject({ code: 1, err: expect.stringContaining(id) });
    expect(await there.owner.query("select from touchdown.keys")).toEqual([]);
    expect((await keys("create", "--config", config, "--account", id)).code).toBe(0);
  });

  it("are encrypted again by rewrap once the vault has a new first key", async () => {
    const { there, directory, config } = await place();
    await keys("create", "--config", config, "--account", "acme");
    const file = join(directory, "vault.toml");
    const before = readFileSync(file, "utf8");
    const fresh = `[[keys]]\nid = "new"\nkey = "${randomBytes(32).toString("base64")}"\n\n`;
    writeFileSync(file, fresh + before);
    const done = await keys("rewrap", "--config", config);
    expect(done).toMatchObject({ code: 0, out: "1 keys sealed anew, 0 could not be opened" });
    expect(await there.owner.query("select kek_id from touchdown.keys")).toEqual([
      { kek_id: "new" },
    ]);
    writeFileSync(file, before);
    const lost = await keys("rewrap", "--config", config);
    expect(lost).toMatchObject({ code: 1, out: "0 keys sealed anew, 1 could not be opened" });
    expect(lost.err).toContain("key-encryption keys are missing");
  });

  it("require control's configuration, and a reachable database", async () => {
    const { directory, config } = await place();
    const edge = join(directory, "edge.toml");
    const tip = '[tip]\naccounts = ["96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5"]\n';
    writeFileSync(edge, `${tip}[accounts]\ndatabase_url = "postgres://u:hunter2@127.0.0.1:1/x"\n`);
    const refused = await keys("list", "--config", edge);
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("`control`") });
    const text = readFileSync(config, "utf8");
    const dead = "postgres://u:hunter2@127.0.0.1:1/x";
    writeFileSync(config, text.replace(/postgres:[^"]+/, dead));
    const down = await keys("list", "--config", config);
    expect(down).toMatchObject({ code: 1, err: expect.stringContaining("ECONNREFUSED") });
    expect(down.err).not.toContain("hunter2");
  });

  it("are distinguished from those of a file", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "touchdown-keys-")), "keys.toml");
    const response = await keys("rewrap", "--file", file);
    expect(response).toMatchObject({ code: 1, err: expect.stringContaining("no vault") });
  });
});
