import { describe, expect, it } from "vitest";
import { noPositionals, optionalText, requiredText, UsageError } from "../../src/cli/command.ts";

describe("options", () => {
  it("are strings, or null when not given", () => {
    expect(optionalText({ a: "x" }, "a")).toBe("x");
    expect(optionalText({}, "a")).toBeNull();
  });

  it("that are required and missing, or empty, are wrong usage", () => {
    expect(() => requiredText({}, "a")).toThrow(UsageError);
    expect(() => requiredText({ a: "" }, "a")).toThrow(UsageError);
    expect(() => optionalText({ a: "" }, "a")).toThrow(UsageError);
  });
});

describe("arguments besides the options", () => {
  it("are wrong usage where none is expected", () => {
    expect(() => noPositionals([])).not.toThrow();
    expect(() => noPositionals(["x"])).toThrow(UsageError);
  });
});
