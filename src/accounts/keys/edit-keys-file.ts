/**
 * Edits `keys.toml`: appends a new key or removes a revoked one, and leaves everything else in the
 * file, comments included, unchanged. Only the SHA-256 of a new API key and its client key are
 * written; the key itself exists only in the return value. A public key is written as it is.
 *
 * The new text is parsed before it is written and must contain exactly the expected keys. The write
 * goes to a new file next to the original, which is renamed over it: readers see the old or the new
 * file, and a concurrent edit is rejected instead of lost.
 */

import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { encodeKey } from "../../core/encoding.ts";
import { messageOf, SetupError } from "../../core/errors.ts";
import { formatToml } from "../../runtime/toml.ts";
import { clientKeyOf } from "./client-key.ts";
import { generateToken } from "./format.ts";
import {
  type FileKey,
  type KeysFile,
  keyHeaderLines,
  parseKeysFile,
  readKeysText,
  tokenSha256,
} from "./keys-file.ts";

export interface NewKey {
  readonly account: string;
  readonly plan: string;
  readonly label?: string;
  /** The word after `td_`; "live" by default. */
  readonly environment?: string;
}

/**
 * Adds a key to the file; creates the file with plan Beta if missing. Only the return value
 * contains the key. A `SetupError` says why the file cannot take it.
 */
export function createKey(path: string, key: NewKey): { readonly token: string } {
  const token = generateToken(key.environment ?? "live");
  const secret = {
    token_sha256: tokenSha256(token).toString("hex"),
    client_key: encodeKey(clientKeyOf(token)),
  };
  changeFile(path, (text) => withKey(text, path, key, secret));
  return { token };
}

/** Adds a public key in base58, whose holder has agreed; otherwise as `createKey`. */
export function addPublicKey(path: string, key: NewKey, publicKey: string): void {
  changeFile(path, (text) => withKey(text, path, key, { public_key: publicKey }));
}

function withKey(
  text: string,
  path: string,
  key: NewKey,
  secret:
    | { readonly token_sha256: string; readonly client_key: string }
    | { readonly public_key: string },
): string {
  const before = parseKeysFile(text, path);
  const block = formatToml({
    keys: [
      {
        ...secret,
        account: key.account,
        plan: key.plan,
        ...(key.label === undefined ? {} : { label: key.label }),
      },
    ],
  });
  const gap = text === "" || text.endsWith("\n\n") ? "" : text.endsWith("\n") ? "\n" : "\n\n";
  const next = `${text}${gap}${block.trimEnd()}\n`;
  const after = parseKeysFile(next, `${path} with the new key`);
  if (after.keys.length !== before.keys.length + 1) {
    throw new SetupError(`${path}: the new key would not be read back, add it by hand`);
  }
  return next;
}

/** Keys of the file by account, without anything usable as a key. */
export function listKeys(path: string): readonly FileKey[] {
  return parseKeysFile(readKeysText(path), path).keys;
}

/**
 * Removes a key from the file. `which` is the key itself, a public key in base58, or the first 8 to
 * 64 hexadecimal digits of its SHA-256; returns the removed row. A `SetupError` says that no key or
 * several match, or that the file's syntax cannot be cut safely.
 */
export function revokeKey(path: string, which: string): FileKey {
  if (!existsSync(path)) throw new SetupError(`${path}: there is no such keys file`);
  let revoked: FileKey | null = null;
  changeFile(path, (text) => {
    const cut = withoutKey(text, path, which);
    revoked = cut.row;
    return cut.text;
  });
  if (revoked === null) throw new Error("a change was written that was never made");
  return revoked;
}

function withoutKey(
  text: string,
  path: string,
  which: string,
): { readonly row: FileKey; readonly text: string } {
  const before = parseKeysFile(text, path);
  const index = indexOfKey(before, which, path);
  const row = before.keys[index];
  const left = before.keys.filter((_, at) => at !== index);
  const starts = keyHeaderLines(text);
  // A line inside a string may look like a header: the real one is this one or a later one.
  const decoys = Math.max(0, starts.length - before.keys.length);
  for (const start of starts.slice(index, index + decoys + 1)) {
    const next = withoutBlock(text, start);
    if (row !== undefined && holds(next, left, before.plans.size)) return { row, text: next };
  }
  throw new SetupError(`${path}: keys[${index}] cannot be cut out safely, remove it by hand`);
}

