import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { clientKeyOf } from "../../../src/accounts/keys/client-key.ts";
import { createKey, listKeys, revokeKey } from "../../../src/accounts/keys/edit-keys-file.ts";
import { looksMistyped } from "../../../src/accounts/keys/format.ts";
import { loadKeysFile, tokenSha256 } from "../../../src/accounts/keys/keys-file.ts";
import { encodeKey } from "../../../src/core/encoding.ts";
import { SetupError } from "../../../src/core/errors.ts";

let path = "";
beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), "keys-")), "keys.toml");
});

const HAND_WRITTEN = `# our keys
[plans.Beta]   # the free one
rate_per_second = 50
burst = 100

# the desk in Frankfurt
[[keys]]
token = "0123456789abcdef"
account = "acme"
plan = "Beta"

# the desk in Tokyo
[[ keys ]]
token = "fedcba9876543210"
account = "edo"
plan = "Beta"
label = """
[[keys]] is not a header here
"""

[plans.Gold]
rate_per_second = 500
burst = 1000`;

describe("a file that exists", () => {
  it.runIf(process.getuid?.() === 0)("keeps its owner and mode when root changes it", () => {
    writeFileSync(path, HAND_WRITTEN);
    chownSync(path, 1234, 2345);
    chmodSync(path, 0o640);
    const { token } = createKey(path, { account: "acme", plan: "Beta" });
    revokeKey(path, token);
    const { uid, gid, mode } = statSync(path);
    expect([uid, gid, mode & 0o777]).toEqual([1234, 2345, 0o640]);
  });
});

describe("createKey", () => {
  it("creates the file with plan Beta, with mode 600 and without the token", () => {
    const { token } = createKey(path, { account: "acme", plan: "Beta" });
    expect(looksMistyped(token)).toBe(false);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, "utf8")).not.toContain(token);
    const { keys, plans } = loadKeysFile(path);
    expect(keys).toMatchObject([{ account: "acme", label: null }]);
    expect(keys[0]?.sha256.equals(tokenSha256(token))).toBe(true);
    expect(keys[0]?.clientKey).toBe(encodeKey(clientKeyOf(token)));
    expect(plans.get("Beta")).toEqual({
      name: "Beta",
      ratePerSecond: 50,
      burst: 100,
      shared: false,
    });
  });

  it("appends, and keeps the existing text unchanged", () => {
    writeFileSync(path, HAND_WRITTEN);
    createKey(path, { account: "bot", plan: "Gold", label: 'says "hi"\n', environment: "test" });
    createKey(path, { account: "bot", plan: "Beta" });
    expect(readFileSync(path, "utf8").startsWith(HAND_WRITTEN)).toBe(true);
    expect(listKeys(path).map((key) => [key.account, key.plan.name, key.label])).toMatchObject([
      ["acme", "Beta", null],
      ["edo", "Beta", "[[keys]] is not a header here\n"],
      ["bot", "Gold", 'says "hi"\n'],
      ["bot", "Beta", null],
    ]);
  });

  it("writes nothing for an unknown plan, an invalid account or an invalid file", () => {
    writeFileSync(path, HAND_WRITTEN);
    expect(() => createKey(path, { account: "a", plan: "Iron" })).toThrow(/plans\.Iron/);
    expect(() => createKey(path, { account: "", plan: "Beta" })).toThrow(SetupError);
    expect(readFileSync(path, "utf8")).toBe(HAND_WRITTEN);
    writeFileSync(path, "keys = 1");
    expect(() => createKey(path, { account: "a", plan: "Beta" })).toThrow(SetupError);
    expect(existsSync(`${path}.new`)).toBe(false);
  });

  it("rejects a file whose keys are one inline array", () => {
    writeFileSync(path, "keys = []\n[plans.Beta]\nrate_per_second = 1\nburst = 1\n");
    expect(() => createKey(path, { account: "a", plan: "Beta" })).toThrow(SetupError);
  });

  it("rejects a concurrent change instead of losing one", () => {
    writeFileSync(path, HAND_WRITTEN);
    writeFileSync(`${path}.new`, "");
    expect(() => createKey(path, { account: "a", plan: "Beta" })).toThrow(/another change/);
    expect(existsSync(`${path}.new`)).toBe(true);
  });

  it("follows a symbolic link instead of replacing it", () => {
    const link = `${path}.link`;
    writeFileSync(path, HAND_WRITTEN);
    symlinkSync(path, link);
    createKey(link, { account: "a", plan: "Beta" });
    expect(listKeys(path)).toHaveLength(3);
  });
});

describe("revokeKey", () => {
  it("removes only the named key, by its token or the start of its SHA-256", () => {
    writeFileSync(path, HAND_WRITTEN);
    const revoked = revokeKey(path, "0123456789abcdef");
    expect(revoked.account).toBe("acme");
    expect(listKeys(path).map((key) => key.account)).toEqual(["edo"]);
    expect(readFileSync(path, "utf8")).toContain("# the desk in Tokyo");
    const { token } = createKey(path, { account: "bot", plan: "Gold" });
    revokeKey(path, tokenSha256(token).toString("hex").slice(0, 12));
    expect(listKeys(path).map((key) => key.account)).toEqual(["edo"]);
    expect(loadKeysFile(path).plans.size).toBe(2);
  });

  it("throws instead of editing text that it cannot parse", () => {
    const dotted = `[plans]
Beta = { rate_per_second = 1, burst = 1 }
[[keys]]
token = "0123456789abcdef"
account = "acme"
plan = "Beta"
label = """
[ this is not a table
"""
`;
    for (const text of [HAND_WRITTEN, dotted]) {
      writeFileSync(path, text);
      const which = text === dotted ? "0123456789abcdef" : "fedcba9876543210";
      expect(() => revokeKey(path, which)).toThrow(/by hand/);
      expect(readFileSync(path, "utf8")).toBe(text);
    }
  });

  it("throws if no key matches or the file is missing", () => {
    writeFileSync(path, HAND_WRITTEN);
    expect(() => revokeKey(path, "not-a-key-at-all")).toThrow(/no key is this one/);
    expect(() => revokeKey(path, "00000000")).toThrow(/0 keys/);
    expect(() => revokeKey(`${path}.x`, "00000000")).toThrow(/no such keys file/);
  });
});
