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

  it.each([
    ["the portable engine", { send: { engine: "portable" } }, 'send.engine is "portable"'],
    ["no thread to serve it", { http: { threads: 0 } }, "http.threads is 0"],
  ])("are reported for QUIC with %s", (_, settings, reason) => {
    const values = { ...MINIMAL, quic: { listen: "127.0.0.1:0" }, ...settings };
    const messages = unavailable(configFromValues(values, "/", {}));
    expect(messages).toHaveLength(1);
    expect(messages[0]).toMatch(/^quic\.listen: /);
    expect(messages[0]).toContain(reason);
  });
});
