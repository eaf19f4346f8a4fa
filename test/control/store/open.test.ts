import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type OpenOptions, openStore } from "../../../src/control/store/open.ts";
import { createVaultFile } from "../../../src/control/vault.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { Log } from "../../../src/core/log.ts";
import { silent, testDatabase } from "../../support/postgres.ts";
import { actor, identityOf, reasonOf, STORE_OPTIONS, value } from "./fixture.ts";

const deps = { clock: systemClock, log: silent };

async function place(): Promise<OpenOptions> {
  const { url, controlUrl } = await testDatabase({ migrated: false });
  const vaultFile = join(mkdtempSync(join(tmpdir(), "open-")), "vault.toml");
  return { databaseUrl: controlUrl, ownerUrl: url, vaultFile, ...STORE_OPTIONS };
}

describe("opening the store", () => {
  it("migrates, makes the vault at the first start, and finds all again at the next", async () => {
    const options = await place();
    const first = await openStore(deps, options);
    const { account, key } = value(await first.store.accounts.register(identityOf(), actor));
    await first.stop();
    const second = await openStore(deps, { ...options, ownerUrl: null });
    expect(reasonOf(await second.store.keys.reveal(account.id, key?.id ?? "", actor))).toBeNull();
    await second.stop();
  });

  it("does not make a new vault over one that stored keys need", async () => {
    const options = await place();
    const first = await openStore(deps, options);
    value(await first.store.accounts.register(identityOf(), actor));
    await first.stop();
    rmSync(options.vaultFile);
    await expect(openStore(deps, options)).rejects.toThrow(
      /is missing, and stored keys need the key-encryption key\(s\) \d{4}-\d\d-\d\d: put the file/,
    );
    expect(existsSync(options.vaultFile)).toBe(false);
  });

  it("opens with another vault too, names what is missing, and hides nothing else", async () => {
    const options = await place();
    const first = await openStore(deps, options);
    const { account, key } = value(await first.store.accounts.register(identityOf(), actor));
    await first.stop();
    rmSync(options.vaultFile);
    createVaultFile(options.vaultFile, "another");
    const told: string[] = [];
    const log: Log = { ...silent, error: (_, message) => void told.push(message) };
    const second = await openStore({ clock: systemClock, log }, options);
    expect(told).toEqual([
      "key-encryption keys are missing: what they sealed cannot be revealed",
      "stored keys could not be opened and stay as they are",
    ]);
    expect(reasonOf(await second.store.keys.reveal(account.id, key?.id ?? "", actor))).toBe(
      "vault",
    );
    expect(await second.store.keys.list(account.id)).toHaveLength(1);
    await second.stop();
  });

  it("says that the vault is another one also if its key has the same id", async () => {
    const options = await place();
    const first = await openStore(deps, options);
    value(await first.store.accounts.register(identityOf(), actor));
    const id = first.store.vault.activeId;
    await first.stop();
    rmSync(options.vaultFile);
    createVaultFile(options.vaultFile, id);
    const told: unknown[] = [];
    const log: Log = { ...silent, error: (fields, message) => void told.push(fields, message) };
    const second = await openStore({ clock: systemClock, log }, options);
    await second.stop();
    expect(told).toEqual([
      { missing: [id] },
      "key-encryption keys are missing: what they sealed cannot be revealed",
    ]);
  });

  it("reveals on while another process rotates the vault's key", async () => {
    const options = await place();
    const running = await openStore(deps, options);
    const { account, key } = value(await running.store.accounts.register(identityOf(), actor));
    const reveal = () => running.store.keys.reveal(account.id, key?.id ?? "", actor);
    const { token } = value(await reveal());
    const old = readFileSync(options.vaultFile, "utf8");
    const secret = randomBytes(32).toString("base64");
    const fresh = `[[keys]]\nid = "fresh"\nkey = "${secret}"\n\n`;
    writeFileSync(options.vaultFile, fresh + old);
    const other = await openStore(deps, { ...options, ownerUrl: null });
    expect(other.sealed).toEqual({ rewrapped: 1, failed: 0 });
    await other.stop();
    writeFileSync(options.vaultFile, fresh);
    expect(value(await reveal()).token).toBe(token);
    await running.stop();
  });

  it("names the role that must migrate when the login may not", async () => {
    const options = await place();
    await expect(openStore(deps, { ...options, ownerUrl: null })).rejects.toThrow(/its owner/);
  });
});
