/** The unit files, judged by systemd's own tool. A machine without it skips; CI has it. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const FOLDER = new URL("../../ops/systemd/", import.meta.url);
const UNITS = readdirSync(FOLDER).filter((name) => name.endsWith(".service"));
/** `systemd-analyze security` counts up to 100; below 25 it says OK. */
const EXPOSURE_MAX = 20;

const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;
if (!hasAnalyze && process.env["CI"] !== undefined) throw new Error("systemd-analyze is missing");

/** Calls `act` with the unit in a folder of its own, with this machine's Node in its commands. */
function withUnit<T>(unit: string, act: (file: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-unit-"));
  try {
    const file = join(folder, unit);
    const text = readFileSync(new URL(unit, FOLDER), "utf8");
    writeFileSync(file, text.replaceAll("/usr/bin/node", process.execPath));
    return act(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const analyze = (...args: readonly string[]) =>
  spawnSync("systemd-analyze", ["--no-pager", ...args], { encoding: "utf8" });

it("there is a unit for each service", () => {
  expect(UNITS.toSorted()).toEqual(["touchdown-control.service", "touchdown-edge.service"]);
});

describe.skipIf(!hasAnalyze).each(UNITS)("%s", (unit) => {
  it("is a valid unit without a warning", () => {
    const { status, stderr } = withUnit(unit, (file) => analyze("verify", file));
    expect(stderr).toBe("");
    expect(status).toBe(0);
  });

  it("lets the command of a reload see the process that it is for", () => {
    const text = readFileSync(new URL(unit, FOLDER), "utf8");
    // With both, a process of another user namespace is not in /proc.
    const isHidden = /^PrivateUsers=yes$/m.test(text) && /^ProtectProc=(?!default)/m.test(text);
    expect(isHidden && /^ExecReload=/m.test(text)).toBe(false);
  });

  it("is sandboxed", () => {
    const threshold = `--threshold=${EXPOSURE_MAX}`;
    const { status, stdout } = withUnit(unit, (file) =>
      analyze("security", "--offline=true", threshold, file),
    );
    expect(status, stdout).toBe(0);
  });
});
