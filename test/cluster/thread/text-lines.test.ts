import { describe, expect, it } from "vitest";
import { clipped, linesOf, lineText } from "../../../src/cluster/thread/text-lines.ts";

describe("texts of a message", () => {
  it("fit in a line up to 64 characters without control characters", () => {
    expect(lineText("x".repeat(64))).toBe("x".repeat(64));
    expect(lineText("x".repeat(65))).toBeNull();
    for (const odd of ["a\nb", "a\tb", "\u0000"]) expect(lineText(odd)).toBeNull();
    expect([linesOf(""), linesOf("a"), linesOf("a\nb")]).toEqual([[], ["a"], ["a", "b"]]);
  });

  it("are cut off after a number of characters", () => {
    expect([clipped("abc", 3), clipped("abcd", 3)]).toEqual(["abc", "abc…"]);
  });
});
