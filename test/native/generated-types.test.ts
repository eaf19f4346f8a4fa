import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
/** What napi's macro derived from native/src/node when the addon was compiled. */
const GENERATED = join(ROOT, "native/touchdown.d.ts");

const folder = mkdtempSync(join(tmpdir(), "touchdown-types-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The compiler errors for `declarations` as an implementation of the contract. */
function complaints(declarations: string): string {
  writeFileSync(join(folder, "generated.d.ts"), declarations);
  writeFileSync(
    join(folder, "fits.ts"),
    `import type * as generated from "./generated.d.ts";
     import type { NativeEngine } from ${JSON.stringify(join(ROOT, "src/native/contract.ts"))};
     type Loose<T> = T extends Float64Array | Uint8Array | Uint32Array ? T
       : T extends (...args: never) => unknown ? T
       : T extends object ? { -readonly [K in keyof T]: Loose<T[K]> } : T;
     type Call<F> = F extends (...args: infer A) => infer R
       ? { readonly takes: Loose<[...A]>; readonly answers: R } : never;
     type Calls<T> = { readonly [K in keyof T]: Call<T[K]> };
     type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2
       ? true : false;
     export const names: Same<keyof typeof generated, keyof NativeEngine> = true;
     declare const rust: Calls<typeof generated>;
     declare const contract: Calls<NativeEngine>;
     export const down: Calls<NativeEngine> = rust;
     export const up: Calls<typeof generated> = contract;\n`,
  );
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({
      extends: join(ROOT, "tsconfig.json"),
      compilerOptions: {
        allowImportingTsExtensions: true,
        rewriteRelativeImportExtensions: false,
        typeRoots: [join(ROOT, "node_modules/@types")],
      },
      include: ["fits.ts"],
    }),
  );
  const tsc = join(ROOT, "node_modules/.bin/tsc");
  return spawnSync(tsc, ["-p", folder], { encoding: "utf8" }).stdout;
}

describe.skipIf(!existsSync(GENERATED))("the types that napi derives", () => {
  const text = existsSync(GENERATED) ? readFileSync(GENERATED, "utf8") : "";

  it("equal those of contract.ts, in both directions", () => {
    expect(complaints(text)).toBe("");
  });

  it("have the functions in the order of contract.ts", () => {
    const contract = readFileSync(join(ROOT, "src/native/contract.ts"), "utf8");
    const declared = [...contract.matchAll(/^ {2}(\w+)\(/gm)].map((match) => match[1]);
    const derived = [...text.matchAll(/^export function (\w+)\(/gm)].map((match) => match[1]);
    expect(derived).toEqual(declared);
    expect(derived.length).toBeGreaterThan(10);
  });

  it.each([
    ["a function less", /export function decode\(.*\n/, ""],
    ["another argument", "peer: number, closeTimeoutMs", "peer: string, closeTimeoutMs"],
    ["an argument more", "peerClose(", "peerClose(extra: boolean, "],
    ["another result", /(function txSend.*): number/, "$1: bigint"],
    ["another option", "queueMax: number", "queueMost: number"],
    ["another option of an ingress thread", "forwardedHeader: string", "forwardedHeader: number"],
    ["another memory of an ingress thread", "counters: Uint8Array", "counters: Float64Array"],
  ])("would differ from others: %s", (_, from, to) => {
    const other = text.replace(from, to);
    expect(other).not.toBe(text);
    expect(complaints(other)).toContain("error TS");
  });
});
