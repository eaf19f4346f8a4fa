import { expect, it } from "vitest";
import {
  DELIVERY_REASONS,
  type DeliveryReason,
  END_REASONS,
  type EndReason,
} from "../../src/core/errors.ts";
import {
  bytesOf,
  endReasonNumber,
  endReasonOf,
  reasonNumber,
  reasonOf,
} from "../../src/receipts/columns.ts";

it("gives each reason a distinct number, and 0 to none", () => {
  // The keys of a literal are exactly its own names.
  const deliveries = Object.keys(DELIVERY_REASONS) as DeliveryReason[];
  const ends = Object.keys(END_REASONS) as EndReason[];
  expect(deliveries.map((reason) => reasonOf(reasonNumber(reason)))).toEqual(deliveries);
  expect(ends.map((reason) => endReasonOf(endReasonNumber(reason)))).toEqual(ends);
  expect([reasonNumber(null), reasonOf(0), reasonOf(255)]).toEqual([0, null, null]);
  expect([endReasonNumber(null), endReasonOf(0), endReasonOf(255)]).toEqual([0, null, null]);
});

it("sums the bytes of columns", () => {
  expect(bytesOf({ a: new Float64Array(3), b: new Uint8Array(5) })).toBe(29);
});
