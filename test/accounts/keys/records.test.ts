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
};

describe("a key's row", () => {
  it("has the figures of its plan as numbers", () => {
    expect(plan).toEqual({ name: "P", ratePerSecond: 0.5, burst: 7, shared: true });
    expect(keyOfRow(row, plans)).toMatchObject({ plan, account: "a", policy: null });
  });

  it("takes what its own limit leaves open from the plan", () => {
    const limitOf = (more: Partial<EdgeKeyRow>) =>
      keyOfRow({ ...row, ...more }, plans).policy?.limit;
    expect(limitOf({ rate: "0.1" })).toEqual({ ratePerSecond: 0.1, burst: 7 });
    expect(limitOf({ burst: 2 })).toEqual({ ratePerSecond: 0.5, burst: 2 });
    expect(limitOf({ expires: 5 })).toBeNull();
  });

  it("is good from nowhere when its networks cannot be read", () => {
    const { policy } = keyOfRow({ ...row, cidrs: ["nonsense"] }, plans);
    expect(policy?.networks?.includes("127.0.0.1")).toBe(false);
  });

  it("without its plan is refused", () => {
    expect(() => keyOfRow({ ...row, plan: "Q" }, plans)).toThrow("plan Q");
  });
});
