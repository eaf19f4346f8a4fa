import { describe, expect, it } from "vitest";
import {
  CHECKS_PER_SLICE,
  MARK_CLEARS_MAX,
  RESEND_PAUSE_MS,
  RESEND_SAME_LEADER_MS,
  SENT_LATE_MS,
} from "../../src/landing/limits.ts";
import { bytesOf, endOf, outcomeOf, resendTo, startFixtureWithPlan } from "./fixture.ts";

describe("a new plan", () => {
  it("sends what is in flight again to those leaders that did not have it", () => {
    const fixture = startFixtureWithPlan();
    fixture.track(1);
    fixture.clock.advance(RESEND_PAUSE_MS);
    fixture.plan("b", "c");
    fixture.clock.advance(20);
    const ranked = { account: "a", offeredLamports: 1_000_000 };
    expect(fixture.resent).toEqual([
      { id: 1, ...ranked, ordinal: 1, address: "c:8009", bytes: bytesOf(1) },
    ]);
    expect(fixture.landing.counters).toMatchObject({
      resends: 1,
      resendDeliveries: 1,
      resendsShed: 0,
    });
  });

  it("numbers the resends of a transaction, one number for all leaders of a round", () => {
    const fixture = startFixtureWithPlan();
    fixture.track(1);
    fixture.clock.advance(RESEND_PAUSE_MS);
    fixture.plan("c", "d");
    fixture.clock.advance(RESEND_PAUSE_MS + 20);
    fixture.dead.add("e:8009");
    fixture.plan("e");
    fixture.clock.advance(20);
    fixture.plan("f");
    fixture.clock.advance(20);
    const told = fixture.resent.map(({ ordinal, address }) => `${ordinal} ${address}`);
    expect(told).toEqual(["1 c:8009", "1 d:8009", "2 f:8009"]);
    fixture.track(2);
    fixture.clock.advance(RESEND_PAUSE_MS);
    fixture.plan("g");
    fixture.clock.advance(20);
    expect(fixture.resent.find(({ id }) => id === 2)).toMatchObject({ ordinal: 1 });
  });

  it("sends nothing again to a leader within two seconds, by identity or address", () => {
    const fixture = startFixtureWithPlan();
    fixture.track(1);
    for (let slot = 0; slot < 8; slot += 1) {
      fixture.clock.advance(249);
      fixture.plan("a", "b");
    }
    expect(fixture.resent).toEqual([]);
    fixture.clock.advance(10);
    fixture.plan("a", "b");
    fixture.clock.advance(10);
    expect(resendTo(fixture, 1)).toEqual(["a", "b"]);
  });

  it("has room for the leaders of two seconds, also where windows of a lone leader meet", () => {
    const fixture = startFixtureWithPlan({ leaders: 1 });
    fixture.track(1);
    for (const name of ["c", "d", "e", "f"]) {
      fixture.clock.advance(400);
      fixture.plan(name);
      fixture.clock.advance(20);
    }
    expect(fixture.resent.map(({ address }) => address.slice(0, 1))).toEqual(["c", "d", "e", "f"]);
  });

  it("leaves alone what was sent a moment ago", () => {
    const fixture = startFixtureWithPlan();
    fixture.clock.advance(900);
    fixture.track(1);
    fixture.clock.advance(RESEND_PAUSE_MS - 1);
    fixture.plan("b", "c");
    fixture.clock.advance(20);
    expect(fixture.resent).toEqual([]);
    fixture.plan("b", "c");
    fixture.clock.advance(20);
    expect(resendTo(fixture, 1)).toEqual(["c"]);
  });

  it("is sent with the next plan to a leader that could not accept it", () => {
    const fixture = startFixtureWithPlan();
    fixture.track(1);
    fixture.clock.advance(500);
    fixture.dead.add("c:8009");
    fixture.plan("b", "c");
    fixture.clock.advance(20);
    expect(fixture.landing.counters.resends).toBe(0);
    fixture.dead.clear();
    fixture.plan("b", "c");
    fixture.clock.advance(20);
    expect(resendTo(fixture, 1)).toEqual(["c"]);
  });

  it("counts a leader with an unsent delivery as one without the transaction", () => {
    const fixture = startFixtureWithPlan();
    fixture.track(1);
    fixture.landing.outcome(outcomeOf(1, "b", "dropped", fixture.clock.nowNs()));
    fixture.clock.advance(500);
    fixture.plan("a", "b");
    fixture.clock.advance(20);
    expect(resendTo(fixture, 1)).toEqual(["b"]);
  });

  it("keeps a resend's mark when the first send to its leader ends unsent later", () => {
    const fixture = startFixtureWithPlan();
    fixture.track(1, { sent: ["a"] });
    fixture.clock.advance(RESEND_SAME_LEADER_MS);
    fixture.plan("b");
    fixture.clock.advance(20);
    expect(resendTo(fixture, 1)).toEqual(["b"]);
    fixture.landing.outcome(outcomeOf(1, "b", "dropped", fixture.clock.nowNs()));
    fixture.clock.advance(500);
    fixture.plan("b");
    fixture.clock.advance(20);
    expect(resendTo(fixture, 1)).toEqual(["b"]);
  });

  it("resends at most as often as the client allowed, and never for 0", () => {
    const fixture = startFixtureWithPlan();
    fixture.track(1, { maxRetries: 0 });
    fixture.track(2, { maxRetries: 2 });
    fixture.track(3);
    for (const leader of ["c", "d", "e", "f", "g"]) {
      fixture.clock.advance(500);
      fixture.plan(leader);
      fixture.clock.advance(20);
    }
    expect(resendTo(fixture, 1)).toEqual([]);
    expect(resendTo(fixture, 2)).toEqual(["c", "d"]);
    expect(resendTo(fixture, 3)).toEqual(["c", "d", "e", "f", "g"]);
    expect(fixture.landing.inFlight).toBe(3);
  });

  it("sends nothing again that is in a block, or that is too old for any leader", async () => {
    const fixture = startFixtureWithPlan();
    fixture.track(1);
    fixture.track(2, { hash: 2 });
    fixture.cluster.lastValid.set(2, 900);
    fixture.clock.advance(400);
    await fixture.answerAll(new Map([[1, { slot: 5_001, confirmed: false, error: null }]]));
    fixture.clock.advance(2_400);
    fixture.resent.length = 0;
    fixture.plan("c");
    fixture.clock.advance(20);
    expect(fixture.resent).toEqual([]);
  });

  it("sends nothing once the stage is stopped", () => {
    const fixture = startFixtureWithPlan();
    fixture.track(1);
    fixture.clock.advance(500);
    fixture.plan("c");
    fixture.landing.stop();
    fixture.clock.advance(500);
    expect(fixture.resent).toEqual([]);
    expect(fixture.clock.pending).toBe(0);
  });
});

