import { describe, expect, it } from "vitest";
import { generateToken, looksMistyped } from "../../../src/accounts/keys/format.ts";

describe("a generated key", () => {
  it("has prefix, environment, 27 random characters and 6 of checksum", () => {
    expect(generateToken("live")).toMatch(/^td_live_[0-9A-Za-z]{33}$/);
    expect(generateToken("test")).toMatch(/^td_test_[0-9A-Za-z]{33}$/);
    expect(generateToken("live").length).toBeLessThanOrEqual(128);
  });

  it("is never the same twice and uses every digit", () => {
    const tokens = Array.from({ length: 500 }, () => generateToken("live"));
    expect(new Set(tokens).size).toBe(500);
    const digits = new Set(tokens.flatMap((token) => [...token.slice(8, 35)]));
    expect(digits.size).toBe(62);
  });

  it("is told from one with any single character changed", () => {
    const token = generateToken("live");
    expect(looksMistyped(token)).toBe(false);
    for (let i = 3; i < token.length; i += 1) {
      const other = token[i] === "a" ? "b" : "a";
      expect(looksMistyped(token.slice(0, i) + other + token.slice(i + 1))).toBe(true);
    }
    expect(looksMistyped(token.slice(0, -1))).toBe(true);
    expect(looksMistyped(`${token}x`)).toBe(true);
  });

  it("says nothing about keys of another make", () => {
    expect(looksMistyped("0191f3a2-7d0c-7b6e-a6a9-2f4b5b0c7d11")).toBe(false);
  });

  it("refuses an environment that would not fit into the form", () => {
    for (const name of ["", "Live", "a_b", "x".repeat(17)]) {
      expect(() => generateToken(name)).toThrow(RangeError);
    }
  });
});
