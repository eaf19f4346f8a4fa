import { describe, expect, it } from "vitest";
import { isUnsafePoint } from "../../src/core/ed25519.ts";

const hex = (text: string) => new Uint8Array(Buffer.from(text, "hex"));
const BASE_POINT = `58${"66".repeat(31)}`;

describe("an unsafe point", () => {
  it("is each of the eight points of small order, with either sign bit", () => {
    const small = [
      "00".repeat(32),
      `01${"00".repeat(31)}`,
      `ec${"ff".repeat(30)}7f`,
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    ];
    for (const text of small) {
      const bytes = hex(text);
      expect(isUnsafePoint(bytes, 0)).toBe(true);
      bytes[31] = (bytes[31] ?? 0) | 0x80;
      expect(isUnsafePoint(bytes, 0)).toBe(true);
    }
  });

  it("is every y from 2^255 - 19 to 2^255 - 1", () => {
    for (let first = 0xed; first <= 0xff; first += 1) {
      for (const last of ["7f", "ff"]) {
        const bytes = hex(`${first.toString(16)}${"ff".repeat(30)}${last}`);
        expect(isUnsafePoint(bytes, 0)).toBe(true);
      }
    }
  });

  it("does not match when one byte differs", () => {
    expect(isUnsafePoint(hex(BASE_POINT), 0)).toBe(false);
    expect(isUnsafePoint(hex(`02${"00".repeat(31)}`), 0)).toBe(false);
    expect(isUnsafePoint(hex(`eb${"ff".repeat(30)}7f`), 0)).toBe(false);
    for (const text of [`00${"00".repeat(31)}`, `ed${"ff".repeat(30)}7f`]) {
      for (let i = 1; i < 32; i += 1) {
        const bytes = hex(text);
        bytes[i] = (bytes[i] ?? 0) ^ 0x10;
        expect(isUnsafePoint(bytes, 0)).toBe(false);
      }
    }
  });

  it("is checked at the offset", () => {
    expect(isUnsafePoint(hex(`${BASE_POINT}${"00".repeat(32)}`), 32)).toBe(true);
    expect(isUnsafePoint(hex(`${"00".repeat(32)}${BASE_POINT}`), 32)).toBe(false);
  });
});
