import { describe, expect, it } from "vitest";
import { TIP_PLANS_MAX } from "../../src/landing/limits.ts";
import { TipTotals } from "../../src/landing/tips.ts";

describe("sums of tips", () => {
  it("add up by plan", () => {
    const tips = new TipTotals();
    tips.accepted("Beta", 5);
    tips.accepted("Beta", 7);
    tips.landed("Beta", 5);
    tips.accepted("Pro", 100);
    expect([...tips.byPlan]).toEqual([
      ["Beta", { accepted: 12, landed: 5 }],
      ["Pro", { accepted: 100, landed: 0 }],
    ]);
  });

  it("count plans beyond the limit together, without losing any", () => {
    const tips = new TipTotals();
    for (let plan = 0; plan < TIP_PLANS_MAX + 36; plan += 1) tips.accepted(`plan ${plan}`, 1);
    tips.accepted("plan 0", 1);
    expect(tips.byPlan.size).toBe(TIP_PLANS_MAX + 1);
    expect(tips.byPlan.get("other")?.accepted).toBe(36);
    expect(tips.byPlan.get("plan 0")?.accepted).toBe(2);
  });
});
