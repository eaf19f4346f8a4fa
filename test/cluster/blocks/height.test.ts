import { describe, expect, it } from "vitest";
import { createHeight } from "../../../src/cluster/blocks/height.ts";
import {
  HEIGHT_BACK_MAX,
  HEIGHT_BLOCK_MS_MIN,
  HEIGHT_FIRST_BLOCKS,
  HEIGHT_REANCHOR_DOWN_MS,
  HEIGHT_REANCHOR_UP_MS,
  HEIGHT_SLACK_BLOCKS,
} from "../../../src/cluster/limits.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { fc } from "../../support/properties.ts";

const SLOT_MS = 250;

function setUp() {
  const clock = createFakeClock();
  const counters = { heightsAccepted: 0, heightsImplausible: 0, heightsReanchored: 0 };
  const height = createHeight(() => clock.nowNs(), counters);
  /** Polls an honest node every 500 ms; the cluster's height at the start is `startHeight`. */
  function pollHonestNode(startHeight: number, forMs: number): number {
    for (let ms = 0; ms < forMs; ms += 500) {
      clock.advance(500);
      height.observe(startHeight + Math.floor((ms + 500) / SLOT_MS));
    }
    return startHeight + forMs / SLOT_MS;
  }
  return { clock, counters, height, pollHonestNode };
}

/** A fixture whose height tracker has accepted the cluster's height, `current`. */
function withHeight(first = 10_000) {
  const fixture = setUp();
  const current = fixture.pollHonestNode(first, 5_000);
  expect(fixture.height.value).toBe(current);
  return { ...fixture, current, implausibleBefore: fixture.counters.heightsImplausible };
}

describe("height after a restart", () => {
  it("is checked against the one that was known, and the time since then", () => {
    const clock = createFakeClock();
    const counters = { heightsAccepted: 0, heightsImplausible: 0, heightsReanchored: 0 };
    const known = { height: 10_000, sinceNs: clock.nowNs() };
    clock.advance(4_000);
    const height = createHeight(() => clock.nowNs(), counters, known);
    expect([height.value, height.sinceNs]).toEqual([known.height, known.sinceNs]);
    const highest = known.height + 4_000 / HEIGHT_BLOCK_MS_MIN + HEIGHT_SLACK_BLOCKS;
    for (const wrong of [known.height - HEIGHT_BACK_MAX - 1, highest + 1]) {
      expect([height.observe(wrong), height.observe(wrong)]).toEqual([false, false]);
    }
    expect(height.value).toBe(known.height);
    expect(height.observe(highest)).toBe(true);
    expect(height.value).toBe(highest);
  });
});

describe("implausible height", () => {
  it("is counted and ignored, and later heights are accepted", () => {
    const { height, pollHonestNode, counters, current, implausibleBefore } = withHeight();
    for (const wild of [current + 1_000_000, Number.MAX_SAFE_INTEGER, 0]) {
      expect(height.observe(wild)).toBe(false);
    }
    expect(height.value).toBe(current);
    expect(counters.heightsImplausible - implausibleBefore).toBe(3);
    const latest = pollHonestNode(current, 1_000);
    expect(height.value).toBe(latest);
    expect(counters.heightsReanchored).toBe(0);
  });

  it("starts one block above what the cluster can have produced since the last height", () => {
    const { clock, height, current } = withHeight();
    const passedMs = 2_000;
    clock.advance(passedMs);
    const max = current + passedMs / HEIGHT_BLOCK_MS_MIN + HEIGHT_SLACK_BLOCKS;
    expect(height.observe(max + 1)).toBe(false);
    expect(height.value).toBe(current);
    expect(height.observe(max)).toBe(true);
    expect(height.value).toBe(max);
  });

  it("is not accepted as the first height, nor is the single height after it", () => {
    const { clock, height, pollHonestNode } = setUp();
    expect(height.observe(9_000_000)).toBe(false);
    expect(height.value).toBeNull();
    clock.advance(500);
    expect(height.observe(10_000)).toBe(false);
    expect(height.value).toBeNull();
    pollHonestNode(10_000, 500);
    expect(height.value).toBe(10_002);
  });

  it("does not include two load-balanced nodes up to HEIGHT_FIRST_BLOCKS apart", () => {
    const { clock, height } = setUp();
    for (let at = 10_000; at < 10_020; at += 2) {
      height.observe(at % 4 === 0 ? at : at - HEIGHT_FIRST_BLOCKS);
      clock.advance(500);
    }
    expect(height.value).toBeGreaterThanOrEqual(10_016);
  });

  it("is not accepted when repeated while honest heights come in between", () => {
    const { clock, height, counters, current } = withHeight();
    let at = current;
    for (let ms = 0; ms < 60_000; ms += SLOT_MS) {
      clock.advance(SLOT_MS);
      at += 1;
      height.observe(at + 1_000_000);
      height.observe(at - 1_000);
      if (ms % 2_000 === 0) height.observe(at);
    }
    expect(at - (height.value ?? 0)).toBeLessThanOrEqual(8);
    expect(counters.heightsReanchored).toBe(0);
  });

  it("is never accepted while it does not advance", () => {
    const { clock, height, current } = withHeight();
    for (let ms = 0; ms < 120_000; ms += 500) {
      clock.advance(500);
      height.observe(current + 1_000_000);
    }
    expect(height.value).toBe(current);
  });
});

