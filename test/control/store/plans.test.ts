import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { insertPlan } from "../../support/plans.ts";
import { createFixture, operator, value } from "./fixture.ts";

const { store, there, user } = await createFixture();
const gold = {
  name: "Gold",
  ratePerSecond: 500,
  burst: 1000,
  shared: true,
  rights: { keys_max: 3 },
};

describe("plans", () => {
  it("are listed with their accounts, and stay while there are any", async () => {
    const { id } = await user();
    await insertPlan(there.database, gold);
    value(await store.accounts.setPlan(id, "Gold", operator));
    expect(await store.plans.list()).toEqual([
      expect.objectContaining({ name: "Beta", accountCount: 0 }),
      { ...gold, accountCount: 1 },
    ]);
    const remove = "delete from touchdown.plans where name = 'Gold'";
    await expect(there.database.query(remove)).rejects.toMatchObject({
      constraint: "accounts_plan",
    });
    value(await store.accounts.setPlan(id, "Beta", operator));
    await there.database.query(remove);
    expect(await store.plans.list()).toHaveLength(1);
  });

  it.each([
    [{ name: "" }],
    [{ name: "x".repeat(65) }],
    [{ ratePerSecond: 0 }],
    [{ ratePerSecond: 1_000_001 }],
    [{ burst: 0 }],
    [{ burst: 1_000_001 }],
  ])("with %j are refused by the database", async (fault) => {
    await expect(insertPlan(there.database, { ...gold, ...fault })).rejects.toMatchObject({
      kind: "constraint",
    });
  });

  it.each([
    [{ name: "x" }],
    [{ name: "x".repeat(64) }],
    [{ ratePerSecond: 0.001 }],
    [{ ratePerSecond: 1_000_000 }],
    [{ burst: 1 }],
    [{ burst: 1_000_000 }],
  ])("with %j, at a bound, are kept", async (bound) => {
    const plan = { ...gold, name: "Bound", ...bound };
    await insertPlan(there.database, plan);
    expect(await store.plans.list()).toContainEqual({ ...plan, accountCount: 0 });
    await there.database.query("delete from touchdown.plans where name = $1", [plan.name]);
  });

  it("are made and changed as docs/accounts.md says", async () => {
    const page = readFileSync("docs/accounts.md", "utf8");
    const statements = page.match(/^(?:insert into|update) touchdown\.plans[^;]*;/gm) ?? [];
    for (const statement of statements) await there.database.query(statement);
    const rights = { keys_max: 50 };
    const plan = { name: "Pro", ratePerSecond: 500, burst: 2000, shared: true, rights };
    expect(await store.plans.list()).toContainEqual({ ...plan, accountCount: 0 });
  });
});
