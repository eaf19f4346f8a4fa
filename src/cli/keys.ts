/**
 * `keys`: an operator's keys, in a keys file or in the accounts database. Prints a new key once,
 * and registers a public key once its holder has signed the text that it prints. A running edge
 * reads a changed keys file on SIGHUP and receives changes of the database automatically.
 */

import { randomUUID } from "node:crypto";
import { addPublicKey, createKey, listKeys, revokeKey } from "../accounts/keys/edit-keys-file.ts";
import type { FileKey } from "../accounts/keys/keys-file.ts";
import { challengeText, isSignedText, parsePublicKey } from "../accounts/keys/public-key.ts";
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
  registerInDatabase,
  revokeInDatabase,
  rewrapDatabase,
} from "./keys-database.ts";
import { CHALLENGE_MS_MAX } from "./limits.ts";
import { didYouMean } from "./nearest.ts";

export const keysCommand: Command = {
  name: "keys",
  summary: "creates, lists and revokes keys, in a keys file or the accounts database",
  usage: [
    "keys create --file|--config FILE --account NAME [--plan Beta] [--label TEXT]",
    "keys create --public-key BASE58 --file|--config FILE --account NAME [...]",
    "keys list --file|--config FILE",
    "keys revoke KEY|PUBLIC_KEY|SHA256 --file|--config FILE",
    "keys rewrap --config FILE",
  ],
  options: {
    file: { type: "string" },
    config: { type: "string" },
    account: { type: "string" },
    plan: { type: "string" },
    label: { type: "string" },
    "public-key": { type: "string" },
  },
  detail: `
  --file FILE      the keys file; create makes it when there is none
  --config FILE    instead of --file: the keys file of an edge's configuration, or the
                   accounts database of control's
  --account NAME   the account of the key; its keys share one rate limit. In the database an id,
                   or the name of an account without a login; creates a missing account
  --plan NAME      a plan of the file or database, Beta when not given
  --label TEXT     a note for the list
  --public-key KEY registers this Ed25519 public key (a Solana address) instead of making a key:
                   prints a text, and reads its signature by the key's holder from standard input

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
  const publicKey = optionalText(given, "public-key");
  if (publicKey !== null) return await register(place, { account, plan, label }, publicKey, io);
  if (place.kind === "database") {
    io.out(await createInDatabase(place.config, { account, plan, label: label ?? "" }, io));
    return 0;
  }
  const key = { account, plan: plan ?? "Beta", ...(label === null ? {} : { label }) };
  io.out(createKey(place.file, key).token);
  io.err("This key is shown once. A running edge takes it on SIGHUP.");
  return 0;
}

interface Wanted {
  readonly account: string;
  readonly plan: string | null;
  readonly label: string | null;
}

async function register(
  place: Place,
  { account, plan, label }: Wanted,
  publicKey: string,
  io: Io,
): Promise<0> {
  const bytes = parsePublicKey(publicKey);
  if (bytes === null) {
    const needed = "the 32 bytes of an Ed25519 public key in base58, as `solana address` prints it";
    throw new UsageError(`--public-key needs ${needed}`);
  }
  if (place.kind === "database") {
    const key = { account, plan, label: label ?? "" };
    await registerInDatabase(place.config, key, publicKey, (text) => signatureFor(text, io), io);
  } else {
    if (!SIGNABLE.test(account)) {
      const found = JSON.stringify(account);
      const needed = "printable ASCII without apostrophes, because the name is in the signed text";
      throw new UsageError(`--account is ${found}; with --public-key it needs ${needed}`);
    }
    const expiresAtMs = io.clock.unixMs() + CHALLENGE_MS_MAX;
    const text = challengeText({ id: randomUUID(), account, publicKey: bytes, expiresAtMs });
    const signature = await signatureFor(text, io);
    if (io.clock.unixMs() >= expiresAtMs) throw new SetupError("the time to sign is over");
    if (!isSignedText(bytes, text, signature)) {
      throw new SetupError("the signature is not the public key's for this text");
    }
    const key = { account, plan: plan ?? "Beta", ...(label === null ? {} : { label }) };
    addPublicKey(place.file, key, publicKey);
    io.err("A running edge takes this over on SIGHUP.");
  }
  io.out(`registered ${publicKey}`);
  return 0;
}

/** Shows a text to sign and reads its signature. */
async function signatureFor(text: string, io: Io): Promise<string> {
  io.err("The holder of the key signs this text within 15 minutes, so:");
  io.out(`solana sign-offchain-message '${text}'`);
  io.err("or with a wallet. Enter the signature, in base58 or base64:");
  const line = await io.readLine();
  if (line === null) throw new SetupError("standard input ended before the signature");
  return line;
}

async function list(given: Given, rest: readonly string[], io: Io): Promise<0> {
  noPositionals(rest);
  refuseOptions(given, CREATE_OPTIONS);
  const place = placeOf(given);
  const keys: ListedKey[] = [];
  if (place.kind === "database") {
    await listDatabase(place.config, io, (key) => void keys.push(key));
  } else {
    keys.push(...listKeys(place.file).map(listedOf));
  }
  const titles = { sha256: "SHA256", account: "ACCOUNT", plan: "PLAN", label: "LABEL" };
  const withPublicKeys = keys.some(({ publicKey }) => publicKey !== null);
  const rows = [{ ...titles, publicKey: "PUBLIC KEY" }, ...keys].map((key) =>
    cellsOf(key, withPublicKeys),
  );
  const widths = [0, 1, 2, 3].map((at) =>
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
  refuseOptions(given, CREATE_OPTIONS);
  const place = placeOf(given);
  const key =
    place.kind === "database"
      ? await revokeInDatabase(place.config, which, io)
      : listedOf(revokeKey(place.file, which));
  const cells = cellsOf(key, key.publicKey !== null);
  io.out(`revoked ${cells.join("  ").trimEnd()}`);
  if (place.kind === "file") io.err("A running edge takes this over on SIGHUP.");
  return 0;
}

async function rewrap(given: Given, rest: readonly string[], io: Io): Promise<0 | 1> {
  noPositionals(rest);
  refuseOptions(given, CREATE_OPTIONS);
  const place = placeOf(given);
  if (place.kind !== "database") throw new SetupError("a keys file has no vault to seal with");
  const { rewrapped, failed } = await rewrapDatabase(place.config, io);
  io.out(`${rewrapped} keys sealed anew, ${failed} could not be opened`);
  return failed === 0 ? 0 : 1;
}

function cellsOf(
  { sha256, account, plan, publicKey, label }: ListedKey,
  withPublicKey: boolean,
): string[] {
  const shown = sha256.slice(0, SHA256_DIGITS_SHOWN);
  return [shown, account, plan, ...(withPublicKey ? [publicKey ?? ""] : []), label];
}

function listedOf({ sha256, account, plan, publicKey, label }: FileKey): ListedKey {
  const digits = sha256.toString("hex");
  return { sha256: digits, account, plan: plan.name, publicKey, label: label ?? "" };
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

/** A name that the text to sign can contain, in apostrophes on a command line. */
const SIGNABLE = /^[ -&(-~]+$/;
const CREATE_OPTIONS = ["account", "plan", "label", "public-key"];
/** Long enough to distinguish the keys of one file, short enough to read aloud. */
const SHA256_DIGITS_SHOWN = 16;
