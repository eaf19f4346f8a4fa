import { expect, it } from "vitest";
import { DELIVERY_REASONS } from "../../src/core/errors.ts";
import { CLOSE_REASONS } from "../../src/send/close-policy.ts";
import { newSendCounters } from "../../src/send/send-counters.ts";

it("the sender's counters start at zero, one per reason, in a new record", () => {
  const { reasons, ends, ...counts } = newSendCounters();
  expect(Object.keys(reasons)).toEqual(Object.keys(DELIVERY_REASONS));
  expect(Object.keys(ends)).toEqual(CLOSE_REASONS);
  const all = [counts, reasons, ends].flatMap((each) => Object.values(each));
  expect(new Set(all)).toEqual(new Set([0]));
  reasons.queue_full += 1;
  ends.evicted += 1;
  expect(newSendCounters()).toMatchObject({ reasons: { queue_full: 0 }, ends: { evicted: 0 } });
});
