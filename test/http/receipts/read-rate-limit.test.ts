import { expect, it } from "vitest";
import { createReadLimit, readLimitRejection } from "../../../src/http/receipts/read-rate-limit.ts";
import { testPrincipal } from "../../support/principals.ts";

const PLAN = { name: "P", ratePerSecond: 10, burst: 2, shared: false };

it("lets an account read as often as its plan lets it send", () => {
  const limit = createReadLimit();
  const principal = testPrincipal("acme", PLAN);
  const waits = [0, 0, 0, 100e6].map((ns) => limit.charge(principal, 1e9 + ns));
  expect(waits).toEqual([0, 0, 100e6, 0]);
  expect(limit.charge(testPrincipal("other", PLAN), 1e9)).toBe(0);
  expect(limit.counters).toMatchObject({ allowed: 4, limited: 1 });
});

it("keeps no state that a raised plan cannot have left", () => {
  const limit = createReadLimit();
  const low = testPrincipal("acme", { ...PLAN, ratePerSecond: 0.1, burst: 100 });
  for (let i = 0; i < 100; i += 1) limit.charge(low, 1e9);
  const raised = testPrincipal("acme", PLAN);
  const waitNs = limit.charge(raised, 1e9);
  expect(waitNs).toBeLessThan(2e9);
  expect(limit.charge(raised, 1e9 + waitNs)).toBe(0);
});

it("tracks a bounded number of accounts, and evicts those with full buckets first", () => {
  const limit = createReadLimit(2);
  for (const account of ["a", "b"]) limit.charge(testPrincipal(account, PLAN), 1e9);
  limit.charge(testPrincipal("c", PLAN), 2e9);
  expect(limit.counters.evicted).toBe(0);
  for (const account of ["d", "e"]) limit.charge(testPrincipal(account, PLAN), 2e9);
  expect(limit.counters.evicted).toBe(1);
});

it("names the limit, and what to do instead", () => {
  const rejection = readLimitRejection(PLAN, 1.5e6);
  expect(rejection).toMatchObject({ reason: "rate_limited", data: { retryAfterMs: 2 } });
  expect(rejection.message).toContain("plan P lets receipts be read 10 times a second");
});
