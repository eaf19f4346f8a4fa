import { describe, expect, it } from "vitest";
import {
  createAttemptLimiter,
  LIMITS,
  networkOf,
} from "../../../src/control/web/attempt-limiter.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

describe("tries", () => {
  it("are limited to a burst, then to one in each interval", () => {
    const clock = createFakeClock();
    const attempts = createAttemptLimiter(clock);
    const { burst, everyMs } = LIMITS.link;
    expect([burst, everyMs]).toEqual([5, 12_000]);
    for (let count = 0; count < burst; count += 1) expect(attempts.take("link", ["a"])).toBe(0);
    expect(attempts.take("link", ["a"])).toBe(everyMs);
    clock.advance(everyMs - 1);
    expect(attempts.take("link", ["a"])).toBe(1);
    clock.advance(1);
    expect(attempts.take("link", ["a"])).toBe(0);
    expect(attempts.counters.limited).toBe(2);
  });

  it("are counted for each caller and each limit apart, and refused when one is spent", () => {
    const attempts = createAttemptLimiter(createFakeClock());
    for (let count = 0; count < LIMITS.link.burst; count += 1) attempts.take("link", ["a", "b"]);
    expect(attempts.take("link", ["c"])).toBe(0);
    expect(attempts.take("link", ["c", "b"])).toBeGreaterThan(0);
    expect(attempts.take("reveal", ["a"])).toBe(0);
  });

  it("are tracked for a bounded number of callers; the least recent one is evicted", () => {
    const attempts = createAttemptLimiter(createFakeClock(), 2);
    for (let count = 0; count < LIMITS.link.burst; count += 1) attempts.take("link", ["a"]);
    attempts.take("link", ["b"]);
    attempts.take("link", ["c"]);
    expect(attempts.counters.evicted).toBe(1);
    expect(attempts.take("link", ["a"])).toBe(0);
  });
});

describe("a caller", () => {
  it.each([
    ["203.0.113.7", "address 203.0.113.7"],
    ["::ffff:203.0.113.7", "address 203.0.113.7"],
    ["2001:db8:0:1::1", "network 2001:db8:0:1"],
    ["2001:0DB8:0:0001:ffff:ffff:ffff:ffff", "network 2001:db8:0:1"],
    ["::1", "network 0:0:0:0"],
    ["1::", "network 1:0:0:0"],
    ["fe80::1%eth0", "network fe80:0:0:0"],
    ["64:ff9b::203.0.113.7", "network 64:ff9b:0:0"],
    ["what a proxy says", "address what a proxy says"],
  ])("with %s is %s", (address, name) => {
    expect(networkOf(address)).toBe(name);
  });
});
