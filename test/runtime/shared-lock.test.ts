/** A lock in shared memory. */

import { describe, expect, it } from "vitest";
import { SharedLock } from "../../src/runtime/shared-lock.ts";

describe("a lock in shared memory", () => {
  it("is held by one thread at a time", () => {
    const int32 = new Int32Array(new SharedArrayBuffer(8));
    const [first, second] = [new SharedLock(int32, 1, 1), new SharedLock(int32, 1, 1)];
    expect(first.acquire()).toBe(true);
    expect(second.acquire()).toBe(false);
    first.release();
    expect(second.acquire()).toBe(true);
    expect(first.acquire()).toBe(false);
    expect([...int32]).toEqual([0, 1]);
  });
});
