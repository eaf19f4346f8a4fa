import { describe, expect, it } from "vitest";
import * as kinds from "../../src/config/value-types.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";

function read<T>(kind: kinds.Kind<T>, raw: unknown): T | string {
  const reading = kind.read(raw, "/etc/td");
  return reading.kind === "ok" ? reading.value : `rejected: ${reading.message}`;
}

function accepts(kind: kinds.Kind<unknown>, raw: unknown): boolean {
  return kind.read(raw, "/etc/td").kind === "ok";
}

describe("address", () => {
  it.each([
    ["127.0.0.1:8080", { host: "127.0.0.1", port: 8080 }],
    ["0.0.0.0:0", { host: "0.0.0.0", port: 0 }],
    ["[::1]:0", { host: "::1", port: 0 }],
    ["localhost:65535", { host: "localhost", port: 65_535 }],
  ])("reads %s and writes it back", (text, address) => {
    expect(read(kinds.listen(), text)).toEqual(address);
    expect(kinds.formatListen(address)).toBe(text);
  });

  it.each([
    "127.0.0.1",
    ":8080",
    "8080",
    "127.0.0.1:65536",
    "127.0.0.1:-1",
    "127.0.0.1:",
    "256.0.0.1:80",
    "::1:80",
    "[::1]",
    "[::g]:80",
    "[127.0.0.1]:80",
    "a b:80",
    "host:80/",
    8080,
    null,
  ])("rejects %j", (raw) => {
    expect(accepts(kinds.listen(), raw)).toBe(false);
  });

  it("rejects a host name if an IP address is required", () => {
    expect(accepts(kinds.listen(true), "localhost:80")).toBe(false);
    expect(accepts(kinds.listen(true), "127.0.0.1:80")).toBe(true);
  });

  it("of another host is rejected with port 0: no client can connect to it", () => {
    expect(read(kinds.remote(), "fra-2.example.com:1")).toEqual({
      host: "fra-2.example.com",
      port: 1,
    });
    expect(read(kinds.remote(), "fra-2.example.com:0")).toMatch(/port from 1 to 65535/);
    expect(accepts(kinds.remote(), "fra-2.example.com")).toBe(false);
  });
});

describe("numbers", () => {
  it("report the value found, also one that JSON cannot represent", () => {
    for (const [raw, found] of [
      [17, "17"],
      [Number.POSITIVE_INFINITY, "Infinity"],
      [Number.NaN, "NaN"],
      ["x", '"x"'],
    ] as const) {
      expect(read(kinds.integer(1, 16), raw)).toBe(
        `rejected: must be an integer from 1 to 16, is ${found}`,
      );
    }
  });

  it("accept both bounds and reject the values beyond them", () => {
    const kind = kinds.integer(1, 16);
    expect([0, 1, 16, 17].map((raw) => accepts(kind, raw))).toEqual([false, true, true, false]);
  });

  it.each([1.5, "2", true, Number.NaN, Number.POSITIVE_INFINITY, [1]])("reject %j", (raw) => {
    expect(accepts(kinds.integer(1, 16), raw)).toBe(false);
  });

  it("are read from environment text only if it is a decimal integer", () => {
    const kind = kinds.integer(1, 16);
    expect(["4", "-4", "4.0", " 4", "0x4", ""].map((text) => kind.fromText(text))).toEqual([
      4,
      -4,
      "4.0",
      " 4",
      "0x4",
      "",
    ]);
  });

  it("may be auto, read as null, if the key allows it", () => {
    const kind = kinds.integerOrAuto(0, 4);
    expect([read(kind, "auto"), read(kind, 0), kind.show(null)]).toEqual([null, 0, "auto"]);
    expect(accepts(kind, 5)).toBe(false);
  });

  it("accept durations within their bounds only", () => {
    const kind = kinds.duration("10ms", "60s");
    const accepted = ["9ms", "10ms", "60s", "61s", 10, "10"].map((raw) => accepts(kind, raw));
    expect(accepted).toEqual([false, true, true, false, false, false]);
  });
});

