import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

interface Script {
  stampOf(native: string, more: readonly string[]): string;
}

const script = new URL("../../scripts/native-files.mjs", import.meta.url);
// Plain JavaScript, of which the compiler knows nothing.
const { stampOf } = (await import(script.href)) as Script;

let native = "";

beforeEach(() => {
  native = mkdtempSync(join(tmpdir(), "touchdown-stamp-"));
  mkdirSync(join(native, "src", "part"), { recursive: true });
  for (const file of ["Cargo.toml", "Cargo.lock", "build.rs", "src/lib.rs", "src/part/one.rs"]) {
    writeFileSync(join(native, file), file);
  }
});

afterEach(() => rmSync(native, { recursive: true }));

describe("the stamp of the library's sources", () => {
  it("is the same as long as nothing changes", () => {
    expect(stampOf(native, ["a"])).toBe(stampOf(native, ["a"]));
  });

  it("changes with each source, also in a folder, and with what else it is given", () => {
    const stamps = new Set([stampOf(native, []), stampOf(native, ["a"])]);
    for (const file of ["Cargo.lock", "src/lib.rs", "src/part/one.rs", "src/part/two.rs"]) {
      writeFileSync(join(native, file), `${file}, changed`);
      stamps.add(stampOf(native, []));
    }
    expect(stamps.size).toBe(6);
  });
});
