import { describe, expect, it } from "vitest";
import { configFromValues } from "../../src/config/load.ts";
import { loadOptionalModules, requireModule } from "../../src/edge/optional-modules.ts";
import type { EngineChoice } from "../../src/native/choose.ts";
import { stub } from "../support/stub.ts";
import { newKeypair } from "../support/transactions.ts";

const NATIVE = stub<EngineChoice>({ name: "native" });
const PORTABLE = stub<EngineChoice>({ name: "portable" });
const tip = { accounts: [newKeypair(1).address] };
const loaded = async (values: object, engine: EngineChoice): Promise<string[]> => {
  const modules = await loadOptionalModules(configFromValues({ tip, ...values }, "/", {}), engine);
  return Object.entries(modules).flatMap(([name, part]) => (part === null ? [] : [name]));
};

describe("the optional modules of an edge", () => {
  it("are none for a keys file and the native engine", async () => {
    expect(await loaded({ accounts: { keys_file: "k" } }, NATIVE)).toEqual([]);
  });

  it("are those that the configuration requires", async () => {
    const values = {
      accounts: { database_url: "postgres://u:p@h/d" },
      limits: { redis_url: "redis://h" },
    };
    expect(await loaded(values, PORTABLE)).toEqual([
      "createDatabase",
      "createLimitStore",
      "createQuicTransport",
    ]);
  });

  it("are reported as missing when they are not installed", () => {
    expect(() => requireModule(null)).toThrow("was not loaded");
    expect(requireModule(7)).toBe(7);
  });
});