describe("choice, boolean and name", () => {
  it("accept the listed words, case-sensitively", () => {
    const kind = kinds.choice(["auto", "never"]);
    expect(["auto", "Auto", "", 1].map((raw) => accepts(kind, raw))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it("accept true and false, and their text only from the environment", () => {
    const kind = kinds.boolean();
    expect([true, "true", 1].map((raw) => accepts(kind, raw))).toEqual([true, false, false]);
    expect(["true", "false", "yes"].map(kind.fromText)).toEqual([true, false, "yes"]);
  });

  it("accept names that are fit for a metric label", () => {
    const names = ["eu-west_1.a", "", "-a", "a b", "a".repeat(32), "a".repeat(33)];
    expect(names.map((raw) => accepts(kinds.name(), raw))).toEqual([
      true,
      false,
      false,
      false,
      true,
      false,
    ]);
  });
});

describe("URL", () => {
  const http = kinds.url(["http", "https"]);

  it("accepts its schemes only", () => {
    const urls = ["http://a", "https://a:1/b", "ws://a", "a", "", "http://", 1];
    expect(urls.map((raw) => accepts(http, raw))).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
      false,
    ]);
  });

  it("accepts a login for a node only if it decodes to valid UTF-8", () => {
    expect(accepts(http, "http://me%40:100%25@a")).toBe(true);
    expect(accepts(http, "http://me:100%@a")).toBe(false);
    expect(accepts(http, "http://%ff:word@a")).toBe(false);
    // Postgres accepts a literal %.
    expect(accepts(kinds.url(["postgres"]), "postgres://u:100%@db")).toBe(true);
  });

  it("shows scheme and host, and no part that may be a secret", () => {
    expect(http.show("http://127.0.0.1:8899")).toBe("http://127.0.0.1:8899");
    expect(http.show("https://node.example/v1/s3cret")).toBe("https://node.example/hidden");
    expect(http.show("https://node.example/?api-key=s3cret")).toBe("https://node.example/hidden");
    expect(kinds.url(["postgres"]).show("postgres://u:s3cret@db:5432/app?x=s3cret")).toBe(
      "postgres://hidden@db:5432/hidden",
    );
  });

  it("does not quote an invalid URL, which may contain a password", () => {
    expect(read(http, "postgres://u:s3cret@db")).not.toContain("s3cret");
    expect(read(http, "s3cret")).not.toContain("s3cret");
  });
});

describe("path", () => {
  it("is resolved against the configuration's folder unless it is absolute", () => {
    expect(read(kinds.path(), "keys.toml")).toBe("/etc/td/keys.toml");
    expect(read(kinds.path(), "/run/keys.toml")).toBe("/run/keys.toml");
    expect(accepts(kinds.path(), "")).toBe(false);
  });
});

describe("list of accounts", () => {
  const kind = kinds.accounts(2);

  it("accepts base58 of 32 bytes", () => {
    expect(read(kind, [TIP])).toEqual([TIP]);
    expect(accepts(kind, ["11111111111111111111111111111111"])).toBe(true);
    expect(accepts(kind, ["JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFG"])).toBe(true);
  });

  it.each([
    [[]],
    [[TIP, TIP]],
    [[TIP.slice(2)]],
    [[`${TIP}1`]],
    [["1".repeat(31)]],
    [["1".repeat(33)]],
    [[TIP.replace("9", "0")]],
    [["JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFH"]],
    [[1]],
    [["a", "b", "c"]],
    [TIP],
  ])("rejects %j", (raw) => {
    expect(accepts(kind, raw)).toBe(false);
  });

  it("is comma-separated in the environment", () => {
    expect(kind.fromText(`${TIP}, x`)).toEqual([TIP, "x"]);
  });
});
