import { expect, it } from "vitest";
import { DELIVERY_REASONS } from "../../src/core/errors.ts";
import { newSendCounters } from "../../src/send/send-counters.ts";

it("the sender's counters start at zero, one per reason, in a new record", () => {
  const { reasons, ...counts } = newSendCounters();
  expect(Object.keys(reasons)).toEqual(Object.keys(DELIVERY_REASONS));
  expect(new Set([...Object.values(counts), ...Object.values(reasons)])).toEqual(new Set([0]));
  reasons.queue_full += 1;
  expect(newSendCounters().reasons.queue_full).toBe(0);
});
