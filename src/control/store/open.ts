/**
 * Opens the store from the configuration: connects, migrates, and opens the vault.
 *
 * The vault file is created at the first start only: once a stored text needs a key-encryption key,
 * a missing file is a setup error that a new file would hide.
 */

import { existsSync } from "node:fs";
import { createDatabase, type Database } from "../../accounts/database/database.ts";
import type { Clock } from "../../core/clock.ts";
import { SetupError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { migrate } from "../migrations/migrate.ts";
import { createVaultFile, type KeyEncryption } from "../vault.ts";
import { followVaultFile } from "../vault-file.ts";
import type { Store } from "./contract.ts";
import { encryptionKeysInUse } from "./operator-keys.ts";
import { createStore, type StoreOptions } from "./store.ts";

export interface OpenOptions extends StoreOptions {
  /** Database role of the dashboard, or of the owner. */
  readonly databaseUrl: string;
  /**
   * For migrations; null: `databaseUrl`, which must then be the owner's when migrations are
   * pending.
   */
  readonly ownerUrl: string | null;
  readonly vaultFile: string;
}

export interface OpenStore {
  readonly store: Store;
  readonly database: Database;
  /**
   * Number of texts resealed with the first key-encryption key, and the ids that could not be
   * opened.
   */
  readonly sealed: { readonly rewrapped: number; readonly failed: number };
  stop(): Promise<void>;
}

/** Throws `SetupError` for an invalid setup, `DatabaseError` if the database is unreachable. */
export async function openStore(
  deps: { readonly clock: Clock; readonly log: Log },
  options: OpenOptions,
): Promise<OpenStore> {
  await migrateAs(deps, options.ownerUrl ?? options.databaseUrl);
  const database = createDatabase(deps, { url: options.databaseUrl });
  try {
    const vault = await vaultFor(database, options.vaultFile, deps);
    const store = createStore({ database, vault, clock: deps.clock }, options);
    const sealed = await sealAnew(store, deps.log);
    return { store, database, sealed, stop: () => database.stop() };
  } catch (error) {
    await database.stop();
    throw error;
  }
}

async function migrateAs(
  deps: { readonly clock: Clock; readonly log: Log },
  url: string,
): Promise<void> {
  const owner = createDatabase(deps, { url, connections: 1 });
  try {
    const applied = await migrate(owner);
    if (applied.length > 0) deps.log.info({ applied }, "the accounts database was migrated");
  } finally {
    await owner.stop();
  }
}

/** The vault of this file, which is created if no stored text needs one yet. */
async function vaultFor(
  database: Database,
  path: string,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<KeyEncryption> {
  if (!existsSync(path)) {
    const used = await encryptionKeysInUse({ database });
    if (used.length > 0) {
      throw new SetupError(
        `the vault file ${path} is missing, and stored keys need the key-encryption key(s) ` +
          `${used.join(", ")}: put the file back`,
      );
    }
    createVaultFile(path, new Date(clock.unixMs()).toISOString().slice(0, DAY_CHARS));
  }
  return followVaultFile(path, log);
}

/**
 * Reseals what an older key sealed. Texts that cannot be opened are reported and do not stop the
 * rest.
 */
async function sealAnew(store: Store, log: Log): Promise<OpenStore["sealed"]> {
  const missing = await store.keys.missingEncryptionKeys();
  if (missing.length > 0) {
    log.error({ missing }, "key-encryption keys are missing: what they sealed cannot be revealed");
  }
  const { rewrapped, failed } = await store.keys.rewrap();
  if (rewrapped > 0) log.info({ rewrapped }, "stored keys were sealed with the first vault key");
  if (failed > 0) log.error({ failed }, "stored keys could not be opened and stay as they are");
  return { rewrapped, failed };
}

/** `2026-11-21` */
const DAY_CHARS = 10;
