import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  chooseUser,
  findBinaries,
  isReachable,
  reachableFolder,
} from "../../src/sandbox/postgres-binaries.ts";

const runAs = await chooseUser();
const someone = { uid: 64_000, gid: 64_000 };

describe("the programs", () => {
  it("are present and run as the chosen user", async () => {
    const { postgres, initdb } = await findBinaries(runAs);
    expect(existsSync(initdb)).toBe(true);
    const version = execFileSync(postgres, ["--version"], { ...(runAs ?? {}), encoding: "utf8" });
    expect(version).toMatch(/PostgreSQL\) 18\./);
  });

  it("never run as root", () => {
    expect(runAs === null).toBe(process.getuid?.() !== 0);
    expect(runAs?.uid).not.toBe(0);
  });
});

describe("a folder", () => {
  const closed = join(mkdtempSync(join(tmpdir(), "closed-")), "in", "side");
  mkdirSync(closed, { recursive: true });

  it("below a closed one cannot be reached by another user", () => {
    expect(isReachable(closed, someone)).toBe(false);
    expect(isReachable(closed, null)).toBe(true);
    expect(isReachable("/usr/not/there/yet", someone)).toBe(true);
  });

  it("that cannot be reached is moved to the same place every time", () => {
    expect(reachableFolder("/usr/share/data", someone)).toBe("/usr/share/data");
    const moved = reachableFolder(join(closed, "data"), someone);
    expect(moved).toBe(reachableFolder(join(closed, "data"), someone));
    expect(moved).toMatch(/^\/var\/lib\/touchdown\/.*-in-side-data$/);
  });
});
