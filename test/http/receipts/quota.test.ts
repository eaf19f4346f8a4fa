import { expect, it } from "vitest";
import { Quota } from "../../../src/http/receipts/quota.ts";

it("bounds each account and all together, and reuses released permits", () => {
  const quota = new Quota(3, 2);
  expect([quota.acquire("a"), quota.acquire("a"), quota.acquire("a")]).toEqual([
    null,
    null,
    "account",
  ]);
  expect([quota.acquire("b"), quota.acquire("b"), quota.acquire("c")]).toEqual([
    null,
    "all",
    "all",
  ]);
  quota.release("a");
  expect([quota.acquire("c"), quota.acquire("a")]).toEqual([null, "all"]);
});
