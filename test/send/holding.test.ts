/** Which transactions are sent by themselves, and when those that are not leave. */

import { describe, expect, it } from "vitest";
import { NS_PER_US } from "../../src/core/clock.ts";
import {
  FRONT_HELD_MAX,
  FRONT_HELD_US_MAX,
  FRONT_PAUSE_US,
  FRONT_RUN,
} from "../../src/core/front-limits.ts";
import { createHolding } from "../../src/send/holding.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setUp() {
  const turns = createFakeClock();
  let passedNs = 0;
  /** Time goes by within a turn, too. */
  const clock = { ...turns, nowNs: () => turns.nowNs() + passedNs };
  const calls: string[] = [];
  /** What the engine answers, and how long a release takes. */
  const state = { mask: 1, waits: 0, releaseUs: 0 };
  const released: [number, boolean][] = [];
  const holding = createHolding({
    native: {
      txSend: () => calls.push("send") && state.mask,
      txHold: () => calls.push("hold") && state.mask,
      txRelease() {
        calls.push("release");
        passedNs += state.releaseUs * NS_PER_US;
        return state.waits;
      },
    },
    clock,
    onReleased: (count, waits) => void released.push([count, waits]),
  });
  /** Gives so many, so far apart; what was called for them. */
  const give = (count: number, gapUs = 1): string[] => {
    const from = calls.length;
    for (let given = 0; given < count; given += 1) {
      passedNs += gapUs * NS_PER_US;
      holding.give(1, Uint32Array.of(7, 1), Uint8Array.of(1), given, 800);
    }
    return calls.slice(from);
  };
  const endTurn = (): void => turns.advance(0);
  const pass = (us: number): void => {
    passedNs += us * NS_PER_US;
  };
  const pending = (): number => turns.pending;
  return { clock, pending, calls, state, released, holding, give, endTurn, pass };
}

const times = (word: string, count: number): string[] => Array.from({ length: count }, () => word);

describe("transactions that a front comes upon", () => {
  it("are sent by themselves while there are pauses between them", () => {
    const { give, holding, calls } = setUp();
    expect(give(50, FRONT_PAUSE_US)).toEqual(times("send", 50));
    expect([holding.isHeld, calls.includes("release")]).toEqual([false, false]);
  });

  it("are held from the fifth after a pause on, and leave when the turn is through", () => {
    const { give, holding, pending, calls, released, endTurn } = setUp();
    expect(give(FRONT_RUN + 3)).toEqual([...times("send", FRONT_RUN), ...times("hold", 3)]);
    expect([holding.isHeld, released, pending()]).toEqual([true, [], 1]);
    endTurn();
    expect([calls.at(-1), released]).toEqual(["release", [[3, false]]]);
    expect(pending()).toBe(0);
    // Without a pause since, the next turn goes on with it.
    expect(give(2)).toEqual(times("hold", 2));
    endTurn();
    expect(give(1, FRONT_PAUSE_US)).toEqual(["send"]);
    expect(released).toEqual([
      [3, false],
      [2, false],
    ]);
  });

  it("are without a pause where the time since was spent on a release", () => {
    const { give, pass, state, endTurn } = setUp();
    give(FRONT_RUN + 1);
    state.releaseUs = FRONT_PAUSE_US;
    endTurn();
    expect(give(1)).toEqual(["hold"]);
    endTurn();
    pass(FRONT_PAUSE_US);
    expect(give(1)).toEqual(["send"]);
  });

  it("leave as soon as there are many", () => {
    const { give, released, pending } = setUp();
    give(FRONT_RUN);
    expect(give(FRONT_HELD_MAX)).toEqual([...times("hold", FRONT_HELD_MAX), "release"]);
    expect(give(1)).toEqual(["hold"]);
    expect([released, pending()]).toEqual([[[FRONT_HELD_MAX, false]], 1]);
  });

  it("leave when the first was held for long, before the next or other work", () => {
    const { give, holding, clock, released, endTurn } = setUp();
    const apartUs = FRONT_PAUSE_US / 2;
    const count = Math.ceil(FRONT_HELD_US_MAX / apartUs) + 1;
    give(FRONT_RUN);
    expect(give(count, apartUs)).toEqual([...times("hold", count), "release"]);
    expect(released).toEqual([[count, false]]);
    give(1);
    const heldNs = clock.nowNs();
    holding.heed(heldNs + FRONT_HELD_US_MAX * NS_PER_US - 1);
    expect(released.length).toBe(1);
    holding.heed(heldNs + FRONT_HELD_US_MAX * NS_PER_US);
    expect(released.length).toBe(2);
    holding.heed(Number.POSITIVE_INFINITY);
    endTurn();
    expect(released.length).toBe(2);
  });

  it("are told of when copies wait after their release, also where the engine failed", () => {
    const { give, state, released, endTurn } = setUp();
    give(FRONT_RUN + 1);
    state.waits = 1;
    endTurn();
    give(2);
    state.waits = -1;
    endTurn();
    expect(released).toEqual([
      [1, true],
      [2, true],
    ]);
  });

  it("leave before one that comes after a pause", () => {
    const { give, released } = setUp();
    give(FRONT_RUN + 1);
    expect(give(1, FRONT_PAUSE_US)).toEqual(["release", "send"]);
    expect(released).toEqual([[1, false]]);
  });

  it("are not waited for where the engine took nothing", () => {
    const { give, state, calls, endTurn } = setUp();
    give(FRONT_RUN);
    state.mask = 0;
    give(1);
    endTurn();
    expect(calls).not.toContain("release");
  });
});
