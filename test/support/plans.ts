/** Plans as an operator makes them, in the database. */

import type { Queryable } from "../../src/accounts/database/database.ts";
import type { PlanRecord } from "../../src/control/store/contract.ts";

/** As the owner, or as the dashboard. */
export async function insertPlan(database: Queryable, plan: PlanRecord): Promise<void> {
  const { name, ratePerSecond, burst, shared, rights } = plan;
  await database.query(
    `insert into touchdown.plans (name, rate_per_second, burst, shared, rights)
     values ($1, $2, $3, $4, $5)`,
    [name, ratePerSecond, burst, shared, JSON.stringify(rights)],
  );
}
