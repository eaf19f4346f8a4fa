import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

function text(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
}

/** In the order in which the folder's own module file names them. */
const parts = [...text("native/src/node/mod.rs").matchAll(/^pub mod (\w+);$/gm)];
const bindings = parts
  .map(([, part = ""]) => text(`native/src/node/${part}.rs`))
  .filter((part) => part.includes("#[napi"))
  .join("\n");
const answers = text("native/src/node/status_codes.rs");
const contract = text("src/native/contract.ts");

const camel = (name: string): string => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** The TypeScript type of each Rust type. */
const TYPES: Readonly<Record<string, string>> = {
  "&[u8]": "Uint8Array",
  Uint8Array: "Uint8Array",
  "Uint8ArraySlice<'_>": "Uint8Array",
  SharedBytes: "Uint8Array",
  "&[u32]": "Uint32Array",
  "&[f64]": "Float64Array",
  "Float64ArraySlice<'_>": "Float64Array",
  "Function<'_, (), ()>": "() => void",
  EngineOptions: "NativeEngineOptions",
  IngressThreadOptions: "NativeIngressThreadOptions",
  "Vec<KeylessResult>": "NativeKeylessResult[]",
  QuicListenOptions: "NativeQuicListenOptions",
  Texts: "string[]",
  "Vec<u32>": "number[]",
  String: "string",
  bool: "boolean",
  u32: "number",
  i32: "number",
  i64: "number",
  f64: "number",
};

const typed = (type: string): string => TYPES[type.trim()] ?? `no row for ${type}`;

/** `name: type` pairs, split at the commas outside brackets. */
function pairs(list: string): (readonly [string, string])[] {
  const parts = list.replace(/<[^>]*>|\(\)/g, (inside) => inside.replaceAll(",", ";")).split(",");
  const whole = parts.map((part) => part.replaceAll(";", ",").trim()).filter(Boolean);
  return whole.map((part) => {
    const [name = "", ...type] = part.split(":");
    return [name.replace(/^(?:mut|readonly|#\[napi\(.*\)\]) /, ""), type.join(":").trim()];
  });
}

/** Parameters that napi inserts. */
const isGiven = ([, type]: readonly [string, string]): boolean => type === "Env";

const flat = (source: string): string => source.replace(/\/\*\*?[\s\S]*?\*\/|\/\/.*$/gm, "");

describe("the bindings and contract.ts", () => {
  it("have the same functions in the same order, with the same parameters", () => {
    const rust = flat(bindings).matchAll(/#\[napi\]\s*pub fn (\w+)\(([\s\S]*?)\) -> (\w+) \{/g);
    const exported = [...rust].map(([, name = "", list = "", response = ""]) => ({
      name: camel(name),
      parameters: pairs(list)
        .filter((pair) => !isGiven(pair))
        .map(([each, type]) => `${camel(each)}: ${typed(type)}`),
      response: typed(response),
    }));
    const methods = flat(contract).matchAll(/^ {2}(\w+)\(((?:[^()]|\(\))*)\): (\w+);/gm);
    const declared = [...methods].map(([, name = "", list = "", response = ""]) => ({
      name,
      parameters: pairs(list).map(([each, type]) => `${each}: ${type}`),
      response,
    }));
    expect(declared).toEqual(exported);
    expect(declared.length).toBeGreaterThan(10);
    expect(bindings.match(/#\[napi\]/g)).toHaveLength(declared.length);
  });

  const records = Array.from(
    flat(bindings).matchAll(/pub struct (\w+) \{([\s\S]*?)\n\}/g),
    ([, name = "", fields = ""]) => ({ name, fields }),
  );

  it("have the same records", () => {
    expect(records.map(({ name }) => name)).toEqual([
      "EngineOptions",
      "KeylessResult",
      "IngressThreadOptions",
      "QuicListenOptions",
    ]);
  });

  it.each(records)("have the same members in the same order: $name", ({ name, fields }) => {
    const rust = [...fields.matchAll(/pub (\w+): ([^\n]+),/g)];
    const form = new RegExp(`interface Native${name} \\{([\\s\\S]*?)\\n\\}`);
    const inside = form.exec(flat(contract))?.[1] ?? "";
    const declared = [...inside.matchAll(/readonly (\w+): ([^;]+);/g)];
    expect(declared.map(([, name, type]) => `${name}: ${type}`)).toEqual(
      rust.map(([, name = "", type = ""]) => `${camel(name)}: ${typed(type)}`),
    );
    expect(declared.length).toBeGreaterThan(1);
  });

  it("have the same status codes, each under the same name", () => {
    const codes = [...answers.matchAll(/^pub\(crate\) const (\w+): i32 = (-?\d+);/gm)];
    const rust = codes.map(([, name, code]) => `${name} ${code}`);
    const declared = [...contract.matchAll(/^export const (\w+) = (-\d+|0);/gm)];
    expect(declared.length).toBeGreaterThan(15);
    for (const [, name, code] of declared) expect(rust).toContain(`${name} ${code}`);
  });
});
