import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { createVaultFile, openVault } from "../../src/control/vault.ts";
import { SetupError } from "../../src/core/errors.ts";
import { vaultOf } from "../support/vault.ts";

const owner = { accountId: "a-1", keyId: "k-1" };
const fresh = (): string => randomBytes(32).toString("base64");

describe("the vault", () => {
  it("opens what it sealed, and seals the same text differently each time", () => {
    const vault = vaultOf(`one:${fresh()}`);
    const [left, right] = [vault.seal("td_live_x", owner), vault.seal("td_live_x", owner)];
    expect(vault.open(left, owner)).toEqual({ kind: "ok", text: "td_live_x" });
    expect(left.ciphertext.equals(right.ciphertext)).toBe(false);
    expect(left.ciphertext.includes("td_live_x")).toBe(false);
    expect(left.nonce).toHaveLength(12);
  });

  it("does not open for another account or another key", () => {
    const vault = vaultOf(`one:${fresh()}`);
    const sealed = vault.seal("x", owner);
    const wrong = { kind: "wrong", kekId: "one" };
    expect(vault.open(sealed, { ...owner, accountId: "a-2" })).toEqual(wrong);
    expect(vault.open(sealed, { ...owner, keyId: "k-2" })).toEqual(wrong);
    expect(vault.open(sealed, { accountId: "a-1\nk-1", keyId: "" })).toEqual(wrong);
  });

  it("notices every changed byte, and a record cut short", () => {
    const vault = vaultOf(`one:${fresh()}`);
    const sealed = vault.seal("text", owner);
    for (const [at, byte] of sealed.ciphertext.entries()) {
      const ciphertext = Buffer.from(sealed.ciphertext);
      ciphertext[at] = byte ^ 1;
      expect(vault.open({ ...sealed, ciphertext }, owner).kind).toBe("wrong");
    }
    for (const length of [0, 15, 16, 19]) {
      const ciphertext = sealed.ciphertext.subarray(0, length);
      expect(vault.open({ ...sealed, ciphertext }, owner).kind).toBe("wrong");
    }
    expect(vault.open({ ...sealed, nonce: Buffer.alloc(0) }, owner).kind).toBe("wrong");
  });

  it("distinguishes a missing key-encryption key from a wrong one", () => {
    const sealed = vaultOf(`one:${fresh()}`).seal("x", owner);
    expect(vaultOf(`two:${fresh()}`).open(sealed, owner)).toEqual({
      kind: "missing",
      kekId: "one",
    });
    expect(vaultOf(`one:${fresh()}`).open(sealed, owner)).toEqual({ kind: "wrong", kekId: "one" });
  });

  it("seals with the first key and opens with all", () => {
    const old = fresh();
    const sealed = vaultOf(`old:${old}`).seal("x", owner);
    const vault = vaultOf(`new:${fresh()}, old:${old}`);
    expect(vault.open(sealed, owner)).toEqual({ kind: "ok", text: "x" });
    expect([vault.activeId, vault.seal("x", owner).kekId, vault.ids]).toEqual([
      "new",
      "new",
      ["new", "old"],
    ]);
  });
});

describe("a vault file", () => {
  const place = (): string => join(mkdtempSync(join(tmpdir(), "vault-")), "vault.toml");

  it("is made with a fresh key for its owner alone, and never over another", () => {
    const path = place();
    createVaultFile(path, "2026-11");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(openVault(path).activeId).toBe("2026-11");
    const before = readFileSync(path, "utf8");
    expect(() => createVaultFile(path, "2026-12")).toThrow(SetupError);
    expect(readFileSync(path, "utf8")).toBe(before);
  });

  it("is not left behind in part by a full disk, so that the next start makes it", () => {
    const path = place();
    const full = (handle: number): never => {
      writeFileSync(handle, "[[keys]]");
      throw new Error("ENOSPC: no space left on device, write");
    };
    const create = (): void => createVaultFile(path, "one", full as typeof writeFileSync);
    expect(create).toThrow(SetupError);
    expect(create).toThrow(/cannot be written: ENOSPC/);
    createVaultFile(path, "two");
    expect(openVault(path).activeId).toBe("two");
  });

  it.runIf(process.getuid?.() === 0)("that root makes belongs to the folder's owner", () => {
    const path = place();
    chownSync(dirname(path), 1234, 2345);
    createVaultFile(path, "one");
    const { uid, gid, mode } = statSync(path);
    expect([uid, gid, mode & 0o777]).toEqual([1234, 2345, 0o600]);
  });

  it("is refused when others can read it", () => {
    const path = place();
    createVaultFile(path, "one");
    chmodSync(path, 0o640);
    expect(() => openVault(path)).toThrow(/chmod 600/);
  });

  it.each([
    ["", /keys.* is missing/],
    ["keys = []", /1 to 16 keys are needed, has 0/],
    ["[[keys]]\nid = 'a b'\nkey = 'x'", /keys\[0\] needs an id/],
    ["[[keys]]\nid = 'a'\nkey = 'c2hvcnQ='", /keys\[0\] \(a\) needs a key of 32 bytes/],
    ["[[keys]]\nid = 'a'", /needs a key of 32 bytes/],
    ["colour = 1", /unknown key colour/],
    ["[[keys]", /line 1/],
  ])("that holds %j is refused", (text, message) => {
    const path = place();
    writeFileSync(path, text, { mode: 0o600 });
    expect(() => openVault(path)).toThrow(message);
  });

  it("is refused with one id twice, and no message repeats a key", () => {
    const key = fresh();
    expect(() => vaultOf(`a:${key},a:${key}`)).toThrow(/keys\[1\] has the id a, as one before it/);
    expect(() => vaultOf(`a:${key}A`)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining(key) }),
    );
  });

  it("that is not there is named", () => {
    expect(() => openVault(place())).toThrow(/vault file cannot be read/);
  });
});
