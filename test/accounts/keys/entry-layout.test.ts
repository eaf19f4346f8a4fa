import { describe, expect, it } from "vitest";
import { KeyEntries } from "../../../src/accounts/keys/entry-layout.ts";
import { createRng } from "../../support/rng.ts";

const rng = createRng(1);
const digest = () => Buffer.from(rng.bytes(32));
const id = () => Buffer.from(rng.bytes(16)).toString("hex");

function write(
  entries: KeyEntries,
  entry: number,
  sha256: Buffer,
  keyId: string,
  ...rest: Numbers
) {
  entries.writeDigest(entry, sha256, 0);
  entries.writeIdText(entry, keyId);
  entries.writeNumbers(entry, ...rest);
}
type Numbers = [number, number, number, boolean];

describe("key entries", () => {
  it("return what was written, across several blocks", () => {
    const entries = new KeyEntries();
    const written = Array.from({ length: 9_000 }, () => ({ sha256: digest(), keyId: id() }));
    for (const [entry, { sha256, keyId }] of written.entries()) {
      write(entries, entry, sha256, keyId, entry, 2 ** 32 - 1 - entry, entry * 2, entry % 3 === 0);
    }
    for (const [entry, { sha256, keyId }] of written.entries()) {
      expect(entries.digestOf(entry).equals(sha256) && entries.matches(entry, sha256, 0)).toBe(
        true,
      );
      expect(entries.idOf(entry)).toBe(keyId);
      expect(entries.accountOf(entry)).toBe(entry);
      expect(entries.planOf(entry)).toBe(2 ** 32 - 1 - entry);
      expect(entries.policyOf(entry)).toBe(entry * 2);
      expect(entries.isDerived(entry)).toBe(entry % 3 === 0);
    }
  });

  it("distinguish digests that differ in one bit", () => {
    const entries = new KeyEntries();
    const sha256 = digest();
    write(entries, 0, sha256, id(), 0, 0, 0, false);
    for (let bit = 0; bit < 256; bit += 1) {
      const other = Buffer.from(sha256);
      other.writeUInt8(other.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(entries.matches(0, other, 0)).toBe(false);
    }
  });

  it("read a digest and an id at an offset in other bytes", () => {
    const entries = new KeyEntries();
    const bytes = Buffer.from(rng.bytes(80));
    entries.writeDigest(3, bytes, 5);
    entries.writeId(3, bytes, 50);
    expect(entries.digestOf(3)).toEqual(bytes.subarray(5, 37));
    expect(entries.matches(3, bytes, 5)).toBe(true);
    expect(entries.matches(3, bytes, 6)).toBe(false);
    expect(entries.idOf(3)).toBe(bytes.toString("hex", 50, 66));
  });

  it("are found by account within the given count, also after a copy", () => {
    const entries = new KeyEntries();
    for (let entry = 0; entry < 6_000; entry += 1)
      write(entries, entry, digest(), id(), entry % 7, 0, 0, false);
    entries.copy(3, 5_995);
    const selectedAccounts = Uint8Array.from([0, 0, 0, 1, 0, 0, 0]);
    const expected = Array.from({ length: 5_999 }, (_, entry) => entry).filter(
      (entry) => entry % 7 === 3 || entry === 5_995,
    );
    expect(entries.entriesOf(selectedAccounts, 5_999)).toEqual(expected);
  });

  it("are copied completely within a block and between blocks", () => {
    const entries = new KeyEntries();
    const [sha256, keyId] = [digest(), id()];
    for (const entry of [1, 5_000]) write(entries, entry, digest(), id(), 0, 0, 0, false);
    write(entries, 2, sha256, keyId, 7, 8, 9, true);
    entries.copy(2, 1);
    entries.copy(2, 5_000);
    for (const entry of [1, 2, 5_000]) {
      expect(entries.matches(entry, sha256, 0)).toBe(true);
      expect(entries.idOf(entry)).toBe(keyId);
      expect([entries.accountOf(entry), entries.planOf(entry), entries.policyOf(entry)]).toEqual([
        7, 8, 9,
      ]);
      expect(entries.isDerived(entry)).toBe(true);
    }
  });
});
