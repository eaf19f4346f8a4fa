import { expect, it } from "vitest";
import { ReceiptChanges } from "../../src/receipts/changes.ts";

function all(changes: ReceiptChanges): (readonly [number, number])[] {
  const found: (readonly [number, number])[] = [];
  for (let number = changes.first; number < changes.next; number += 1) {
    found.push([changes.sequenceOf(number), changes.stateOf(number)]);
  }
  return found;
}

it("numbers changes from 1 and keeps the latest", () => {
  const changes = new ReceiptChanges(4);
  expect([changes.first, changes.next]).toEqual([1, 1]);
  for (let n = 1; n <= 6; n += 1) changes.add(100 + n, n % 3);
  expect([changes.first, changes.next]).toEqual([3, 7]);
  expect(all(changes)).toEqual([
    [103, 0],
    [104, 1],
    [105, 2],
    [106, 0],
  ]);
});

it("distinguishes receipts beyond 32 bits", () => {
  const changes = new ReceiptChanges(4);
  const sequences = [-2, -1, 0, 1].map((step) => 3 * 2 ** 32 + step);
  for (const sequence of sequences) changes.add(sequence, 0);
  expect(all(changes).map(([sequence]) => sequence)).toEqual(sequences);
});

it("knows what follows a change of the replaced process once that says where it ended", () => {
  const changes = new ReceiptChanges(4);
  expect(changes.isAfterKnown(0)).toBe(true);
  changes.continueFrom("epoch", 8);
  const last = 7;
  expect([last, changes.first - 1].map((number) => changes.isAfterKnown(number))).toEqual([
    false,
    true,
  ]);
  changes.otherEnded(last);
  expect(changes.isAfterKnown(last)).toBe(true);
  expect([last - 1, last].map((number) => changes.after(number))).toEqual([last, changes.first]);
});
