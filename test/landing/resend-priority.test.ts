import { describe, expect, it } from "vitest";
import { NONE } from "../../src/landing/byte-store.ts";
import { priorityBucketOf, ResendPriorityBuckets } from "../../src/landing/resend-priority.ts";

function takeAll(due: ResendPriorityBuckets): number[][] {
  const taken: number[][] = [];
  for (let place = due.pop(); place !== NONE; place = due.pop()) {
    taken.push([due.row(place), due.packetId(place)]);
  }
  return taken;
}

it("has four priority buckets to a doubling, and a bound", () => {
  expect(priorityBucketOf(2_000_000)).toBe(priorityBucketOf(1_000_000) + 4);
  expect(priorityBucketOf(2 ** 54)).toBeLessThan(256);
  expect(priorityBucketOf(0)).toBe(0);
});

describe("what is due", () => {
  it("is taken from the highest bucket first, and in order of addition within a bucket", () => {
    const due = new ResendPriorityBuckets(10);
    due.add(4, 104, 0);
    due.add(1, 101, 255);
    due.add(2, 102, 80);
    due.add(3, 103, 255);
    due.add(0, 100, 80);
    expect(due.length).toBe(5);
    expect(takeAll(due)).toEqual([
      [1, 101],
      [3, 103],
      [2, 102],
      [0, 100],
      [4, 104],
    ]);
    expect(due.length).toBe(0);
  });

  it("may hold a row twice, for one packet and for the next", () => {
    const due = new ResendPriorityBuckets(3);
    due.add(7, 1, 5);
    due.add(7, 2, 5);
    expect(takeAll(due)).toEqual([
      [7, 1],
      [7, 2],
    ]);
  });

  it("includes what is added between two takes, also above the current bucket", () => {
    const due = new ResendPriorityBuckets(4);
    due.add(1, 1, 3);
    due.add(2, 2, 3);
    expect(due.row(due.pop())).toBe(1);
    due.add(3, 3, 9);
    expect(takeAll(due).map(([row]) => row)).toEqual([3, 2]);
  });

  it("holds at most its capacity", () => {
    const due = new ResendPriorityBuckets(2);
    for (const row of [1, 2, 3]) due.add(row, row, row);
    expect(takeAll(due).map(([row]) => row)).toEqual([2, 1]);
  });

  it("is empty once cleared, and has its room again", () => {
    const due = new ResendPriorityBuckets(2);
    due.add(1, 1, 9);
    due.add(2, 2, 1);
    due.clear();
    expect([due.length, due.pop()]).toEqual([0, NONE]);
    due.add(5, 5, 1);
    due.add(6, 6, 9);
    expect(takeAll(due)).toEqual([
      [6, 6],
      [5, 5],
    ]);
  });
});
