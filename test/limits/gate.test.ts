import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { networksOf } from "../../src/accounts/keys/restriction.ts";
import { HeldLimits } from "../../src/limits/delegated-limits.ts";
import {
  createGate,
  type KeyOwner,
  limitRefusal,
  ownLimitName,
  retryAfterSeconds,
  type SharedLimits,
} from "../../src/limits/gate.ts";
import { LimitCells, passMemory } from "../../src/limits/shared-state.ts";
import { createDice } from "../support/dice.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { from, HERE, keyOwner } from "../support/owners.ts";

const SECOND = 1_000_000_000;
const TOKEN = "0123456789abcdef";
const owner = (account: string, ratePerSecond = 1, burst = 2): KeyOwner =>
  keyOwner(account, { name: "P", ratePerSecond, burst, shared: false });

function gateWith(
  rows: Readonly<Record<string, KeyOwner>>,
  accountsMax = 100_000,
  sharedLimits: SharedLimits | null = null,
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
  return createGate({ clock, keys, looksMistyped, sharedLimits }, { accountsMax });
}

describe("find", () => {
  it("knows a key by its SHA-256 alone", () => {
    const gate = gateWith({ [TOKEN]: owner("a") });
    expect(gate.find(TOKEN, HERE)?.account).toBe("a");
    expect(gate.find(TOKEN.toUpperCase(), HERE)).toBeNull();
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
    const gate = createGate({
      clock: createFakeClock(),
      keys,
      looksMistyped: () => false,
      sharedLimits: null,
    });
    for (const size of [0, 15, 129, 4_000]) gate.find("x".repeat(size), HERE);
    expect(lookups).toHaveLength(0);
    for (const size of [16, 128]) gate.find("x".repeat(size), HERE);
    expect(lookups).toHaveLength(2);
  });

  it("asks for a known key after each change, so that a revoked one is refused at once", () => {
    const digests: string[] = [];
    let good: KeyOwner | null = owner("a");
    const keys = {
      lookup(sha256: Buffer) {
        digests.push(sha256.toString("hex"));
        return good;
      },
      changes: 0,
    };
    const clock = createFakeClock();
    const gate = createGate({ clock, keys, looksMistyped: () => false, sharedLimits: null });
    expect(gate.find(TOKEN, HERE)?.account).toBe("a");
    expect(gate.find(TOKEN, HERE)?.account).toBe("a");
    expect(digests).toHaveLength(1);
    good = null;
    keys.changes += 1;
    expect(gate.find(TOKEN, HERE)).toBeNull();
    expect(gate.find(TOKEN, HERE)).toBeNull();
    good = owner("b");
    keys.changes += 1;
    expect(gate.find(TOKEN, HERE)?.account).toBe("b");
    expect(digests).toEqual(Array(3).fill(createHash("sha256").update(TOKEN).digest("hex")));
  });

  it("counts and names why there is no owner, without repeating the key", () => {
    const gate = gateWith({});
    expect(gate.refusalOf("", HERE).sentence).toMatch(/missing/);
    expect(gate.refusalOf("td_something", HERE).sentence).toMatch(/typing error/);
    expect(gate.refusalOf("another-unknown", HERE).sentence).not.toContain("another-unknown");
    expect(gate.counters).toMatchObject({ keysMissing: 1, keysUnknown: 2 });
  });
});

describe("charge", () => {
  it("holds one limit for an account, over all its keys", () => {
    const gate = gateWith({});
    expect(gate.charge(owner("a"), SECOND)).toBe(0);
    expect(gate.charge(owner("a"), SECOND)).toBe(0);
    expect(gate.charge(owner("a"), SECOND)).toBe(SECOND);
    expect(gate.charge(owner("b"), SECOND)).toBe(0);
    expect(gate.counters).toMatchObject({ admitted: 3, limited: 1 });
  });

  it("costs nothing when it refuses", () => {
    const gate = gateWith({});
    for (let i = 0; i < 100; i += 1) gate.charge(owner("a"), SECOND);
    expect(gate.charge(owner("a"), 2 * SECOND)).toBe(0);
  });

  it("keeps the state when an account changes its plan", () => {
    const gate = gateWith({});
    gate.charge(owner("a", 1, 2), SECOND);
    gate.charge(owner("a", 1, 2), SECOND);
    expect(gate.charge(owner("a", 10, 2), SECOND)).toBeGreaterThan(0);
    expect(gate.charge(owner("a", 10, 30), SECOND)).toBe(0);
  });

  it("forgets accounts whose limit says nothing any more", () => {
    const gate = gateWith({});
    for (let i = 0; i < 5_000; i += 1) gate.charge(owner(`a${i}`, 1_000, 1), SECOND * (i + 1));
    expect(gate.counters.accountsTracked).toBeLessThanOrEqual(1_024);
    expect(gate.counters.accountsEvicted).toBe(0);
  });

  it("never tracks more accounts than its bound", () => {
    const gate = gateWith({}, 10);
    for (let i = 0; i < 100; i += 1) gate.charge(owner(`a${i}`), SECOND);
    expect(gate.counters).toMatchObject({ accountsTracked: 10, accountsEvicted: 90 });
  });
});