describe("a round", () => {
  it("goes by what is paid, then by age", () => {
    const fixture = startFixtureWithPlan();
    const paid = [5_000, 9_000_000, 5_000, 1_000_000, 9_000_000];
    for (const [index, tipLamports] of paid.entries()) {
      fixture.track(index + 1, { accepted: { tipLamports } });
    }
    fixture.clock.advance(500);
    fixture.plan("c");
    fixture.clock.advance(100);
    expect(fixture.resent.map(({ id }) => id)).toEqual([2, 5, 4, 1, 3]);
  });

  it("is spread over time by the budget", () => {
    const fixture = startFixtureWithPlan({ resendsPerSecond: 200 });
    for (let id = 1; id <= 50; id += 1) fixture.track(id);
    fixture.clock.advance(500);
    fixture.plan("c");
    const sent: number[] = [];
    for (let step = 0; step < 5; step += 1) {
      fixture.clock.advance(50);
      sent.push(fixture.resent.length);
    }
    // A few were saved up; then ten in 50 ms.
    expect(sent).toEqual([13, 23, 33, 43, 50]);
  });

  it("yields to first sends, but keeps a minimum share", () => {
    const fixture = startFixtureWithPlan({ resendsPerSecond: 200 });
    for (let id = 1; id <= 50; id += 1) fixture.track(id);
    fixture.clock.advance(500);
    fixture.plan("c");
    fixture.clock.advance(5);
    const before = fixture.resent.length;
    for (let step = 0; step < 40; step += 1) {
      fixture.track(1_000 + step);
      fixture.clock.advance(5);
    }
    const sent = fixture.resent.length - before;
    expect(sent).toBeGreaterThanOrEqual(10);
    expect(sent).toBeLessThan(15);
  });

  it("leaves out those that pay least when there is no time, and counts them", () => {
    const fixture = startFixtureWithPlan({ resendsPerSecond: 100 });
    for (let id = 1; id <= 40; id += 1) {
      fixture.track(id, { accepted: { tipLamports: id % 2 === 0 ? 4_000_000 : 1_000 } });
    }
    fixture.clock.advance(500);
    fixture.plan("c");
    fixture.clock.advance(150);
    fixture.plan("c", "d");
    expect(fixture.resent.every(({ id }) => id % 2 === 0)).toBe(true);
    expect(fixture.resent.length + fixture.landing.counters.resendsShed).toBe(40);
  });

  it("checks a bounded number at a time while all leaders are full", () => {
    const fixture = startFixtureWithPlan({ countMax: 3 * CHECKS_PER_SLICE });
    for (let id = 1; id <= 2 * CHECKS_PER_SLICE; id += 1) fixture.track(id, { sent: [] });
    fixture.clock.advance(500);
    fixture.room.set("c:8009", 0);
    fixture.plan("c");
    const asked: number[] = [];
    for (let step = 0; step < 40; step += 1) {
      const before = fixture.roomsAsked;
      fixture.clock.advance(1);
      if (fixture.roomsAsked > before) asked.push(fixture.roomsAsked - before);
    }
    expect(asked).toEqual([CHECKS_PER_SLICE, CHECKS_PER_SLICE]);
  });

  it("goes on behind those that wait for full leaders, and begins with the best-paid again", () => {
    const waiting = 2 * CHECKS_PER_SLICE;
    const fixture = startFixtureWithPlan({ countMax: 3 * CHECKS_PER_SLICE });
    const tipLamports = 1;
    for (let id = 1; id <= waiting; id += 1) fixture.track(id, { sent: ["d"] });
    // Of lesser rank, and d lacks it.
    fixture.track(waiting + 1, { sent: ["c"], accepted: { tipLamports } });
    fixture.room.set("c:8009", 0);
    fixture.clock.advance(500);
    fixture.plan("c", "d");
    fixture.clock.advance(150);
    expect(resendTo(fixture, waiting + 1)).toEqual(["d"]);
    expect(fixture.resent).toHaveLength(1);
    fixture.room.set("c:8009", 1);
    fixture.clock.advance(60);
    expect(resendTo(fixture, 1)).toEqual(["c"]);
  });

  it("offers a bounded number in a turn that the gate stops, and reaches all", () => {
    const fixture = startFixtureWithPlan({ countMax: 1_000 });
    for (let id = 1; id <= 500; id += 1) fixture.track(id, { sent: [] });
    fixture.clock.advance(500);
    fixture.gate.isOpen = false;
    fixture.plan("c");
    const offers: number[] = [];
    for (let step = 0; step < 5; step += 1) {
      fixture.clock.advance(5);
      offers.push(fixture.offers);
    }
    expect(offers).toEqual([128, 256, 384, 500, 500]);
  });

  it("waits while leaders are full, and goes on by what is paid", () => {
    const fixture = startFixtureWithPlan();
    fixture.room.set("c:8009", 1);
    for (const [index, tipLamports] of [5_000, 9_000_000, 70_000].entries())
      fixture.track(index + 1, { accepted: { tipLamports } });
    fixture.clock.advance(RESEND_PAUSE_MS);
    fixture.plan("c");
    fixture.clock.advance(100);
    expect(fixture.resent.map(({ id }) => id)).toEqual([2]);
    expect([fixture.offers, fixture.gate.renewals.length]).toEqual([1, 1]);
    // Each 20 ms for two of them, not each 5 ms.
    expect(fixture.roomsAsked).toBeLessThan(15);
    fixture.room.set("c:8009", 1);
    fixture.clock.advance(20);
    expect(fixture.resent.map(({ id }) => id)).toEqual([2, 3]);
  });

  it("keeps what only a full leader lacks, and sends meanwhile what another lacks", () => {
    const fixture = startFixtureWithPlan({ countMax: 1_000 });
    for (let id = 1; id <= 300; id += 1) fixture.track(id, { accepted: { tipLamports: 9_000 } });
    fixture.clock.advance(RESEND_PAUSE_MS);
    fixture.plan("c", "e");
    fixture.clock.advance(200);
    expect(fixture.resent.splice(0)).toHaveLength(600);
    fixture.plan("c");
    fixture.track(301, { accepted: { tipLamports: 10 } });
    fixture.clock.advance(RESEND_PAUSE_MS);
    fixture.room.set("d:8009", 0);
    // All lack d, and only the one that pays least lacks e.
    fixture.plan("d", "e");
    fixture.clock.advance(50);
    expect(fixture.resent).toMatchObject([{ id: 301, address: "e:8009" }]);
    fixture.room.delete("d:8009");
    fixture.clock.advance(200);
    expect(fixture.resent.slice(1).map(({ address }) => address)).toEqual(
      Array.from({ length: 300 }, () => "d:8009"),
    );
  });

  it("leaves out what a repetition sent while it waited", () => {
    const fixture = startFixtureWithPlan();
    fixture.track(1, { maxRetries: 1 });
    fixture.clock.advance(RESEND_PAUSE_MS);
    for (const name of ["c", "d"]) fixture.room.set(`${name}:8009`, 0);
    fixture.plan("c", "d");
    fixture.clock.advance(50);
    fixture.room.clear();
    fixture.saturated.add("c:8009");
    fixture.dead.add("d:8009");
    fixture.landing.mergeDuplicate(bytesOf(1), 1, null);
    fixture.dead.clear();
    fixture.clock.advance(100);
    expect(resendTo(fixture, 1)).toEqual(["c"]);
  });

  it("does not happen at all with a budget of 0", () => {
    const fixture = startFixtureWithPlan({ resendsPerSecond: 0 });
    fixture.track(1);
    fixture.clock.advance(500);
    fixture.plan("c");
    fixture.clock.advance(500);
    expect(fixture.resent).toEqual([]);
  });

  it("skips a row that another transaction reuses", () => {
    const fixture = startFixtureWithPlan({ resendsPerSecond: 100, countMax: 10 });
    for (let id = 1; id <= 10; id += 1) fixture.track(id);
    fixture.clock.advance(500);
    fixture.plan("c");
    fixture.track(11);
    fixture.clock.advance(300);
    expect(fixture.resent.map(({ id }) => id)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  describe("that needs several turns to check all rows", () => {
    /** `count` in flight for a while; only those in `more` pay more. */
    function crowd(count: number, more: readonly number[]) {
      const fixture = startFixtureWithPlan({ countMax: count + 10, resendsPerSecond: 1_000 });
      for (let id = 1; id <= count; id += 1) {
        fixture.track(id, { accepted: { tipLamports: more.includes(id) ? 9_000_000 : 5_000 } });
      }
      fixture.clock.advance(500);
      return fixture;
    }
    const landed = { slot: 5_001, confirmed: true, error: null };

    it("sends what pays most first, wherever it stands", () => {
      const fixture = crowd(2 * CHECKS_PER_SLICE, [CHECKS_PER_SLICE + 5, 2 * CHECKS_PER_SLICE]);
      fixture.plan("c");
      expect(fixture.resent).toEqual([]);
      fixture.clock.advance(5);
      const ids = fixture.resent.map(({ id }) => id);
      expect(ids.slice(0, 4)).toEqual([CHECKS_PER_SLICE + 5, 2 * CHECKS_PER_SLICE, 1, 2]);
    });

    it("ranks by offer times landed share, as of the round, not of the arrival", () => {
      const fixture = startFixtureWithPlan({ countMax: 10, resendsPerSecond: 1_000 });
      fixture.track(1, { account: "never", accepted: { tipLamports: 1_000_000 } });
      fixture.track(2, { account: "lands", accepted: { tipLamports: 500_000 } });
      const resent = (name: string): number[] => {
        fixture.clock.advance(500);
        fixture.plan(name);
        fixture.clock.advance(20);
        return fixture.resent.splice(0).map(({ id }) => id);
      };
      expect(resent("c")).toEqual([1, 2]);
      for (let count = 0; count < 200; count += 1) {
        fixture.shares.ended("never", endOf("expired", "blockhash_expired"));
        fixture.shares.ended("lands", endOf("landed", null));
      }
      fixture.shares.renew();
      expect(resent("d")).toEqual([2, 1]);
    });

    it("sends nothing before all are looked at, though the round before had more to send", () => {
      const fixture = crowd(2 * CHECKS_PER_SLICE, [2 * CHECKS_PER_SLICE]);
      fixture.plan("c");
      fixture.clock.advance(4);
      const { after: later } = fixture.clock;
      fixture.clock.after = (delayMs, act) => later(delayMs === 0 ? 3 : delayMs, act);
      fixture.plan("d");
      fixture.clock.advance(10);
      expect(fixture.resent[0]).toMatchObject({ id: 2 * CHECKS_PER_SLICE, address: "d:8009" });
    });

    it.each([
      ["the one that was looked at last", CHECKS_PER_SLICE],
      ["that one and all that are older but one turn's", 2 * CHECKS_PER_SLICE],
    ])("passes over nobody, and sends nothing twice, when %s ends", (_, turns) => {
      const count = 4 * CHECKS_PER_SLICE;
      const fixture = crowd(count, [count]);
      const { after: later } = fixture.clock;
      // After the turn that checked it.
      fixture.clock.after = (delayMs, act) =>
        later(delayMs, () => {
          act();
          fixture.landing.seen(bytesOf(turns).subarray(1, 65), landed);
        });
      fixture.plan("c");
      if (turns === CHECKS_PER_SLICE) fixture.landing.seen(bytesOf(turns).subarray(1, 65), landed);
      for (let step = 0; step < 9_000; step += 5) fixture.clock.advance(5);
      const ids = fixture.resent.map(({ id }) => id);
      expect(ids).toHaveLength(count - 1);
      expect(new Set(ids).size).toBe(count - 1);
      expect(ids[0]).toBe(count);
    });

    it("begins anew with the next plan, and counts what it had found", () => {
      const fixture = crowd(2 * CHECKS_PER_SLICE, []);
      fixture.plan("c");
      fixture.plan("d");
      expect(fixture.landing.counters.resendsShed).toBe(CHECKS_PER_SLICE);
      fixture.plan("e");
      expect(fixture.landing.counters.resendsShed).toBe(2 * CHECKS_PER_SLICE);
      fixture.clock.advance(5);
      expect(new Set(fixture.resent.map(({ address }) => address))).toEqual(new Set(["e:8009"]));
    });

    it("ends with the stage", () => {
      const fixture = crowd(2 * CHECKS_PER_SLICE, []);
      fixture.plan("c");
      fixture.landing.stop();
      expect(fixture.clock.pending).toBe(0);
      fixture.clock.advance(100);
      expect(fixture.resent).toEqual([]);
    });
  });
});

describe("what was sent elsewhere", () => {
  const packetOf = (id: number, of: number) => ({
    id,
    bytes: bytesOf(of),
    account: "a",
    receivedNs: 0,
    maxRetries: 0,
    offeredLamports: 0,
  });

  it("counts as sent to the leaders of the plan, and to those of its outcomes", () => {
    const rig = startFixtureWithPlan();
    rig.track(1);
    rig.clock.advance(2_200);
    expect(rig.landing.mergeSend(packetOf(7, 1), 1, rig.clock.nowNs())).toBe(true);
    rig.landing.outcome(outcomeOf(7, "c", "sent", rig.clock.nowNs()));
    rig.clock.advance(1_999);
    rig.plan("a", "b", "c");
    rig.clock.advance(0.5);
    expect(rig.landing.mergeDuplicate(bytesOf(1), 1, null)).toBe(true);
    expect(rig.resent).toEqual([]);
    rig.clock.advance(1);
    rig.landing.mergeDuplicate(bytesOf(1), 1, null);
    expect(resendTo(rig, 1)).toEqual(["a", "b", "c"]);
    expect(rig.landing.counters).toMatchObject({ accepted: 1, duplicatesMerged: 3 });
  });

  it("takes its own mark back where it ends unsent, and not that of another packet", () => {
    const rig = startFixtureWithPlan();
    rig.track(1);
    rig.clock.advance(2_200);
    rig.landing.mergeSend(packetOf(7, 1), 1, rig.clock.nowNs());
    const repeat = (): readonly string[] => {
      rig.clock.advance(500);
      rig.landing.mergeDuplicate(bytesOf(1), 1, null);
      return resendTo(rig, 1);
    };
    rig.landing.outcome(outcomeOf(1, "b", "dropped", rig.clock.nowNs()));
    expect(repeat()).toEqual([]);
    rig.landing.outcome(outcomeOf(7, "b", "dropped", rig.clock.nowNs()));
    expect(repeat()).toEqual(["b"]);
  });

  it("is not in flight if its transaction is not", () => {
    const rig = startFixtureWithPlan();
    expect(rig.landing.mergeSend(packetOf(7, 1), 1, rig.clock.nowNs())).toBe(false);
    rig.track(1);
    rig.landing.mergeSend(packetOf(7, 1), 1, rig.clock.nowNs());
    rig.landing.mergeSend(packetOf(8, 1), 1, rig.clock.nowNs());
    rig.landing.stop();
    rig.track(2);
    // Outcomes of ended ones are of no other transaction.
    for (const id of [7, 8]) rig.landing.outcome(outcomeOf(id, "c", "sent", rig.clock.nowNs()));
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "dropped" }]);
  });

  it("is not sent again before landing knows of it", () => {
    const rig = startFixtureWithPlan();
    rig.track(1);
    rig.clock.advance(2_500);
    rig.gate.isOpen = false;
    rig.plan("a", "b", "c");
    rig.clock.advance(20);
    rig.landing.mergeDuplicate(bytesOf(1), 1, null);
    expect(rig.resent).toEqual([]);
    expect(rig.landing.counters).toMatchObject({ resends: 0, resendsSuperseded: 2 });
    rig.gate.isOpen = true;
    rig.plan("a", "b", "c");
    rig.clock.advance(20);
    expect(resendTo(rig, 1)).toEqual(["a", "b", "c"]);
    expect(rig.landing.counters).toMatchObject({ resends: 1, resendsSuperseded: 2 });
  });
});

