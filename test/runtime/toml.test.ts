import { describe, expect, it } from "vitest";
import { formatToml, parseToml } from "../../src/runtime/toml.ts";

describe("parseToml", () => {
  it("reads tables, arrays of tables and every scalar", () => {
    const parsed = parseToml('a = "x"\n[b]\nc = 1\nd = true\ne = [1, 2]\n[[k]]\nt = "y"\n');
    expect(parsed.kind === "ok" && JSON.parse(JSON.stringify(parsed.value))).toEqual({
      a: "x",
      b: { c: 1, d: true, e: [1, 2] },
      k: [{ t: "y" }],
    });
  });

  it("names line and column of an error", () => {
    expect(parseToml("a = 1\nb = \n")).toEqual({
      kind: "error",
      message: "not valid TOML: invalid value at line 2, column 5",
      line: 2,
      column: 5,
    });
  });

  it("quotes none of the text, which may be a secret", () => {
    const parsed = parseToml('token = "td_secret_secret" oops\n');
    expect(parsed.kind).toBe("error");
    expect(JSON.stringify(parsed)).not.toContain("secret");
  });

  it("rejects keys that would reach an object's prototype", () => {
    expect(parseToml("__proto__ = 1").kind).toBe("error");
    expect(parseToml("[constructor]\nprototype = 1").kind).toBe("error");
  });

  it("rejects integers that a double cannot hold, and accepts the largest it can", () => {
    expect(parseToml("a = 9007199254740993").kind).toBe("error");
    expect(parseToml("a = 9007199254740991").kind).toBe("ok");
  });

  it("rejects a document nested too deeply instead of exhausting the stack", () => {
    expect(parseToml(`a = ${"[".repeat(100_000)}`).kind).toBe("error");
    expect(parseToml(`a = ${"[".repeat(40)}${"]".repeat(40)}`).kind).toBe("error");
  });
});

describe("formatToml", () => {
  it("writes what parseToml reads back", () => {
    const value = { s: 'quote " and \u007f\n', n: 1_000_000, list: ["a", "b"], t: { b: false } };
    const parsed = parseToml(formatToml(value));
    expect(parsed.kind === "ok" && JSON.parse(JSON.stringify(parsed.value))).toEqual(value);
  });
});
