import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { clientKeyOf } from "../../../src/accounts/keys/client-key.ts";
import {
  keyRowsOf,
  loadKeysFile,
  parseKeysFile,
  tokenSha256,
} from "../../../src/accounts/keys/keys-file.ts";
import { publicKeySha256 } from "../../../src/accounts/keys/public-key.ts";
import { encodeBase58, encodeKey } from "../../../src/core/encoding.ts";
import { SetupError } from "../../../src/core/errors.ts";
import { createSigner } from "../../support/signer.ts";

const PLAN = "[plans.Beta]\nrate_per_second = 50\nburst = 100\n";
const key = (lines: string) => `\n[[keys]]\n${lines}\n`;
const IRREGULAR = "the keys file has to be a regular file, since it is read again on SIGHUP";
const GOOD = key('token = "0123456789abcdef"\naccount = "acme"\nplan = "Beta"');

function problems(text: string): string {
  try {
    parseKeysFile(text, "keys.toml");
  } catch (error) {
    expect(error).toBeInstanceOf(SetupError);
    return error instanceof Error ? error.message : "";
  }
  throw new Error("the text was accepted");
}

describe("keys file", () => {
  it("defines plans and keys", () => {
    const hex = tokenSha256("another token of acme").toString("hex").toUpperCase();
    const text = `${PLAN}${GOOD}${key(
      `token_sha256 = "${hex}"\naccount = "acme"\nplan = "Beta"\nlabel = "bot 7"`,
    )}`;
    const { plans, keys } = parseKeysFile(text, "keys.toml");
    const beta = { name: "Beta", ratePerSecond: 50, burst: 100, shared: false };
    expect(plans.get("Beta")).toEqual(beta);
    const row = (token: string, label: string | null) => ({
      sha256: tokenSha256(token),
      keyId: tokenSha256(token).toString("hex").slice(0, 32),
      account: "acme",
      plan: beta,
      label,
      publicKey: null,
      clientKey: null,
      policy: null,
      isDerived: false,
    });
    expect(keys).toEqual([row("0123456789abcdef", null), row("another token of acme", "bot 7")]);
  });

  it("may name the public key that follows from a token, which finds the same key", () => {
    const hex = tokenSha256("another token of acme").toString("hex");
    const rest = 'account = "acme"\nplan = "Beta"';
    const clientKey = encodeKey(clientKeyOf("another token of acme"));
    const text = `token_sha256 = "${hex}"\nclient_key = "${clientKey}"\n${rest}`;
    const { keys } = parseKeysFile(PLAN + key(text), "keys.toml");
    const rows = [...keyRowsOf(keys)];
    expect(rows.map(({ sha256 }) => sha256.toString("hex"))).toEqual([
      hex,
      publicKeySha256(clientKeyOf("another token of acme")).toString("hex"),
    ]);
    expect(rows[1]).toEqual({ ...keys[0], sha256: rows[1]?.sha256, isDerived: true });
    // Without one there is one row.
    const plain = parseKeysFile(PLAN + GOOD, "keys.toml").keys;
    expect([...keyRowsOf(plain)]).toEqual(plain);
  });

  it("refuses a client key that is none, or that stands twice", () => {
    const rest = 'account = "acme"\nplan = "Beta"';
    const clientKey = encodeKey(clientKeyOf("0123456789abcdef"));
    const withKey = (text: string, own = 'token = "0123456789abcdef"') =>
      key(`${own}\nclient_key = "${text}"\n${rest}`);
    expect(problems(PLAN + withKey("abc"))).toContain(
      "keys[0] (line 5).client_key: 3 characters where the 32 bytes",
    );
    const other = withKey(clientKey, 'token = "another-token-of-acme"');
    expect(problems(PLAN + withKey(clientKey) + other)).toContain(
      "keys[1] (line 11): the same client key as keys[0] (line 5)",
    );
    const both = withKey(clientKey, `public_key = "${createSigner().publicKey}"`);
    expect(problems(PLAN + both)).toContain("client_key: it follows from an API key");
  });

  it("may be empty", () => {
    expect(parseKeysFile("", "keys.toml").keys).toEqual([]);
  });

  it("accepts tokens of 16 to 128 visible characters", () => {
    const file = (token: string) => PLAN + GOOD.replace("0123456789abcdef", token);
    for (const token of ["!".repeat(16), "~".repeat(128)]) {
      expect(parseKeysFile(file(token), "keys.toml").keys).toHaveLength(1);
    }
    for (const token of ["x".repeat(15), "x".repeat(129), "0123456789 abcdef", "ä".repeat(16)]) {
      expect(problems(file(token))).toMatch(/keys\[0\] \(line 5\)\.token: .*16 to 128 visible/);
    }
  });

  it("lists all problems in one message, with their positions", () => {
    const message = problems(`
colour = "red"
[plans.Beta]
rate_per_second = "50"
burst = 0.5
speed = 1
[plans.Fast]
rate_per_second = 0
[[keys]]
token = "0123456789abcdef"
account = "acme"
plan = "Gold"
[[keys]]
token = "0123456789abcdef"
token_sha256 = "00"
account = ""
plan = "Beta"
[[keys]]
token_sha256 = "00"
account = "a\\u0000"
plan = 7
label = 9
note = "x"
[[keys]]
account = "acme"
plan = "Beta"
`);
    for (const problem of [
      "colour: unknown key",
      "plans.Beta.rate_per_second: a string where",
      "plans.Beta.burst: 0.5 where",
      "plans.Beta.speed: unknown key",
      "plans.Fast.rate_per_second: 0 where",
      "plans.Fast.burst: nothing where",
      "keys[0] (line 9).plan: there is no [plans.Gold]",
      "keys[1] (line 13): one of token, token_sha256, public_key is needed, token and",
      'keys[1] (line 13).account: "" where',
      "keys[2] (line 18).token_sha256: 64 hexadecimal",
      "keys[2] (line 18).account:",
      "keys[2] (line 18).plan: a number where",
      "keys[2] (line 18).label: a number where",
      "keys[2] (line 18).note: unknown key",
      "keys[3] (line 24): one of token, token_sha256, public_key is needed, none is",
    ]) {
      expect(message).toContain(problem);
    }
    expect(message).toContain("15 problem(s)");
  });

  it("rejects a repeated token in either form, and names the position of the first", () => {
    const sha256 = tokenSha256("0123456789abcdef").toString("hex");
    const again = key(`token_sha256 = "${sha256}"\naccount = "other"\nplan = "Beta"`);
    const message = problems(PLAN + GOOD + again);
    expect(message).toContain("keys[1] (line 10): the same token as keys[0] (line 5)");
  });

  it("takes an Ed25519 public key instead of a token", () => {
    const { publicKey, publicKeyBytes } = createSigner();
    const block = key(`public_key = "${publicKey}"\naccount = "acme"\nplan = "Beta"`);
    const { keys } = parseKeysFile(PLAN + GOOD + block, "keys.toml");
    expect(keys.map((row) => row.publicKey)).toEqual([null, publicKey]);
    expect(keys[1]).toMatchObject({ account: "acme", sha256: publicKeySha256(publicKeyBytes) });
    expect(problems(PLAN + block + block)).toContain("the same public key as keys[0] (line 5)");
  });

  it.each([
    ["31 bytes", encodeBase58(Buffer.alloc(31, 7)), "characters where the 32 bytes"],
    ["a point of small order", "1".repeat(32), "32 characters where the 32 bytes"],
    ["a private key, which is not repeated", encodeBase58(Buffer.alloc(64, 7)), "characters where"],
  ])("refuses a public key that is %s", (_, text, message) => {
    const found = problems(`${PLAN}${key(`public_key = "${text}"\naccount = "a"\nplan = "Beta"`)}`);
    expect(found).toContain(`keys[0] (line 5).public_key: `);
    expect(found).toContain(message);
    expect(found).not.toContain(text);
  });

  it("never quotes a token in a message", () => {
    const secret = "canary-0123456789";
    const texts = [
      `${PLAN}${key(`token = "${secret}" oops`)}`,
      `${PLAN}${key(`token = "${secret}"\naccount = 1\nplan = "Beta"`)}`,
      `${PLAN}${key(`token = ["${secret}"]\naccount = "a"\nplan = "Beta"`)}`,
      `${PLAN}${key(`token = "${secret} ${"x".repeat(200)}"\naccount = "a"\nplan = "Beta"`)}`,
      `keys = "${secret}"`,
    ];
    for (const text of texts) expect(problems(text)).not.toContain(secret);
  });

  it("rejects values that are not tables", () => {
    expect(problems("plans = 1")).toContain("plans: a number");
    expect(problems("keys = 1")).toContain("keys: a number");
    expect(problems("keys = [1]")).toContain("keys[0]: a number");
    expect(problems("plans.Beta = 2020-01-01")).toContain("plans.Beta: a date");
  });

  it("limits the length of its message", () => {
    const many = Array.from({ length: 80 }, () => key("x = 1")).join("");
    expect(problems(many).split("\n").length).toBeLessThan(60);
  });

  it("names the file that cannot be read", () => {
    expect(() => loadKeysFile("/nowhere/keys.toml")).toThrow(/nowhere\/keys\.toml/);
    expect(() => loadKeysFile("/nowhere/keys.toml")).toThrow(SetupError);
    const path = join(mkdtempSync(join(tmpdir(), "keys-")), "keys.toml");
    writeFileSync(path, PLAN + GOOD);
    expect(loadKeysFile(path).keys).toHaveLength(1);
  });

  it("must be a regular file, because a pipe cannot be read again when the keys change", () => {
    const folder = mkdtempSync(join(tmpdir(), "touchdown-keys-"));
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    for (const path of [folder, pipe, "/dev/null"]) {
      expect(() => loadKeysFile(path)).toThrow(new SetupError(`${path}: ${IRREGULAR}`));
    }
    const missing = join(folder, "missing");
    const message = `${missing}: the keys file cannot be read (ENOENT)`;
    expect(() => loadKeysFile(missing)).toThrow(new SetupError(message));
    rmSync(folder, { recursive: true });
  });
});
