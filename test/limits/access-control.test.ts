import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { publicKeySha256 } from "../../src/accounts/keys/public-key.ts";
import {
  createAccessControl,
  type GlobalLimits,
  limitRejection,
  type Principal,
  retryAfterSeconds,
  type SharedLimits,
} from "../../src/limits/access-control.ts";
import { networksOf } from "../../src/runtime/networks.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { from, HERE, testPrincipal } from "../support/principals.ts";

const SECOND = 1_000_000_000;
const TOKEN = "0123456789abcdef";
const principal = (account: string, ratePerSecond = 1, burst = 2): Principal =>
  testPrincipal(account, { name: "P", ratePerSecond, burst, shared: false });

function accessWith(
  rows: Readonly<Record<string, Principal>>,
  accountsMax = 100_000,
  globalLimits: GlobalLimits | null = null,
) {
  const table = new Map(
    Object.entries(rows).map(([token, row]) => [
      createHash("sha256").update(token).digest("hex"),
      row,
    ]),
  );
  const keys = {
    lookup: (sha256: Buffer) => table.get(sha256.toString("hex")) ?? null,
    changes: 0,
  };
  const clock = createFakeClock();
  const looksMistyped = (token: string): boolean => token.startsWith("td_");
  return createAccessControl({ clock, keys, looksMistyped, globalLimits }, { accountsMax });
}

describe("find", () => {
  it("knows a key by its SHA-256 alone", () => {
    const access = accessWith({ [TOKEN]: principal("a") });
    expect(access.authenticate(TOKEN, HERE)?.account).toBe("a");
    expect(access.authenticate(TOKEN.toUpperCase(), HERE)).toBeNull();
  });

  it("does not hash what is too short or too long to be a key", () => {
    const lookups: Buffer[] = [];
    const keys = {
      lookup(sha256: Buffer) {
        lookups.push(sha256);
        return null;
      },
      changes: 0,
    };
    const access = createAccessControl({
      clock: createFakeClock(),
      keys,
      looksMistyped: () => false,
      globalLimits: null,
    });
    for (const size of [0, 15, 129, 4_000]) access.authenticate("x".repeat(size), HERE);
    expect(lookups).toHaveLength(0);
    for (const size of [16, 128]) access.authenticate("x".repeat(size), HERE);
    expect(lookups).toHaveLength(2);
  });

  it("takes no text for a key that stands for a public key", () => {
    // A query can be decoded to a zero byte, and some public keys are valid UTF-8.
    const publicKey = Buffer.from("this address has 32 text bytes..");
    const keys = {
      lookup: (sha256: Buffer) =>
        sha256.equals(publicKeySha256(publicKey)) ? principal("a") : null,
      changes: 0,
    };
    const access = createAccessControl({
      clock: createFakeClock(),
      keys,
      looksMistyped: () => false,
      globalLimits: null,
    });
    expect(access.authenticate(`touchdown public key\0${publicKey}`, HERE)).toBeNull();
  });

  it("looks up a cached key after each change, so a revoked one is rejected", () => {
    const digests: string[] = [];
    let good: Principal | null = principal("a");
    const keys = {
      lookup(sha256: Buffer) {
        digests.push(sha256.toString("hex"));
        return good;
      },
      changes: 0,
    };
    const clock = createFakeClock();
    const access = createAccessControl({
      clock,
      keys,
      looksMistyped: () => false,
      globalLimits: null,
    });
    expect(access.authenticate(TOKEN, HERE)?.account).toBe("a");
    expect(access.authenticate(TOKEN, HERE)?.account).toBe("a");
    expect(digests).toHaveLength(1);
    good = null;
    keys.changes += 1;
    expect(access.authenticate(TOKEN, HERE)).toBeNull();
    expect(access.authenticate(TOKEN, HERE)).toBeNull();
    good = principal("b");
    keys.changes += 1;
    expect(access.authenticate(TOKEN, HERE)?.account).toBe("b");
    expect(digests).toEqual(Array(3).fill(createHash("sha256").update(TOKEN).digest("hex")));
  });

  it("counts and names why there is no owner, without repeating the key", () => {
    const access = accessWith({});
    expect(access.rejectionOf("", HERE).message).toMatch(/no API key was found/);
    expect(access.rejectionOf("td_something", HERE).message).toMatch(/typing error/);
    expect(access.rejectionOf("another-unknown", HERE).message).not.toContain("another-unknown");
    expect(access.counters).toMatchObject({ keysMissing: 1, keysUnknown: 2 });
  });
});

