/** When a front wakes the main thread for its records. */

import { describe, expect, it } from "vitest";
import { FRONT_RECORDS_WAKE, FRONT_RECORDS_WAKE_MS } from "../../src/core/front-limits.ts";
import { createTeller } from "../../src/front/teller.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** A main thread that sleeps again as soon as it was woken, and reads everything. */
function rig() {
  const clock = createFakeClock();
  const bell = new SharedArrayBuffer(4);
  const word = new Int32Array(bell);
  word[0] = 1;
  const records = { depth: 0 };
  const tell = createTeller(clock, records, bell);
  return {
    clock,
    records,
    note(isUrgent: boolean, count = 1, isAwaited = false) {
      for (let n = 0; n < count; n += 1) {
        records.depth += 1;
        tell(isUrgent, isAwaited);
      }
    },
    /** Whether it was woken since. */
    woken(): boolean {
      const isWoken = word[0] === 0;
      if (isWoken) records.depth = 0;
      word[0] = 1;
      return isWoken;
    },
  };
}

describe("the main thread", () => {
  it("is woken for an urgent record when the turn is through, once for all of them", () => {
    const { clock, note, woken } = rig();
    note(true, 5);
    expect(woken()).toBe(false);
    clock.advance(0);
    expect(woken()).toBe(true);
    clock.advance(FRONT_RECORDS_WAKE_MS);
    expect(woken()).toBe(false);
    note(true);
    clock.advance(0);
    expect(woken()).toBe(true);
  });

  it("is woken for an urgent record behind one that is not", () => {
    const { clock, note, woken } = rig();
    note(false);
    note(true);
    clock.advance(0);
    expect(woken()).toBe(true);
  });

  it("is woken for others when one has waited for long", () => {
    const { clock, note, woken } = rig();
    note(false);
    clock.advance(FRONT_RECORDS_WAKE_MS - 1);
    note(false);
    expect(woken()).toBe(false);
    clock.advance(1);
    expect(woken()).toBe(true);
    note(false);
    clock.advance(FRONT_RECORDS_WAKE_MS);
    expect(woken()).toBe(true);
  });

  it("is woken at once when many wait", () => {
    const { note, woken } = rig();
    note(false, FRONT_RECORDS_WAKE - 1);
    expect(woken()).toBe(false);
    note(false);
    expect(woken()).toBe(true);
  });

  it("is not woken, nor the front, for one that somebody else wakes it for", () => {
    const { clock, note, woken } = rig();
    note(false, FRONT_RECORDS_WAKE - 1, true);
    expect(clock.pending).toBe(0);
    note(false);
    expect(woken()).toBe(true);
    note(false, 1, true);
    note(false);
    clock.advance(FRONT_RECORDS_WAKE_MS);
    expect(woken()).toBe(true);
    note(true, 1, true);
    clock.advance(0);
    expect(woken()).toBe(true);
  });

  it("is not woken where it has read them by then", () => {
    const { clock, records, note, woken } = rig();
    note(true);
    note(false);
    records.depth = 0;
    clock.advance(FRONT_RECORDS_WAKE_MS);
    expect(woken()).toBe(false);
  });
});
