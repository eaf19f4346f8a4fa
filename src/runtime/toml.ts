/**
 * TOML text to plain values and back; the only use of the parser. Nothing here throws for bad
 * input; an error is reported with its line and column. The parser's own message quotes the faulty
 * line, which may hold a key or a password, so the quotation is removed here.
 *
 * Decision: docs/decisions/0037-no-secrets-in-messages.md
 */

import { parse, stringify, TomlError } from "smol-toml";

/** One TOML table: strings, finite or infinite numbers, booleans, dates, arrays, tables. */
export type TomlTable = Readonly<Record<string, unknown>>;

export type ParsedToml =
  | { readonly kind: "ok"; readonly value: TomlTable }
  | {
      readonly kind: "error";
      /** One sentence with the line and column and no quotation of the text. */
      readonly message: string;
      /** Both count from 1. */
      readonly line: number;
      readonly column: number;
    };

/** Parses one document. Integers that a double cannot hold and `__proto__` keys are errors. */
export function parseToml(text: string): ParsedToml {
  try {
    return {
      kind: "ok",
      value: parse(text, { unsafeKeyBehaviour: "throw", maxDepth: TOML_DEPTH_MAX }),
    };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [summary = "invalid document"] = error.message.split("\n", 1);
    const what = summary.replace("Invalid TOML document: ", "");
    return {
      kind: "error",
      message: `not valid TOML: ${what} at line ${error.line}, column ${error.column}`,
      line: error.line,
      column: error.column,
    };
  }
}

/** Writes a table as TOML text that `parseToml` reads back to equal values. */
export function formatToml(value: TomlTable): string {
  return stringify(value);
}

/** Nested inline tables and arrays; the project's own files nest at most two deep. */
const TOML_DEPTH_MAX = 16;