describe("the gate", () => {
  it("is asked once for each resend that a leader lacks, from the last known time on", () => {
    const rig = startFixtureWithPlan();
    rig.track(1);
    rig.clock.advance(500);
    rig.landing.mergeDuplicate(bytesOf(1), 1, null);
    expect(rig.gate.renewals).toEqual([]);
    rig.plan("b", "c", "d");
    rig.landing.mergeDuplicate(bytesOf(1), 1, null);
    rig.clock.advance(500);
    rig.plan("e");
    rig.landing.mergeDuplicate(bytesOf(1), 1, null);
    expect(rig.gate.renewals).toEqual([
      { sinceMs: 0, nowMs: 500 },
      { sinceMs: 500, nowMs: 1_000 },
    ]);
  });

  it("learns of a copy that left late", () => {
    const rig = startFixtureWithPlan();
    rig.track(1, { sent: [] });
    rig.clock.advance(SENT_LATE_MS);
    rig.landing.outcome(outcomeOf(1, "a", "sent", rig.clock.nowNs()));
    expect(rig.gate.renewals).toEqual([]);
    rig.clock.advance(1);
    rig.landing.outcome(outcomeOf(1, "b", "sent", rig.clock.nowNs()));
    expect(rig.gate.renewals).toEqual([{ sinceMs: 0, nowMs: SENT_LATE_MS + 1 }]);
  });
});

