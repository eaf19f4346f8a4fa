/**
 * The rules of the house as functions from files to complaints. Each complaint names the place and
 * the remedy. `tidy.test.ts` runs them over the tree, and over planted breaches to see them bite.
 */

import { functionsOf, type Import, packageOf, type Source } from "./source-tree.ts";

export type Rule = (source: Source) => readonly string[];

const FILE_LINES_MAX = 700;
const FUNCTION_LINES_MAX = 70;
const COLUMNS_MAX = 100;

/** Parts that know nothing of each other: `edge` joins them. */
const STAGES = [
  "decode",
  "route",
  "send",
  "cluster",
  "landing",
  "receipts",
  "telemetry",
  "accounts",
];
const BELOW_EDGE = ["core", "runtime", "config", "native", "limits", "dedup", "http", ...STAGES];

/** What each part of `src` may import besides itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  runtime: ["core"],
  config: ["core", "runtime"],
  native: ["core"],
  limits: ["core", "runtime"],
  dedup: ["core", "runtime"],
  ...Object.fromEntries(STAGES.map((stage) => [stage, ["core", "runtime", "native"]])),
  http: ["core", "runtime", "native", "limits"],
  "native-ingress": ["core", "runtime", "native", "limits", "http", "send", "engine"],
  engine: BELOW_EDGE,
  edge: [...BELOW_EDGE, "native-ingress", "engine"],
  control: ["core", "runtime", "config", "accounts", "telemetry"],
  sandbox: [...BELOW_EDGE, "native-ingress", "engine", "edge", "control"],
  cli: [...BELOW_EDGE, "native-ingress", "engine", "edge", "control", "sandbox"],
  main: ["core", "cli"],
};

/** The folder of a file in `src`; a file at its top is a part of its own. */
function partOf(path: string): string | null {
  const [top, part = "", below] = path.split("/");
  if (top !== "src") return null;
  return below === undefined ? part.replace(/\.ts$/, "") : part;
}

export const importDirection: Rule = ({ path, imports }) => {
  const part = partOf(path);
  if (part === null) return [];
  const allowed = MAY_IMPORT[part];
  if (allowed === undefined) return [`${path}: src/${part} has no row in MAY_IMPORT, add one`];
  return imports.flatMap(({ file, line }: Import) => {
    if (file === null || file === "package.json") return [];
    const target = partOf(file);
    if (target === part || (target !== null && allowed.includes(target))) return [];
    return [
      `${path}:${line} imports ${file}; ${part} may import ${[part, ...allowed].join(", ")}: ` +
        "declare what it needs as an interface in its own folder and join the two in edge/edge.ts",
    ];
  });
};

export const sizes: Rule = (source) => {
  const { path, lines } = source;
  const complaints: string[] = [];
  const lineCount = lines.at(-1) === "" ? lines.length - 1 : lines.length;
  if (lineCount > FILE_LINES_MAX) {
    complaints.push(`${path} has ${lineCount} lines: split it, ${FILE_LINES_MAX} is the most`);
  }
  for (const [index, line] of lines.entries()) {
    if (line.length <= COLUMNS_MAX || isVector(path, line)) continue;
    complaints.push(`${path}:${index + 1} has ${line.length} columns: break it at ${COLUMNS_MAX}`);
  }
  // A test's `describe` holds a whole story, so its functions may be long.
  if (path.startsWith("test/")) return complaints;
  for (const { line, ownLineCount: size } of functionsOf(source)) {
    if (size <= FUNCTION_LINES_MAX) continue;
    complaints.push(
      `${path}:${line} is a function of ${size} lines: let helpers compute and the parent branch`,
    );
  }
  return complaints;
};

/** A test's golden bytes stay on one line, to be found by searching. */
function isVector(path: string, line: string): boolean {
  return path.startsWith("test/") && /^\s*(?:\w+: )?"[^\s"]+"[,;)]*$/.test(line);
}