describe("before the keys were read", () => {
  it("refuses a key for a while, but not a missing or a mistyped one", () => {
    let hasKeys = false;
    const access = createAccessControl({
      clock: createFakeClock(),
      keys: { lookup: () => null, changes: 0 },
      looksMistyped: (token) => token.startsWith("td_"),
      globalLimits: null,
      hasKeys: () => hasKeys,
    });
    expect(access.rejectionOf(TOKEN, HERE).reason).toBe("overloaded");
    expect(access.rejectionOf("", HERE).reason).toBe("unauthorized");
    expect(access.rejectionOf("td_mistyped", HERE).reason).toBe("unauthorized");
    expect(access.counters.keysUnknown).toBe(1);
    hasKeys = true;
    expect(access.rejectionOf(TOKEN, HERE).reason).toBe("unauthorized");
    expect(access.counters.keysUnknown).toBe(2);
  });
});

describe("charge", () => {
  it("holds one limit for an account, over all its keys", () => {
    const access = accessWith({});
    expect(access.charge(principal("a"), SECOND)).toBe(0);
    expect(access.charge(principal("a"), SECOND)).toBe(0);
    expect(access.charge(principal("a"), SECOND)).toBe(SECOND);
    expect(access.charge(principal("b"), SECOND)).toBe(0);
    expect(access.counters).toMatchObject({ allowed: 3, limited: 1 });
  });

  it("costs nothing when it refuses", () => {
    const access = accessWith({});
    for (let i = 0; i < 100; i += 1) access.charge(principal("a"), SECOND);
    expect(access.charge(principal("a"), 2 * SECOND)).toBe(0);
  });

  it("keeps the state when an account changes its plan", () => {
    const access = accessWith({});
    access.charge(principal("a", 1, 2), SECOND);
    access.charge(principal("a", 1, 2), SECOND);
    expect(access.charge(principal("a", 10, 2), SECOND)).toBeGreaterThan(0);
    expect(access.charge(principal("a", 10, 30), SECOND)).toBe(0);
  });

  it("keeps no state that a raised limit cannot have left", () => {
    const access = accessWith({});
    for (let i = 0; i < 100; i += 1) access.charge(principal("a", 0.1, 100), SECOND);
    const raised = principal("a", 100, 50);
    const waitNs = access.charge(raised, SECOND);
    // Of the lower one: 10 s for each of 100.
    expect(waitNs).toBeLessThan(2 * SECOND);
    expect(access.charge(raised, SECOND + waitNs)).toBe(0);
  });

  it("evicts accounts with a full bucket", () => {
    const access = accessWith({});
    for (let i = 0; i < 5_000; i += 1)
      access.charge(principal(`a${i}`, 1_000, 1), SECOND * (i + 1));
    expect(access.counters.accountsTracked).toBeLessThanOrEqual(1_024);
    expect(access.counters.accountsEvicted).toBe(0);
  });

  it("never tracks more accounts than its bound", () => {
    const access = accessWith({}, 10);
    for (let i = 0; i < 100; i += 1) access.charge(principal(`a${i}`), SECOND);
    expect(access.counters).toMatchObject({ accountsTracked: 10, accountsEvicted: 90 });
  });
});

