/**
 * The account store, assembled from its files. `contract.ts` is the contract; read that first. It
 * has no state in memory: any number of processes may use the same database.
 */

import { createAccounts } from "./accounts.ts";
import { createApiTokens } from "./api-tokens.ts";
import { createAudit } from "./audit.ts";
import type { Store } from "./contract.ts";
import { createOwnKeys, type KeyStoreOptions } from "./keys.ts";
import { linkKey } from "./link-key.ts";
import { createLogins } from "./logins.ts";
import { createOperatorKeys } from "./operator-keys.ts";
import { createPlans } from "./plans.ts";
import { prune } from "./prune.ts";
import { createPublicKeys } from "./public-keys.ts";
import type { StoreDeps } from "./records.ts";
import { createSessions, type SessionOptions } from "./sessions.ts";
import { createUsage } from "./usage.ts";

export interface StoreOptions extends KeyStoreOptions, SessionOptions {}

export function createStore(deps: StoreDeps, options: StoreOptions): Store {
  return {
    plans: createPlans(deps),
    accounts: createAccounts(deps, options),
    keys: {
      ...createOwnKeys(deps, options),
      ...createPublicKeys(deps),
      ...createOperatorKeys(deps),
      link: (accountId, token, actor) => linkKey(deps, accountId, token, actor),
    },
    logins: createLogins(deps),
    sessions: createSessions(deps, options),
    apiTokens: createApiTokens(deps),
    audit: createAudit(deps),
    usage: createUsage(deps),
    vault: deps.vault,
    async check() {
      await deps.database.query("select 1");
    },
    prune: () => prune(deps),
  };
}
