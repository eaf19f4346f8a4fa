import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loadNative } from "../../src/native/load.ts";
import { native } from "./addon.ts";

const folder = mkdtempSync(join(tmpdir(), "touchdown-load-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("loading the addon", () => {
  it("reports a missing one with its path", () => {
    const path = join(folder, "none.node");
    expect(loadNative(path)).toEqual({ kind: "absent", path });
  });

  it("reports a file that is not an addon with its cause", () => {
    const path = join(folder, "text.node");
    writeFileSync(path, "not an addon");
    expect(loadNative(path)).toMatchObject({ kind: "broken", path, cause: expect.any(Error) });
  });

  it("reports an addon without a version", () => {
    const path = join(folder, "older.cjs");
    writeFileSync(path, "exports.decode = () => 0;");
    const found = loadNative(path);
    expect(found.kind).toBe("broken");
    expect(String(found.kind === "broken" && found.cause)).toMatch(/version unknown, not \d+/);
  });

  it("reports an addon of another version", () => {
    const path = join(folder, "newer.cjs");
    writeFileSync(path, "exports.contractVersion = () => 999;");
    const found = loadNative(path);
    expect(String(found.kind === "broken" && found.cause)).toMatch(/version 999, not \d+/);
  });

  it.skipIf(native === null)("gives the same functions each time", () => {
    const again = loadNative();
    expect(again.kind === "loaded" && again.native.decode).toBe(native?.decode);
  });
});
