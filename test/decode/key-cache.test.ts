import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createKeyCache, type KeyCache } from "../../src/decode/key-cache.ts";

/** OpenSSL accepts any 32 bytes as a key; verification detects whether they are a point. */
const keyBytes = (n: number): Uint8Array =>
  new Uint8Array(createHash("sha256").update(String(n)).digest());

function exported(cache: KeyCache, bytes: Uint8Array, offset = 0): string | undefined {
  return cache.keyAt(bytes, offset).export({ format: "jwk" }).x;
}

describe("the key cache", () => {
  it("creates the key of the bytes at any offset", () => {
    const cache = createKeyCache(16);
    const bytes = Buffer.concat([keyBytes(1), keyBytes(2)]);
    for (let i = 0; i < 3; i += 1) {
      expect(exported(cache, bytes)).toBe(Buffer.from(keyBytes(1)).toString("base64url"));
      expect(exported(cache, bytes, 32)).toBe(Buffer.from(keyBytes(2)).toString("base64url"));
    }
  });

  it("caches a key from its second use on", () => {
    const cache = createKeyCache(16);
    const first = cache.keyAt(keyBytes(1), 0);
    const second = cache.keyAt(keyBytes(1), 0);
    expect(second).not.toBe(first);
    expect(cache.keyAt(keyBytes(1), 0)).toBe(second);
    expect(cache.counters).toEqual({ keysFound: 1, keysMade: 2, keysEvicted: 0 });
  });

  it("never returns another key", () => {
    const cache = createKeyCache(4);
    const near = keyBytes(5);
    for (let i = 0; i < 32; i += 1) {
      for (let use = 0; use < 3; use += 1) {
        near[i] = (near[i] ?? 0) ^ 1;
        expect(exported(cache, near)).toBe(Buffer.from(near).toString("base64url"));
      }
    }
  });

  it("evicts the least recently used key when a set is full", () => {
    const cache = createKeyCache(4);
    const use = (n: number) => cache.keyAt(keyBytes(n), 0);
    for (const n of [1, 1, 2, 2, 3, 3, 4, 4, 1]) use(n);
    expect(cache.counters.keysEvicted).toBe(0);
    for (const n of [5, 5]) use(n);
    expect(cache.counters.keysEvicted).toBe(1);
    const made = cache.counters.keysMade;
    for (const n of [1, 3, 4, 5]) use(n);
    expect(cache.counters.keysMade).toBe(made);
  });

  it("keeps regular keys through a flood of new ones", () => {
    const cache = createKeyCache(64);
    for (let n = 0; n < 4; n += 1) for (let i = 0; i < 2; i += 1) cache.keyAt(keyBytes(n), 0);
    for (let n = 1000; n < 4000; n += 1) cache.keyAt(keyBytes(n), 0);
    const made = cache.counters.keysMade;
    for (let n = 0; n < 4; n += 1) cache.keyAt(keyBytes(n), 0);
    expect(cache.counters.keysMade).toBe(made);
    expect(cache.counters.keysEvicted).toBe(0);
  });

  it("caches nothing when its size is 0", () => {
    const cache = createKeyCache(0);
    for (let i = 0; i < 3; i += 1) cache.keyAt(keyBytes(1), 0);
    expect(cache.counters).toEqual({ keysFound: 0, keysMade: 3, keysEvicted: 0 });
  });
});