describe("a plan that is shared by all edges", () => {
  const plan = { name: "S", ratePerSecond: 10, burst: 2, shared: true };

  function scene() {
    const charges: string[] = [];
    let wait = 0;
    const shared: SharedLimits = {
      waitNs: () => wait,
      tryCharge(account) {
        if (wait === 0) charges.push(account);
        return wait;
      },
    };
    const gate = gateWith({}, 100, shared);
    return { gate, charges, setWait: (ns: number) => (wait = ns) };
  }

  it("has its limit where the edges share it, and none here", () => {
    const { gate, charges, setWait } = scene();
    for (let i = 0; i < 50; i += 1) expect(gate.charge(keyOwner("a", plan), SECOND)).toBe(0);
    expect(charges).toHaveLength(50);
    setWait(7);
    expect(gate.charge(keyOwner("a", plan), SECOND)).toBe(7);
    expect(charges).toHaveLength(50);
    expect(gate.counters).toMatchObject({ admitted: 50, limited: 1 });
  });

  it("leaves a key's own limit to this edge", () => {
    const { gate, charges } = scene();
    const slow = keyOwner("a", plan, { limit: { ratePerSecond: 1, burst: 1 } });
    expect([1, 2].map(() => gate.charge(slow, SECOND))).toEqual([0, SECOND]);
    expect(charges).toHaveLength(1);
  });

  it("holds for this edge where nothing is shared", () => {
    const gate = gateWith({});
    const waits = [1, 2, 3].map(() => gate.charge(keyOwner("a", plan), SECOND));
    expect(waits).toEqual([0, 0, SECOND / 10]);
  });
});

describe("a restricted key", () => {
  const plan = { name: "P", ratePerSecond: 10, burst: 10, shared: false };

  it("is no longer good from the moment of its end", () => {
    const clock = createFakeClock();
    const row = keyOwner("a", plan, { expiresUnixMs: clock.unixMs() + 1_000 });
    const gate = createGate({
      clock,
      keys: { lookup: () => row, changes: 0 },
      looksMistyped: () => false,
      sharedLimits: null,
    });
    clock.advance(999);
    expect(gate.find(TOKEN, HERE)).toBe(row);
    clock.advance(1);
    expect(gate.find(TOKEN, HERE)).toBeNull();
    expect(gate.refusalOf(TOKEN, HERE).sentence).toMatch(/expired at 20\d\d-/);
    expect(gate.counters.keysBarred).toBe(1);
  });

  it("is good only from its networks, which its account is shown and its bearer is not", () => {
    const networks = networksOf(["10.0.0.0/8", "2001:db8::/32"]);
    const row = keyOwner("a", plan, { networks });
    const barred: string[] = [];
    const gate = createGate({
      clock: createFakeClock(),
      keys: { lookup: () => row, changes: 0 },
      looksMistyped: () => false,
      sharedLimits: null,
      barred: ({ account }, { reason, sentence }) =>
        void barred.push(`${account} ${reason}: ${sentence}`),
    });
    for (const address of ["10.255.0.1", "2001:db8::7", "::ffff:10.1.1.1"]) {
      expect(gate.find(TOKEN, from(address))).not.toBeNull();
    }
    for (const address of ["11.0.0.1", "2001:db9::1", "", "nonsense"]) {
      expect(gate.find(TOKEN, from(address))).toBeNull();
    }
    // Looking a key up is no use of it.
    expect(barred).toEqual([]);
    expect(gate.refusalOf(TOKEN, from("11.0.0.1"))).toEqual({
      reason: "unauthorized",
      sentence: "the key in api-x-token may not be used from this address",
      data: {},
    });
    gate.refusalOf(TOKEN, from(""));
    const only = "a unauthorized: the key may be used from 10.0.0.0/8, 2001:db8::/32 only";
    expect(barred).toEqual([
      `${only}, a request with it came from 11.0.0.1`,
      `${only}, a request with it came from an address that is not known`,
    ]);
  });

  it("has its own limit beside the account's, and neither is charged by a refusal", () => {
    const gate = gateWith({});
    const slow = keyOwner("a", plan, { limit: { ratePerSecond: 1, burst: 2 } });
    expect([1, 2, 3, 4].map(() => gate.charge(slow, SECOND))).toEqual([0, 0, SECOND, SECOND]);
    // The account has eight of its ten left for another key.
    const free = keyOwner("a", plan);
    const waits = Array.from({ length: 9 }, () => gate.charge(free, SECOND));
    expect(waits.filter((wait) => wait === 0)).toHaveLength(8);
    expect(gate.charge(slow, 2 * SECOND)).toBe(0);
  });

  it("is charged also where its limit said nothing any more until now", () => {
    const gate = gateWith({});
    const slow = keyOwner(
      "a",
      { ...plan, ratePerSecond: 1_000, burst: 1_000 },
      {
        limit: { ratePerSecond: 0.1, burst: 1 },
      },
    );
    expect(gate.charge(slow, SECOND)).toBe(0);
    // Lets the account's state go, and leaves the key's.
    gate.charge(keyOwner("b", plan), 2 * SECOND);
    const waits = [1, 2, 3].map(() => gate.charge(slow, 12 * SECOND));
    expect(waits).toEqual([0, 10 * SECOND, 10 * SECOND]);
  });

  it("is refused with the figures of its own limit, or of the account's where that refused", () => {
    const gate = gateWith({});
    const slow = keyOwner("a", plan, { limit: { ratePerSecond: 1, burst: 2 } });
    const refusedBehind = (others: KeyOwner, count: number, nowNs: number) => {
      for (let sent = 0; sent < count; sent += 1) gate.charge(others, nowNs);
      expect(gate.charge(slow, nowNs)).toBeGreaterThan(0);
      return limitRefusal(slow, SECOND, gate.limitedBy);
    };
    const own = refusedBehind(slow, 2, SECOND);
    expect(own.sentence).toContain("this key is 1 requests a second with a burst of 2");
    expect(own.data).toMatchObject({ plan: "P", ratePerSecond: 1, burst: 2 });
    // Another key of the account uses up what all of them have together.
    const account = refusedBehind(keyOwner("a", plan), plan.burst, 60 * SECOND);
    expect(account.sentence).toContain(
      `plan P is ${plan.ratePerSecond} requests a second with a burst of ${plan.burst}`,
    );
    expect(account.data).toMatchObject({ plan: "P", ratePerSecond: plan.ratePerSecond });
  });
});

