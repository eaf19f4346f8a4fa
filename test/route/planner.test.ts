import { describe, expect, it } from "vitest";
import { SEND_SLOTS_AHEAD_MAX } from "../../src/core/limits.ts";
import { type PlanInput, makePlan as planWithChange, samePlan } from "../../src/route/planner.ts";
import { fc } from "../support/properties.ts";

/** Leaders with a round trip of 100 ms, and a slot that has just started. */
const TIMES = {
  slotLeftMs: 250,
  slotTimeMs: 250,
  times: { roundTripMs: () => 100, neededMs: () => 60, reliabilityOf: () => 1 },
};

type ShortInput = Omit<PlanInput, keyof typeof TIMES> & Partial<typeof TIMES>;
const makePlan = (input: ShortInput) => planWithChange({ ...TIMES, ...input }).plan;

/** A schedule from slot 0 on, four slots per letter, and addresses for the given letters. */
function setUp(order: string, addresses: Record<string, string>) {
  return {
    schedule: { leaderAt: (slot: number) => order[Math.floor(slot / 4)] ?? null },
    contacts: { address: (identity: string) => addresses[identity] ?? null },
  };
}

const ALL = Object.fromEntries([..."ABCDEFGH"].map((id, i) => [id, `10.0.0.${i + 1}:8009`]));

function identities(targets: readonly { identity: string }[]): string {
  return targets.map((target) => target.identity).join("");
}

describe("plan", () => {
  it("sends to the current and the next leaders, and warms the following ones", () => {
    const plan = makePlan({ slot: 5, leaders: 2, warmWindows: 4, ...setUp("ABCDEF", ALL) });
    expect(plan.slot).toBe(5);
    expect(plan.send).toEqual([
      { identity: "B", address: "10.0.0.2:8009", slot: 5 },
      { identity: "C", address: "10.0.0.3:8009", slot: 8 },
    ]);
    expect(identities(plan.warm)).toBe("BCDE");
  });

  it("advances in the first slot of the next window, not earlier", () => {
    const at = (slot: number) =>
      identities(makePlan({ slot, leaders: 2, warmWindows: 2, ...setUp("ABC", ALL) }).send);
    expect(at(3)).toBe("AB");
    expect(at(4)).toBe("BC");
  });

  it("counts adjacent and repeated windows of one leader once", () => {
    const plan = makePlan({ slot: 0, leaders: 3, warmWindows: 3, ...setUp("AABABC", ALL) });
    expect(plan.send.map((target) => target.slot)).toEqual([0, 8]);
    expect(identities(plan.warm)).toBe("ABC");
  });

  it("warms one more leader for each unreliable one, at most twice the count", () => {
    const warmed = (bad: string) => {
      const reliabilityOf = (identity = "") => (bad.includes(identity) ? 0.49 : 0.5);
      const times = { ...TIMES.times, reliabilityOf };
      const input = { slot: 0, leaders: 2, warmWindows: 3, ...setUp("ABCDEFGH", ALL) };
      const { send, warm } = makePlan({ ...input, times });
      return [identities(send), identities(warm)];
    };
    expect(warmed("")).toEqual(["AB", "ABC"]);
    expect(warmed("A")).toEqual(["AB", "ABCD"]);
    expect(warmed("BD")).toEqual(["AB", "ABCDE"]);
    expect(warmed("ABCDEFGH")).toEqual(["AB", "ABCDEF"]);
  });

  it("skips leaders without an address", () => {
    const { A, C, D } = ALL as Record<"A" | "C" | "D", string>;
    const plan = makePlan({ slot: 0, leaders: 2, warmWindows: 3, ...setUp("ABCD", { A, C, D }) });
    expect(identities(plan.send)).toBe("AC");
    expect(identities(plan.warm)).toBe("ACD");
  });

  it("merges leaders that share an address, and adds the next leader instead", () => {
    const shared = { ...ALL, B: "10.0.0.1:8009" };
    const plan = makePlan({ slot: 0, leaders: 2, warmWindows: 2, ...setUp("ABC", shared) });
    expect(identities(plan.send)).toBe("AC");
  });

  it("does not send to a leader more than SEND_SLOTS_AHEAD_MAX slots ahead", () => {
    const { A, F } = ALL as Record<"A" | "F", string>;
    const options = { leaders: 2, warmWindows: 2, ...setUp("ABCDEF", { A, F }) };
    expect(identities(makePlan({ slot: 0, ...options }).send)).toBe("A");
    expect(identities(makePlan({ slot: 0, ...options }).warm)).toBe("AF");
    expect(identities(makePlan({ slot: 20 - SEND_SLOTS_AHEAD_MAX, ...options }).send)).toBe("AF");
  });

  it("is empty without a schedule or contacts, and stops at the schedule's end", () => {
    expect(makePlan({ slot: 99, leaders: 2, warmWindows: 6, ...setUp("AB", ALL) })).toEqual({
      slot: 99,
      send: [],
      warm: [],
    });
    expect(makePlan({ slot: 0, leaders: 2, warmWindows: 6, ...setUp("AB", {}) }).send).toEqual([]);
    const last = makePlan({ slot: 4, leaders: 2, warmWindows: 6, ...setUp("AB", ALL) });
    expect(identities(last.send)).toBe("B");
  });

  it("warms at least the leaders that it sends to", () => {
    const plan = makePlan({ slot: 0, leaders: 3, warmWindows: 1, ...setUp("ABCD", ALL) });
    expect(identities(plan.send)).toBe("ABC");
    expect(identities(plan.warm)).toBe("ABC");
  });

  it("warms the next leader if one is configured, because it may become due", () => {
    const plan = makePlan({ slot: 0, leaders: 1, warmWindows: 1, ...setUp("ABCD", ALL) });
    expect(identities(plan.send)).toBe("A");
    expect(identities(plan.warm)).toBe("AB");
  });

  it("has unique addresses, sends to a prefix of its warm list, and is deterministic", () => {
    const order = fc.string({ unit: fc.constantFrom(..."ABCDEFGH"), maxLength: 80 });
    const table = fc.dictionary(
      fc.constantFrom(..."ABCDEFGH"),
      fc.constantFrom("10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1"),
    );
    fc.assert(
      fc.property(order, table, fc.nat(300), fc.integer({ min: 1, max: 6 }), (o, t, slot, n) => {
        const input = { slot, leaders: n, warmWindows: 6, ...setUp(o, t) };
        const plan = makePlan(input);
        const addresses = plan.warm.map((target) => target.address);
        expect(new Set(addresses).size).toBe(addresses.length);
        expect(plan.warm.slice(0, plan.send.length)).toEqual(plan.send);
        expect(plan.send.length).toBeLessThanOrEqual(Math.max(2, n));
        for (const target of plan.warm) {
          expect(input.schedule.leaderAt(target.slot)).toBe(target.identity);
          expect(t[target.identity]).toBe(target.address);
        }
        expect(samePlan(plan, makePlan(input))).toBe(true);
      }),
    );
  });
});

