import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { tokenSha256 } from "../../src/accounts/keys/keys-file.ts";
import { run } from "../../src/cli/run.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeIo } from "../support/fake-io.ts";
import { createSigner } from "../support/signer.ts";

let directory = "";
let file = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "touchdown-keys-"));
  file = join(directory, "keys.toml");
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

async function keys(...args: string[]) {
  const io = createFakeIo();
  const code = await run(["keys", ...args], io);
  return { code, out: io.outLines.join("\n"), err: io.errLines.join("\n") };
}

const clock = createFakeClock();
const late = createSigner();

function lateSignature(text: string): string {
  clock.advance(900_000);
  return late.signOffchain(text);
}

/** Runs the command; whoever reads the text that it prints enters a signature. */
async function signedKeys(args: readonly string[], signatureOf: (text: string) => string | null) {
  const io = createFakeIo(clock);
  const readLine = async () => {
    const [, text] = /^solana sign-offchain-message '([^']+)'$/.exec(io.outLines[0] ?? "") ?? [];
    if (text === undefined) throw new Error("no text was printed");
    return signatureOf(text);
  };
  const code = await run(["keys", ...args], { ...io, readLine });
  return { code, out: io.outLines.join("\n"), err: io.errLines.join("\n") };
}

describe("keys", () => {
  it("names the nearest action for an unknown one", async () => {
    const { code, err } = await keys("crate", "--file", file);
    expect(code).toBe(2);
    expect(err).toContain(
      'touchdown keys: there is no "crate", say create, list, revoke or rewrap',
    );
    expect(err).toContain("rewrap, did you mean create?");
    expect((await keys()).err).toContain("touchdown keys: say create, list, revoke or rewrap\n");
  });

  it("creates, lists and revokes a key, which only the first output contains", async () => {
    const made = await keys("create", "--file", file, "--account", "acme", "--label", "bot 7");
    expect(made.code).toBe(0);
    expect(made.out).toMatch(/^td_[a-z0-9]+_\w+$/);
    expect(readFileSync(file, "utf8")).not.toContain(made.out);

    const digits = tokenSha256(made.out).toString("hex").slice(0, 16);
    const listed = await keys("list", "--file", file);
    expect(listed.out.split("\n")[1]).toBe(`${digits}  acme     Beta  bot 7`);
    expect(listed.out + listed.err + made.err).not.toContain(made.out);

    const revoked = await keys("revoke", digits, "--file", file);
    expect(revoked).toMatchObject({ code: 0, out: `revoked ${digits}  acme  Beta  bot 7` });
    expect((await keys("list", "--file", file)).out.split("\n")).toHaveLength(1);
  });

  it("revokes by the key itself", async () => {
    const { out: token } = await keys("create", "--file", file, "--account", "acme");
    expect((await keys("revoke", token, "--file", file)).code).toBe(0);
  });

  it("registers a public key that signs, and lists and revokes it by itself", async () => {
    const signer = createSigner();
    const args = ["create", "--file", file, "--account", "acme", "--public-key", signer.publicKey];
    const made = await signedKeys(args, (text) => signer.signOffchain(text));
    expect(made.code).toBe(0);
    expect(made.out.split("\n").at(-1)).toBe(`registered ${signer.publicKey}`);
    expect(readFileSync(file, "utf8")).toContain(`public_key = "${signer.publicKey}"`);

    await keys("create", "--file", file, "--account", "acme", "--label", "bot 7");
    const listed = (await keys("list", "--file", file)).out.split("\n");
    expect(listed[0]).toMatch(/^SHA256 +ACCOUNT {2}PLAN {2}PUBLIC KEY +LABEL$/);
    expect(listed[1]).toMatch(new RegExp(`^[0-9a-f]{16}  acme     Beta  ${signer.publicKey}$`));
    expect(listed[2]).toMatch(/^[0-9a-f]{16} {2}acme {5}Beta {2} +bot 7$/);

    const revoked = await keys("revoke", signer.publicKey, "--file", file);
    expect(revoked.out).toMatch(
      new RegExp(`^revoked [0-9a-f]{16}  acme  Beta  ${signer.publicKey}$`),
    );
    expect((await keys("list", "--file", file)).out).not.toContain(signer.publicKey);
  });

  it.each([
    ["another key's signature", (text: string) => createSigner().signOffchain(text)],
    ["no signature", () => null],
    ["a signature after the time", lateSignature],
  ])("registers no public key with %s", async (_, signatureOf) => {
    const args = ["create", "--file", file, "--account", "acme", "--public-key", late.publicKey];
    const { code, out } = await signedKeys(args, signatureOf);
    expect([code, out.includes("registered")]).toEqual([1, false]);
    expect(existsSync(file)).toBe(false);
  });

  it.each(["größe", "it's"])("asks for no signature of a text with the name %s", async (name) => {
    const args = ["create", "--file", file, "--account", name, "--public-key", late.publicKey];
    const io = createFakeIo();
    expect(await run(["keys", ...args], io)).toBe(2);
    expect(io.errLines.join()).toContain("with --public-key it needs printable ASCII");
    expect(io.outLines).toEqual([]);
  });

  it("finds the file through a configuration", async () => {
    const config = join(directory, "touchdown.toml");
    const tip = '[tip]\naccounts = ["96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5"]\n';
    writeFileSync(config, `${tip}[accounts]\nkeys_file = "keys.toml"\n`);
    expect((await keys("create", "--config", config, "--account", "acme")).code).toBe(0);
    expect((await keys("list", "--file", file)).out).toContain("acme");

    writeFileSync(config, `${tip}[accounts]\ndatabase_url = "postgres://db/x"\n`);
    const { code, err } = await keys("list", "--config", config);
    expect(code).toBe(1);
    expect(err).toContain("need the configuration of `control`");
  });

  it.each([
    ["a plan that the file lacks", ["create", "--account", "acme", "--plan", "Gold"]],
    ["an account that is no name", ["create", "--account", "\n"]],
    ["a key that is not there", ["revoke", "0123456789abcdef"]],
  ])("exits with 1 on %s", async (_, args) => {
    await keys("create", "--file", file, "--account", "first");
    const before = readFileSync(file, "utf8");
    const { code, out, err } = await keys(...args, "--file", file);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).not.toContain("bug");
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("exits with 1 on a list of a missing file", async () => {
    expect((await keys("list", "--file", file)).code).toBe(1);
  });

  it.each([
    ["no action", ["--file", "x"]],
    ["another action", ["rotate", "--file", "x"]],
    ["no file", ["list"]],
    ["two files", ["list", "--file", "x", "--config", "y"]],
    ["no account", ["create", "--file", "x"]],
    ["no key to revoke", ["revoke", "--file", "x"]],
    ["an option that does not belong", ["list", "--file", "x", "--account", "a"]],
    ["a public key that is none", ["create", "--file", "x", "--account", "a", "--public-key", "x"]],
    ["one word too many", ["list", "x", "--file", "x"]],
  ])("exits with 2 on %s", async (_, args) => {
    expect((await keys(...args)).code).toBe(2);
  });
});
