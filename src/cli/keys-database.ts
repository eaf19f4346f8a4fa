/**
 * `keys` for the accounts database. Uses the control process's configuration, which has the vault;
 * without it the dashboard could never show a new key. Running edges receive every change
 * automatically.
 */

import { DatabaseError } from "../accounts/database/database-error.ts";
import { loadControl, serviceOf } from "../config/load.ts";
import type { Account, Actor, Result, Store } from "../control/store/contract.ts";
import { UNRESTRICTED } from "../control/store/key-options.ts";
import { SetupError } from "../core/errors.ts";
import type { Io } from "./command.ts";
import { KEYS_LISTED_PER_PAGE } from "./limits.ts";

export interface DatabaseKey {
  /** An account's id, or the name of one without a login. The command creates a missing account. */
  readonly account: string;
  /** null: Beta for a new account, the current plan for an existing one. */
  readonly plan: string | null;
  readonly label: string;
}

/** One line of the list. */
export interface ListedKey {
  readonly sha256: string;
  readonly account: string;
  readonly plan: string;
  /** Base58, of a public key; null for an API key. */
  readonly publicKey: string | null;
  readonly label: string;
}

/** The command's work on an open store. */
type Act<T> = (store: Store, sealed: SealedAnew) => Promise<T>;

export interface SealedAnew {
  readonly rewrapped: number;
  readonly failed: number;
}

/** Creates a key. Only the returned text contains it. */
export function createInDatabase(config: string, key: DatabaseKey, io: Io): Promise<string> {
  return withStore(config, io, async (store) => {
    const account = await accountFor(store, key);
    const options = { ...UNRESTRICTED, label: key.label };
    return orThrow(await store.keys.create(account.id, options, OPERATOR)).token;
  });
}

/** Registers a public key in base58, once `sign` resolves to its holder's signature of a text. */
export function registerInDatabase(
  config: string,
  key: DatabaseKey,
  publicKey: string,
  sign: (text: string) => Promise<string>,
  io: Io,
): Promise<void> {
  return withStore(config, io, async (store) => {
    const account = await accountFor(store, key);
    const { id: challengeId, text } = orThrow(await store.keys.challenge(account.id, publicKey));
    const proof = { challengeId, signature: await sign(text) };
    const options = { ...UNRESTRICTED, label: key.label };
    orThrow(await store.keys.register(account.id, proof, options, OPERATOR));
  });
}

/** Lists every valid key, page by page. */
export function listDatabase(
  config: string,
  io: Io,
  show: (key: ListedKey) => void,
): Promise<void> {
  return withStore(config, io, async (store) => {
    let after: string | null = null;
    do {
      const page: Awaited<ReturnType<Store["keys"]["listAll"]>> = await store.keys.listAll({
        limit: KEYS_LISTED_PER_PAGE,
        after,
      });
      for (const { sha256, accountName: account, plan, publicKey, label } of page.items) {
        show({ sha256, account, plan, publicKey, label });
      }
      after = page.next;
    } while (after !== null);
  });
}

/** Revokes the one key that equals `which`, or whose SHA-256 starts with it. */
export function revokeInDatabase(config: string, which: string, io: Io): Promise<ListedKey> {
  return withStore(config, io, async (store) => {
    const found = (await store.keys.find(which)).filter(({ state }) => state === "live");
    const [key] = found;
    if (key === undefined || found.length > 1) {
      const needed = "give the key itself or at least 8 digits of its SHA-256";
      throw new SetupError(`${found.length} keys of the database are this one: ${needed}`);
    }
    const account = await store.accounts.byId(key.accountId);
    orThrow(await store.keys.revoke(key.accountId, key.id, OPERATOR));
    const { sha256, publicKey, label } = key;
    const plan = account?.plan.name ?? "";
    return { sha256, account: account?.name ?? "", plan, publicKey, label };
  });
}

/** Seals every stored key with the first key-encryption key; opening the store does that. */
export function rewrapDatabase(config: string, io: Io): Promise<SealedAnew> {
  return withStore(config, io, async (_, sealed) => sealed);
}

async function withStore<T>(config: string, io: Io, act: Act<T>): Promise<T> {
  if (serviceOf(config) !== "control") {
    throw new SetupError(
      `${config}: keys in the accounts database need the configuration of \`control\`, ` +
        "which has the vault",
    );
  }
  const options = { ...loadControl(config), environment: "live" };
  const log = { info() {}, warn() {}, error: (_: object, text: string) => io.err(text) };
  // Imported lazily, so that no other command loads a database client.
  const { openStore } = await import("../control/store/open.ts");
  try {
    const opened = await openStore({ clock: io.clock, log }, options);
    try {
      return await act(opened.store, opened.sealed);
    } finally {
      await opened.stop();
    }
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw new SetupError(error.message, { cause: error });
  }
}

async function accountFor(store: Store, { account, plan }: DatabaseKey): Promise<Account> {
  const byId = await store.accounts.byId(account);
  const found = byId === null ? await accountsNamed(store, account) : [byId];
  const only =
    found[0] ?? orThrow(await store.accounts.createOnce(account, plan ?? "Beta", OPERATOR));
  if (found.length > 1) {
    const ids = found.map(({ id }) => id).join(", ");
    throw new SetupError(`${found.length} accounts have the name ${account}, give an id: ${ids}`);
  }
  // A user can give the own account any name, and would read a key that is made in it.
  if (byId === null && (await store.accounts.identities(only.id)).length > 0) {
    const needed = `to make a key in it, give its id: ${only.id}`;
    throw new SetupError(`the account ${account} has a login; ${needed}`);
  }
  if (plan !== null && plan !== only.plan.name) {
    throw new SetupError(`the account ${account} is on plan ${only.plan.name}, not ${plan}`);
  }
  return only;
}

/** The accounts of this name without a login; where there is none, all of this name. */
async function accountsNamed({ accounts }: Store, name: string): Promise<readonly Account[]> {
  const all = await accounts.byName(name);
  const logins = await Promise.all(all.map(({ id }) => accounts.identities(id)));
  const loginless = all.filter((_, index) => logins[index]?.length === 0);
  return loginless.length > 0 ? loginless : all;
}

function orThrow<T>(result: Result<T>): T {
  if (result.kind === "ok") return result.value;
  throw new SetupError(result.detail);
}

const OPERATOR: Actor = { kind: "operator", accountId: null, address: null, userAgent: null };
