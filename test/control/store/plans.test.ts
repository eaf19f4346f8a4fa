import { describe, expect, it } from "vitest";
import { createFixture, operator, reasonOf, value } from "./fixture.ts";

const { store, user } = await createFixture();
const gold = {
  name: "Gold",
  ratePerSecond: 500,
  burst: 1000,
  shared: true,
  rights: { keys_max: 3 },
};

describe("plans", () => {
  it("are created, changed, listed with their accounts, and removed when unused", async () => {
    const { id } = await user();
    value(await store.plans.save(gold, operator));
    value(await store.plans.save({ ...gold, burst: 2000 }, operator));
    value(await store.accounts.setPlan(id, "Gold", operator));
    expect(await store.plans.list()).toEqual([
      expect.objectContaining({ name: "Beta", accountCount: 0 }),
      { ...gold, burst: 2000, accountCount: 1 },
    ]);
    expect(reasonOf(await store.plans.remove("Gold", operator))).toBe("plan_in_use");
    value(await store.accounts.setPlan(id, "Beta", operator));
    value(await store.plans.remove("Gold", operator));
    expect(await store.plans.byName("Gold")).toBeNull();
    expect(reasonOf(await store.plans.remove("Gold", operator))).toBe("not_found");
  });

  it.each([
    [{ name: "" }],
    [{ name: "x".repeat(65) }],
    [{ ratePerSecond: 0 }],
    [{ ratePerSecond: Number.NaN }],
    [{ ratePerSecond: 1_000_001 }],
    [{ burst: 0 }],
    [{ burst: 1.5 }],
    [{ burst: 1_000_001 }],
  ])("with %j are refused", async (fault) => {
    expect(reasonOf(await store.plans.save({ ...gold, ...fault }, operator))).toBe("invalid");
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
    expect(value(await store.plans.save(plan, operator))).toEqual(plan);
    expect(await store.plans.byName(plan.name)).toEqual(plan);
    value(await store.plans.remove(plan.name, operator));
  });
});
