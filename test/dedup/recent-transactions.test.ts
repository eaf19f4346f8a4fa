import { describe, expect, it, vi } from "vitest";
import { createDedupCache } from "../../src/dedup/recent-transactions.ts";
import { fc } from "../support/properties.ts";

const MS = 1_000_000;
/** A transaction whose signature starts at offset 1 and holds `n`. */
const tx = (n: number, size = 100): Uint8Array => {
  const bytes = new Uint8Array(size).fill(7);
  new DataView(bytes.buffer).setUint32(1, n);
  return bytes;
};

describe("a transaction that was accepted", () => {
  it("is known by exactly its bytes", () => {
    const dedup = createDedupCache();
    dedup.insert(tx(1), 1, 0);
    expect(dedup.query(tx(1), 1, MS)).toBe(true);
    expect(dedup.query(tx(2), 1, MS)).toBe(false);
    expect(dedup.query(tx(1, 101), 1, MS)).toBe(false);
    const other = tx(1);
    other[99] = 8;
    expect(dedup.query(other, 1, MS)).toBe(false);
    expect(dedup.counters).toMatchObject({ hits: 1, entries: 1 });
  });

  it("is kept as a copy", () => {
    const dedup = createDedupCache();
    const bytes = tx(1);
    dedup.insert(bytes, 1, 0);
    bytes.fill(0);
    expect(dedup.query(tx(1), 1, MS)).toBe(true);
  });

  it("is forgotten after its time", () => {
    const dedup = createDedupCache({ keepMs: 2_000 });
    dedup.insert(tx(1), 1, 0);
    expect(dedup.query(tx(1), 1, 2_000 * MS)).toBe(true);
    expect(dedup.query(tx(1), 1, 2_000 * MS + 1)).toBe(false);
    dedup.insert(tx(2), 1, 3_000 * MS);
    expect(dedup.counters).toMatchObject({ entries: 1, evicted: 0 });
  });

  it("is accepted again after its time", () => {
    const dedup = createDedupCache({ keepMs: 10 });
    dedup.insert(tx(1), 1, 0);
    dedup.insert(tx(1), 1, 11 * MS);
    expect(dedup.query(tx(1), 1, 12 * MS)).toBe(true);
    dedup.insert(tx(2), 1, 13 * MS);
    expect(dedup.query(tx(1), 1, 14 * MS)).toBe(true);
  });

  it("lives on from the time of its last copy", () => {
    const dedup = createDedupCache({ keepMs: 10 });
    dedup.insert(tx(1), 1, 0);
    expect(dedup.renew(tx(1), 1, 0, 9 * MS)).toBe(true);
    expect(dedup.query(tx(1), 1, 19 * MS)).toBe(true);
    expect(dedup.query(tx(1), 1, 19 * MS + 1)).toBe(false);
    // Its entry may have expired, or was never made.
    expect(dedup.renew(tx(1), 1, 9 * MS, 20 * MS)).toBe(true);
    expect(dedup.query(tx(1), 1, 30 * MS)).toBe(true);
    expect(dedup.renew(new Uint8Array(3), 1, 0, 0)).toBe(true);
  });

  it("is forgotten on demand, unless a newer copy left", () => {
    const dedup = createDedupCache({ keepMs: 10 });
    dedup.insert(tx(1), 1, 0);
    dedup.insert(tx(2), 1, MS);
    // Its first entry has not expired yet.
    dedup.renew(tx(1), 1, 0, 2 * MS);
    const known = () => [1, 2].map((n) => dedup.query(tx(n), 1, 3 * MS));
    dedup.forget(tx(1), 1, 2 * MS - 1);
    expect(known()).toEqual([true, true]);
    dedup.forget(tx(1), 1, 2 * MS);
    expect(known()).toEqual([false, true]);
    dedup.forget(tx(3), 1, 2 * MS);
    dedup.forget(new Uint8Array(3), 1, 2 * MS);
    expect(dedup.renew(tx(1), 1, 0, 4 * MS)).toBe(true);
    expect(dedup.query(tx(1), 1, 5 * MS)).toBe(true);
  });

  it("is evicted at the bound of entries, oldest first", () => {
    const dedup = createDedupCache({ entriesMax: 3 });
    for (let n = 1; n <= 5; n += 1) dedup.insert(tx(n), 1, 0);
    const known = [1, 2, 3, 4, 5].map((n) => dedup.query(tx(n), 1, 0));
    expect(known).toEqual([false, false, true, true, true]);
    expect(dedup.counters).toMatchObject({ entries: 3, evicted: 2 });
  });

  it("is evicted at the bound of bytes, also at the end of the ring", () => {
    const dedup = createDedupCache({ bytesMax: 256 });
    const sizes = [104, 100, 48, 60, 200];
    const entries = sizes.map((size, n) => {
      dedup.insert(tx(n, size), 1, 0);
      return dedup.counters.entries;
    });
    expect(entries).toEqual([1, 2, 3, 3, 1]);
    expect(dedup.query(tx(4, 200), 1, 0)).toBe(true);
    expect(dedup.query(tx(3, 60), 1, 0)).toBe(false);
  });

  it("uses memory in proportion to its entries, and loses none by growing", () => {
    const dedup = createDedupCache({ keepMs: 2_000, bytesMax: 32 * 1024 * 1024 });
    const size = 700;
    let n = 0;
    const send = (count: number, everyNs: number, fromNs: number): number => {
      for (let sent = 0; sent < count; sent += 1) {
        n += 1;
        dedup.insert(tx(n, size), 1, fromNs + sent * everyNs);
      }
      return fromNs + count * everyNs;
    };
    // 100/s need 140 kB, 6,000/s need 8.4 MB.
    let nowNs = send(3_000, 10 * MS, 0);
    expect(dedup.counters.bytes).toBe(1024 * 1024);
    nowNs = send(40_000, MS / 6, nowNs);
    expect(dedup.counters.bytes).toBeGreaterThan(8_400_000);
    expect(dedup.counters.bytes).toBeLessThan(16_000_000);
    expect(dedup.query(tx(n - 11_900, size), 1, nowNs)).toBe(true);
    expect(dedup.counters.evicted).toBeLessThan(200);
    const { bytes } = dedup.counters;
    send(40_000, MS / 6, nowNs);
    expect(dedup.counters.bytes).toBe(bytes);
  });

  it("is found as fast among many signatures with the same start", () => {
    const dedup = createDedupCache();
    // A signer that reuses one nonce makes the first half of all its signatures equal.
    const alike = (n: number): Buffer => {
      const bytes = Buffer.alloc(100, 7);
      bytes.writeUInt32LE(n, 1 + 32);
      return bytes;
    };
    const compare = vi.spyOn(Buffer.prototype, "compare");
    for (let n = 0; n < 500; n += 1) dedup.insert(alike(n), 1, 0);
    for (let n = 0; n < 500; n += 1) expect(dedup.query(alike(n), 1, 0)).toBe(true);
    expect(dedup.query(alike(500), 1, 0)).toBe(false);
    expect(compare.mock.calls.length).toBe(500);
    compare.mockRestore();
  });

  it("is not looked up without a signature", () => {
    const dedup = createDedupCache();
    dedup.insert(tx(1, 6), 1, 0);
    expect(dedup.counters.entries).toBe(0);
    for (const offset of [-1, 1, 95, 1_000]) expect(dedup.query(tx(1, 6), offset, 0)).toBe(false);
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
          const dedup = createDedupCache({ bytesMax, entriesMax, keepMs: 10 });
          const model = new Map<string, number>();
          let now = 0;
          for (const [n, size, pause] of steps) {
            now += pause * MS;
            const key = `${n}/${size}`;
            const known = dedup.query(tx(n, size), 1, now);
            if (known) {
              expect(now - (model.get(key) ?? Number.NaN)).toBeLessThanOrEqual(10 * MS);
            }
            dedup.insert(tx(n, size), 1, now);
            if (size > bytesMax) continue;
            model.set(key, now);
            // The latest transaction is always found.
            expect(dedup.query(tx(n, size), 1, now)).toBe(true);
          }
          expect(dedup.counters.entries).toBeLessThanOrEqual(entriesMax);
        },
      ),
    );
  });
});
