import { describe, expect, it } from "vitest";
import { SetupError } from "../../src/core/errors.ts";
import type { Log } from "../../src/core/log.ts";
import { chooseEngine } from "../../src/native/choose.ts";
import type { NativeEngine } from "../../src/native/contract.ts";
import type { NativeLoad } from "../../src/native/load.ts";
import { stub } from "../support/stub.ts";

const LOADED: NativeLoad = { kind: "loaded", native: stub<NativeEngine>({}) };
const ABSENT: NativeLoad = { kind: "absent", path: "native/touchdown.node" };
const BROKEN: NativeLoad = { kind: "broken", path: "native/touchdown.node", cause: "wrong ABI" };

function choose(wanted: "auto" | "native" | "portable", load: NativeLoad) {
  const warnings: string[] = [];
  const log: Log = { info() {}, warn: (_, message) => warnings.push(message), error() {} };
  return { choice: chooseEngine(wanted, log, () => load).name, warnings };
}

describe("the engine", () => {
  it("is the native one where it is built, unless the portable one is configured", () => {
    expect(choose("auto", LOADED).choice).toBe("native");
    expect(choose("native", LOADED).choice).toBe("native");
    expect(choose("portable", LOADED).choice).toBe("portable");
  });

  it("is the portable one where none is built, and logs what the native one offers", () => {
    const warnings = [
      expect.stringMatching(/^the portable engine is for development.*CVE-2024-1410/),
    ];
    expect(choose("auto", ABSENT)).toEqual({ choice: "portable", warnings });
    expect(choose("portable", LOADED)).toEqual({ choice: "portable", warnings });
  });

  it("is the native one without a log line", () => {
    expect(choose("auto", LOADED).warnings).toEqual([]);
    expect(choose("native", LOADED).warnings).toEqual([]);
  });

  it("is the portable one where the built one does not load, with a warning", () => {
    expect(choose("auto", BROKEN)).toEqual({
      choice: "portable",
      warnings: ["no native engine", expect.stringMatching(/^the portable engine is/)],
    });
  });

  it("fails when it is not the one configured by name, and reports what to do", () => {
    expect(() => choose("native", ABSENT)).toThrow(SetupError);
    expect(() => choose("native", ABSENT)).toThrow("npm run build");
    expect(() => choose("native", BROKEN)).toThrow("wrong ABI");
  });
});
