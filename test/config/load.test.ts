import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CONFIG_FILE_BYTES_MAX } from "../../src/config/limits.ts";
import {
  configFromValues,
  describeProblems,
  loadConfig,
  readConfig,
} from "../../src/config/load.ts";
import { SetupError } from "../../src/core/errors.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";
const MINIMAL = `[tip]\naccounts = ["${TIP}"]\n[accounts]\nkeys_file = "keys.toml"\n`;

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "touchdown-config-"));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

function file(text: string): string {
  const path = join(directory, "touchdown.toml");
  writeFileSync(path, text);
  return path;
}

describe("loadConfig", () => {
  it("reads a file and resolves its paths relative to it", () => {
    expect(loadConfig(file(MINIMAL), {}).accounts.keysFile).toBe(join(directory, "keys.toml"));
  });

  it("accepts the documented example unchanged", () => {
    const text = `region = "local"
[http]
listen = "127.0.0.1:8080"
[admin]
listen = "127.0.0.1:9090"
[quic]
listen = "127.0.0.1:8009"
[cluster]
rpc_url = "http://127.0.0.1:8899"
ws_url = "ws://127.0.0.1:8900"
[identity]
keypair = "identity.json"
[tip]
accounts = ["${TIP}"]
lamports_min = 1000000
[accounts]
keys_file = "keys.toml"
[send]
engine = "auto"
leaders = 2
`;
    expect(loadConfig(file(text), {}).quic.listen).toEqual({ host: "127.0.0.1", port: 8009 });
  });

  it("lists all problems in one message", () => {
    const path = file(`${MINIMAL}[http]\nlisten = 1\nnope = 2\n`);
    expect(() => loadConfig(path, { TOUCHDOWN_Y: "" })).toThrow(SetupError);
    const resolved = readConfig(path, { TOUCHDOWN_Y: "" });
    const lines = resolved.kind === "problems" ? describeProblems("f", resolved.problems) : "";
    expect(lines.replace(/: (?!3).*/g, "").split("\n")).toEqual([
      "f: 3 problems",
      "  http.nope",
      "  http.listen",
      "  TOUCHDOWN_Y",
    ]);
    expect(() => loadConfig(path, { TOUCHDOWN_Y: "" })).toThrow(/3 problems\n {2}http\.nope: /);
  });

  it("reports the position of a TOML error together with the environment's problems", () => {
    const resolved = readConfig(file("a = \n"), { TOUCHDOWN_Y: "" });
    const messages = resolved.kind === "problems" ? resolved.problems : [];
    expect(messages.map(({ message }) => message)).toEqual([
      "not valid TOML: invalid value at line 1, column 5",
      "unknown environment variable",
    ]);
  });

  it("reports why a file cannot be read", () => {
    expect(() => loadConfig(join(directory, "none.toml"), {})).toThrow(/cannot be read \(ENOENT\)/);
    expect(() => loadConfig(directory, {})).toThrow(/cannot be read \(EISDIR\)/);
  });

  it("accepts a file of the maximum size and rejects one byte more", () => {
    const pad = (bytes: number): string => `${MINIMAL}#`.padEnd(bytes, "x");
    expect(readConfig(file(pad(CONFIG_FILE_BYTES_MAX)), {}).kind).toBe("ok");
    expect(readConfig(file(pad(CONFIG_FILE_BYTES_MAX + 1)), {}).kind).toBe("problems");
  });
});

describe("configFromValues", () => {
  it("accepts values in the structure of a file", () => {
    const values = { tip: { accounts: [TIP] }, accounts: { keys_file: "k" } };
    expect(configFromValues(values, "/a", {}).accounts.keysFile).toBe("/a/k");
    expect(() => configFromValues({}, "/a", {})).toThrow(SetupError);
  });
});
