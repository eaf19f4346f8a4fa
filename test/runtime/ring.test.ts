import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { createRing, ringBytes } from "../../src/runtime/ring.ts";
import { fc } from "../support/properties.ts";

const OFFSET = 8;
const SLOT_BYTES = 16;

/** Both sides of a ring whose cursors start at `cursor`. */
function newRing(slots: number, cursor = 0) {
  const buffer = new SharedArrayBuffer(OFFSET + ringBytes(slots, SLOT_BYTES));
  new Int32Array(buffer, OFFSET, 1)[0] = cursor;
  new Int32Array(buffer, OFFSET + 64, 1)[0] = cursor;
  const make = () => createRing(buffer, OFFSET, slots, SLOT_BYTES);
  return { writer: make(), reader: make(), numbers: new Float64Array(buffer) };
}

type Rings = ReturnType<typeof newRing>;

function push({ writer, numbers }: Rings, value: number): boolean {
  const slot = writer.claim();
  if (slot === -1) return false;
  numbers[slot / 8] = value;
  numbers[slot / 8 + 1] = -value;
  writer.publish();
  return true;
}

function pull({ reader, numbers }: Rings): number | null {
  const slot = reader.peek();
  if (slot === -1) return null;
  const value = numbers[slot / 8] ?? Number.NaN;
  expect(numbers[slot / 8 + 1]).toBe(-value);
  reader.release();
  return value;
}

describe("a ring", () => {
  it("accepts as many as it has slots, and one more after one was read", () => {
    const ring = newRing(4);
    expect([1, 2, 3, 4, 5].map((value) => push(ring, value))).toEqual([
      true,
      true,
      true,
      true,
      false,
    ]);
    expect(ring.writer.depth).toBe(4);
    expect(pull(ring)).toBe(1);
    expect(push(ring, 6)).toBe(true);
    expect(push(ring, 7)).toBe(false);
  });

  it("shows nothing that was reserved but not published", () => {
    const ring = newRing(2);
    const slot = ring.writer.claim();
    expect(ring.reader.peek()).toBe(-1);
    expect(ring.writer.claim()).toBe(slot);
    ring.writer.publish();
    expect(ring.reader.peek()).toBe(slot);
  });

  it("keeps a slot that was read until it is released", () => {
    const ring = newRing(1);
    push(ring, 1);
    expect(ring.reader.peek()).toBe(ring.reader.peek());
    expect(push(ring, 2)).toBe(false);
    ring.reader.release();
    expect(push(ring, 2)).toBe(true);
  });

  it("rejects a layout that would break its arithmetic", () => {
    const buffer = new SharedArrayBuffer(4096);
    expect(() => createRing(buffer, 0, 3, 8)).toThrow(RangeError);
    expect(() => createRing(buffer, 0, 0, 8)).toThrow(RangeError);
    expect(() => createRing(buffer, 4, 4, 8)).toThrow(RangeError);
    expect(() => createRing(buffer, 0, 4, 12)).toThrow(RangeError);
    expect(() => createRing(buffer, 0, 1024, 8)).toThrow(RangeError);
  });

  it("behaves as a bounded queue at any cursor", () => {
    const slotCounts = fc.constantFrom(1, 2, 4, 8);
    const starts = fc.oneof(fc.integer(), fc.constantFrom(0, -3, 0x7ffffffe, 0x7fffffff));
    const steps = fc.array(fc.boolean(), { maxLength: 200 });
    fc.assert(
      fc.property(slotCounts, starts, steps, (slots, start, pushes) => {
        const ring = newRing(slots, start);
        const model: number[] = [];
        for (const [value, isPush] of pushes.entries()) {
          if (isPush) {
            expect(push(ring, value)).toBe(model.length < slots);
            if (model.length < slots) model.push(value);
          } else {
            expect(pull(ring)).toBe(model.length === 0 ? null : model.splice(0, 1)[0]);
          }
          expect(ring.reader.depth).toBe(model.length);
        }
      }),
    );
  });

  it("transfers a million numbers between threads in order", async () => {
    const COUNT = 1_000_000;
    const slots = 512;
    const buffer = new SharedArrayBuffer(ringBytes(slots, SLOT_BYTES));
    // The cursors pass the end of int32 halfway.
    new Int32Array(buffer, 0, 1)[0] = 0x7fffffff - COUNT / 2;
    new Int32Array(buffer, 64, 1)[0] = 0x7fffffff - COUNT / 2;
    const writer = new Worker(new URL("../support/ring-writer.mjs", import.meta.url), {
      workerData: { buffer, slots, slotBytes: SLOT_BYTES, count: COUNT },
    });
    const numbers = new Float64Array(buffer);
    const ring = createRing(buffer, 0, slots, SLOT_BYTES);
    const failure = new Promise((_, reject) => writer.once("error", reject));
    let next = 0;
    let wrong = 0;
    while (next < COUNT) {
      const slot = ring.peek();
      if (slot === -1) {
        await Promise.race([new Promise((resolve) => setImmediate(resolve)), failure]);
        continue;
      }
      if (numbers[slot / 8] !== next || numbers[slot / 8 + 1] !== -next) wrong += 1;
      ring.release();
      next += 1;
    }
    expect(wrong).toBe(0);
    expect(ring.depth).toBe(0);
    await writer.terminate();
  });
});
