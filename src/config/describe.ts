/**
 * Describes the table of keys: the effective configuration as TOML for `check`, and a listing for
 * `--help`. Secrets in the values are hidden already.
 */

import { formatToml } from "../runtime/toml.ts";
import type { ShownValues } from "./resolve.ts";
import { KEY_PATHS } from "./table.ts";
import type { Raw } from "./value-types.ts";

/** The effective configuration as TOML; absent keys follow at the end as comments. */
export function describeEffective(shown: ShownValues): string {
  const document: Table = {};
  const absent: string[] = [];
  for (const [path, value] of [...shown].sort(byTableOrder)) {
    if (value === null) absent.push(`# ${path} is not set`);
    else insert(document, path.split("."), value);
  }
  return [formatToml(document).trimEnd(), "", ...absent].join("\n").trimEnd();
}

interface Table {
  [name: string]: Raw | Table;
}

/** Sets the value in the table that its path names, which is made if there is none. */
function insert(table: Table, [name = "", ...rest]: readonly string[], value: Raw): void {
  if (rest.length === 0) {
    table[name] = value;
    return;
  }
  const found = table[name];
  const inner = isTable(found) ? found : {};
  table[name] = inner;
  insert(inner, rest, value);
}

function isTable(value: Raw | Table | undefined): value is Table {
  return typeof value === "object" && !Array.isArray(value);
}

function byTableOrder([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return PLACE.indexOf(a) - PLACE.indexOf(b);
}

/** A paragraph per section with its key names; docs/configuration.md describes each. */
export function describeKeys(): string {
  const sections = new Map<string, string[]>();
  for (const path of KEY_PATHS) {
    const [section = path, ...rest] = path.split(".");
    const names = sections.get(section) ?? [];
    if (rest.length > 0) names.push(rest.join("."));
    sections.set(section, names);
  }
  const width = Math.max(...[...sections.keys()].map((section) => section.length)) + 4;
  const indent = "".padEnd(width);
  return [...sections]
    .flatMap(([section, names]) => {
      const [first = "", ...rest] = wrapped(names, HELP_COLUMNS - width);
      return [`  ${section}`.padEnd(width) + first, ...rest.map((line) => indent + line)];
    })
    .map((line) => line.trimEnd())
    .join("\n");
}

/** Wraps the words to lines of at most this width. */
function wrapped(words: readonly string[], columns: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of words) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = "";
    }
    line = line === "" ? word : `${line} ${word}`;
  }
  return line === "" ? lines : [...lines, line];
}

const HELP_COLUMNS = 96;

const PLACE: readonly string[] = KEY_PATHS;
