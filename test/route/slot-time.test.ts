import { describe, expect, it } from "vitest";
import { createSlotTime } from "../../src/route/slot-time.ts";

const MS = 1_000_000;

describe("slot time of a source", () => {
  it("follows each change of the network's slot time within 27 slots", () => {
    const time = createSlotTime();
    let [slot, atMs] = [0, 0];
    for (const slotMs of [400, 300, 250, 200, 400]) {
      for (let count = 0; count < 60; count += 1) {
        slot += 1;
        atMs += slotMs;
        time.add("start", slot, atMs * MS);
        if (count === 26) expect(time.ms).toBeCloseTo(slotMs);
      }
    }
  });

  it("follows each change within 184 slots if the slots are polled", () => {
    const time = createSlotTime();
    let [slot, atMs] = [0, 0];
    for (const slotMs of [250, 400, 200]) {
      for (let count = 0; count < 2_000; count += 8) {
        slot += 8;
        atMs += 8 * slotMs;
        time.add("polled", slot, atMs * MS);
        if (count === 176) expect(time.ms).toBeCloseTo(slotMs);
      }
    }
  });

  it("is that of the network also if several slots arrive at once", () => {
    for (const atOnce of [2, 3, 8]) {
      const time = createSlotTime();
      for (let slot = 0; slot < 60; slot += 1) {
        const atMs = Math.floor(slot / atOnce) * atOnce * 400 + (slot % atOnce);
        time.add("start", slot, atMs * MS);
      }
      expect(time.ms).toBeCloseTo(400);
    }
  });

  it("is null for end events, repeated slots and slots after a gap", () => {
    const time = createSlotTime();
    for (let slot = 0; slot < 20; slot += 1) time.add("end", slot, slot * 250 * MS);
    for (let count = 0; count < 20; count += 1) time.add("start", 7, count * 250 * MS);
    for (let slot = 100; slot < 300; slot += 9) time.add("start", slot, slot * 250 * MS);
    expect(time.ms).toBeNull();
  });

  it("keeps its measured value after a restart", () => {
    const time = createSlotTime();
    for (let slot = 0; slot < 10; slot += 1) time.add("start", slot, slot * 250 * MS);
    time.restart();
    time.add("start", 11, 90_000 * MS);
    expect(time.ms).toBeCloseTo(250);
  });
});