describe("limits that are held for other threads", () => {
  it.each(["none", "some", "all"])("are those of a gate without, where %s are", (which) => {
    const held = new HeldLimits(new LimitCells(passMemory()), 100, 1_000);
    const deps = {
      clock: createFakeClock(),
      keys: { lookup: () => null, changes: 0 },
      looksMistyped: () => false,
      sharedLimits: null,
    };
    const [apart, ours] = [createGate(deps), createGate({ ...deps, held })];
    const dice = createDice(5);
    const limit = { ratePerSecond: SECOND / 150, burst: 2 };
    const owners = Array.from({ length: 12 }, (_, index) => {
      const plan = {
        name: "P",
        ratePerSecond: SECOND / 100,
        burst: 1 + (index % 3),
        shared: false,
      };
      const row = keyOwner(`a${index >> 1}`, plan, index % 2 === 0 ? null : { limit });
      return { ...row, keyId: `k${index >> 1}` };
    });
    const names = owners.flatMap(({ account, keyId }) => [account, ownLimitName(keyId)]);
    const isHeld = (index: number) => which === "all" || (which === "some" && index % 3 === 0);
    for (const [index, name] of names.entries()) if (isHeld(index)) held.hold(name);
    for (let nowNs = SECOND; nowNs < SECOND + 40_000; nowNs += dice.below(40)) {
      const mine = owners[dice.below(owners.length)] ?? owner("x");
      expect(ours.charge(mine, nowNs)).toBe(apart.charge(mine, nowNs));
      expect(ours.limitedBy).toBe(apart.limitedBy);
    }
    expect(ours.counters.admitted).toBe(apart.counters.admitted);
    expect(ours.counters.limited).toBe(apart.counters.limited);
    expect(ours.counters.limited).toBeGreaterThan(100);
  });

  it("leave to the edges what they share", () => {
    const held = new HeldLimits(new LimitCells(passMemory()), 100, 1_000);
    let [wait, charges] = [0, 0];
    const tryCharge = (): number => {
      if (wait === 0) charges += 1;
      return wait;
    };
    const sharedLimits = { waitNs: () => wait, tryCharge };
    const keys = { lookup: () => null, changes: 0 };
    const clock = createFakeClock();
    const gate = createGate({ clock, keys, looksMistyped: () => false, sharedLimits, held });
    const plan = { name: "S", ratePerSecond: 1, burst: 1, shared: true };
    const slow = keyOwner("a", plan, { limit: { ratePerSecond: 1, burst: 2 } });
    held.hold(ownLimitName(slow.keyId));
    expect(gate.charge(slow, SECOND)).toBe(0);
    wait = 5;
    // The key's own limit is not charged by that.
    for (let i = 0; i < 3; i += 1) expect(gate.charge(slow, SECOND)).toBe(5);
    wait = 0;
    expect([1, 2].map(() => gate.charge(slow, SECOND))).toEqual([0, SECOND]);
    expect(charges).toBe(2);
  });
});

describe("a refusal by the limit", () => {
  it("tells plan, rate, burst and the wait", () => {
    const refusal = limitRefusal(
      keyOwner("a", { name: "Beta", ratePerSecond: 50, burst: 100, shared: false }),
      1_500_000,
      "account",
    );
    expect(refusal.reason).toBe("rate_limited");
    expect(refusal.data).toEqual({ plan: "Beta", ratePerSecond: 50, burst: 100, retryAfterMs: 2 });
    for (const figure of ["Beta", "50", "100", "2 ms"]) expect(refusal.sentence).toContain(figure);
  });

  it("asks for at least one whole second", () => {
    expect([1, SECOND, SECOND + 1, 2 * SECOND].map(retryAfterSeconds)).toEqual([1, 1, 2, 2]);
  });
});
