/**
 * The rules of the house, run over the tree. A complaint names the place and the remedy; the
 * second half plants a breach of each rule to see that the rule bites.
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DELIVERY_REASONS, REJECTIONS } from "../src/core/errors.ts";
import { blocksOf, GENERATED_PAGES, withGeneratedBlocks } from "./support/docs.ts";
import {
  blankOut,
  functionsOf,
  listFiles,
  ROOT,
  readSource,
  type Source,
  sourceOf,
} from "./support/source-tree.ts";
import {
  bannedCode,
  cycles,
  FILE_RULES,
  holdsNoCode,
  importDirection,
  oneHeading,
  orphans,
  packageUsers,
  sizes,
} from "./support/tidy-rules.ts";

/** Files of `src` that hold code and have no mirror test, each with the reason. */
const WITHOUT_TEST: Readonly<Record<string, string>> = {
  "src/main.ts": "three lines; run as a process by the tests of the whole path",
  "src/cli/commands.ts": "a list, walked by test/cli/run.test.ts",
  "src/cli/handover/messages.ts": "both ends read them; tested through those",
  "src/cli/handover/spawn.ts": "starts the program; run by test/flow/upgrade.test.ts",
  "src/engine/create-engine.ts": "joins its parts; test/conformance/engine.test.ts runs it",
  "src/receipts/transfer.ts": "both ends of it; tested through test/edge/handover-receipts.test.ts",
  "src/accounts/keys/entry-store.ts": "columns of the key table; tested through key-table.test.ts",
  "src/telemetry/metric-table.ts": "a table, walked by test/telemetry/metrics.test.ts",
  "src/telemetry/ingress-thread-metric-table.ts": "a part of that table",
  "src/telemetry/metric-rows.ts": "the shape of that table's rows",
  "src/control/api/stats.ts": "its shapes are answered by the routes, called over HTTP",
  "src/control/api/sessions.ts": "its routes are called over HTTP by the tests of web and login",
  "src/control/api/store-result.ts": "a table and four lines; every route goes through it",
  "src/control/api/usage.ts": "its routes are called over HTTP by the tests of web and login",
  "src/control/control-metrics.ts": "joins the parts; checked by the compiler",
  "src/control/api-error.ts": "a record and its form; every refusal over HTTP goes through it",
  "src/control/login/callback.ts":
    "the way back from the provider; walked by test/control/login/login.test.ts",
  "src/control/web/parse-request.ts":
    "every body and id is tried over HTTP by test/control/web/server.test.ts",
  "src/control/web/to-api-error.ts": "every refusal over HTTP goes through it",
  "src/control/web/schema.ts": "every route is made by it",
  "src/sandbox/provider.ts": "every login of the tests of control goes through it",
  "src/sandbox/ports.ts": "every server of the sandbox goes through it",
  "src/sandbox/provider-store.ts": "every login of the tests of control goes through it",
  "src/cli/doctor/leaders.ts": "connects to the sandbox's leaders in test/cli/doctor.test.ts",
  "src/edge/cluster-worker.ts": "two lines; every edge that starts as a process goes through it",
  "src/edge/clients.ts": "joins the parts; run by every test with an edge",
  "src/decode/workers/decode.worker.ts":
    "runs in a thread; tested through test/decode/workers/piscina-pool.test.ts",
  "src/cluster/worker.ts": "runs in a thread; tested through test/cluster/cluster-thread.test.ts",
  "src/http/submit/json-rpc-messages.ts": "messages; tested through json-rpc-parse.test.ts",
};

/** Packages that a second file may import, with the reason. */
const SECOND_OWNERS: Readonly<Record<string, readonly string[]>> = {};

const src = listFiles("src", ".ts").map(readSource);
const tests = listFiles("test", ".ts").map(readSource);
const bench = listFiles("bench", ".ts").map(readSource);
const top = listFiles(".", ".config.ts").map(readSource);
const all = [...src, ...tests, ...bench, ...top];
const documents = listFiles(".", ".md").map(readSource);
const packages = readSource("docs/dependencies.md").text;
const manifest: unknown = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