/** Whether a text parses to exactly these keys and this number of plans. */
function holds(text: string, keys: readonly FileKey[], planCount: number): boolean {
  try {
    const file = parseKeysFile(text, "");
    return file.plans.size === planCount && sameKeys(file.keys, keys);
  } catch (error) {
    if (error instanceof SetupError) return false;
    throw error;
  }
}

function indexOfKey(file: KeysFile, which: string, path: string): number {
  const digest = tokenSha256(which).toString("hex");
  const exact = file.keys.findIndex(
    (key) => key.sha256.toString("hex") === digest || key.publicKey === which,
  );
  if (exact >= 0) return exact;
  if (!DIGEST_PREFIX.test(which)) {
    throw new SetupError(`${path}: no key is this one, and it is no start of a SHA-256 either`);
  }
  const prefix = which.toLowerCase();
  const found: number[] = [];
  for (const [index, key] of file.keys.entries()) {
    if (key.sha256.toString("hex").startsWith(prefix)) found.push(index);
  }
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  throw new SetupError(`${path}: ${found.length} keys have a SHA-256 that starts with ${prefix}`);
}

/** The text without the block that starts on this line; comments above the next block stay. */
function withoutBlock(text: string, start: number): string {
  const lines = text.split("\n");
  let end = start;
  while (end < lines.length && !ANY_HEADER.test(lines[end] ?? "")) end += 1;
  while (end > start && COMMENT_OR_BLANK.test(lines[end - 1] ?? "")) end -= 1;
  return [...lines.slice(0, start - 1), ...lines.slice(end)].join("\n");
}

function sameKeys(found: readonly FileKey[], expected: readonly FileKey[]): boolean {
  if (found.length !== expected.length) return false;
  return found.every((key, index) => {
    const other = expected[index];
    return (
      other !== undefined &&
      key.sha256.equals(other.sha256) &&
      key.account === other.account &&
      key.plan.name === other.plan.name &&
      key.clientKey === other.clientKey &&
      key.label === other.label
    );
  });
}

/** Replaces the file's text by the result of `edit`; a new file is readable by the owner only. */
function changeFile(path: string, edit: (text: string) => string): void {
  const target = existsSync(path) ? realpathSync(path) : path;
  const temporaryPath = `${target}.new`;
  let handle: number;
  try {
    handle = openSync(temporaryPath, "wx", MODE_OWNER_ONLY);
  } catch (cause) {
    throw failure(`${temporaryPath} cannot be created (is another change under way?)`, cause);
  }
  try {
    try {
      const exists = existsSync(target);
      if (exists) keepOwner(handle, target);
      writeFileSync(handle, edit(exists ? readKeysText(target) : NEW_FILE));
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(temporaryPath, target);
  } catch (cause) {
    rmSync(temporaryPath, { force: true });
    throw cause instanceof SetupError ? cause : failure(`${path} cannot be written`, cause);
  }
}

/** The edge's user must still be able to read a file that root has changed. */
function keepOwner(handle: number, target: string): void {
  const { uid, gid, mode } = statSync(target);
  try {
    fchownSync(handle, uid, gid);
    fchmodSync(handle, mode & 0o777);
  } catch {
    // Only root can change the owner. The new file of any other user belongs to that user.
  }
}

function failure(what: string, cause: unknown): SetupError {
  const why = messageOf(cause);
  return new SetupError(`${what}: ${why}`, { cause });
}

const NEW_FILE = `# Plans and keys of an edge. Who holds a key may send for its account.

[plans.Beta]
rate_per_second = 50
burst = 100
`;
const MODE_OWNER_ONLY = 0o600;
const DIGEST_PREFIX = /^[0-9a-fA-F]{8,64}$/;
const ANY_HEADER = /^\s*\[/;
const COMMENT_OR_BLANK = /^\s*(?:#.*)?$/;
