import { expect, it } from "vitest";
import { Places } from "../../../src/http/receipts/quota.ts";

it("bounds each account and all of them, and takes places back", () => {
  const places = new Places(3, 2);
  expect([places.take("a"), places.take("a"), places.take("a")]).toEqual([null, null, "account"]);
  expect([places.take("b"), places.take("b"), places.take("c")]).toEqual([null, "all", "all"]);
  places.leave("a");
  expect([places.take("c"), places.take("a")]).toEqual([null, "all"]);
});