describe("plan near the end of a leader window", () => {
  const at = (slot: number, slotLeftMs: number, change: Partial<PlanInput> = {}) =>
    planWithChange({
      ...TIMES,
      slot,
      slotLeftMs,
      leaders: 1,
      warmWindows: 3,
      ...setUp("ABCD", ALL),
      ...change,
    });
  const sendAt = (...args: Parameters<typeof at>) => identities(at(...args).plan.send);

  it("adds the next leader when the time left is a round trip plus the needed time", () => {
    expect(sendAt(0, 250)).toBe("A");
    expect(sendAt(2, 250)).toBe("A");
    expect(sendAt(3, 161)).toBe("A");
    expect(sendAt(3, 160)).toBe("AB");
    expect(sendAt(3, 0)).toBe("AB");
    expect(sendAt(4, 250)).toBe("B");
  });

  it("reports the time until it adds the next leader, if that is in this slot", () => {
    expect(at(3, 250).changesInMs).toBe(90);
    expect(at(3, 161).changesInMs).toBe(1);
    expect(at(3, 160).changesInMs).toBeNull();
    expect(at(2, 250).changesInMs).toBeNull();
    expect(at(3, 250, { leaders: 2 }).changesInMs).toBeNull();
  });

  it("uses the next leader's round trip and the current leader's needed time", () => {
    const times = {
      roundTripMs: (identity: string) => (identity === "B" ? 300 : 1),
      neededMs: (identity: string) => (identity === "A" ? 50 : 1),
      reliabilityOf: () => 1,
    };
    expect(at(2, 250, { times }).changesInMs).toBe(150);
    expect(sendAt(2, 100, { times })).toBe("AB");
    expect(sendAt(7, 10, { times })).toBe("B");
    expect(sendAt(7, 2, { times })).toBe("BC");
  });

  it("ends a window where the address changes, even if the next leader is unusable", () => {
    const { A, C } = ALL as Record<"A" | "C", string>;
    expect(sendAt(3, 160, { contacts: { address: (id) => ({ A, C })[id] ?? null } })).toBe("AC");
    const shared = { ...ALL, B: A };
    const contacts = { address: (id: string) => (shared as Record<string, string>)[id] ?? null };
    expect(sendAt(3, 100, { contacts })).toBe("A");
    expect(sendAt(7, 100, { contacts })).toBe("BC");
    expect(sendAt(3, 100, setUp("AABC", ALL))).toBe("A");
    expect(sendAt(7, 100, setUp("AABC", ALL))).toBe("AB");
  });

  it("does not change while the current leader is unreachable", () => {
    const { C } = ALL as Record<"C", string>;
    const contacts = { address: (id: string) => ({ C })[id] ?? null };
    expect(sendAt(3, 1, { contacts })).toBe("C");
    expect(at(3, 100, { contacts }).changesInMs).toBeNull();
  });

  it("keeps two leaders if two are configured", () => {
    expect(sendAt(0, 250, { leaders: 2 })).toBe("AB");
    expect(sendAt(3, 1, { leaders: 2 })).toBe("AB");
  });
});

describe("samePlan", () => {
  it("is true only for the same slot and the same targets", () => {
    const make = (slot: number, addresses = ALL) =>
      makePlan({ slot, leaders: 2, warmWindows: 3, ...setUp("ABCD", addresses) });
    expect(samePlan(make(0), make(0))).toBe(true);
    expect(samePlan(make(0), make(1))).toBe(false);
    expect(samePlan(make(0), make(0, { ...ALL, C: "10.9.9.9:1" }))).toBe(false);
    expect(samePlan(make(0), make(0, { A: "10.0.0.1:8009" }))).toBe(false);
  });
});
