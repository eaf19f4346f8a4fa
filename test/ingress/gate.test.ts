import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  createGate,
  type KeyOwner,
  limitRefusal,
  retryAfterSeconds,
} from "../../src/ingress/gate.ts";

const SECOND = 1_000_000_000;
const TOKEN = "0123456789abcdef";
const owner = (account: string, ratePerSecond = 1, burst = 2): KeyOwner => ({
  account,
  plan: { name: "P", ratePerSecond, burst },
});

function gateWith(rows: Readonly<Record<string, KeyOwner>>, accountsMax = 100_000) {
  const table = new Map(
    Object.entries(rows).map(([token, row]) => [
      createHash("sha256").update(token).digest("hex"),
      row,
    ]),
  );
  const keys = { lookup: (sha256: Buffer) => table.get(sha256.toString("hex")) ?? null };
  return createGate({ keys, looksMistyped: (token) => token.startsWith("td_") }, { accountsMax });
}

describe("find", () => {
  it("knows a key by its SHA-256 alone", () => {
    const gate = gateWith({ [TOKEN]: owner("a") });
    expect(gate.find(TOKEN)?.account).toBe("a");
    expect(gate.find(TOKEN.toUpperCase())).toBeNull();
  });

  it("does not hash what is too short or too long to be a key", () => {
    const lookups: Buffer[] = [];
    const keys = {
      lookup(sha256: Buffer) {
        lookups.push(sha256);
        return null;
      },
    };
    const gate = createGate({ keys, looksMistyped: () => false });
    for (const size of [0, 15, 129, 4_000]) gate.find("x".repeat(size));
    expect(lookups).toHaveLength(0);
    for (const size of [16, 128]) gate.find("x".repeat(size));
    expect(lookups).toHaveLength(2);
  });

  it("counts and names why there is no owner, without repeating the key", () => {
    const gate = gateWith({});
    expect(gate.refusalOf("").sentence).toMatch(/missing/);
    expect(gate.refusalOf("td_something").sentence).toMatch(/typing error/);
    expect(gate.refusalOf("another-unknown").sentence).not.toContain("another-unknown");
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

describe("a refusal by the limit", () => {
  it("tells plan, rate, burst and the wait", () => {
    const refusal = limitRefusal({ name: "Beta", ratePerSecond: 50, burst: 100 }, 1_500_000);
    expect(refusal.reason).toBe("rate_limited");
    expect(refusal.data).toEqual({ plan: "Beta", ratePerSecond: 50, burst: 100, retryAfterMs: 2 });
    for (const figure of ["Beta", "50", "100", "2 ms"]) expect(refusal.sentence).toContain(figure);
  });

  it("asks for at least one whole second", () => {
    expect([1, SECOND, SECOND + 1, 2 * SECOND].map(retryAfterSeconds)).toEqual([1, 1, 2, 2]);
  });
});