describe("marks that are cleared", () => {
  /** Transactions 1 and 2 at leaders a and b; the second a moment ago. */
  function both(over = {}) {
    const fixture = startFixtureWithPlan(over);
    fixture.track(1);
    fixture.clock.advance(RESEND_PAUSE_MS);
    fixture.track(2);
    fixture.clock.advance(100);
    return fixture;
  }

  it("let all in flight go to the leaders of the plan again, without a pause", () => {
    for (const act of ["slotWentBack", "stalled"] as const) {
      const fixture = both();
      if (act === "slotWentBack") fixture.landing.slotWentBack();
      else fixture.landing.setConfirmationStalled(true);
      fixture.clock.advance(20);
      expect(resendTo(fixture, 1)).toEqual(["a", "b"]);
      expect(resendTo(fixture, 2)).toEqual(["a", "b"]);
      fixture.plan("a", "b");
      fixture.clock.advance(20);
      expect(fixture.resent).toHaveLength(4);
    }
  });

  it("let a repeated submission go to them again", () => {
    const fixture = both({ resendsPerSecond: 0 });
    const submit = () => fixture.landing.mergeDuplicate(bytesOf(1), 1, null);
    submit();
    expect(fixture.resent).toEqual([]);
    fixture.landing.slotWentBack();
    submit();
    expect(resendTo(fixture, 1)).toEqual(["a", "b"]);
  });

  it("are cleared with the plans while the confirmation stands still", () => {
    const fixture = startFixtureWithPlan();
    fixture.landing.setConfirmationStalled(true);
    fixture.track(1);
    for (let slot = 0; slot < 8; slot += 1) {
      fixture.clock.advance(250);
      fixture.plan("a", "b");
    }
    fixture.clock.advance(20);
    // Every second plan, one of four in the time in which a leader would drop a copy.
    expect(resendTo(fixture, 1)).toEqual(["a", "b", "a", "b", "a", "b", "a", "b"]);
    fixture.landing.setConfirmationStalled(false);
    fixture.clock.advance(20);
    expect(fixture.resent).toHaveLength(10);
    fixture.clock.advance(1_000);
    fixture.plan("a", "b");
    fixture.clock.advance(20);
    expect(fixture.resent).toHaveLength(10);
  });

  it("leave what a client does not want repeated", () => {
    const fixture = startFixtureWithPlan();
    fixture.track(1, { maxRetries: 0 });
    fixture.clock.advance(500);
    fixture.landing.slotWentBack();
    fixture.clock.advance(20);
    expect(fixture.resent).toEqual([]);
  });

  it("stay if that happened too often", () => {
    const fixture = both();
    for (let count = 0; count < MARK_CLEARS_MAX; count += 1) fixture.landing.slotWentBack();
    fixture.clock.advance(20);
    const { length } = fixture.resent;
    fixture.landing.slotWentBack();
    fixture.clock.advance(20);
    expect(fixture.resent).toHaveLength(length);
    expect(fixture.landing.counters).toMatchObject({ markClearsRefused: 1 });
  });
});
