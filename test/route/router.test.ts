import { describe, expect, it } from "vitest";
import type { Plan } from "../../src/core/flow.ts";
import { createRouter, type Router, type RouterOptions } from "../../src/route/router.ts";
import { epochOf } from "../support/epochs.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setUp(change: Partial<RouterOptions> = {}) {
  const clock = createFakeClock();
  const plans: (Plan | null)[] = [];
  const router = createRouter(
    {
      clock,
      onPlan: (plan) => plans.push(plan),
      times: { roundTripMs: () => 100, neededMs: () => 50, reliabilityOf: () => 1 },
    },
    { leaders: 2, warmWindows: 3, ...change },
  );
  router.slotTimeHint(250);
  return { clock, plans, router };
}

const CONTACTS = [..."ABCDEF"].map((identity, index) => ({
  identity,
  address: `10.0.0.${index + 1}:8009`,
}));

const sendOf = (plan: Plan | null | undefined): string =>
  plan?.send.map((target) => target.identity).join("") ?? "none";

describe("router", () => {
  it("has no plan until the slot is known, even with a schedule and contacts", () => {
    const { router, plans } = setUp();
    router.start();
    router.setEpoch(epochOf(1, 100, "ABC"));
    router.setContacts(CONTACTS);
    expect(router.plan).toBeNull();
    expect(router.currentSlot()).toBeNull();
    router.slotEvent("polled", 100);
    expect(sendOf(router.plan)).toBe("AB");
    expect(plans).toEqual([router.plan]);
    router.stop();
  });

  it("publishes a plan for each slot, also for slots without an event", () => {
    const { clock, router, plans } = setUp();
    router.start();
    router.setEpoch(epochOf(1, 100, "ABCDEF"));
    router.setContacts(CONTACTS);
    router.slotEvent("polled", 100);
    clock.advance(1010);
    expect(router.currentSlot()).toBe(104);
    expect(plans.map((plan) => plan?.slot)).toEqual([100, 101, 102, 103, 104]);
    expect(sendOf(router.plan)).toBe("BC");
    router.stop();
  });

  it("returns the slot that was in progress at a past time", () => {
    const { clock, router } = setUp();
    const startNs = clock.nowNs();
    router.slotEvent("start", 100);
    clock.advance(250);
    router.slotEvent("start", 101);
    expect(router.currentSlot()).toBe(101);
    expect(router.currentSlot(startNs + 249_000_000)).toBe(100);
  });

  it("uses about one timer per slot, for any number of events", () => {
    const { clock, router, plans } = setUp();
    let timers = 0;
    const after = clock.after.bind(clock);
    Object.assign(clock, {
      after(delayMs: number, act: () => void) {
        timers += 1;
        return after(delayMs, act);
      },
    });
    router.start();
    router.setEpoch(epochOf(1, 100, "ABCDEF"));
    router.setContacts(CONTACTS);
    for (let slot = 100; slot < 110; slot += 1) {
      router.slotEvent("end", slot - 1);
      router.slotEvent("end", slot - 1);
      router.slotEvent("start", slot);
      router.slotEvent("start", slot, "slot");
      clock.advance(200);
    }
    expect(timers).toBeLessThan(15);
    expect(plans.slice(0, 10).map((plan) => plan?.slot)).toEqual(
      [...Array(10).keys()].map((at) => 100 + at),
    );
    clock.advance(1000);
    expect(plans.length).toBeGreaterThanOrEqual(13);
    router.stop();
    expect(clock.pending).toBe(0);
  });

  it("does not publish an unchanged plan again", () => {
    const { router, plans } = setUp();
    router.setEpoch(epochOf(1, 100, "ABCDEF"));
    router.setContacts(CONTACTS);
    router.slotEvent("start", 100);
    router.slotEvent("start", 100);
    router.setContacts([...CONTACTS]);
    router.setContacts(CONTACTS.filter((contact) => contact.identity !== "F"));
    expect(plans).toHaveLength(1);
    router.setContacts(CONTACTS.filter((contact) => contact.identity !== "B"));
    expect(plans).toHaveLength(2);
    expect(sendOf(router.plan)).toBe("AC");
  });

  it("continues across an epoch boundary", () => {
    const { clock, router } = setUp();
    router.start();
    router.setContacts(CONTACTS);
    router.setEpoch(epochOf(1, 100, "AB"));
    router.slotEvent("start", 104);
    expect(sendOf(router.plan)).toBe("B");
    router.setEpoch(epochOf(2, 108, "CD"));
    expect(sendOf(router.plan)).toBe("BC");
    clock.advance(1001);
    expect(sendOf(router.plan)).toBe("CD");
    router.slotEvent("start", 116);
    expect(router.status()).toMatchObject({ slot: 116, scheduleCovers: false, targets: 0 });
    expect(router.plan?.send).toEqual([]);
    router.stop();
  });

  it("has no send targets after forgetEpochs, until an epoch is set again", () => {
    const { router } = setUp();
    router.start();
    router.setEpoch(epochOf(1, 100, "ABC"));
    router.setContacts(CONTACTS);
    router.slotEvent("polled", 100);
    expect(sendOf(router.plan)).toBe("AB");
    router.forgetEpochs();
    expect(sendOf(router.plan)).toBe("");
    expect(router.status().scheduleCovers).toBe(false);
    router.setEpoch(epochOf(0, 90, "CDEF"));
    expect(sendOf(router.plan)).toBe("EF");
    router.stop();
  });

  it("has no plan after a minute without slot events, until the next event", () => {
    const { clock, router, plans } = setUp();
    router.start();
    router.setContacts(CONTACTS);
    router.setEpoch(epochOf(1, 0, "ABCDEF".repeat(50)));
    router.slotEvent("start", 0);
    clock.advance(61_000);
    expect(router.plan).toBeNull();
    expect(plans.at(-1)).toBeNull();
    expect(clock.pending).toBe(0);
    router.slotEvent("start", 250);
    expect(router.plan?.slot).toBe(250);
    router.stop();
  });

  it("updates the plan within a slot when the next leader becomes due", () => {
    const { clock, router, plans } = setUp({ leaders: 1 });
    router.start();
    router.setEpoch(epochOf(1, 100, "ABCDEF"));
    router.setContacts(CONTACTS);
    router.slotEvent("start", 103);
    expect(sendOf(router.plan)).toBe("A");
    clock.advance(99);
    expect(sendOf(router.plan)).toBe("A");
    clock.advance(1);
    expect(sendOf(router.plan)).toBe("AB");
    clock.advance(150);
    expect(sendOf(router.plan)).toBe("B");
    expect(plans.map((plan) => plan?.slot)).toEqual([103, 103, 104]);
    router.stop();
  });

  it("skips denied and delinquent leaders", () => {
    const { router } = setUp({ deny: ["A"] });
    router.setEpoch(epochOf(1, 100, "ABCDEF"));
    router.setContacts(CONTACTS);
    router.slotEvent("start", 100);
    expect(sendOf(router.plan)).toBe("BC");
    router.setDelinquent(["B"]);
    expect(sendOf(router.plan)).toBe("CD");
    expect(router.status().delinquent).toBe(1);
    router.setDelinquent([]);
    expect(sendOf(router.plan)).toBe("BC");
  });

  it("derives a leader's stake share from its slots, and its version from contacts", () => {
    const { router } = setUp();
    router.setEpoch(epochOf(1, 100, "AAAB"));
    router.setContacts([{ identity: "A", address: "10.0.0.1:8009", version: "4.2.1" }]);
    expect([router.stakeShareOf("A"), router.stakeShareOf("Z")]).toEqual([0.75, 0]);
    expect([router.leaderAt(103), router.leaderAt(112), router.leaderAt(99)]).toEqual([
      "A",
      "B",
      null,
    ]);
    expect([router.versionOf("A"), router.versionOf("B")]).toEqual(["4.2.1", null]);
  });

  it("reports its status", () => {
    const { clock, router } = setUp();
    expect(router.status()).toEqual({
      slot: null,
      slotTimeMs: 250,
      slotAgeMs: null,
      scheduleCovers: false,
      epochs: [],
      contacts: 0,
      delinquent: 0,
      targets: 0,
    });
    router.setContacts(CONTACTS);
    router.setEpoch(epochOf(1, 0, "ABC"));
    router.slotEvent("start", 0);
    clock.advance(120);
    expect(router.status()).toEqual({
      slot: 0,
      slotTimeMs: 250,
      slotAgeMs: 120,
      scheduleCovers: true,
      epochs: [1],
      contacts: 6,
      delinquent: 0,
      targets: 2,
    });
    expect(router.counters).toMatchObject({ slotEvents: 1, epochsSet: 1, plansPublished: 1 });
  });

  it("lets slots pass by the clock, except with Alpenglow or while nothing is confirmed", () => {
    const slotAfterSilence = (prepare: (router: Router) => void): number | null => {
      const clock = createFakeClock();
      const router = createRouter({ clock, onPlan() {} }, { leaders: 2, warmWindows: 3 });
      router.slotTimeHint(250);
      prepare(router);
      for (let slot = 60; slot < 100; slot += 1) {
        router.slotEvent("start", slot);
        clock.advance(250);
      }
      clock.advance(3_000);
      return router.currentSlot();
    };
    expect(slotAfterSilence(() => {})).toBe(112);
    expect(slotAfterSilence((router) => router.setAlpenglow(false))).toBe(112);
    expect(slotAfterSilence((router) => router.setAlpenglow(true))).toBe(99);
    expect(slotAfterSilence((router) => router.setConfirmationStalled(true))).toBe(99);
  });

  it("does not go back for a node that lags, except with Alpenglow", () => {
    const clock = createFakeClock();
    const router = createRouter({ clock, onPlan() {} }, { leaders: 2, warmWindows: 3 });
    router.slotTimeHint(250);
    for (let slot = 60; slot < 100; slot += 1) {
      router.slotEvent("start", slot);
      clock.advance(250);
    }
    for (let slot = 92; slot < 98; slot += 1) {
      router.slotEvent("start", slot);
      clock.advance(250);
    }
    expect(router.currentSlot()).toBe(106);
    expect(router.counters.slotRewinds).toBe(0);
  });

  it("reports that the slot went back, before the plan for it", () => {
    const calls: string[] = [];
    const clock = createFakeClock();
    const router = createRouter(
      {
        clock,
        onPlan: (plan) => calls.push(`plan ${plan?.slot}`),
        onSlotBack: () => calls.push("back"),
      },
      { leaders: 2, warmWindows: 3 },
    );
    router.setAlpenglow(true);
    router.setEpoch(epochOf(1, 0, "ABCDEF".repeat(20)));
    router.setContacts(CONTACTS);
    for (let slot = 60; slot < 100; slot += 1) {
      router.slotEvent("start", slot);
      clock.advance(250);
    }
    calls.length = 0;
    for (const slot of [70, 71, 72, 73, 74]) {
      router.slotEvent("start", slot);
      clock.advance(250);
    }
    expect(calls.slice(-3)).toEqual(["back", "plan 73", "plan 74"]);
    calls.length = 0;
    router.setConfirmationStalled(true);
    for (const slot of [50, 51]) {
      router.slotEvent("start", slot);
      clock.advance(250);
    }
    expect(calls.slice(-2)).toEqual(["back", "plan 51"]);
    router.stop();
  });

  it("follows slots that are used again for 5 s after a confirmation, without Alpenglow", () => {
    const rewindsAfter = (...waits: readonly number[]): number => {
      const { clock, router } = setUp();
      for (let slot = 60; slot < 100; slot += 1) {
        router.slotEvent("start", slot);
        clock.advance(250);
      }
      for (const ms of waits) {
        router.setConfirmationStalled(true);
        router.setConfirmationStalled(false);
        clock.advance(ms);
      }
      for (const slot of [70, 71]) {
        router.slotEvent("start", slot);
        clock.advance(200);
      }
      router.stop();
      expect(clock.pending).toBe(0);
      return router.counters.slotRewinds;
    };
    expect([[4_700], [5_000], [3_000, 4_700]].map((waits) => rewindsAfter(...waits))).toEqual([
      1, 0, 1,
    ]);
  });

  it("cancels its timers when stopped", () => {
    const { clock, router } = setUp();
    router.start();
    router.slotEvent("start", 0);
    expect(clock.pending).toBe(1);
    router.stop();
    expect(clock.pending).toBe(0);
    router.slotEvent("start", 1);
    expect(clock.pending).toBe(0);
  });
});
