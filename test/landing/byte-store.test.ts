import { describe, expect, it } from "vitest";
import { ByteStore, NONE } from "../../src/landing/byte-store.ts";
import { fc } from "../support/properties.ts";

const BLOCK = 512;

/** Without repetition, so that each block is distinguishable. */
function differing(size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => index * 7 + (index >>> 8) * 13 + size);
}

function readBack(store: ByteStore, first: number, size: number): Uint8Array {
  const into = new Uint8Array(size);
  store.read(first, 0, size, into);
  return into;
}

describe("the store of bytes", () => {
  it("gives back what was put, at every size around a block's", () => {
    const store = new ByteStore(20 * BLOCK);
    for (const size of [1, 511, 512, 513, 1024, 1025, 4096]) {
      const bytes = differing(size);
      const first = store.put(bytes);
      expect(readBack(store, first, size)).toEqual(bytes);
      store.free(first);
    }
  });

  it("gives back any part, also one that begins or ends in another block", () => {
    const store = new ByteStore(20 * BLOCK);
    // Blocks that are not contiguous.
    const chains = [0, 0, 0, 0].map(() => store.put(new Uint8Array(BLOCK)));
    for (const index of [1, 3, 0, 2]) store.free(chains[index] ?? NONE);
    const bytes = differing(2000);
    const first = store.put(bytes);
    for (const from of [0, 1, 480, 481, 511, 512, 513, 1000, 1023, 1024, 1500, 1968]) {
      const into = new Uint8Array(33);
      store.read(first, from, 32, into);
      expect([...into]).toEqual([...bytes.subarray(from, from + 32), 0]);
    }
  });

  it("keeps a copy of its own", () => {
    const store = new ByteStore(BLOCK);
    const lent = Uint8Array.of(1, 2, 3);
    const first = store.put(lent);
    lent.fill(0);
    expect(readBack(store, first, 3)).toEqual(Uint8Array.of(1, 2, 3));
  });

  it("holds nothing for no bytes", () => {
    expect(new ByteStore(BLOCK).put(new Uint8Array(0))).toBe(NONE);
  });

  it("reports when it is full, and has room again after a release", () => {
    const store = new ByteStore(2 * BLOCK);
    const first = store.put(new Uint8Array(BLOCK + 1));
    expect(store.hasRoomFor(1)).toBe(false);
    store.free(first);
    expect(store.hasRoomFor(2 * BLOCK)).toBe(true);
    expect(store.hasRoomFor(2 * BLOCK + 1)).toBe(false);
  });

  it("never mixes two entries under random additions and removals", () => {
    const step = fc.record({ size: fc.integer({ min: 1, max: 1300 }), frees: fc.nat({ max: 9 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const store = new ByteStore(40 * BLOCK);
        const held: { first: number; bytes: Uint8Array }[] = [];
        for (const [index, { size, frees }] of steps.entries()) {
          const gone = held.splice(frees % (held.length + 1), 1)[0];
          if (gone !== undefined && frees > 3) store.free(gone.first);
          else if (gone !== undefined) held.push(gone);
          if (!store.hasRoomFor(size)) continue;
          const bytes = new Uint8Array(size).fill(index + 1);
          held.push({ first: store.put(bytes), bytes });
        }
        for (const { first, bytes } of held) {
          expect(readBack(store, first, bytes.length)).toEqual(bytes);
        }
        for (const { first } of held) store.free(first);
        expect(store.hasRoomFor(40 * BLOCK)).toBe(true);
      }),
    );
  });
});
