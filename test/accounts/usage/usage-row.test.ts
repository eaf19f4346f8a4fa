import { describe, expect, it } from "vitest";
import { UsageRow } from "../../../src/accounts/usage/usage-row.ts";
import {
  USAGE_SLOT_BOUNDS,
  USAGE_WIRE_BOUNDS_NS,
} from "../../../src/accounts/usage/usage-shape.ts";

describe("usage row", () => {
  it("has a bucket for every value, also for one above all bounds", () => {
    const row = new UsageRow("k", 0);
    row.wire(-1);
    row.wire(USAGE_WIRE_BOUNDS_NS[0] ?? 0);
    row.wire(Number.MAX_SAFE_INTEGER);
    row.ended("landed", null, 10_000);
    const { wire, slots } = row.written();
    expect(wire).toHaveLength(USAGE_WIRE_BOUNDS_NS.length + 1);
    expect(slots).toHaveLength(USAGE_SLOT_BOUNDS.length + 1);
    expect([wire[0], wire.at(-1), slots.at(-1)]).toEqual([2, 1, 1]);
  });

  it("adds all counts of another row", () => {
    const rows = [new UsageRow("k", 0), new UsageRow("k", 60_000)];
    for (const row of rows) {
      row.request(null, 10);
      row.request("overloaded", 20);
      row.wire(5);
      row.ended("landed", null, 2);
      row.ended("dropped", "never_sent", null);
      row.ended("expired", "blockhash_expired", null);
    }
    const [first, second] = rows;
    if (first === undefined || second === undefined) throw new Error("two rows");
    first.add(second);
    expect(first.written()).toMatchObject({
      minute: 0,
      requests: 4,
      accepted: 2,
      refused: 2,
      bytes: 60,
      landed: 2,
      expired: 2,
      dropped: 2,
      reasons: [
        ["refused", "overloaded", 2],
        ["dropped", "never_sent", 2],
        ["expired", "blockhash_expired", 2],
      ],
    });
    expect(first.written().wire[0]).toBe(2);
    expect(first.written().slots[2]).toBe(2);
  });
});
