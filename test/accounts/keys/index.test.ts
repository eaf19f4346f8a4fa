import { describe, expect, it } from "vitest";
import { KeyEntries } from "../../../src/accounts/keys/entry-layout.ts";
import { INDEX_ENTRIES_MAX, KeyIndex, NO_ENTRY } from "../../../src/accounts/keys/index.ts";
import { KEYS_MAX } from "../../../src/accounts/limits.ts";
import { createRng } from "../../support/rng.ts";

/** An index over entries with these digests. */
function indexOf(digests: readonly Buffer[]) {
  const keyEntries = new KeyEntries();
  const index = new KeyIndex(keyEntries);
  for (const [keyEntry, sha256] of digests.entries()) {
    keyEntries.writeDigest(keyEntry, sha256, 0);
    index.add(keyEntry);
  }
  return { keyEntries, index };
}

/** A digest with these first two words. */
function digestWith(first: number, second: number, rest: number): Buffer {
  const sha256 = Buffer.alloc(32, rest);
  sha256.writeUInt32LE(first, 0);
  sha256.writeUInt32LE(second, 4);
  return sha256;
}

describe("key index", () => {
  it("finds each of 20,000 digests, and no other", () => {
    const rng = createRng(2);
    const digests = Array.from({ length: 20_000 }, () => Buffer.from(rng.bytes(32)));
    const { index } = indexOf(digests);
    for (const [keyEntry, sha256] of digests.entries())
      expect(index.find(sha256, 0)).toBe(keyEntry);
    for (let i = 0; i < 1_000; i += 1) {
      expect(index.find(Buffer.from(rng.bytes(32)), 0)).toBe(NO_ENTRY);
    }
  });

  it("distinguishes 200 digests with the same first 8 bytes", () => {
    const digests = Array.from({ length: 200 }, (_, rest) => digestWith(0xffff_ffff, 3, rest));
    const { index } = indexOf(digests);
    for (const [keyEntry, sha256] of digests.entries())
      expect(index.find(sha256, 0)).toBe(keyEntry);
    expect(index.find(digestWith(0xffff_ffff, 3, 201), 0)).toBe(NO_ENTRY);
  });

  it("finds the remaining digests after a removal, also across the end of a part", () => {
    // The last part holds 11 entries in its first 16 slots; these need both of its ends.
    const firsts = [15, 15, 14, 0, 15, 14, 0, 15, 1, 13];
    const digests = firsts.map((first, rest) => digestWith(first, 255, rest));
    for (const removed of digests.keys()) {
      const { index } = indexOf(digests);
      index.remove(removed);
      for (const [keyEntry, sha256] of digests.entries()) {
        expect(index.find(sha256, 0)).toBe(keyEntry === removed ? NO_ENTRY : keyEntry);
      }
    }
  });

  it("follows an entry that moves", () => {
    const digests = [1, 2, 3].map((rest) => digestWith(5, 5, rest));
    const { keyEntries, index } = indexOf(digests);
    index.remove(0);
    index.move(2, 0);
    keyEntries.copy(2, 0);
    expect(digests.map((sha256) => index.find(sha256, 0))).toEqual([NO_ENTRY, 1, 0]);
  });

  it("has numbers for more than KEYS_MAX entries", () => {
    expect(INDEX_ENTRIES_MAX).toBeGreaterThan(KEYS_MAX);
  });
});
