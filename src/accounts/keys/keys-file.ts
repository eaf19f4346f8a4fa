/**
 * Reads `keys.toml`: plans and keys of an edge without a database.
 *
 *    [plans.Beta]              [[keys]]
 *    rate_per_second = 50      token = "td_…"        # or token_sha256 = "<hex>",
 *    burst = 100                                     # or public_key = "<base58>"
 *                              client_key = "…"        # optional: docs/quic.md
 *                              account = "acme"
 *                              plan = "Beta"
 *                              label = "bot 7"       # optional
 *
 * All problems are reported together, each with its line; no message repeats a token. A file with
 * any error is rejected as a whole, so that a reload can keep the old keys.
 */

import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { codeOf, SetupError } from "../../core/errors.ts";
import {
  ACCOUNT_NAME_CHARS_MAX,
  PLAN_BURST_MAX,
  PLAN_RATE_MAX,
  TOKEN_CHARS_MAX,
  TOKEN_CHARS_MIN,
} from "../../core/limits.ts";
import { parseToml, type TomlTable } from "../../runtime/toml.ts";
import { KEYS_FILE_BYTES_MAX, KEYS_FILE_PROBLEMS_MAX } from "../limits.ts";
import type { KeyRow, Plan } from "./key.ts";
import { parsePublicKey, publicKeySha256 } from "./public-key.ts";

/** A key of a file. */
export interface FileKey extends KeyRow {
  /** Base58, if the key is an Ed25519 public key; null for an API key. */
  readonly publicKey: string | null;
  /** Base58 of the public key that follows from an API key; null where the file has none. */
  readonly clientKey: string | null;
}

export interface KeysFile {
  readonly plans: ReadonlyMap<string, Plan>;
  /** In file order. */
  readonly keys: readonly FileKey[];
}

/** Reads and checks a file; a `SetupError` lists every problem. */
export function loadKeysFile(path: string): KeysFile {
  return parseKeysFile(readKeysText(path), path);
}

/** The file's text; a `SetupError` says why it cannot be read. */
export function readKeysText(path: string): string {
  try {
    const stats = statSync(path);
    // Reading a pipe again blocks the process until another one writes to it.
    if (!stats.isFile()) {
      const needed = "has to be a regular file, since it is read again on SIGHUP";
      throw new SetupError(`${path}: the keys file ${needed}`);
    }
    const { size } = stats;
    if (size > KEYS_FILE_BYTES_MAX) {
      throw new SetupError(`${path}: ${size} bytes, at most ${KEYS_FILE_BYTES_MAX} are read`);
    }
    return readFileSync(path, "utf8");
  } catch (cause) {
    if (cause instanceof SetupError) throw cause;
    const code = codeOf(cause) ?? "unknown";
    throw new SetupError(`${path}: the keys file cannot be read (${code})`, { cause });
  }
}

/** Checks a text; `where` names it in messages. A `SetupError` lists every problem. */
export function parseKeysFile(text: string, where: string): KeysFile {
  const parsed = parseToml(text);
  if (parsed.kind === "error") throw new SetupError(`${where}: ${parsed.message}`);
  const reader = new Reader(text);
  const file = reader.read(parsed.value);
  if (reader.problems.length > 0) {
    const shown = reader.problems.slice(0, KEYS_FILE_PROBLEMS_MAX);
    const more = reader.problems.length - shown.length;
    const rest = more > 0 ? [`and ${more} more`] : [];
    const lines = [...shown, ...rest].map((problem) => `\n  ${problem}`).join("");
    throw new SetupError(`${where}: ${reader.problems.length} problem(s)${lines}`);
  }
  return file;
}

/** The keys as the key table has them: one that has a client key is found by either. */
export function* keyRowsOf(keys: readonly FileKey[]): Generator<KeyRow> {
  for (const key of keys) {
    yield key;
    const clientKey = key.clientKey === null ? null : parsePublicKey(key.clientKey);
    if (clientKey !== null) {
      yield { ...key, sha256: publicKeySha256(clientKey), isDerived: true };
    }
  }
}

