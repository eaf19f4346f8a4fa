import { describe, expect, it } from "vitest";
import { unavailable } from "../../src/config/available.ts";
import { configFromValues } from "../../src/config/load.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";
const MINIMAL = { tip: { accounts: [TIP] }, accounts: { keys_file: "k" } };

describe("unavailable features", () => {
  it("are none for the minimal configuration and for the portable engine", () => {
    expect(unavailable(configFromValues(MINIMAL, "/", {}))).toEqual([]);
    const portable = { ...MINIMAL, send: { engine: "portable" } };
    expect(unavailable(configFromValues(portable, "/", {}))).toEqual([]);
  });

  it("are reported with the key that requests them", () => {
    const values = { ...MINIMAL, quic: { listen: "127.0.0.1:0" } };
    const messages = unavailable(configFromValues(values, "/", {}));
    expect(messages.map((message) => message.split(":")[0])).toEqual(["quic.listen"]);
  });
});
