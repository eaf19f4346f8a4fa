import { describe, expect, it, vi } from "vitest";
import { createSeen } from "../../src/dedup/recent-transactions.ts";
import { fc } from "../support/properties.ts";

const MS = 1_000_000;
/** A transaction whose signature starts at 1 and holds `n`. */
const tx = (n: number, size = 100): Uint8Array => {
  const bytes = new Uint8Array(size).fill(7);
  new DataView(bytes.buffer).setUint32(1, n);
  return bytes;
};

describe("a transaction that was accepted", () => {
  it("is known by exactly its bytes", () => {
    const seen = createSeen();
    seen.insert(tx(1), 1, 0);
    expect(seen.query(tx(1), 1, MS)).toBe(true);
    expect(seen.query(tx(2), 1, MS)).toBe(false);
    expect(seen.query(tx(1, 101), 1, MS)).toBe(false);
    const other = tx(1);
    other[99] = 8;
    expect(seen.query(other, 1, MS)).toBe(false);
    expect(seen.counters).toMatchObject({ hits: 1, entries: 1 });
  });

  it("is kept as a copy", () => {
    const seen = createSeen();
    const bytes = tx(1);
    seen.insert(bytes, 1, 0);
    bytes.fill(0);
    expect(seen.query(tx(1), 1, MS)).toBe(true);
  });

  it("is forgotten after its time", () => {
    const seen = createSeen({ keepMs: 2_000 });
    seen.insert(tx(1), 1, 0);
    expect(seen.query(tx(1), 1, 2_000 * MS)).toBe(true);
    expect(seen.query(tx(1), 1, 2_000 * MS + 1)).toBe(false);
    seen.insert(tx(2), 1, 3_000 * MS);
    expect(seen.counters).toMatchObject({ entries: 1, evicted: 0 });
  });

  it("may come again after its time and starts anew", () => {
    const seen = createSeen({ keepMs: 10 });
    seen.insert(tx(1), 1, 0);
    seen.insert(tx(1), 1, 11 * MS);
    expect(seen.query(tx(1), 1, 12 * MS)).toBe(true);
    seen.insert(tx(2), 1, 13 * MS);
    expect(seen.query(tx(1), 1, 14 * MS)).toBe(true);
  });

  it("makes way for others at the bound of entries, oldest first", () => {
    const seen = createSeen({ entriesMax: 3 });
    for (let n = 1; n <= 5; n += 1) seen.insert(tx(n), 1, 0);
    const known = [1, 2, 3, 4, 5].map((n) => seen.query(tx(n), 1, 0));
    expect(known).toEqual([false, false, true, true, true]);
    expect(seen.counters).toMatchObject({ entries: 3, evicted: 2 });
  });

  it("makes way for others at the bound of bytes, the end of the ring included", () => {
    const seen = createSeen({ bytesMax: 256 });
    const sizes = [104, 100, 48, 60, 200];
    const entries = sizes.map((size, n) => {
      seen.insert(tx(n, size), 1, 0);
      return seen.counters.entries;
    });
    expect(entries).toEqual([1, 2, 3, 3, 1]);
    expect(seen.query(tx(4, 200), 1, 0)).toBe(true);
    expect(seen.query(tx(3, 60), 1, 0)).toBe(false);
  });

  it("takes memory by how much has to be remembered, and loses nothing by that", () => {
    const seen = createSeen({ keepMs: 2_000, bytesMax: 32 * 1024 * 1024 });
    const size = 700;
    let n = 0;
    const send = (count: number, everyNs: number, fromNs: number): number => {
      for (let sent = 0; sent < count; sent += 1) {
        n += 1;
        seen.insert(tx(n, size), 1, fromNs + sent * everyNs);
      }
      return fromNs + count * everyNs;
    };
    // 100 a second need 140 kB, 6,000 a second 8.4 MB.
    let nowNs = send(3_000, 10 * MS, 0);
    expect(seen.counters.bytes).toBe(1024 * 1024);
    nowNs = send(40_000, MS / 6, nowNs);
    expect(seen.counters.bytes).toBeGreaterThan(8_400_000);
    expect(seen.counters.bytes).toBeLessThan(16_000_000);
    expect(seen.query(tx(n - 11_900, size), 1, nowNs)).toBe(true);
    expect(seen.counters.evicted).toBeLessThan(200);
    const { bytes } = seen.counters;
    send(40_000, MS / 6, nowNs);
    expect(seen.counters.bytes).toBe(bytes);
  });

  it("is found as fast beside many whose signatures begin alike", () => {
    const seen = createSeen();
    // A signer who uses one nonce again makes the first half of all signatures the same.
    const alike = (n: number): Buffer => {
      const bytes = Buffer.alloc(100, 7);
      bytes.writeUInt32LE(n, 1 + 32);
      return bytes;
    };
    const compare = vi.spyOn(Buffer.prototype, "compare");
    for (let n = 0; n < 500; n += 1) seen.insert(alike(n), 1, 0);
    for (let n = 0; n < 500; n += 1) expect(seen.query(alike(n), 1, 0)).toBe(true);
    expect(seen.query(alike(500), 1, 0)).toBe(false);
    expect(compare.mock.calls.length).toBe(500);
    compare.mockRestore();
  });

  it("is not asked for where there is no signature", () => {
    const seen = createSeen();
    seen.insert(tx(1, 6), 1, 0);
    expect(seen.counters.entries).toBe(0);
    for (const offset of [-1, 1, 95, 1_000]) expect(seen.query(tx(1, 6), offset, 0)).toBe(false);
  });

  it("never answers anything that a plain map would not, in a ring of any size", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 20, max: 400 }),
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.tuple(fc.nat(12), fc.integer({ min: 8, max: 120 }), fc.nat(3)), {
          maxLength: 120,
        }),
        (bytesMax, entriesMax, steps) => {
          const seen = createSeen({ bytesMax, entriesMax, keepMs: 10 });
          const model = new Map<string, number>();
          let now = 0;
          for (const [n, size, pause] of steps) {
            now += pause * MS;
            const key = `${n}/${size}`;
            const known = seen.query(tx(n, size), 1, now);
            if (known) {
              expect(now - (model.get(key) ?? Number.NaN)).toBeLessThanOrEqual(10 * MS);
            }
            seen.insert(tx(n, size), 1, now);
            if (size > bytesMax) continue;
            model.set(key, now);
            // The latest one is always known.
            expect(seen.query(tx(n, size), 1, now)).toBe(true);
          }
          expect(seen.counters.entries).toBeLessThanOrEqual(entriesMax);
        },
      ),
    );
  });
});
