/**
 * `keys`: an operator's keys in a keys file. A new key is printed once and kept nowhere; a running
 * edge takes changes over when it gets SIGHUP.
 */

import { createKey, listKeys, revokeKey } from "../accounts/edit-keys-file.ts";
import type { KeyRow } from "../accounts/key.ts";
import { loadConfig } from "../config/load.ts";
import { SetupError } from "../core/errors.ts";
import {
  type Command,
  type Given,
  type Io,
  noPositionals,
  optionalText,
  requiredText,
  UsageError,
} from "./command.ts";

export const keysCommand: Command = {
  name: "keys",
  summary: "creates, lists and revokes the keys of a keys file",
  usage: [
    "keys create --file FILE --account NAME [--plan Beta] [--label TEXT]",
    "keys list --file FILE",
    "keys revoke KEY|SHA256 --file FILE",
  ],
  options: {
    file: { type: "string" },
    config: { type: "string" },
    account: { type: "string" },
    plan: { type: "string" },
    label: { type: "string" },
  },
  detail: `
  --file FILE      the keys file; create makes it when there is none
  --config FILE    instead of --file: the keys file of this configuration
  --account NAME   whose key it is; an account's keys share one rate limit
  --plan NAME      a plan of the file, Beta when not given
  --label TEXT     a note for the list

create prints the key; the file holds its SHA-256 alone, so it cannot be shown again.
revoke takes the key or at least the first 8 digits of its SHA-256, as list shows them.
A running edge takes the change over on SIGHUP.
`,
  async run(given, positionals, io) {
    const [action, ...rest] = positionals;
    if (action === "create") return create(given, rest, io);
    if (action === "list") return list(given, rest, io);
    if (action === "revoke") return revoke(given, rest, io);
    throw new UsageError("say create, list or revoke");
  },
};

function create(given: Given, rest: readonly string[], io: Io): 0 {
  noPositionals(rest);
  const label = optionalText(given, "label");
  const key = {
    account: requiredText(given, "account"),
    plan: optionalText(given, "plan") ?? "Beta",
    ...(label === null ? {} : { label }),
  };
  io.out(createKey(keysFileOf(given), key).token);
  io.err("This key is shown once. A running edge takes it on SIGHUP.");
  return 0;
}

function list(given: Given, rest: readonly string[], io: Io): 0 {
  noPositionals(rest);
  refuseOptions(given, ["account", "plan", "label"]);
  const rows = [
    ["SHA256", "ACCOUNT", "PLAN", "LABEL"],
    ...listKeys(keysFileOf(given)).map(cellsOf),
  ];
  const widths = [0, 1, 2].map((at) => Math.max(...rows.map((row) => (row[at] ?? "").length)));
  for (const row of rows) {
    io.out(
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    );
  }
  return 0;
}

function revoke(given: Given, rest: readonly string[], io: Io): 0 {
  const [which, ...surplus] = rest;
  if (which === undefined) throw new UsageError("the key to revoke is missing");
  noPositionals(surplus);
  refuseOptions(given, ["account", "plan", "label"]);
  const row = revokeKey(keysFileOf(given), which);
  io.out(`revoked ${cellsOf(row).join("  ").trimEnd()}`);
  io.err("A running edge takes this over on SIGHUP.");
  return 0;
}

function cellsOf({ sha256, account, plan, label }: KeyRow): string[] {
  const shown = sha256.toString("hex").slice(0, SHA256_DIGITS_SHOWN);
  return [shown, account, plan.name, label ?? ""];
}

function keysFileOf(given: Given): string {
  const file = optionalText(given, "file");
  const config = optionalText(given, "config");
  if (file !== null && config === null) return file;
  if (file !== null || config === null) {
    throw new UsageError("exactly one of --file and --config is needed");
  }
  const { keysFile } = loadConfig(config).accounts;
  if (keysFile !== null) return keysFile;
  throw new SetupError(
    `${config}: keys in the accounts database are not available in this version`,
  );
}

function refuseOptions(given: Given, names: readonly string[]): void {
  const surplus = names.find((name) => given[name] !== undefined);
  if (surplus !== undefined) throw new UsageError(`--${surplus} belongs to create alone`);
}

/** Enough that two keys of one file differ, short enough to read aloud. */
const SHA256_DIGITS_SHOWN = 16;
