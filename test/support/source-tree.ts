/**
 * The project's own files, as `tidy.test.ts` reads them: text, code without comments and strings,
 * imports, and the extent of functions. It reads text, not syntax trees, and relies on the
 * formatter: a function ends at the first closing brace with its own indentation.
 */

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

export interface Import {
  /** As written: `./x.ts` or `pino`. */
  readonly specifier: string;
  /** The file from the project's root; null for a package. */
  readonly file: string | null;
  readonly line: number;
}

export interface Source {
  /** From the project's root, with slashes. */
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
  /** The text with comments blanked and strings emptied; lines and columns stay in place. */
  readonly code: string;
  readonly imports: readonly Import[];
}

export interface Span {
  readonly line: number;
  readonly lineCount: number;
  /** Without the lines of nested functions, so that a factory does not count those. */
  readonly ownLineCount: number;
}

export const ROOT = join(import.meta.dirname, "../..");

const SKIPPED = new Set(["node_modules", "dist", "target", "vectors", "results", ".git"]);

/** Files of the project below a folder, by extension, in order. */
export function listFiles(folder: string, extension: string): readonly string[] {
  const found: string[] = [];
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    const path = folder === "." ? entry.name : `${folder}/${entry.name}`;
    if (SKIPPED.has(entry.name)) continue;
    if (entry.isDirectory()) found.push(...listFiles(path, extension));
    else if (entry.name.endsWith(extension)) found.push(path);
  }
  return found.sort();
}

export function readSource(path: string): Source {
  return sourceOf(path, readFileSync(join(ROOT, path), "utf8"));
}

/** As `readSource`, for a text that need not exist as a file. */
export function sourceOf(path: string, text: string): Source {
  const code = blankOut(text);
  return { path, text, lines: text.split("\n"), code, imports: importsOf(path, text, code) };
}

const IMPORT_FORMS = [
  /\b(?:import|export)\b[^"';]*?\bfrom\s*"([^"]*)"/g,
  /\bimport\s*\(\s*"([^"]*)"/g,
  /\bimport\s*"([^"]*)"/g,
  /\bnew URL\(\s*"([^"]*)",\s*import\.meta/g,
  /\bcompiledPath\(import\.meta\.dirname,\s*"([^"]*)"/g,
  /\bimport\.meta\.resolve\(\s*"([^"]*)"/g,
];

function importsOf(path: string, text: string, code: string): readonly Import[] {
  const found: Import[] = [];
  for (const form of IMPORT_FORMS) {
    for (const match of code.matchAll(form)) {
      // The string's content is blanked in `code`, and at the same offset in `text`.
      const end = match.index + match[0].lastIndexOf('"');
      const start = end - (match[1] ?? "").length;
      const specifier = text.slice(start, end);
      const line = text.slice(0, match.index).split("\n").length;
      found.push({ specifier, file: fileOf(path, specifier), line });
    }
  }
  return found.sort((a, b) => a.line - b.line);
}

function fileOf(path: string, specifier: string): string | null {
  if (!specifier.startsWith(".")) return null;
  return normalize(join(dirname(path), specifier)).replace(/\.js$/, ".ts");
}

/** The package of an import: `@scope/name` or `name`; null for files and Node's own modules. */
export function packageOf(specifier: string): string | null {
  if (specifier.startsWith(".") || specifier.startsWith("node:")) return null;
  const [first = "", second = ""] = specifier.split("/");
  return first.startsWith("@") ? `${first}/${second}` : first;
}

const REGEX_MAY_FOLLOW = String.raw`(?<=(?:[=(,:[!&|?{};>+]|return|^)\s*)`;
const REGEX_BODY = String.raw`(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+`;
const TOKENS = new RegExp(
  [
    String.raw`(?<comment>//[^\n]*|/\*[\s\S]*?\*/)`,
    String.raw`"(?:[^"\\\n]|\\.)*"`,
    String.raw`'(?:[^'\\\n]|\\.)*'`,
    "`(?:[^`\\\\]|\\\\[\\s\\S])*`",
    `${REGEX_MAY_FOLLOW}/(?![/*])${REGEX_BODY}/`,
  ].join("|"),
  "gm",
);

/**
 * Blanks comments and the inside of strings, templates and regular expressions. Code within a
 * template's `${}` is blanked as well: a rule may miss a violation there, but never invents one.
 */
export function blankOut(text: string): string {
  const blank = (part: string): string => part.replace(/[^\n]/g, " ");
  return text.replace(TOKENS, (token, ...rest) => {
    const groups: unknown = rest.at(-1);
    const isComment = typeof groups === "object" && groups !== null && "comment" in groups;
    if (isComment && groups.comment !== undefined) return blank(token);
    return token.charAt(0) + blank(token.slice(1, -1)) + token.slice(-1);
  });
}

const FUNCTION_START = [
  /\bfunction\b/,
  /=>\s*\{$/,
  // A method: its name and an open parenthesis, with the rest on this line or on later ones.
  /^\s*(?:(?:async|static|get|set|override)\s+)*#?[A-Za-z_]\w*(?:<[^()]*>)?\((?:.*\).*\{)?$/,
];
const NOT_A_FUNCTION = /^\s*(?:if|for|while|switch|catch|return|await|super)\b/;

/** Every function that spans lines, outer and nested ones, in text order. */
export function functionsOf(source: Source): readonly Span[] {
  const lines = source.code.split("\n");
  const spans: { start: number; end: number; own: number }[] = [];
  for (const [start, line] of lines.entries()) {
    if (!FUNCTION_START.some((form) => form.test(line)) || NOT_A_FUNCTION.test(line)) continue;
    const indent = line.length - line.trimStart().length;
    const end = lines.findIndex((candidate, at) => at > start && closes(candidate, indent));
    if (end === -1) continue;
    const size = end - start + 1;
    // The innermost function around this one already began and has not ended.
    const parent = spans.findLast((span) => span.start < start && span.end > end);
    if (parent !== undefined) parent.own -= size;
    spans.push({ start, end, own: size });
  }
  return spans.map(({ start, end, own }) => ({
    line: start + 1,
    lineCount: end - start + 1,
    ownLineCount: own,
  }));
}

/** A line such as `}`, `});` or `},` at that indentation that does not continue with `{`. */
function closes(line: string, indent: number): boolean {
  return line.startsWith(`${" ".repeat(indent)}}`) && !line.trimEnd().endsWith("{");
}