/** Words that this project once used for things that have a standard name. */
const PRIVATE_WORDS = [
  "Desk|Doorway|Errand|Inlet|Hall|Guest|Teller|Rehearsal|rehearsal|[Ss]corecards?|[Pp]assOver",
  "[Ff]ronts?(?:[A-Z]\\w*)?|FRONTS?_\\w+|[Aa]dopt\\w*|giveWay|vices|NOBODY|[Ss]ighted|[Ss]crub\\w*",
  "[Hh]asten\\w*|[Cc]oasted|[Pp]oster|[Aa]sker|[Bb]elieved|[Dd]oubted|[Dd]ialect\\w*|[Cc]rew|[Ll]ane",
  "[Bb]ell|[Vv]erdict\\w*",
];

interface Banned {
  readonly form: RegExp;
  readonly remedy: string;
  /** Where it applies, and where it is at home. */
  readonly within: RegExp;
  readonly except: RegExp;
}

const NOWHERE = /^$/;

/** Looked for in code without comments and strings. */
const BANNED: readonly Banned[] = [
  {
    form: /\b(?:Date\.now|process\.hrtime|performance\.now|new Date\(\)|setTimeout|setInterval)\b/,
    remedy: "take a Clock (core/clock.ts)",
    within: /^src\//,
    except: /^src\/core\/clock\.ts$/,
  },
  {
    form: /\b(?:setTimeout|setInterval)\b/,
    remedy: "use the fake clock, or wait for a condition through test/support",
    within: /^test\//,
    except: /^test\/support\//,
  },
  {
    form: /\bimport fc\b|\bMath\.random\b/,
    remedy: "draw from a seed: support/properties.ts, support/dice.ts",
    within: /^test\//,
    except: /^test\/support\/properties\.ts$/,
  },
  {
    form: /\bprocess\.env\b/,
    remedy: "add a key to config/table.ts",
    within: /^src\//,
    except: /^src\/config\/load\.ts$/,
  },
  {
    form: /\bconsole\b/,
    remedy: "take a Log (core/log.ts)",
    within: /^src\//,
    except: /^src\/(?:telemetry\/log\.ts$|cli\/)/,
  },
  {
    form: /\bprocess\.(?:stdout|stderr|exit)\b/,
    remedy: "answer with a value; only cli and main.ts speak to the process",
    within: /^src\//,
    except: /^src\/(?:cli\/|main\.ts$|telemetry\/log\.ts$)/,
  },
  {
    form: /\.shift\(/,
    remedy: "an array is no queue, it moves every element: use runtime/ring.ts or an index",
    within: /^src\//,
    except: NOWHERE,
  },
  {
    form: /^\s*(?:export\s+)?(?:declare\s+)?(?:const\s+)?enum\s+\w/,
    remedy: "use a union of words, or an object as const",
    within: /./,
    except: NOWHERE,
  },
  {
    form: /(?:[:<,|&(]|\bas|\bextends)\s*any\b(?!\s*[:(])/,
    remedy: "say unknown and narrow it",
    within: /./,
    except: NOWHERE,
  },
  {
    form: /\bexport default\b/,
    remedy: "export it under its name",
    within: /./,
    except: /(?:\.config|\.worker)\.ts$/,
  },
  {
    form: /^export\s+(?:type\s+)?(?:\*|\{[^}]*\})[^=]*\bfrom\b/,
    remedy: "no barrel files: import from the file that has it",
    within: /^src\//,
    except: /^src\/native\/index\.ts$/,
  },
  {
    form: new RegExp(`\\b(?:${PRIVATE_WORDS.join("|")})\\b`),
    remedy: "use the standard term: docs/glossary.md has the names of the code",
    within: /^src\//,
    except: NOWHERE,
  },
  {
    form: /@ts-(?:ignore|nocheck)/,
    remedy: "fix the type",
    within: /./,
    except: NOWHERE,
  },
];

export const bannedCode: Rule = ({ path, code }) =>
  BANNED.filter(({ within, except }) => within.test(path) && !except.test(path)).flatMap(
    ({ form, remedy }) =>
      code.split("\n").flatMap((line, index) => {
        const match = form.exec(line);
        return match === null ? [] : [`${path}:${index + 1} ${match[0].trim()}: ${remedy}`];
      }),
  );

/** Written in two halves, so that this file does not find itself. */
const MARKS = new RegExp(`\\b(?:${["TO" + "DO", "FIX" + "ME", "X" + "XX"].join("|")})\\b`);
const MACHINE = new RegExp(`(?<![\\w.])/(?:${["wo" + "rk", "ro" + "ot", "ho" + "me"].join("|")})/`);

/** Looked for in the whole text, comments and documents included. */
export const bannedWords: Rule = ({ path, lines }) =>
  lines.flatMap((line, index) => {
    const place = `${path}:${index + 1}`;
    if (MARKS.test(line)) return [`${place} leaves work behind: do it, or write an issue`];
    if (MACHINE.test(line)) return [`${place} names a path of one machine: say it relatively`];
    return [];
  });

export const silentCatch: Rule = ({ path, text, code }) =>
  [...code.matchAll(/\bcatch\s*(?:\([^)]*\))?\s*\{\s*\}/g)]
    .filter(({ index, 0: match }) => text.slice(index, index + match.length) === match)
    .map(() => `${path} has an empty catch: say in a sentence why nothing needs doing`);

export const header: Rule = ({ path, text }) => {
  if (!path.startsWith("src/")) return [];
  const body = text.replace(/^#!.*\n/, "").replace(/^(?:\/\/ Hot path:.*\n(?:\/\/.*\n)*)/, "");
  return body.trimStart().startsWith("/**") || text.startsWith("// Hot path:")
    ? []
    : [`${path} has no header: say what it does, what it promises, the one surprise`];
};

export const oneHeading: Rule = ({ path, text }) => {
  const outside = text.replace(/^```[\s\S]*?^```/gm, "");
  const count = outside.split("\n").filter((line) => /^# /.test(line)).length;
  return count === 1 ? [] : [`${path} has ${count} first-level headings: one is its title`];
};

/** The rules for one TypeScript file. */
export const FILE_RULES: Readonly<Record<string, Rule>> = {
  "imports go one way": importDirection,
  "files, functions and lines are short": sizes,
  "no construct that has a better one": bannedCode,
  "nothing is left behind": bannedWords,
  "no fault is swallowed in silence": silentCatch,
  "each file says what it is": header,
};

/** Every import cycle once, as `a → b → a`. */
export function cycles(sources: readonly Source[]): readonly string[] {
  const graph = new Map(sources.map(({ path, imports }) => [path, imports]));
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at !== -1) {
      const ring = [...trail.slice(at), path].join(" → ");
      found.push(`${ring}: move what they share into a file below both`);
      return;
    }
    if (done.has(path)) return;
    for (const { file } of graph.get(path) ?? []) {
      if (file !== null && graph.has(file)) visit(file, [...trail, path]);
    }
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return found;
}

/** Files that no chain of imports from the entries reaches. */
export function orphans(sources: readonly Source[], entries: readonly string[]): readonly string[] {
  const graph = new Map(sources.map(({ path, imports }) => [path, imports]));
  const reached = new Set<string>();
  const waiting = [...entries];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    for (const { file } of graph.get(path) ?? []) if (file !== null) waiting.push(file);
  }
  return [...graph.keys()]
    .filter((path) => !reached.has(path))
    .map((path) => `${path} is imported by nothing: use it or remove it`);
}

/** Packages and the files that import them. */
export function packageUsers(sources: readonly Source[]): ReadonlyMap<string, readonly string[]> {
  const users = new Map<string, string[]>();
  for (const { path, imports } of sources) {
    for (const { specifier } of imports) {
      const name = packageOf(specifier);
      if (name === null) continue;
      const files = users.get(name) ?? [];
      if (!files.includes(path)) files.push(path);
      users.set(name, files);
    }
  }
  return users;
}

/** Whether a file holds types and constants alone, so that there is nothing in it to run. */
export function holdsNoCode({ code }: Source): boolean {
  return !/\bfunction\b|\bclass\b|=>\s*[{(\w]/.test(withoutTypes(code));
}

/** Code without interfaces and type aliases, whose arrows are not functions. */
function withoutTypes(code: string): string {
  return code
    .replace(/^(?:export\s+)?interface\b[\s\S]*?^\}/gm, "")
    .replace(/^(?:export\s+)?type\b[\s\S]*?;$/gm, "");
}
