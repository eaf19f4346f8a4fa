import { describe, expect, it } from "vitest";
import { didYouMean } from "../../src/cli/nearest.ts";

const NAMES = ["--url", "--key", "--key-file", "--wait", "--timeout"];

describe("the nearest name", () => {
  it.each([
    ["--ulr", "--url"],
    ["--key-fil", "--key-file"],
    ["--keyfile", "--key-file"],
    ["--timeouts", "--timeout"],
    ["--timoeut", "--timeout"],
    ["--WAIT", "--wait"],
    ["-wait", "--wait"],
    ["--key_file", "--key-file"],
  ])("to %s is %s", (typed, meant) => {
    expect(didYouMean(typed, NAMES)).toBe(`, did you mean ${meant}?`);
  });

  it.each(["--owner", "--x", "-u", "", "--time-is-out"])("to %j is null", (typed) => {
    expect(didYouMean(typed, NAMES)).toBe("");
  });

  it("is the first of equally near ones", () => {
    expect(didYouMean("cat", ["bat", "rat"])).toBe(", did you mean bat?");
  });

  it("is found for a typed word of any length", () => {
    expect(didYouMean("--wait".repeat(10_000), NAMES)).toBe("");
  });
});
