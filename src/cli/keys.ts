/**
 * `keys`: an operator's keys, in a keys file or in the accounts database. Prints a new key once. A
 * running edge reads a changed keys file on SIGHUP and receives changes of the database
 * automatically.
 */

import { createKey, listKeys, revokeKey } from "../accounts/keys/edit-keys-file.ts";
import type { KeyRow } from "../accounts/keys/key.ts";
import { loadConfig, serviceOf } from "../config/load.ts";
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
import {
  createInDatabase,
  type ListedKey,
  listDatabase,
  revokeInDatabase,
  rewrapDatabase,
} from "./keys-database.ts";
import { didYouMean } from "./nearest.ts";

export const keysCommand: Command = {
  name: "keys",
  summary: "creates, lists and revokes keys, in a keys file or the accounts database",
  usage: [
    "keys create --file|--config FILE --account NAME [--plan Beta] [--label TEXT]",
    "keys list --file|--config FILE",
    "keys revoke KEY|SHA256 --file|--config FILE",
    "keys rewrap --config FILE",
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
  --config FILE    instead of --file: the keys file of an edge's configuration, or the
                   accounts database of control's
  --account NAME   the account of the key; its keys share one rate limit. In the database a name
                   or an id; a missing account is created
  --plan NAME      a plan of the file or database, Beta when not given
  --label TEXT     a note for the list

create prints the key. A keys file holds its SHA-256 alone, so it cannot be shown again.
revoke takes the key or at least the first 8 digits of its SHA-256, as list shows them.
rewrap seals the database's keys with the first key of the vault file.
A running edge reads a keys file again on SIGHUP, and follows the database's changes.
`,
  async run(given, positionals, io) {
    const [action, ...rest] = positionals;
    if (action === "create") return await create(given, rest, io);
    if (action === "list") return await list(given, rest, io);
    if (action === "revoke") return await revoke(given, rest, io);
    if (action === "rewrap") return await rewrap(given, rest, io);
    const needed = "say create, list, revoke or rewrap";
    if (action === undefined) throw new UsageError(needed);
    const near = didYouMean(action, ["create", "list", "revoke", "rewrap"]);
    throw new UsageError(`there is no ${JSON.stringify(action)}, ${needed}${near}`);
  },
};

async function create(given: Given, rest: readonly string[], io: Io): Promise<0> {
  noPositionals(rest);
  const label = optionalText(given, "label");
  const account = requiredText(given, "account");
  const plan = optionalText(given, "plan");
  const place = placeOf(given);
  if (place.kind === "database") {
    io.out(await createInDatabase(place.config, { account, plan, label: label ?? "" }, io));
    return 0;
  }
  const key = { account, plan: plan ?? "Beta", ...(label === null ? {} : { label }) };
  io.out(createKey(place.file, key).token);
  io.err("This key is shown once. A running edge takes it on SIGHUP.");
  return 0;
}

async function list(given: Given, rest: readonly string[], io: Io): Promise<0> {
  noPositionals(rest);
  refuseOptions(given, ["account", "plan", "label"]);
  const place = placeOf(given);
  const rows = [["SHA256", "ACCOUNT", "PLAN", "LABEL"]];
  if (place.kind === "database") {
    await listDatabase(place.config, io, (key) => void rows.push(listedCells(key)));
  } else {
    rows.push(...listKeys(place.file).map(cellsOf));
  }
  const widths = [0, 1, 2].map((at) =>
    rows.reduce((max, row) => Math.max(max, (row[at] ?? "").length), 0),
  );
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

async function revoke(given: Given, rest: readonly string[], io: Io): Promise<0> {
  const [which, ...surplus] = rest;
  if (which === undefined) throw new UsageError("the key to revoke is missing");
  noPositionals(surplus);
  refuseOptions(given, ["account", "plan", "label"]);
  const place = placeOf(given);
  if (place.kind === "database") {
    const key = await revokeInDatabase(place.config, which, io);
    io.out(`revoked ${listedCells(key).join("  ").trimEnd()}`);
    return 0;
  }
  io.out(`revoked ${cellsOf(revokeKey(place.file, which)).join("  ").trimEnd()}`);
  io.err("A running edge takes this over on SIGHUP.");
  return 0;
}

async function rewrap(given: Given, rest: readonly string[], io: Io): Promise<0 | 1> {
  noPositionals(rest);
  refuseOptions(given, ["account", "plan", "label"]);
  const place = placeOf(given);
  if (place.kind !== "database") throw new SetupError("a keys file has no vault to seal with");
  const { rewrapped, failed } = await rewrapDatabase(place.config, io);
  io.out(`${rewrapped} keys sealed anew, ${failed} could not be opened`);
  return failed === 0 ? 0 : 1;
}

function listedCells({ sha256, account, plan, label }: ListedKey): string[] {
  return [sha256.slice(0, SHA256_DIGITS_SHOWN), account, plan, label];
}

function cellsOf({ sha256, account, plan, label }: KeyRow): string[] {
  const shown = sha256.toString("hex").slice(0, SHA256_DIGITS_SHOWN);
  return [shown, account, plan.name, label ?? ""];
}

/** The place of the keys. */
type Place =
  | { readonly kind: "file"; readonly file: string }
  | { readonly kind: "database"; readonly config: string };

function placeOf(given: Given): Place {
  const file = optionalText(given, "file");
  const config = optionalText(given, "config");
  if (file !== null && config === null) return { kind: "file", file };
  if (file !== null || config === null) {
    throw new UsageError("exactly one of --file and --config is needed");
  }
  if (serviceOf(config) === "control") return { kind: "database", config };
  const { keysFile } = loadConfig(config).accounts;
  return keysFile === null ? { kind: "database", config } : { kind: "file", file: keysFile };
}

function refuseOptions(given: Given, names: readonly string[]): void {
  const surplus = names.find((name) => given[name] !== undefined);
  if (surplus !== undefined) throw new UsageError(`--${surplus} belongs to create alone`);
}

/** Long enough to distinguish the keys of one file, short enough to read aloud. */
const SHA256_DIGITS_SHOWN = 16;
