import { describe, expect, it } from "vitest";
import { RESEND_PAUSE_MS } from "../../src/landing/limits.ts";
import { bytesOf, outcomeOf, resendTo, startFixtureWithPlan } from "./fixture.ts";

describe("a copy that waits for its leader", () => {
  /** Transaction 1 with these resends allowed, where all leaders but these are saturated. */
  function waiting(maxRetries: number, ...good: readonly string[]) {
    const fixture = startFixtureWithPlan();
    const names = ["c", "d", "e", "f"].filter((name) => !good.includes(name));
    for (const name of names) fixture.saturated.add(`${name}:8009`);
    fixture.track(1, { maxRetries });
    return {
      ...fixture,
      plan(...leaders: readonly string[]): readonly string[] {
        fixture.clock.advance(500);
        fixture.plan(...leaders);
        fixture.clock.advance(20);
        return resendTo(fixture, 1);
      },
      end(name: string, kind: "sent" | "dropped", resend: number): void {
        fixture.landing.outcome({ ...outcomeOf(1, name, kind, fixture.clock.nowNs()), resend });
      },
      get resends() {
        return fixture.landing.counters.resends;
      },
    };
  }

  it("does not count where it never leaves, and nothing is due before", () => {
    const fixture = waiting(1);
    expect(fixture.plan("c", "d")).toEqual(["c", "d"]);
    fixture.end("c", "dropped", 1);
    expect(fixture.plan("e", "f")).toEqual(["c", "d"]);
    fixture.end("d", "dropped", 1);
    expect(fixture.resends).toBe(0);
    expect(fixture.plan("e", "f")).toEqual(["c", "d", "e", "f"]);
    fixture.end("e", "sent", 2);
    fixture.end("f", "dropped", 2);
    expect(fixture.plan("g")).toEqual(["c", "d", "e", "f"]);
    expect(fixture.resends).toBe(1);
  });

  it("counts once with the others of its resend, whether they left before or after", () => {
    for (const fixture of [waiting(2), waiting(2, "d")]) {
      fixture.plan("c", "d");
      fixture.end("c", "sent", 1);
      if (fixture.saturated.has("d:8009")) fixture.end("d", "sent", 1);
      expect(fixture.plan("g")).toEqual(["c", "d", "g"]);
      expect(fixture.plan("h")).toEqual(["c", "d", "g"]);
      expect(fixture.resends).toBe(2);
    }
  });

  it("does not count because another transaction was sent at once", () => {
    const fixture = waiting(1);
    fixture.track(2, { maxRetries: 1 });
    fixture.landing.outcome(outcomeOf(2, "b", "dropped", fixture.clock.nowNs()));
    expect(fixture.plan("c")).toEqual(["c"]);
    fixture.saturated.delete("d:8009");
    fixture.end("c", "dropped", 1);
    fixture.landing.outcome({ ...outcomeOf(2, "c", "dropped", fixture.clock.nowNs()), resend: 1 });
    expect(fixture.plan("c", "d")).toEqual(["c", "c", "d"]);
    expect(resendTo(fixture, 2)).toEqual(["c", "c", "d"]);
    fixture.saturated.add("d:8009");
    fixture.track(3, { maxRetries: 1 });
    expect(fixture.plan("e")).toEqual(["c", "c", "d"]);
    expect(fixture.resends).toBe(2);
  });

  it("is not used up by a repetition that allows none", () => {
    const fixture = waiting(1);
    fixture.plan("c");
    fixture.landing.mergeDuplicate(bytesOf(1), 1, 0);
    fixture.end("c", "dropped", 1);
    expect(fixture.plan("g")).toEqual(["c", "g"]);
    expect(fixture.plan("h")).toEqual(["c", "g"]);
  });

  it("keeps its transaction from ending as never sent", () => {
    const fixture = startFixtureWithPlan();
    fixture.saturated.add("c:8009");
    fixture.track(1, { maxRetries: 0, sent: [] });
    for (const name of ["a", "b"]) {
      fixture.landing.outcome(outcomeOf(1, name, "dropped", fixture.clock.nowNs()));
    }
    fixture.clock.advance(1_600);
    fixture.plan("c");
    fixture.landing.mergeDuplicate(bytesOf(1), 1, 0);
    fixture.clock.advance(700);
    expect([fixture.finalStates, resendTo(fixture, 1)]).toEqual([[], ["c"]]);
    const nowNs = fixture.clock.nowNs();
    fixture.landing.outcome({ ...outcomeOf(1, "c", "sent", nowNs), resend: 1 });
    fixture.clock.advance(1_000);
    expect(fixture.finalStates).toEqual([]);
  });

  it("is not joined by another at its leader after marks are cleared", () => {
    const fixture = waiting(9);
    fixture.plan("c");
    fixture.clock.advance(RESEND_PAUSE_MS);
    fixture.landing.slotWentBack();
    fixture.clock.advance(20);
    expect(resendTo(fixture, 1)).toEqual(["c"]);
  });
});
