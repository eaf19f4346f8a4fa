/** Where an edge can have fronts, and where it says why not. */

import { describe, expect, it } from "vitest";
import type { Config } from "../src/config/config.ts";
import { SetupError } from "../src/core/errors.ts";
import { frontsGroundOf } from "../src/edge-fronts.ts";
import type { EngineChoice } from "../src/native/choose.ts";
import { stub } from "./support/stub.ts";

const configOf = (threads: number): Config =>
  stub<Config>({ http: stub<Config["http"]>({ threads }) });
const portable = stub<EngineChoice>({ name: "portable", native: null });

describe("the ground of fronts", () => {
  it("is none where none are asked for, whatever the engine", () => {
    expect(frontsGroundOf(configOf(0), portable)).toBeNull();
  });

  it("is refused where the engine sends from one thread alone, saying what is needed", () => {
    expect(() => frontsGroundOf(configOf(2), portable)).toThrow(SetupError);
    expect(() => frontsGroundOf(configOf(2), portable)).toThrow(/http\.threads.*0 is needed/);
  });

  it("is memory that all of them share, and as many as were asked for", () => {
    const native = stub<EngineChoice>({ name: "native", native: stub({}) });
    const ground = frontsGroundOf(configOf(3), native);
    expect(ground?.count).toBe(3);
    for (const memory of [ground?.routesMemory, ground?.passesMemory, ground?.seenMemory]) {
      expect(memory).toBeInstanceOf(SharedArrayBuffer);
    }
  });
});
