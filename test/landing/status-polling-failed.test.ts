import { describe, expect, it } from "vitest";
import { STATUS_DEADLINE_MS } from "../../src/landing/limits.ts";
import { startRig } from "./rig.ts";

describe("questions after statuses", () => {
  it("that fail prove nothing and are repeated, less often while they fail", async () => {
    const rig = startRig();
    rig.landing.start();
    rig.track(1, { hash: 3 });
    rig.cluster.lastValid.set(3, 900);
    for (let tick = 0; tick < 60; tick += 1) {
      rig.clock.advance(400);
      for (const request of rig.asked.splice(0)) request.fail();
      await rig.settle();
    }
    const { requestsFailed, requestsSucceeded } = rig.landing.counters;
    expect({ requestsSucceeded, finalStates: rig.finalStates }).toEqual({
      requestsSucceeded: 0,
      finalStates: [],
    });
    expect(requestsFailed).toBeGreaterThan(4);
    expect(requestsFailed).toBeLessThan(12);

    rig.clock.advance(20 * 400);
    await rig.answerAll();
    expect(rig.finalStates).toMatchObject([{ packetId: 1, kind: "expired" }]);
  });

  it("pause after a refusal for as long where others are answered", async () => {
    const rig = startRig({ countMax: 10_000 });
    rig.landing.start();
    for (let id = 1; id <= 8_000; id += 1) rig.track(id);
    rig.clock.advance(400 + 75);
    const [refused, ...answered] = rig.asked.splice(0);
    expect(answered).toHaveLength(3);
    refused?.fail();
    await rig.settle();
    for (const request of answered) request.answer(new Map());
    await rig.settle();
    // The tick at 800 is skipped.
    rig.clock.advance(700);
    expect(rig.asked).toEqual([]);
    rig.clock.advance(25);
    expect(rig.asked).not.toEqual([]);
  });

  it("that fail together are one failure, and the next one makes the pause longer", async () => {
    const rig = startRig({ countMax: 1_000 });
    rig.landing.start();
    for (let id = 1; id <= 1_000; id += 1) rig.track(id);
    const pauses: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (let tick = 0; rig.asked.length === 0 && tick < 30; tick += 1) {
        rig.clock.advance(400);
        pauses[round] = tick;
      }
      rig.clock.advance(150);
      expect(rig.asked).toHaveLength(4);
      for (const request of rig.asked.splice(0)) request.fail();
      await rig.settle();
      rig.clock.advance(250);
    }
    expect(pauses).toEqual([0, 0, 1]);
  });

  it("pause for one tick again after an answer, however long they paused before", async () => {
    const rig = startRig();
    rig.landing.start();
    rig.track(1, { accepted: { durableNonce: true } });
    const ticksUntilAsked = (): number => {
      let ticks = 0;
      for (; rig.asked.length === 0 && ticks < 30; ticks += 1) rig.clock.advance(400);
      return ticks;
    };
    const pauses: number[] = [];
    for (const answers of [false, false, false, true, false, true]) {
      pauses.push(ticksUntilAsked() - 1);
      for (const request of rig.asked.splice(0)) {
        if (answers) request.answer(new Map());
        else request.fail();
      }
      await rig.settle();
    }
    expect(pauses).toEqual([0, 1, 2, 4, 0, 1]);
  });

  it("without a response time out at a deadline, and a late response is ignored", async () => {
    const rig = startRig();
    rig.landing.start();
    rig.track(1);
    rig.clock.advance(400);
    const [late] = rig.asked.splice(0);
    rig.clock.advance(STATUS_DEADLINE_MS);
    expect(rig.landing.counters.requestsLate).toBe(1);
    late?.answer(new Map([[1, { slot: 5_001, confirmed: true, error: null }]]));
    await rig.settle();
    expect(rig.landing.inFlight).toBe(1);
    rig.clock.advance(800);
    expect(rig.asked).toHaveLength(1);
  });

  it("with an answer of the wrong length count as failed", async () => {
    const rig = startRig();
    rig.landing.start();
    rig.track(1);
    rig.clock.advance(400);
    rig.asked[0]?.answerWith({ slot: 5_001, statuses: [] });
    await rig.settle();
    expect(rig.landing.counters).toMatchObject({ requestsFailed: 1, requestsSucceeded: 0 });
    expect(rig.landing.inFlight).toBe(1);
  });
});
