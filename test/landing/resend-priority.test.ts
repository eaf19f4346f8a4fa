import { describe, expect, it } from "vitest";
import { priorityBucketOf, ResendPriorityBuckets } from "../../src/landing/resend-priority.ts";

/** Takes up to `max` entries. */
function take(due: ResendPriorityBuckets, max = Number.POSITIVE_INFINITY): number[][] {
  const taken: number[][] = [];
  due.visit((row, packetId) => {
    if (taken.length === max) return "last";
    taken.push([row, packetId]);
    return "taken";
  });
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
    expect(take(due)).toEqual([
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
    expect(take(due)).toEqual([
      [7, 1],
      [7, 2],
    ]);
  });

  it("includes what is added between two takes, also above the current bucket", () => {
    const due = new ResendPriorityBuckets(4);
    due.add(1, 1, 3);
    due.add(2, 2, 3);
    expect(take(due, 1)).toEqual([[1, 1]]);
    due.add(3, 3, 9);
    expect(take(due).map(([row]) => row)).toEqual([3, 2]);
  });

  it("stays in its order where a visit keeps it, until one takes it", () => {
    const due = new ResendPriorityBuckets(10);
    for (const row of [1, 2, 3, 4, 5]) due.add(row, row, row === 4 ? 9 : 3);
    due.visit((row) => (row === 2 || row === 4 ? "kept" : "taken"));
    expect(due.length).toBe(2);
    due.add(6, 6, 3);
    due.visit((row) => (row === 2 ? "taken" : "kept"));
    expect(take(due).map(([row]) => row)).toEqual([4, 6]);
    expect(due.length).toBe(0);
    due.add(7, 7, 3);
    expect(take(due)).toEqual([[7, 7]]);
  });

  it("keeps those that a visit skips, and takes those behind them", () => {
    const due = new ResendPriorityBuckets(10);
    for (const row of [1, 2, 3, 4]) due.add(row, row, row === 4 ? 9 : 3);
    const taken: number[] = [];
    const visit = (skip: number): void =>
      due.visit((row) => {
        taken.push(row);
        return "taken";
      }, skip);
    visit(2);
    expect([taken.splice(0), due.length]).toEqual([[2, 3], 2]);
    due.add(5, 5, 3);
    visit(9);
    visit(0);
    expect(taken).toEqual([4, 1, 5]);
  });

  it("holds at most its capacity", () => {
    const due = new ResendPriorityBuckets(2);
    for (const row of [1, 2, 3]) due.add(row, row, row);
    expect(take(due).map(([row]) => row)).toEqual([2, 1]);
  });

  it("is empty once cleared, and has its room again", () => {
    const due = new ResendPriorityBuckets(2);
    due.add(1, 1, 9);
    due.add(2, 2, 1);
    due.clear();
    expect([due.length, take(due)]).toEqual([0, []]);
    due.add(5, 5, 1);
    due.add(6, 6, 9);
    expect(take(due)).toEqual([
      [6, 6],
      [5, 5],
    ]);
  });
});