describe("a plan that is shared by all edges", () => {
  const plan = { name: "S", ratePerSecond: 10, burst: 2, shared: true };

  function scene() {
    const charges: string[] = [];
    let wait = 0;
    const shared: GlobalLimits = {
      waitNs: () => wait,
      tryCharge(account) {
        if (wait === 0) charges.push(account);
        return wait;
      },
    };
    const access = accessWith({}, 100, shared);
    return { access, charges, setWait: (ns: number) => (wait = ns) };
  }

  it("has its limit where the edges share it, and none here", () => {
    const { access, charges, setWait } = scene();
    for (let i = 0; i < 50; i += 1) expect(access.charge(testPrincipal("a", plan), SECOND)).toBe(0);
    expect(charges).toHaveLength(50);
    setWait(7);
    expect(access.charge(testPrincipal("a", plan), SECOND)).toBe(7);
    expect(charges).toHaveLength(50);
    expect(access.counters).toMatchObject({ allowed: 50, limited: 1 });
  });

  it("leaves a key's own limit to this edge", () => {
    const { access, charges } = scene();
    const slow = testPrincipal("a", plan, { limit: { ratePerSecond: 1, burst: 1 } });
    expect([1, 2].map(() => access.charge(slow, SECOND))).toEqual([0, SECOND]);
    expect(charges).toHaveLength(1);
  });

  it("holds for this edge where nothing is shared", () => {
    const access = accessWith({});
    const waits = [1, 2, 3].map(() => access.charge(testPrincipal("a", plan), SECOND));
    expect(waits).toEqual([0, 0, SECOND / 10]);
  });
});

describe("a restricted key", () => {
  const plan = { name: "P", ratePerSecond: 10, burst: 10, shared: false };

  it("is no longer good from the moment of its end", () => {
    const clock = createFakeClock();
    const row = testPrincipal("a", plan, { expiresUnixMs: clock.unixMs() + 1_000 });
    const access = createAccessControl({
      clock,
      keys: { lookup: () => row, changes: 0 },
      looksMistyped: () => false,
      globalLimits: null,
    });
    clock.advance(999);
    expect(access.authenticate(TOKEN, HERE)).toBe(row);
    clock.advance(1);
    expect(access.authenticate(TOKEN, HERE)).toBeNull();
    expect(access.rejectionOf(TOKEN, HERE).message).toMatch(/expired at 20\d\d-/);
    expect(access.counters.keysOutOfPolicy).toBe(1);
  });

  it("is good only from its networks, which its account is shown and its bearer is not", () => {
    const networks = networksOf(["10.0.0.0/8", "2001:db8::/32"]);
    const row = testPrincipal("a", plan, { networks });
    const violations: string[] = [];
    const access = createAccessControl({
      clock: createFakeClock(),
      keys: { lookup: () => row, changes: 0 },
      looksMistyped: () => false,
      globalLimits: null,
      onPolicyViolation: ({ account }, { reason, message }) =>
        void violations.push(`${account} ${reason}: ${message}`),
    });
    for (const address of ["10.255.0.1", "2001:db8::7", "::ffff:10.1.1.1"]) {
      expect(access.authenticate(TOKEN, from(address))).not.toBeNull();
    }
    for (const address of ["11.0.0.1", "2001:db9::1", "", "nonsense"]) {
      expect(access.authenticate(TOKEN, from(address))).toBeNull();
    }
    // Looking up a key does not count as using it.
    expect(violations).toEqual([]);
    expect(access.rejectionOf(TOKEN, from("11.0.0.1"))).toEqual({
      reason: "unauthorized",
      message: "the API key may not be used from this address",
      data: {},
    });
    access.rejectionOf(TOKEN, from(""));
    const only = "a unauthorized: the key may be used from 10.0.0.0/8, 2001:db8::/32 only";
    expect(violations).toEqual([
      `${only}, a request with it came from 11.0.0.1`,
      `${only}, a request with it came from an unknown address`,
    ]);
  });

  it("has its own limit besides the account's, and a rejection charges neither", () => {
    const access = accessWith({});
    const slow = testPrincipal("a", plan, { limit: { ratePerSecond: 1, burst: 2 } });
    expect([1, 2, 3, 4].map(() => access.charge(slow, SECOND))).toEqual([0, 0, SECOND, SECOND]);
    // Eight of the account's ten are left for another key.
    const free = testPrincipal("a", plan);
    const waits = Array.from({ length: 9 }, () => access.charge(free, SECOND));
    expect(waits.filter((wait) => wait === 0)).toHaveLength(8);
    expect(access.charge(slow, 2 * SECOND)).toBe(0);
  });

  it("is charged also where its limit said nothing any more until now", () => {
    const access = accessWith({});
    const slow = testPrincipal(
      "a",
      { ...plan, ratePerSecond: 1_000, burst: 1_000 },
      {
        limit: { ratePerSecond: 0.1, burst: 1 },
      },
    );
    expect(access.charge(slow, SECOND)).toBe(0);
    // Removes the account's state, and keeps the key's.
    access.charge(testPrincipal("b", plan), 2 * SECOND);
    const waits = [1, 2, 3].map(() => access.charge(slow, 12 * SECOND));
    expect(waits).toEqual([0, 10 * SECOND, 10 * SECOND]);
  });

  it("is rejected with the numbers of the exceeded limit, own or the account's", () => {
    const access = accessWith({});
    const slow = testPrincipal("a", plan, { limit: { ratePerSecond: 1, burst: 2 } });
    const refusedBehind = (others: Principal, count: number, nowNs: number) => {
      for (let sent = 0; sent < count; sent += 1) access.charge(others, nowNs);
      expect(access.charge(slow, nowNs)).toBeGreaterThan(0);
      return limitRejection(slow, SECOND, access.limitedBy);
    };
    const own = refusedBehind(slow, 2, SECOND);
    expect(own.message).toContain("this key is 1 requests a second with a burst of 2");
    expect(own.data).toMatchObject({ plan: "P", ratePerSecond: 1, burst: 2 });
    // Another key of the account uses up the account's limit.
    const account = refusedBehind(testPrincipal("a", plan), plan.burst, 60 * SECOND);
    expect(account.message).toContain(
      `plan P is ${plan.ratePerSecond} requests a second with a burst of ${plan.burst}`,
    );
    expect(account.data).toMatchObject({ plan: "P", ratePerSecond: plan.ratePerSecond });
  });
});

