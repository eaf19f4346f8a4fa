import { describe, expect, it } from "vitest";
import { type EdgeKeyRow, keyOfRow, planOfRow } from "../../../src/accounts/keys/records.ts";

const plan = planOfRow({ name: "P", rate: "0.5", burst: 7, shared: true });
const plans = new Map([[plan.name, plan]]);
const row: EdgeKeyRow = {
  id: "0".repeat(32),
  sha256: Buffer.alloc(32),
  account: "a",
  plan: "P",
  expires: null,
  cidrs: [],
  rate: null,
  burst: null,
  is_derived: false,
};

describe("key row", () => {
  it("has the limits of its plan as numbers", () => {
    expect(plan).toEqual({ name: "P", ratePerSecond: 0.5, burst: 7, shared: true });
    expect(keyOfRow(row, plans)).toMatchObject({ plan, account: "a", policy: null });
  });

  it("tells whether it follows from an API key", () => {
    expect(keyOfRow(row, plans).isDerived).toBe(false);
    expect(keyOfRow({ ...row, is_derived: true }, plans).isDerived).toBe(true);
  });

  it("takes missing values of its own limit from the plan", () => {
    const limitOf = (overrides: Partial<EdgeKeyRow>) =>
      keyOfRow({ ...row, ...overrides }, plans).policy?.limit;
    expect(limitOf({ rate: "0.1" })).toEqual({ ratePerSecond: 0.1, burst: 7 });
    expect(limitOf({ burst: 2 })).toEqual({ ratePerSecond: 0.5, burst: 2 });
    expect(limitOf({ expires: 5 })).toBeNull();
  });

  it("allows no address if its networks are invalid", () => {
    const { policy } = keyOfRow({ ...row, cidrs: ["nonsense"] }, plans);
    expect(policy?.networks?.includes("127.0.0.1")).toBe(false);
  });

  it("is rejected without its plan", () => {
    expect(() => keyOfRow({ ...row, plan: "Q" }, plans)).toThrow("plan Q");
  });
});
