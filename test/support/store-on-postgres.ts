/**
 * The real store of the dashboard, on a fresh database, with a fake clock and a switch that
 * disables the database. The database itself timestamps its statements.
 */

import { randomBytes } from "node:crypto";
import type { Database } from "../../src/accounts/database/database.ts";
import { DatabaseError } from "../../src/accounts/database/database-error.ts";
import type { Actor, AuditAction, Store } from "../../src/control/store/contract.ts";
import { createStore } from "../../src/control/store/store.ts";
import type { Clock } from "../../src/core/clock.ts";
import { makeDatabase, type TestDatabase } from "./postgres.ts";
import { vaultOf } from "./vault.ts";

export interface TestStore extends Store {
  /** Rejects every statement, as an unreachable database does. */
  gone: boolean;
  readonly there: TestDatabase;
  /** The text of a key whose account has no login. */
  orphanKey(): Promise<string>;
  /** The last audit entry, over all accounts. */
  lastAction(): Promise<AuditAction>;
  stop(): Promise<void>;
}

export async function createTestStore(clock: Clock): Promise<TestStore> {
  const there = await makeDatabase();
  const away = { gone: false };
  const vault = vaultOf(`one:${randomBytes(32).toString("base64")}`);
  const deps = { database: switched(there.database, away), vault, clock };
  const store = createStore(deps, {
    environment: "test",
    sessionIdleMs: 30 * 60_000,
    sessionMsMax: 12 * 3_600_000,
  });
  return {
    ...store,
    there,
    get gone() {
      return away.gone;
    },
    set gone(gone) {
      away.gone = gone;
    },
    async orphanKey() {
      const account = await store.accounts.create("orphan", "Beta", OPERATOR);
      if (account.kind === "refused") throw new Error(account.detail);
      const made = await store.keys.create(account.value.id, PLAIN, OPERATOR);
      if (made.kind === "refused") throw new Error(made.detail);
      return made.value.token;
    },
    async lastAction() {
      const [last] = await there.owner.query<{ readonly action: AuditAction }>(
        "select action from touchdown.audit order by id desc limit 1",
      );
      if (last === undefined) throw new Error("no audit entry yet");
      return last.action;
    },
    stop: () => there.stop(),
  };
}

function switched(database: Database, away: { readonly gone: boolean }): Database {
  function demand(): void {
    if (away.gone) throw new DatabaseError("unavailable", "gone", null, null);
  }
  return {
    ...database,
    async query(...args) {
      demand();
      return await database.query(...args);
    },
    async transaction(...args) {
      demand();
      return await database.transaction(...args);
    },
  };
}

const OPERATOR: Actor = { kind: "operator", accountId: null, address: null, userAgent: null };
const PLAIN = { label: "", expiresAtMs: null, cidrs: [], ratePerSecond: null, burst: null };
