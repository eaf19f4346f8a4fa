import { describe, expect, it } from "vitest";
import { generateToken, looksMistyped } from "../../../src/accounts/keys/format.ts";

describe("key token", () => {
  it("has a prefix, an environment, 27 random characters and a checksum of 6", () => {
    expect(generateToken("live")).toMatch(/^td_live_[0-9A-Za-z]{33}$/);
    expect(generateToken("test")).toMatch(/^td_test_[0-9A-Za-z]{33}$/);
    expect(generateToken("live").length).toBeLessThanOrEqual(128);
  });

  it("is unique, and all base-62 digits occur", () => {
    const tokens = Array.from({ length: 500 }, () => generateToken("live"));
    expect(new Set(tokens).size).toBe(500);
    const digits = new Set(tokens.flatMap((token) => [...token.slice(8, 35)]));
    expect(digits.size).toBe(62);
  });

  it("is recognized as mistyped if any single character changes", () => {
    const token = generateToken("live");
    expect(looksMistyped(token)).toBe(false);
    for (let i = 3; i < token.length; i += 1) {
      const other = token[i] === "a" ? "b" : "a";
      expect(looksMistyped(token.slice(0, i) + other + token.slice(i + 1))).toBe(true);
    }
    expect(looksMistyped(token.slice(0, -1))).toBe(true);
    expect(looksMistyped(`${token}x`)).toBe(true);
  });

  it("is not recognized as mistyped if it has another format", () => {
    expect(looksMistyped("0191f3a2-7d0c-7b6e-a6a9-2f4b5b0c7d11")).toBe(false);
  });

  it("is not generated for an invalid environment name", () => {
    for (const name of ["", "Live", "a_b", "x".repeat(17)]) {
      expect(() => generateToken(name)).toThrow(RangeError);
    }
  });
});