describe("limits that other threads charge too", () => {
  it("are charged by the digest of the key, and looked up again after a change", () => {
    const charges: string[] = [];
    let wait = 0;
    const sharedLimits: SharedLimits = {
      charge(sha256, nowNs) {
        charges.push(`${sha256.toString("hex")} ${nowNs}`);
        return wait;
      },
      limitedBy: "key",
      size: 7,
    };
    const keys = { lookup: () => principal("a"), changes: 0 };
    const access = createAccessControl({
      clock: createFakeClock(),
      keys,
      looksMistyped: () => false,
      globalLimits: null,
      sharedLimits,
    });
    const token = "0123456789abcdef";
    const digest = createHash("sha256").update(token).digest("hex");
    const chargeAt = (nowNs: number) => {
      const found = access.authenticate(token, HERE);
      return found === null ? -1 : access.charge(found, nowNs);
    };
    expect(chargeAt(1)).toBe(0);
    keys.changes += 1;
    wait = 5;
    expect([chargeAt(2), access.limitedBy]).toEqual([5, "key"]);
    expect(charges).toEqual([`${digest} 1`, `${digest} 2`]);
    expect(access.counters).toMatchObject({ allowed: 1, limited: 1, accountsTracked: 7 });
  });
});

describe("a refusal by the limit", () => {
  it("reports plan, rate, burst and the wait", () => {
    const rejection = limitRejection(
      testPrincipal("a", { name: "Beta", ratePerSecond: 50, burst: 100, shared: false }),
      1_500_000,
      "account",
    );
    expect(rejection.reason).toBe("rate_limited");
    expect(rejection.data).toEqual({
      plan: "Beta",
      ratePerSecond: 50,
      burst: 100,
      retryAfterMs: 2,
    });
    for (const figure of ["Beta", "50", "100", "2 ms"]) expect(rejection.message).toContain(figure);
  });

  it("is at least one second", () => {
    expect([1, SECOND, SECOND + 1, 2 * SECOND].map(retryAfterSeconds)).toEqual([1, 1, 2, 2]);
  });
});