/** SHA-256 of a key, as stored. */
export function tokenSha256(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

class Reader {
  readonly problems: string[] = [];
  /** Lines with `[[keys]]`, counted from 1. */
  readonly #lines: readonly number[];
  readonly #plans = new Map<string, Plan>();
  readonly #keys: FileKey[] = [];
  /** First occurrence of each digest. */
  readonly #places = new Map<string, string>();

  constructor(text: string) {
    this.#lines = keyHeaderLines(text);
  }

  read(root: TomlTable): KeysFile {
    this.#unknown(root, ROOT_KEYS, "");
    const plans = root["plans"] ?? {};
    if (isTable(plans)) {
      for (const [name, plan] of Object.entries(plans)) this.#readPlan(name, plan);
    } else this.#problem("plans", `${kind(plans)} where a table [plans.<name>] is needed`);
    const keys = root["keys"] ?? [];
    if (Array.isArray(keys)) {
      for (const [index, key] of keys.entries()) this.#readKey(key, this.#placeOf(index));
    } else this.#problem("keys", `${kind(keys)} where tables [[keys]] are needed`);
    return { plans: this.#plans, keys: this.#keys };
  }

  #readPlan(name: string, plan: unknown): void {
    const place = `plans.${shortened(name)}`;
    if (!NAME.test(name)) this.#problem(place, `a name is ${NAME_NEEDED}`);
    if (!isTable(plan)) {
      this.#problem(place, `${kind(plan)} where a table is needed`);
      return;
    }
    this.#unknown(plan, PLAN_KEYS, `${place}.`);
    const rate = this.#number(plan, "rate_per_second", place, PLAN_RATE_MAX, false);
    const burst = this.#number(plan, "burst", place, PLAN_BURST_MAX, true);
    // An invalid plan is kept, so that its keys are not reported too.
    this.#plans.set(name, { name, ratePerSecond: rate ?? 1, burst: burst ?? 1, shared: false });
  }

  #readKey(key: unknown, place: string): void {
    if (!isTable(key)) {
      this.#problem(place, `${kind(key)} where a table is needed`);
      return;
    }
    this.#unknown(key, KEY_KEYS, `${place}.`);
    const sha256 = this.#digest(key, place);
    const publicKey = typeof key["public_key"] === "string" ? key["public_key"] : null;
    const account = this.#name(key, "account", place);
    const planName = this.#name(key, "plan", place);
    const plan = planName === null ? undefined : this.#plans.get(planName);
    if (planName !== null && plan === undefined) {
      this.#problem(`${place}.plan`, `there is no [plans.${planName}]`);
    }
    const clientKey = this.#clientKey(key, place);
    const label = key["label"] === undefined ? null : this.#text(key, "label", place);
    if (sha256 === null || account === null || plan === undefined) return;
    const keyId = sha256.toString("hex", 0, KEY_ID_BYTES);
    const rest = { publicKey, clientKey, label, policy: null, isDerived: false };
    this.#keys.push({ sha256, keyId, account, plan, ...rest });
  }

  /** Null where there is none, or a wrong one. */
  #clientKey({ client_key: text, public_key: publicKey }: TomlTable, place: string): string | null {
    if (text === undefined) return null;
    if (publicKey !== undefined) {
      this.#problem(`${place}.client_key`, "it follows from an API key, and this is a public key");
      return null;
    }
    const digest = this.#publicKeyDigest(text, `${place}.client_key`);
    if (digest === null) return null;
    return this.#isFirst(digest, place, "client key") ? String(text) : null;
  }

  #digest(key: TomlTable, place: string): Buffer | null {
    const given = SECRET_KEYS.filter((name) => key[name] !== undefined);
    if (given.length !== 1) {
      const found = given.length === 0 ? "none is" : `${given.join(" and ")} are`;
      this.#problem(place, `one of ${SECRET_KEYS.join(", ")} is needed, ${found} there`);
      return null;
    }
    const digest =
      key["public_key"] === undefined
        ? this.#tokenDigest(key, place)
        : this.#publicKeyDigest(key["public_key"], `${place}.public_key`);
    if (digest === null) return null;
    const what = key["public_key"] === undefined ? "token" : "public key";
    return this.#isFirst(digest, place, what) ? digest : null;
  }

  #isFirst(digest: Buffer, place: string, what: string): boolean {
    const id = digest.toString("hex");
    const first = this.#places.get(id);
    if (first === undefined) this.#places.set(id, place);
    else this.#problem(place, `the same ${what} as ${first}`);
    return first === undefined;
  }

  #publicKeyDigest(text: unknown, place: string): Buffer | null {
    const bytes = typeof text === "string" ? parsePublicKey(text) : null;
    if (bytes !== null) return publicKeySha256(bytes);
    // Not repeated: it may be a private key in the wrong place.
    const found = typeof text === "string" ? `${text.length} characters` : kind(text);
    const needed = "the 32 bytes of an Ed25519 public key in base58";
    this.#problem(place, `${found} where ${needed} are needed`);
    return null;
  }

  #tokenDigest({ token, token_sha256: hex }: TomlTable, place: string): Buffer | null {
    if (token !== undefined && (typeof token !== "string" || !TOKEN.test(token))) {
      const found = typeof token === "string" ? `${token.length} characters` : kind(token);
      this.#problem(`${place}.token`, `${found} where ${TOKEN_NEEDED} are needed`);
      return null;
    }
    if (hex !== undefined && (typeof hex !== "string" || !SHA256_HEX.test(hex))) {
      this.#problem(`${place}.token_sha256`, "64 hexadecimal digits are needed");
      return null;
    }
    return token === undefined ? Buffer.from(String(hex), "hex") : tokenSha256(token);
  }

  #number(
    table: TomlTable,
    name: string,
    place: string,
    max: number,
    whole: boolean,
  ): number | null {
    const value = table[name];
    const min = whole ? 1 : RATE_MIN;
    const fits = typeof value === "number" && value >= min && value <= max;
    if (fits && (!whole || Number.isInteger(value))) return value;
    const found = typeof value === "number" ? String(value) : kind(value);
    const needed = `a${whole ? " whole" : ""} number from ${min} to ${max}`;
    this.#problem(`${place}.${name}`, `${found} where ${needed} is needed`);
    return null;
  }

  #name(table: TomlTable, name: string, place: string): string | null {
    const value = table[name];
    if (typeof value === "string" && NAME.test(value)) return value;
    const found = typeof value === "string" ? JSON.stringify(shortened(value)) : kind(value);
    this.#problem(`${place}.${name}`, `${found} where ${NAME_NEEDED} are needed`);
    return null;
  }

  #text(table: TomlTable, name: string, place: string): string | null {
    const value = table[name];
    if (typeof value === "string" && value.length <= ACCOUNT_NAME_CHARS_MAX) return value;
    const found = typeof value === "string" ? `${value.length} characters` : kind(value);
    const needed = `a text of at most ${ACCOUNT_NAME_CHARS_MAX} characters`;
    this.#problem(`${place}.${name}`, `${found} where ${needed} is needed`);
    return null;
  }

  #unknown(table: TomlTable, known: readonly string[], prefix: string): void {
    for (const name of Object.keys(table)) {
      if (known.includes(name)) continue;
      this.#problem(`${prefix}${shortened(name)}`, `unknown key, known are ${known.join(", ")}`);
    }
  }

  #placeOf(index: number): string {
    const line = this.#lines[index];
    return line === undefined ? `keys[${index}]` : `keys[${index}] (line ${line})`;
  }

  #problem(place: string, what: string): void {
    this.problems.push(`${place}: ${what}`);
  }
}

