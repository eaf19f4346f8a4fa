import { describe, expect, it } from "vitest";
import { STATUS_DEADLINE_MS } from "../../src/landing/limits.ts";
import { startFixture } from "./fixture.ts";

describe("questions after statuses", () => {
  it("that fail prove nothing and are repeated, less often while they fail", async () => {
    const fixture = startFixture();
    fixture.landing.start();
    fixture.track(1, { hash: 3 });
    fixture.cluster.lastValid.set(3, 900);
    for (let tick = 0; tick < 60; tick += 1) {
      fixture.clock.advance(400);
      for (const request of fixture.asked.splice(0)) request.fail();
      await fixture.settle();
    }
    const { requestsFailed, requestsSucceeded } = fixture.landing.counters;
    expect({ requestsSucceeded, finalStates: fixture.finalStates }).toEqual({
      requestsSucceeded: 0,
      finalStates: [],
    });
    expect(requestsFailed).toBeGreaterThan(4);
    expect(requestsFailed).toBeLessThan(12);

    fixture.clock.advance(20 * 400);
    await fixture.answerAll();
    expect(fixture.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("pause after a refusal for as long where others are answered", async () => {
    const fixture = startFixture({ countMax: 10_000 });
    fixture.landing.start();
    for (let id = 1; id <= 8_000; id += 1) fixture.track(id);
    fixture.clock.advance(400 + 75);
    const [refused, ...answered] = fixture.asked.splice(0);
    expect(answered).toHaveLength(3);
    refused?.fail();
    await fixture.settle();
    for (const request of answered) request.answer(new Map());
    await fixture.settle();
    // The tick at 800 is skipped.
    fixture.clock.advance(700);
    expect(fixture.asked).toEqual([]);
    fixture.clock.advance(25);
    expect(fixture.asked).not.toEqual([]);
  });

  it("that fail together are one failure, and the next one makes the pause longer", async () => {
    const fixture = startFixture({ countMax: 1_000 });
    fixture.landing.start();
    for (let id = 1; id <= 1_000; id += 1) fixture.track(id);
    const pauses: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (let tick = 0; fixture.asked.length === 0 && tick < 30; tick += 1) {
        fixture.clock.advance(400);
        pauses[round] = tick;
      }
      fixture.clock.advance(150);
      expect(fixture.asked).toHaveLength(4);
      for (const request of fixture.asked.splice(0)) request.fail();
      await fixture.settle();
      fixture.clock.advance(250);
    }
    expect(pauses).toEqual([0, 0, 1]);
  });

  it("pause for one tick again after an answer, however long they paused before", async () => {
    const fixture = startFixture();
    fixture.landing.start();
    fixture.track(1, { accepted: { durableNonce: true } });
    const ticksUntilAsked = (): number => {
      let ticks = 0;
      for (; fixture.asked.length === 0 && ticks < 30; ticks += 1) fixture.clock.advance(400);
      return ticks;
    };
    const pauses: number[] = [];
    for (const answers of [false, false, false, true, false, true]) {
      pauses.push(ticksUntilAsked() - 1);
      for (const request of fixture.asked.splice(0)) {
        if (answers) request.answer(new Map());
        else request.fail();
      }
      await fixture.settle();
    }
    expect(pauses).toEqual([0, 1, 2, 4, 0, 1]);
  });

  it("without a response time out at a deadline, and a late response is ignored", async () => {
    const fixture = startFixture();
    fixture.landing.start();
    fixture.track(1);
    fixture.clock.advance(400);
    const [late] = fixture.asked.splice(0);
    fixture.clock.advance(STATUS_DEADLINE_MS);
    expect(fixture.landing.counters.requestsLate).toBe(1);
    late?.answer(new Map([[1, { slot: 5_001, confirmed: true, error: null }]]));
    await fixture.settle();
    expect(fixture.landing.inFlight).toBe(1);
    fixture.clock.advance(800);
    expect(fixture.asked).toHaveLength(1);
  });

  it("with an answer of the wrong length count as failed", async () => {
    const fixture = startFixture();
    fixture.landing.start();
    fixture.track(1);
    fixture.clock.advance(400);
    fixture.asked[0]?.answerWith({ slot: 5_001, statuses: [] });
    await fixture.settle();
    expect(fixture.landing.counters).toMatchObject({ requestsFailed: 1, requestsSucceeded: 0 });
    expect(fixture.landing.inFlight).toBe(1);
  });
});
