import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { followVaultFile } from "../../src/control/vault-file.ts";
import type { Log } from "../../src/core/log.ts";

const owner = { accountId: "a-1", keyId: "k-1" };

/** The table of one key as in a vault file. */
function entry(id: string): string {
  return `[[keys]]\nid = "${id}"\nkey = "${randomBytes(32).toString("base64")}"\n\n`;
}

function setup(text: string) {
  const path = join(mkdtempSync(join(tmpdir(), "vault-")), "vault.toml");
  const logged: string[] = [];
  const log: Log = {
    info: (_, message) => void logged.push(`info ${message}`),
    warn: (_, message) => void logged.push(`warn ${message}`),
    error: (_, message) => void logged.push(`error ${message}`),
  };
  let written = 0;
  /** Replaces the file by a rename, as editors do, so that it differs whatever the clock shows. */
  const write = (next: string): void => {
    written += 1;
    writeFileSync(`${path}.${written}`, next, { mode: 0o600 });
    renameSync(`${path}.${written}`, path);
  };
  write(text);
  return { path, logged, write, vault: followVaultFile(path, log) };
}

describe("the vault of a running process", () => {
  it("seals with a new first key as soon as the file has it, and opens with all", () => {
    const [old, fresh] = [entry("old"), entry("fresh")];
    const { vault, write, logged } = setup(old);
    const sealed = vault.seal("text", owner);
    write(fresh + old);
    expect(vault.seal("text", owner).kekId).toBe("fresh");
    expect(vault.open(sealed, owner)).toEqual({ kind: "ok", text: "text" });
    expect([vault.activeId, vault.ids]).toEqual(["fresh", ["fresh", "old"]]);
    expect(logged).toEqual(["info the vault file was read again"]);
  });

  it("opens what another process sealed with a key that was added later", () => {
    const [old, fresh] = [entry("old"), entry("fresh")];
    const running = setup(old);
    const other = setup(fresh + old);
    const sealed = other.vault.seal("text", owner);
    expect(running.vault.open(sealed, owner)).toEqual({ kind: "missing", kekId: "fresh" });
    running.write(fresh + old);
    expect(running.vault.open(sealed, owner)).toEqual({ kind: "ok", text: "text" });
    running.write(fresh);
    expect(running.vault.ids).toEqual(["fresh"]);
    expect(running.vault.open(sealed, owner)).toEqual({ kind: "ok", text: "text" });
  });

  it("keeps what it read last while the file is broken, open to others or gone", () => {
    const { path, vault, write, logged } = setup(entry("one"));
    const sealed = vault.seal("text", owner);
    const works = (): void => {
      expect(vault.open(sealed, owner)).toEqual({ kind: "ok", text: "text" });
      expect(vault.activeId).toBe("one");
    };
    write("[[keys]]\nid = ");
    works();
    write(entry("two"));
    chmodSync(path, 0o644);
    works();
    rmSync(path);
    works();
    const told = "error the vault file cannot be read; the previous keys stay in use";
    // Even stat fails for a link to itself.
    symlinkSync(path, path);
    works();
    expect(logged).toEqual([told, told, told, told]);
    write(entry("three"));
    expect(vault.activeId).toBe("three");
  });

  it("is no vault where the file is broken from the beginning", () => {
    expect(() => setup("")).toThrow(/\[\[keys\]\] with id and key is missing/);
  });
});
