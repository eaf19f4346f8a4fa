/** A store on a real, fresh database, with a manually advanced clock. */

import { randomBytes, randomUUID } from "node:crypto";
import type {
  Account,
  Actor,
  KeyOptions,
  Result,
  Store,
} from "../../../src/control/store/contract.ts";
import type { StoreDeps } from "../../../src/control/store/records.ts";
import { createStore } from "../../../src/control/store/store.ts";
import type { KeyEncryption } from "../../../src/control/vault.ts";
import { createFakeClock, type FakeClock } from "../../support/fake-clock.ts";
import { type TestDatabase, testDatabase } from "../../support/postgres.ts";
import { vaultOf } from "../../support/vault.ts";

export const actor: Actor = {
  kind: "account",
  accountId: null,
  address: "203.0.113.9",
  userAgent: "test",
};
export const operator: Actor = {
  kind: "operator",
  accountId: null,
  address: null,
  userAgent: null,
};
export const plain: KeyOptions = {
  label: "",
  expiresAtMs: null,
  cidrs: [],
  ratePerSecond: null,
  burst: null,
};
export const STORE_OPTIONS = {
  environment: "test",
  sessionIdleMs: 30 * 60_000,
  sessionMsMax: 12 * 3_600_000,
};

export interface StoreFixture {
  readonly there: TestDatabase;
  readonly clock: FakeClock;
  readonly deps: StoreDeps;
  readonly store: Store;
  /** An account that a user logs in to. */
  user(): Promise<Account>;
  /** An account without logins. */
  loginless(): Promise<Account>;
  /**
   * Runs all of these concurrently: whatever they read, none writes to this table before every one
   * of them waits for a lock, on that table or another.
   */
  atOnce<T>(table: string, acts: readonly (() => Promise<T>)[]): Promise<readonly T[]>;
  /** A store on the same data with another vault. */
  withVault(vault: KeyEncryption): Store;
}

export const freshKek = (): string => randomBytes(32).toString("base64");

export async function createFixture(): Promise<StoreFixture> {
  const there = await testDatabase();
  // The database checks future minutes by its own clock, so this one starts at the same time.
  const [now] = await there.owner.query<{ at: number }>("select now() as at");
  const clock = createFakeClock(undefined, Math.floor(now?.at ?? 0));
  const deps = { database: there.database, vault: vaultOf(`one:${freshKek()}`), clock };
  const store = createStore(deps, STORE_OPTIONS);
  return {
    there,
    clock,
    deps,
    store,
    user: async () => value(await store.accounts.register(identityOf(), actor)).account,
    loginless: async () => value(await store.accounts.create("operator made", "Beta", operator)),
    atOnce: (table, acts) => atOnce(there, table, acts),
    withVault: (vault) => createStore({ ...deps, vault }, STORE_OPTIONS),
  };
}

async function atOnce<T>(
  { owner }: TestDatabase,
  table: string,
  acts: readonly (() => Promise<T>)[],
): Promise<readonly T[]> {
  let all: Promise<readonly T[]> = Promise.resolve([]);
  await owner.transaction(async (tx) => {
    await tx.query(`lock table touchdown.${table} in share mode`);
    all = Promise.all(acts.map((act) => act()));
    // The caller that awaits `all` receives the error.
    all.catch(() => undefined);
    for (let looks = 0; (await tx.query(WAITING)).length < acts.length; looks += 1) {
      if (looks === LOOKS_MAX) throw new Error(`they do not all wait for ${table}`);
      // Without this the transaction would keep seeing its first snapshot of the statistics.
      await tx.query("select pg_sleep(0.01), pg_stat_clear_snapshot()");
    }
  });
  return await all;
}

const WAITING = `select from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock'`;
/** Of 10 ms each. */
const LOOKS_MAX = 6_000;

export function identityOf(subject: string = randomUUID()) {
  return { issuer: "https://id.example", subject, email: `${subject}@x.example`, name: "A User" };
}

/** Returns the value of a result; throws the reason of a rejection. */
export function value<T>(result: Result<T>): T {
  if (result.kind === "refused") throw new Error(`refused: ${result.reason}: ${result.detail}`);
  return result.value;
}

/** The reason of a rejection; null when there is none. */
export const reasonOf = (result: Result<unknown>): string | null =>
  result.kind === "refused" ? result.reason : null;
