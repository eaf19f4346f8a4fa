/** A lock in shared memory. */

import { describe, expect, it } from "vitest";
import { SharedLock } from "../../src/runtime/shared-lock.ts";

describe("a lock in shared memory", () => {
  it("is had by one at a time", () => {
    const words = new Int32Array(new SharedArrayBuffer(8));
    const [first, second] = [new SharedLock(words, 1, 1), new SharedLock(words, 1, 1)];
    expect(first.acquire()).toBe(true);
    expect(second.acquire()).toBe(false);
    first.release();
    expect(second.acquire()).toBe(true);
    expect(first.acquire()).toBe(false);
    expect([...words]).toEqual([0, 1]);
  });
});
