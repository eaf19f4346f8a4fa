/**
 * Plans: rows that an operator edits in the database, whose schema bounds their numbers. A changed
 * plan reaches every edge like a changed key.
 */

import type { PlanRecord, Plans } from "./contract.ts";
import { PLAN_COLUMNS, type StoreDeps } from "./records.ts";

export function createPlans({ database }: StoreDeps): Plans {
  return {
    list: () =>
      database.query<PlanRecord & { readonly accountCount: number }>(
        `select ${PLAN_COLUMNS}, (select count(*) from touchdown.accounts a where a.plan = p.name)
           as "accountCount"
         from touchdown.plans p order by p.rate_per_second, p.name`,
      ),
  };
}
