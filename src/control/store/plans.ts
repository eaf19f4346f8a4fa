/** Plans: rows that an operator edits. A changed plan reaches every edge like a changed key. */

import { DatabaseError } from "../../accounts/database/database-error.ts";
import { PLAN_BURST_MAX, PLAN_RATE_MAX } from "../../core/limits.ts";
import { note } from "./audit.ts";
import type { PlanRecord, Plans, Result } from "./contract.ts";
import { checkText, ok, PLAN_COLUMNS, refused, type StoreDeps } from "./records.ts";

export function createPlans({ database, clock }: StoreDeps): Plans {
  return {
    list: () =>
      database.query<PlanRecord & { readonly accountCount: number }>(
        `select ${PLAN_COLUMNS}, (select count(*) from touchdown.accounts a where a.plan = p.name)
           as "accountCount"
         from touchdown.plans p order by p.rate_per_second, p.name`,
      ),
    async byName(name) {
      const [plan] = await database.query<PlanRecord>(
        `select ${PLAN_COLUMNS} from touchdown.plans p where p.name = $1`,
        [name],
      );
      return plan ?? null;
    },
    save: (plan, actor) =>
      database.transaction(async (tx) => {
        const checked = checkPlan(plan);
        if (checked.kind === "refused") return checked;
        const { name, ratePerSecond, burst, shared, rights } = checked.value;
        await tx.query(
          `insert into touchdown.plans (name, rate_per_second, burst, shared, rights)
           values ($1, $2, $3, $4, $5)
           on conflict (name) do update set rate_per_second = excluded.rate_per_second,
             burst = excluded.burst, shared = excluded.shared, rights = excluded.rights`,
          [name, ratePerSecond, burst, shared, JSON.stringify(rights)],
        );
        await note(tx, clock, null, "plan.save", { ...checked.value }, actor);
        return checked;
      }),
    async remove(name, actor) {
      try {
        return await database.transaction(async (tx) => {
          const gone = await tx.query("delete from touchdown.plans where name = $1 returning 1", [
            name,
          ]);
          if (gone.length === 0) return refused("not_found", "there is no such plan");
          await note(tx, clock, null, "plan.remove", { name }, actor);
          return ok(null);
        });
      } catch (error) {
        const used = error instanceof DatabaseError && error.constraint === "accounts_plan";
        if (used) return refused("plan_in_use", "the plan still has accounts");
        throw error;
      }
    },
  };
}

function checkPlan(plan: PlanRecord): Result<PlanRecord> {
  const name = checkText("the plan's name", plan.name, 1);
  if (name.kind === "refused") return name;
  const { ratePerSecond, burst } = plan;
  if (!(ratePerSecond > 0 && ratePerSecond <= PLAN_RATE_MAX)) {
    const range = `above 0 and at most ${PLAN_RATE_MAX}`;
    return refused("invalid", `the rate must be ${range} a second, is ${ratePerSecond}`);
  }
  if (!(Number.isInteger(burst) && burst >= 1 && burst <= PLAN_BURST_MAX)) {
    return refused("invalid", `the burst must be a whole number from 1 to ${PLAN_BURST_MAX}`);
  }
  return ok({ ...plan, name: name.value });
}
