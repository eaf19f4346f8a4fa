import { expect, it } from "vitest";
import { createDedupCache } from "../../src/dedup/recent-transactions.ts";
import { deliveryGateOf } from "../../src/engine/delivery-gate.ts";
import { bytesOf } from "../support/pipeline-fixture.ts";

it("renews and forgets the entry of a transaction by its signature", () => {
  const dedup = createDedupCache({ keepMs: 1 });
  const gate = deliveryGateOf(dedup);
  dedup.insert(bytesOf(1), 1, 0);
  expect(gate.renew(bytesOf(1), 0, 1e6)).toBe(true);
  expect(dedup.query(bytesOf(1), 1, 2e6)).toBe(true);
  expect(gate.renew(bytesOf(1), 0, 2e6)).toBe(false);
  gate.forget(bytesOf(1), 1e6);
  expect(dedup.query(bytesOf(1), 1, 2e6)).toBe(false);
});