/** Lines on which a `[[keys]]` block starts, counted from 1. */
export function keyHeaderLines(text: string): readonly number[] {
  const lines: number[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (KEY_HEADER.test(line)) lines.push(index + 1);
  }
  return lines;
}

function isTable(value: unknown): value is TomlTable {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date)
  );
}

/** The type of the value found. Values are not repeated: one may be a token. */
function kind(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (value instanceof Date) return "a date";
  return typeof value === "object" ? "a table" : `a ${typeof value}`;
}

function shortened(text: string): string {
  return text.slice(0, ACCOUNT_NAME_CHARS_MAX);
}

const ROOT_KEYS = ["plans", "keys"];
const PLAN_KEYS = ["rate_per_second", "burst"];
/** A file has no key ids, so the start of the digest serves as id. */
const KEY_ID_BYTES = 16;
/** Of these a key has exactly one. */
const SECRET_KEYS = ["token", "token_sha256", "public_key"];
const KEY_KEYS = [...SECRET_KEYS, "client_key", "account", "plan", "label"];
const RATE_MIN = 0.001;
/** Names are used in headers, metrics and file names. */
const NAME = new RegExp(`^[A-Za-z0-9][A-Za-z0-9 ._@+-]{0,${ACCOUNT_NAME_CHARS_MAX - 1}}$`);
const NAME_NEEDED = `1 to ${ACCOUNT_NAME_CHARS_MAX} of A-Z a-z 0-9 blank . _ @ + -`;
const TOKEN = new RegExp(`^[\\x21-\\x7e]{${TOKEN_CHARS_MIN},${TOKEN_CHARS_MAX}}$`);
const TOKEN_NEEDED = `${TOKEN_CHARS_MIN} to ${TOKEN_CHARS_MAX} visible ASCII characters`;
const SHA256_HEX = /^[0-9a-fA-F]{64}$/;
const KEY_HEADER = /^\s*\[\[\s*(?:keys|"keys"|'keys')\s*\]\]/;