describe("the tree", () => {
  it.each(Object.entries(FILE_RULES))("%s", (_, rule) => {
    expect(all.flatMap((source) => rule(source))).toEqual([]);
  });

  it("has no import cycle", () => {
    expect(cycles(src)).toEqual([]);
  });

  it("imports only files that exist", () => {
    const missing = all.flatMap(({ path, imports }) =>
      imports
        .filter(({ file }) => file !== null && !exists(file))
        .map(({ specifier, line }) => `${path}:${line} imports ${specifier}, which does not exist`),
    );
    expect(missing).toEqual([]);
  });

  it("has no file that nothing uses", () => {
    const entries = all
      .map(({ path }) => path)
      .filter((path) => /\.(test|bench|config)\.ts$/.test(path));
    const programs = [
      "bench/micro/main.ts",
      "bench/load/main.ts",
      "bench/simulation/main.ts",
      "bench/compare/main.ts",
      "bench/compare/bare.ts",
      "bench/layers/main.ts",
      "bench/micro/support/stamping-client.ts",
      "bench/idle/main.ts",
      "bench/idle/connections-process.ts",
      "bench/accounts/main.ts",
      "bench/accounts/feed-process.ts",
      "test/support/write-docs.ts",
      "test/support/journal-locker.ts",
      // Named by vitest.config.ts.
      "test/support/postgres-run.ts",
    ];
    expect(orphans(src, ["src/main.ts"])).toEqual([]);
    expect(orphans([...tests, ...bench], [...entries, ...programs])).toEqual([]);
  });

  it("has a test at the same path for every source file with code in it", () => {
    const missing = src
      .filter((source) => !holdsNoCode(source))
      .map(({ path }) => ({ path, test: path.replace(/^src\/(.*)\.ts$/, "test/$1.test.ts") }))
      .filter(
        ({ path, test }) => !Object.hasOwn(WITHOUT_TEST, path) && !existsSync(join(ROOT, test)),
      )
      .map(({ path, test }) => `${path} has no ${test}: write it, or say here why not`);
    expect(missing).toEqual([]);
  });

  it("names no file as untested that has a test or is gone", () => {
    const stale = Object.keys(WITHOUT_TEST).filter(
      (path) =>
        !existsSync(join(ROOT, path)) ||
        existsSync(join(ROOT, path.replace(/^src\/(.*)\.ts$/, "test/$1.test.ts"))),
    );
    expect(stale).toEqual([]);
  });

  it("has a source file for every micro bench", () => {
    const lost = bench
      .map(({ path }) => path)
      .filter((path) => path.startsWith("bench/micro/") && path.endsWith(".bench.ts"))
      .filter(
        (path) => !existsSync(join(ROOT, path.replace(/^bench\/micro\/(.*)\.bench/, "src/$1"))),
      )
      .map((path) => `${path} mirrors no file of src: move it to its file's path`);
    expect(lost).toEqual([]);
  });
});

describe("packages", () => {
  const dependencies = [...namesIn("dependencies"), ...namesIn("peerDependencies")];
  const users = packageUsers(src);
  const rows = new Map(
    [...packages.matchAll(/^\| `([^`]+)` \| `(src\/[^`]+)` \| (.+) \|$/gm)].map(
      ([, name = "", owner = "", why = ""]) => [name, { owner, why }],
    ),
  );

  it("are imported by src only when they are installed with it", () => {
    const foreign = [...users.keys()].filter((name) => !dependencies.includes(name));
    expect(foreign, "move these to dependencies, or do without").toEqual([]);
  });

  it("have one sentence and one owner in docs/dependencies.md", () => {
    expect([...rows.keys()].sort()).toEqual([...dependencies].sort());
  });

  it.each(dependencies)("%s is imported by its owner alone", (name) => {
    const owners = [rows.get(name)?.owner, ...(SECOND_OWNERS[name] ?? [])];
    expect(users.get(name) ?? [], "import the owner's file instead").toEqual(owners);
  });

  it("are pinned exactly", () => {
    const loose = [...versionsIn("dependencies"), ...versionsIn("devDependencies")].filter(
      ([, version]) => !/^(?:npm:@?[\w./-]+@)?\d+\.\d+\.\d+(?:-beta\.\d+)?$/.test(version),
    );
    expect(loose).toEqual([]);
  });
});

