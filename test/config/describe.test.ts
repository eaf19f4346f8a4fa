import { describe, expect, it } from "vitest";
import { describeEffective, describeKeys } from "../../src/config/describe.ts";
import { resolveConfig } from "../../src/config/resolve.ts";
import { KEY_PATHS } from "../../src/config/table.ts";
import { parseToml } from "../../src/runtime/toml.ts";
import { describeKeysMarkdown } from "../support/docs.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";

function effective(accounts: object, http: object = {}): string {
  const file = {
    http,
    tip: { accounts: [TIP] },
    accounts,
    cluster: { rpc_url: "https://node.example/s3cret" },
  };
  const resolved = resolveConfig({ file, directory: "/etc/td", environment: {} });
  if (resolved.kind === "problems") throw new Error(JSON.stringify(resolved.problems));
  return describeEffective(resolved.shown);
}

describe("effective configuration", () => {
  it("is TOML that resolves to the same configuration", () => {
    const parsed = parseToml(effective({ keys_file: "keys.toml" }));
    const file = parsed.kind === "ok" ? parsed.value : null;
    const again = resolveConfig({ file, directory: "/elsewhere", environment: {} });
    expect(again.kind === "ok" && again.config).toMatchObject({
      accounts: { keysFile: "/etc/td/keys.toml" },
      send: { deliveryTtlMs: 800, bind: [{ host: "0.0.0.0", port: 0 }] },
      tip: { accounts: [TIP] },
    });
  });

  it("hides passwords and API keys in URLs", () => {
    const text = effective({ database_url: "postgres://td:s3cret@db/touchdown" });
    expect(text).toContain('database_url = "postgres://hidden@db/hidden"');
    expect(text).not.toContain("s3cret");
  });

  it("has a table for a table in a section, as TOML reads it", () => {
    const text = effective({ keys_file: "k" }, { tls: { certificate: "a.pem", key: "b.pem" } });
    expect(parseToml(text)).toMatchObject({
      value: { http: { tls: { certificate: "/etc/td/a.pem", key: "/etc/td/b.pem" } } },
    });
  });

  it("lists the keys that are not set", () => {
    expect(effective({ keys_file: "k" })).toContain("# quic.listen is not set");
  });
});

describe("descriptions of the keys", () => {
  it("list every key in its section, on lines of at most 100 characters", () => {
    const lines = describeKeys().split("\n");
    for (const path of KEY_PATHS) {
      const [section = "", ...rest] = path.split(".");
      const name = rest.length === 0 ? section : rest.join(".");
      expect(lines.join(" ").split(/\s+/)).toEqual(expect.arrayContaining([section, name]));
    }
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  it("have one Markdown table row per key", () => {
    expect(describeKeysMarkdown().split("\n")).toHaveLength(KEY_PATHS.length + 2);
  });
});
