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
  /** Polls an honest node every half second; `at` is the cluster's height at the start. */
  function ask(at: number, forMs: number): number {
    for (let ms = 0; ms < forMs; ms += 500) {
      clock.advance(500);
      height.observe(at + Math.floor((ms + 500) / SLOT_MS));
    }
    return at + forMs / SLOT_MS;
  }
  return { clock, counters, height, ask };
}

/** A height that has accepted the cluster's, which is at `now`. */
function known(first = 10_000) {
  const rig = setUp();
  const now = rig.ask(first, 5_000);
  expect(rig.height.value).toBe(now);
  return { ...rig, now, doubted: rig.counters.heightsImplausible };
}

describe("a wild height", () => {
  it("changes nothing, is counted, and the chain goes on", () => {
    const { height, ask, counters, now, doubted } = known();
    for (const wild of [now + 1_000_000, Number.MAX_SAFE_INTEGER, 0]) {
      expect(height.observe(wild)).toBe(false);
    }
    expect(height.value).toBe(now);
    expect(counters.heightsImplausible - doubted).toBe(3);
    const latest = ask(now, 1_000);
    expect(height.value).toBe(latest);
    expect(counters.heightsReanchored).toBe(0);
  });

  it("is one that is further than blocks can have come, and not one block less", () => {
    const { clock, height, now } = known();
    const passedMs = 2_000;
    clock.advance(passedMs);
    const most = now + passedMs / HEIGHT_BLOCK_MS_MIN + HEIGHT_SLACK_BLOCKS;
    expect(height.observe(most + 1)).toBe(false);
    expect(height.value).toBe(now);
    expect(height.observe(most)).toBe(true);
    expect(height.value).toBe(most);
  });

  it("at the very first is not believed either, nor the one that it hides", () => {
    const { clock, height, ask } = setUp();
    expect(height.observe(9_000_000)).toBe(false);
    expect(height.value).toBeNull();
    clock.advance(500);
    expect(height.observe(10_000)).toBe(false);
    expect(height.value).toBeNull();
    ask(10_000, 500);
    expect(height.value).toBe(10_002);
  });

  it("is not needed to begin with: nodes that take turns may be far apart", () => {
    const { clock, height } = setUp();
    for (let at = 10_000; at < 10_020; at += 2) {
      height.observe(at % 4 === 0 ? at : at - HEIGHT_FIRST_BLOCKS);
      clock.advance(500);
    }
    expect(height.value).toBeGreaterThanOrEqual(10_016);
  });

  it("that comes again and again is not believed while an honest one comes in between", () => {
    const { clock, height, counters, now } = known();
    let at = now;
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

  it("that stands still is never believed", () => {
    const { clock, height, now } = known();
    for (let ms = 0; ms < 120_000; ms += 500) {
      clock.advance(500);
      height.observe(now + 1_000_000);
    }
    expect(height.value).toBe(now);
  });
});

describe("a node that was restarted", () => {
  it("and catches up is ignored until it is back where it was", () => {
    const { clock, height, counters, now } = known();
    let at = now - 4_000;
    // Eight blocks a second, where the cluster makes four.
    while (at < now) {
      clock.advance(500);
      at += 4;
      height.observe(at);
      expect(height.value).toBe(Math.max(now, at));
    }
    // It exceeds that as soon as it has caught up.
    height.observe(at + 1);
    expect(height.value).toBe(at + 1);
    expect(counters.heightsReanchored).toBe(0);
  });

  it("a few blocks behind is no reason for doubt", () => {
    const { height, now, counters, doubted } = known();
    expect(height.observe(now - HEIGHT_BACK_MAX)).toBe(true);
    expect(height.value).toBe(now);
    expect(counters.heightsImplausible).toBe(doubted);
    expect(height.observe(now - HEIGHT_BACK_MAX - 1)).toBe(false);
  });

  it("with a chain that was begun anew is followed after a while", () => {
    const { height, ask, counters } = known();
    const then = ask(5, HEIGHT_REANCHOR_DOWN_MS);
    expect(height.value).toBeGreaterThan(10_000);
    const latest = ask(then, 1_000);
    expect(height.value).toBe(latest);
    expect(counters.heightsReanchored).toBe(1);
  });
});

describe("an honest jump", () => {
  it("after a node was away for an hour is believed at once", () => {
    const { clock, height, counters, now } = known();
    clock.advance(3_600_000);
    expect(height.observe(now + 3_600_000 / 200)).toBe(true);
    expect(height.value).toBe(now + 18_000);
    expect(counters.heightsReanchored).toBe(0);
  });

  it("after this machine slept, and its clock with it, is believed after a while", () => {
    const { height, ask, counters, now } = known();
    const then = ask(now + 14_400, HEIGHT_REANCHOR_UP_MS);
    expect(height.value).toBe(now);
    const latest = ask(then, 1_000);
    expect(height.value).toBe(latest);
    expect(counters.heightsReanchored).toBe(1);
  });
});

describe("a node that stands still", () => {
  it("does not keep another from being followed after a jump", () => {
    const { clock, height, now } = known();
    let at = now + 14_400;
    for (let ms = 0; ms <= HEIGHT_REANCHOR_UP_MS; ms += 500) {
      clock.advance(500);
      at += 2;
      height.observe(at);
      height.observe(now);
    }
    expect(height.value).toBe(at);
  });
});

describe("whatever is told", () => {
  it("once, an honest chain is known within its last answer", () => {
    const wild = fc.record({ at: fc.nat({ max: 59 }), height: fc.maxSafeNat() });
    fc.assert(
      fc.property(fc.array(wild, { maxLength: 20 }), (lies) => {
        const { clock, height } = setUp();
        let last = 0;
        for (let step = 0; step < 60; step += 1) {
          clock.advance(500);
          last = 50_000 + 2 * step;
          for (const lie of lies) if (lie.at === step) height.observe(lie.height);
          height.observe(last);
        }
        const most = last + HEIGHT_SLACK_BLOCKS + 500 / HEIGHT_BLOCK_MS_MIN;
        expect(height.value).toBeGreaterThanOrEqual(last);
        expect(height.value).toBeLessThanOrEqual(most);
      }),
    );
  });
});