describe("documents", () => {
  it("have one title each", () => {
    expect(documents.flatMap((source) => oneHeading(source))).toEqual([]);
  });

  it("name no machine's paths and leave nothing behind", () => {
    const rule = FILE_RULES["nothing is left behind"];
    expect(documents.flatMap((source) => rule?.(source) ?? [])).toEqual([]);
  });

  it.each([...GENERATED_PAGES])("hold the generated blocks of %s (npm run docs)", (path, names) => {
    const { text } = readSource(path);
    expect([...blocksOf(text)].sort()).toEqual([...names].sort());
    expect(withGeneratedBlocks(text)).toBe(text);
  });

  it("hold no generated block on another page", () => {
    const others = documents.filter(({ path }) => !GENERATED_PAGES.has(path));
    expect(others.flatMap(({ path, text }) => blocksOf(text).map((name) => [path, name]))).toEqual(
      [],
    );
  });

  it("have a README of at most 250 lines", () => {
    expect(readSource("README.md").lines.length - 1).toBeLessThanOrEqual(250);
  });

  it("link only to files and headings that exist", () => {
    expect(documents.flatMap((source) => brokenLinks(source))).toEqual([]);
  });
});

describe("decisions", () => {
  const pages = documents.filter(({ path }) => /^docs\/decisions\/(?!README)/.test(path));
  const index = readSource("docs/decisions/README.md").text;
  const sections = ["Context", "Decision", "Measurement", "Revisit when"];

  it("are numbered from 1 on, and say so in their titles", () => {
    const numbers = pages.map(({ path }) => /\/(\d{4})-[a-z0-9-]+\.md$/.exec(path)?.[1]);
    expect(numbers).toEqual(pages.map((_, at) => String(at + 1).padStart(4, "0")));
    for (const [at, { path, lines }] of pages.entries()) {
      expect(lines[0], path).toMatch(new RegExp(`^# ${at + 1}\\. \\S`));
    }
  });

  it("have the same four sections", () => {
    for (const { path, text } of pages) {
      const found = [...text.matchAll(/^## (.+)$/gm)].map((match) => match[1]);
      expect(found, path).toEqual(sections);
    }
  });

  it("are listed in the index with their titles", () => {
    const rows = pages.map(({ path, lines }) => {
      const file = path.replace("docs/decisions/", "");
      const title = (lines[0] ?? "").replace(/^# \d+\. /, "");
      return `| ${file.slice(0, 4)} | [${title}](${file}) |`;
    });
    expect(index.split("\n").filter((line) => /^\| \d/.test(line))).toEqual(rows);
  });

  it("are named by the code only where they exist", () => {
    const code = [".ts", ".js", ".rs"].flatMap((ending) =>
      ["src", "native/src", "native/benches", "bench"].flatMap((folder) =>
        listFiles(folder, ending),
      ),
    );
    const named = code.flatMap((path) =>
      [...readFileSync(join(ROOT, path), "utf8").matchAll(/\bDecision: (\S+)/g)].map((match) => ({
        path,
        page: match[1] ?? "",
      })),
    );
    expect(named.length).toBeGreaterThanOrEqual(20);
    const lost = named
      .filter(({ page }) => !pages.some(({ path }) => path === page))
      .map(({ path, page }) => `${path} names ${page}, which does not exist`);
    expect(lost).toEqual([]);
  });
});

describe("reasons", () => {
  it("are unique over both tables, in snake case", () => {
    const names = [...Object.keys(REJECTIONS), ...Object.keys(DELIVERY_REASONS)];
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => !/^[a-z]+(_[a-z]+)*$/.test(name))).toEqual([]);
  });
});

describe("the rules bite", () => {
  const complaints = (path: string, text: string): readonly string[] =>
    Object.values(FILE_RULES).flatMap((rule) => rule(sourceOf(path, `/** Header. */\n${text}`)));

  it.each([
    ["a stage that imports another", 'import { x } from "../send/peer.ts";'],
    ["a stage that imports the configuration", 'import type { C } from "../config/config.ts";'],
    ["a late import of the wrong way", 'const a = await import("../../src/cli/run.ts");'],
    ["the wall clock", "const at = Date.now();"],
    ["a timer", "setTimeout(() => {}, 1);"],
    ["the environment", "const home = process.env.HOME;"],
    ["the console", 'console.log("x");'],
    ["a queue that shifts", "const first = list.shift();"],
    ["an enum", "enum Colour { Red }"],
    ["any", "function f(a: any): void {}"],
    ["any in a generic", "const list: Array<any> = [];"],
    ["a default export", "export default 1;"],
    ["a private word", "const scorecard = 1;"],
    ["a barrel", 'export { x } from "./x.ts";'],
    ["a swallowed fault", "try { f(); } catch {}"],
    ["a mark of unfinished work", `// ${"TO" + "DO"}: later`],
    ["a path of one machine", `// see ${"/wo" + "rk/x"}`],
    ["a long line", `const a = "${"x".repeat(100)}";`],
    ["a long function", `function f() {\n${"  f();\n".repeat(70)}}\n`],
    ["a long method", `const a = {\n  f(\n    a,\n  ) {\n${"    f();\n".repeat(70)}  },\n};\n`],
    ["a long arrow", `const f = () => {\n${"  f();\n".repeat(70)}};\n`],
    ["a long file", "\n".repeat(701)],
  ])("on %s", (_, text) => {
    expect(complaints("src/decode/x.ts", text)).toHaveLength(1);
  });

  it.each([
    ["a word in a string", 'const text = "Date.now and console";'],
    ["a word in a comment", "// not process.env, not setTimeout( and not any\n/* Date.now() */"],
    ["a word in a regular expression", "const form = /console|setTimeout/;"],
    ["a catch that says why", "try { f(); } catch {\n  // Gone already.\n}"],
    ["a name that contains one", "const company = anything.shifted; const enumerable = 1;"],
    ["a function at the limit", `function f() {\n${"  f();\n".repeat(68)}}\n`],
    ["a line at the limit", `const a = "${"x".repeat(87)}";`],
    ["an import of core", 'import { x } from "../core/ring.ts";'],
  ])("and let %s pass", (_, text) => {
    expect(complaints("src/decode/x.ts", text)).toEqual([]);
  });

  it("each where it belongs only", () => {
    const clock = sourceOf("src/core/clock.ts", "const at = Date.now();");
    expect(bannedCode(clock)).toEqual([]);
    expect(importDirection(sourceOf("src/edge/edge.ts", 'import "./send/peer.ts";'))).toEqual([]);
    expect(sizes(sourceOf("test/a.test.ts", `it(() => {\n${"  f();\n".repeat(80)}});\n`))).toEqual(
      [],
    );
  });

  it("on a file without a header", () => {
    expect(
      FILE_RULES["each file says what it is"]?.(sourceOf("src/a/b.ts", "const a = 1;")),
    ).toEqual([expect.stringContaining("no header")]);
  });

  it("on a cycle, on an orphan, and on two owners", () => {
    const a = sourceOf("src/core/a.ts", 'import "./b.ts";\nimport "pino";');
    const b = sourceOf("src/core/b.ts", 'import "./a.ts";\nimport "@scope/x/deep.js";');
    const c = sourceOf("src/core/c.ts", 'import "pino";');
    expect(cycles([a, b, c])).toEqual([
      expect.stringContaining("src/core/a.ts → src/core/b.ts → src/core/a.ts"),
    ]);
    expect(orphans([a, b, c], ["src/core/a.ts"])).toEqual([
      expect.stringContaining("src/core/c.ts"),
    ]);
    expect(packageUsers([a, b, c])).toEqual(
      new Map([
        ["pino", ["src/core/a.ts", "src/core/c.ts"]],
        ["@scope/x", ["src/core/b.ts"]],
      ]),
    );
  });

  it("knows a file of types and constants from one with code", () => {
    const types =
      "export interface A {\n  f(): void;\n  g: () => void;\n}\nexport type B = () => void;";
    const constants = "export const MAX = 16 * 1024;\nexport const LIST = [1, 2] as const;";
    expect([types, constants].map((text) => holdsNoCode(sourceOf("src/core/x.ts", text)))).toEqual([
      true,
      true,
    ]);
    const code = ["export function f() {}", "export const f = () => 1;", "export class A {}"];
    expect(code.filter((text) => holdsNoCode(sourceOf("src/core/x.ts", text)))).toEqual([]);
  });

  it("on a document with two titles or none, code blocks aside", () => {
    expect(oneHeading(sourceOf("a.md", "# A\n```\n# comment\n```\n"))).toEqual([]);
    expect(oneHeading(sourceOf("a.md", "# A\n# B\n"))).toHaveLength(1);
    expect(oneHeading(sourceOf("a.md", "## A\n"))).toHaveLength(1);
  });

  it("counts a worker's file, named by URL, as an import", () => {
    const pool: Source = sourceOf(
      "src/decode/workers/piscina-pool.ts",
      'const file = new URL("./decode.worker.js", import.meta.url);',
    );
    expect(pool.imports).toMatchObject([{ file: "src/decode/workers/decode.worker.ts" }]);
    const thread: Source = sourceOf(
      "src/cluster/cluster-thread.ts",
      'const file = compiledPath(import.meta.dirname, "./worker.js");',
    );
    expect(thread.imports).toMatchObject([{ file: "src/cluster/worker.ts" }]);
  });

  it("keeps lines and columns when it blanks", () => {
    const text = 'a("x // y"); // c\nb(`t\n$n`) / 2 / c; /* d\n */ e(/[/"]+/g);';
    const blanked = blankOut(text);
    expect(blanked).toHaveLength(text.length);
    expect(blanked.split("\n")).toHaveLength(text.split("\n").length);
    expect(blanked.replace(/\s+/g, " ")).toBe('a(" "); b(` `) / 2 / c; e(/ /g);');
  });

  it("measures functions from their first line to their last", () => {
    const text =
      "export function f(\n  a: number,\n): number {\n  return a;\n}\n\nfunction g() {\n}\n";
    expect(functionsOf(sourceOf("src/core/x.ts", text))).toEqual([
      { line: 1, lineCount: 5, ownLineCount: 5 },
      { line: 7, lineCount: 2, ownLineCount: 2 },
    ]);
  });

  it("does not charge a factory for the functions that it makes", () => {
    const inner = "  function g() {\n    h();\n  }\n";
    const text = `export function createF() {\n${inner}${inner}  return { g };\n}\n`;
    const [outer] = functionsOf(sourceOf("src/core/x.ts", text));
    expect(outer).toEqual({ line: 1, lineCount: 9, ownLineCount: 3 });
  });
});

/** Links of a document to a file that is not there, or to a heading that its page lacks. */
function brokenLinks({ path, text }: Source): readonly string[] {
  return [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].flatMap(
    ([, file = "", heading]) => {
      const target = file === "" ? path : join(path, "..", file);
      if (!existsSync(join(ROOT, target))) return [`${path} links to ${target}`];
      if (heading === undefined || headingsOf(target).includes(heading)) return [];
      return [`${path} links to ${target}#${heading}, a heading that is not there`];
    },
  );
}

/** As a viewer of Markdown names them in addresses. */
function headingsOf(path: string): readonly string[] {
  const text = readSource(path).text.replace(/^```[\s\S]*?^```/gm, "");
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\w\s-]/g, "")
      .replace(/\s/g, "-"),
  );
}

/** A plain JavaScript file counts as well: a worker that no compiler touches. */
function exists(file: string): boolean {
  return [file, file.replace(/\.ts$/, ".js")].some((path) => existsSync(join(ROOT, path)));
}

function namesIn(field: string): readonly string[] {
  return versionsIn(field).map(([name]) => name);
}

function versionsIn(field: string): readonly (readonly [string, string])[] {
  if (typeof manifest !== "object" || manifest === null || !(field in manifest)) return [];
  // package.json's maps of versions are texts to texts; npm itself refuses anything else.
  return Object.entries((manifest as Record<string, Record<string, string>>)[field] ?? {});
}
