import { describe, expect, it } from "vitest";
import { endedLine } from "../../src/cli/node-lines.ts";

const at = (time: string): number => Date.parse(time);

describe("the warning about the Node release line", () => {
  it.each([
    ["20.20.2", "2026-04-30T23:59:59.999Z"],
    ["22.23.3", "2026-11-24T00:00:00Z"],
    ["24.21.0", "2028-04-30T12:00:00Z"],
    ["26.10.0", "2028-05-01T00:00:00Z"],
    ["28.0.0", "2040-01-01T00:00:00Z"],
    ["18.20.8", "2040-01-01T00:00:00Z"],
  ])("is absent for %s at %s", (version, time) => {
    expect(endedLine(version, at(time))).toBeNull();
  });

  it.each([
    ["20.20.2", "2026-05-01T00:00:00Z", "Node 20", "2026-04-30", "Node 22 or 24 or 25 or 26"],
    ["20.20.2", "2026-11-24T00:00:00Z", "Node 20", "2026-04-30", "Node 22 or 24 or 26"],
    ["21.7.3", "2026-11-24T00:00:00Z", "Node 21", "2024-06-01", "Node 22 or 24 or 26"],
    ["23.11.1", "2026-11-24T00:00:00Z", "Node 23", "2025-06-01", "Node 22 or 24 or 26"],
    ["25.9.0", "2026-11-24T00:00:00Z", "Node 25", "2026-06-01", "Node 22 or 24 or 26"],
    ["22.23.3", "2027-05-01T00:00:00Z", "Node 22", "2027-04-30", "Node 24 or 26"],
    ["24.21.0", "2028-05-01T00:00:00Z", "Node 24", "2028-04-30", "Node 26"],
    ["26.10.0", "2029-05-01T00:00:00Z", "Node 26", "2029-04-30", "a newer line"],
  ])("for %s at %s names its end of life and what to use", (version, time, line, lastDay, use) => {
    expect(endedLine(version, at(time))).toBe(
      `${line} has had no security fixes since ${lastDay}: use ${use}`,
    );
  });
});
