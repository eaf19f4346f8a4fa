import { describe, expect, it } from "vitest";
import { unavailable } from "../../src/config/available.ts";
import { configFromValues } from "../../src/config/load.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";
const LEAST = { tip: { accounts: [TIP] }, accounts: { keys_file: "k" } };

describe("what this version cannot do", () => {
  it("is nothing of the least configuration, nor of the portable engine", () => {
    expect(unavailable(configFromValues(LEAST, "/", {}))).toEqual([]);
    const portable = { ...LEAST, send: { engine: "portable" } };
    expect(unavailable(configFromValues(portable, "/", {}))).toEqual([]);
  });

  it("is told with each key that asks for it", () => {
    const values = { ...LEAST, quic: { listen: "127.0.0.1:0" } };
    const messages = unavailable(configFromValues(values, "/", {}));
    expect(messages.map((message) => message.split(":")[0])).toEqual(["quic.listen"]);
  });
});