describe("restarted node", () => {
  it("is ignored until it has caught up", () => {
    const { clock, height, counters, current } = withHeight();
    let at = current - 4_000;
    // It replays 8 blocks per second; the cluster produces 4.
    while (at < current) {
      clock.advance(500);
      at += 4;
      height.observe(at);
      expect(height.value).toBe(Math.max(current, at));
    }
    // A height above the old one is accepted as soon as the node has caught up.
    height.observe(at + 1);
    expect(height.value).toBe(at + 1);
    expect(counters.heightsReanchored).toBe(0);
  });

  it("may lag by up to HEIGHT_BACK_MAX blocks", () => {
    const { height, current, counters, implausibleBefore } = withHeight();
    expect(height.observe(current - HEIGHT_BACK_MAX)).toBe(true);
    expect(height.value).toBe(current);
    expect(counters.heightsImplausible).toBe(implausibleBefore);
    expect(height.observe(current - HEIGHT_BACK_MAX - 1)).toBe(false);
  });

  it("is followed to a restarted ledger after HEIGHT_REANCHOR_DOWN_MS", () => {
    const { height, pollHonestNode, counters } = withHeight();
    const reached = pollHonestNode(5, HEIGHT_REANCHOR_DOWN_MS);
    expect(height.value).toBeGreaterThan(10_000);
    const latest = pollHonestNode(reached, 1_000);
    expect(height.value).toBe(latest);
    expect(counters.heightsReanchored).toBe(1);
  });
});

describe("honest jump in height", () => {
  it("is accepted immediately after the node was down for an hour", () => {
    const { clock, height, counters, current } = withHeight();
    clock.advance(3_600_000);
    expect(height.observe(current + 3_600_000 / 200)).toBe(true);
    expect(height.value).toBe(current + 18_000);
    expect(counters.heightsReanchored).toBe(0);
  });

  it("is accepted after HEIGHT_REANCHOR_UP_MS if this machine and its clock slept", () => {
    const { height, pollHonestNode, counters, current } = withHeight();
    const reached = pollHonestNode(current + 14_400, HEIGHT_REANCHOR_UP_MS);
    expect(height.value).toBe(current);
    const latest = pollHonestNode(reached, 1_000);
    expect(height.value).toBe(latest);
    expect(counters.heightsReanchored).toBe(1);
  });
});

describe("stalled node", () => {
  it("does not block another node from being followed after a jump", () => {
    const { clock, height, current } = withHeight();
    let at = current + 14_400;
    for (let ms = 0; ms <= HEIGHT_REANCHOR_UP_MS; ms += 500) {
      clock.advance(500);
      at += 2;
      height.observe(at);
      height.observe(current);
    }
    expect(height.value).toBe(at);
  });
});

describe("arbitrary heights", () => {
  it("do not delay an honest node's height beyond its last response", () => {
    const wildHeight = fc.record({ step: fc.nat({ max: 59 }), height: fc.maxSafeNat() });
    fc.assert(
      fc.property(fc.array(wildHeight, { maxLength: 20 }), (wildHeights) => {
        const { clock, height } = setUp();
        let last = 0;
        for (let step = 0; step < 60; step += 1) {
          clock.advance(500);
          last = 50_000 + 2 * step;
          for (const wild of wildHeights) if (wild.step === step) height.observe(wild.height);
          height.observe(last);
        }
        const max = last + HEIGHT_SLACK_BLOCKS + 500 / HEIGHT_BLOCK_MS_MIN;
        expect(height.value).toBeGreaterThanOrEqual(last);
        expect(height.value).toBeLessThanOrEqual(max);
      }),
    );
  });
});
