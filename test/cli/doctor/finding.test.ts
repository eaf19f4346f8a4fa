import { describe, expect, it } from "vitest";
import { countsOf, findingsOf, linesOf } from "../../../src/cli/doctor/finding.ts";

const { ok, warning, unknown } = findingsOf("host");

describe("a finding", () => {
  it("is written with its cost and its fix", () => {
    expect(linesOf(warning("gso", "off", "a call each", "turn it on"))).toEqual([
      "warning  gso: off",
      "         costs: a call each",
      "         fix: turn it on",
    ]);
    expect(linesOf(ok("gso", "on"))).toEqual(["ok       gso: on"]);
    expect(linesOf(unknown("gso", "not shown", "uname -r"))).toEqual([
      "unknown  gso: not shown",
      "         find out: uname -r",
    ]);
  });

  it("is counted by its level", () => {
    const findings = [ok("a", ""), ok("b", ""), unknown("c", "")];
    expect(countsOf(findings)).toEqual({ ok: 2, warning: 0, error: 0, unknown: 1 });
  });
});
