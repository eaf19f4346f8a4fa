/**
 * The table of keys in words: the effective configuration as TOML for `check`, a listing for
 * `--help`, and the table of the README. Values reach this file with their secrets hidden already.
 */

import { formatToml } from "../core/toml.ts";
import type { Raw } from "./kinds.ts";
import type { ShownValues } from "./resolve.ts";
import { KEY_PATHS, KEYS } from "./table.ts";

/** The effective configuration as TOML; keys that are absent stand at the end as comments. */
export function describeEffective(shown: ShownValues): string {
  const document: Record<string, Raw | Record<string, Raw>> = {};
  const absent: string[] = [];
  for (const [path, value] of [...shown].sort(byTableOrder)) {
    const [section = path, name] = path.split(".");
    if (value === null) {
      absent.push(`# ${path} is not set`);
    } else if (name === undefined) {
      document[section] = value;
    } else {
      const table = document[section];
      document[section] = { ...(isTable(table) ? table : {}), [name]: value };
    }
  }
  return [formatToml(document).trimEnd(), "", ...absent].join("\n").trimEnd();
}

function isTable(value: Raw | Record<string, Raw> | undefined): value is Record<string, Raw> {
  return typeof value === "object" && !Array.isArray(value);
}

function byTableOrder([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return PLACE.indexOf(a) - PLACE.indexOf(b);
}

/** One line a key: path, default, sentence. */
export function describeKeys(): string {
  const rows = KEY_PATHS.map((path) => ({ path, sentence: KEYS[path].sentence }));
  const width = Math.max(...rows.map(({ path }) => path.length));
  return rows
    .map(({ path, sentence }) => `  ${path.padEnd(width)}  ${sentence.replaceAll("`", "")}`)
    .join("\n");
}

/** The rows of the README's table. */
export function describeKeysMarkdown(): string {
  const rows = KEY_PATHS.map((path) => {
    const { kind, sentence } = KEYS[path];
    const values = kind.bounds === "" ? kind.name : `${kind.name}: ${kind.bounds}`;
    return `| \`${path}\` | ${defaultText(path)} | ${values} | ${sentence} |`;
  });
  return ["| key | default | values | meaning |", "|---|---|---|---|", ...rows].join("\n");
}

function defaultText(path: (typeof KEY_PATHS)[number]): string {
  const { fallback, absent } = KEYS[path];
  if (fallback !== null) return `\`${JSON.stringify(fallback)}\``;
  return absent === "refused" ? "must be given" : "–";
}

const PLACE: readonly string[] = KEY_PATHS;
