/**
 * Stores the text of API keys such that the database alone cannot reveal them: AES-256-GCM with a
 * key-encryption key that only the control host has, bound to the account and the key record.
 *
 * Key-encryption keys have ids. The first one in the list seals; the others only open older texts
 * until these are resealed. A missing or wrong key makes only the texts that it sealed unreadable:
 * keys are looked up by their hash.
 *
 *     [[keys]]                  # the first one seals
 *     id = "2026-11"
 *     key = "<32 bytes, base64>"
 *
 * Decision: docs/decisions/0045-keys-can-be-shown-again.md
 */

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import {
  closeSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { messageOf, SetupError } from "../core/errors.ts";
import { formatToml, parseToml } from "../runtime/toml.ts";
import { VAULT_KEYS_MAX } from "./limits.ts";

/** The stored form of one text. */
export interface Sealed {
  /** Includes the 16-byte tag at its end. */
  readonly ciphertext: Buffer;
  readonly nonce: Buffer;
  /** Id of the key-encryption key. */
  readonly kekId: string;
}

/** The owner of a text; a text sealed for one owner does not open for another. */
export interface SealedFor {
  readonly accountId: string;
  readonly keyId: string;
}

export type Opened =
  | { readonly kind: "ok"; readonly text: string }
  /** No key-encryption key has this id. */
  | { readonly kind: "missing"; readonly kekId: string }
  /** The key is a different one, or the record was changed or moved. */
  | { readonly kind: "wrong"; readonly kekId: string };

export interface KeyEncryption {
  /** Id of the key that seals. */
  readonly activeId: string;
  readonly ids: readonly string[];
  seal(text: string, owner: SealedFor): Sealed;
  open(sealed: Sealed, owner: SealedFor): Opened;
}

/** Reads the key-encryption keys; throws `SetupError` with a message that contains no key. */
export function openVault(path: string): KeyEncryption {
  return createVault(keysOfFile(path));
}

/**
 * Creates a file with one fresh key, readable by its owner only; fails if the file exists. Leaves
 * no file with a part of the key, as on a full disk: it would look like a vault. `write` writes its
 * text.
 */
export function createVaultFile(path: string, id: string, write = writeFileSync): void {
  const table = formatToml({ keys: [{ id, key: randomBytes(KEY_BYTES).toString("base64") }] });
  let handle: number;
  try {
    handle = openSync(path, "wx", MODE_OWNER_ONLY);
  } catch (cause) {
    throw new SetupError(`the vault file ${path} cannot be created`, { cause });
  }
  try {
    giveToOwnerOf(dirname(path), handle);
    write(handle, `${HEADING}${table}`);
    fsyncSync(handle);
  } catch (cause) {
    rmSync(path);
    const why = messageOf(cause);
    throw new SetupError(`the vault file ${path} cannot be written: ${why}`, { cause });
  } finally {
    closeSync(handle);
  }
}

/** `control` must be able to read a file that a command of root has made in its folder. */
function giveToOwnerOf(folder: string, handle: number): void {
  const { uid, gid } = statSync(folder);
  try {
    fchownSync(handle, uid, gid);
  } catch {
    // Only root can change the owner. The file of any other user belongs to that user.
  }
}

interface EncryptionKey {
  readonly id: string;
  readonly key: Buffer;
}

function createVault(keys: readonly EncryptionKey[]): KeyEncryption {
  const byId = new Map(keys.map(({ id, key }) => [id, key]));
  const [active] = keys;
  if (active === undefined) throw new Error("a vault without a key was let through");
  return {
    activeId: active.id,
    ids: [...byId.keys()],
    seal(text, owner) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", active.key, nonce).setAAD(boundTo(owner));
      const parts = [cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()];
      return { ciphertext: Buffer.concat(parts), nonce, kekId: active.id };
    },
    open({ ciphertext, nonce, kekId }, owner) {
      const key = byId.get(kekId);
      if (key === undefined) return { kind: "missing", kekId };
      const split = ciphertext.length - TAG_BYTES;
      if (split < 0 || nonce.length !== NONCE_BYTES) return { kind: "wrong", kekId };
      const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES })
        .setAAD(boundTo(owner))
        .setAuthTag(ciphertext.subarray(split));
      try {
        const head = decipher.update(ciphertext.subarray(0, split));
        return { kind: "ok", text: Buffer.concat([head, decipher.final()]).toString("utf8") };
      } catch {
        // The tag does not match: another key, another owner, or changed bytes.
        return { kind: "wrong", kekId };
      }
    },
  };
}

/** The version comes first, so that a later format cannot be mistaken for this one. */
function boundTo({ accountId, keyId }: SealedFor): Buffer {
  return Buffer.from(`touchdown key 1\n${accountId}\n${keyId}`, "utf8");
}

function keysOfFile(path: string): readonly EncryptionKey[] {
  const parsed = parseToml(readVaultFile(path));
  if (parsed.kind === "error") throw new SetupError(`${path}: ${parsed.message}`);
  const { keys, ...surplus } = parsed.value;
  const [unknown] = Object.keys(surplus);
  if (unknown !== undefined) throw new SetupError(`${path}: unknown key ${unknown}`);
  if (!Array.isArray(keys)) throw new SetupError(`${path}: [[keys]] with id and key is missing`);
  return checkKeys(
    keys.map((entry: unknown) => ({ id: field(entry, "id"), key: field(entry, "key") })),
    path,
  );
}

function readVaultFile(path: string): string {
  try {
    const { mode } = statSync(path);
    if ((mode & MODE_OTHERS) !== 0) {
      throw new SetupError(`${path} can be read by others than its owner: chmod 600 it`);
    }
    return readFileSync(path, "utf8");
  } catch (cause) {
    if (cause instanceof SetupError) throw cause;
    const why = messageOf(cause);
    throw new SetupError(`the vault file cannot be read: ${why}`, { cause });
  }
}

function checkKeys(
  found: readonly { readonly id: string; readonly key: string }[],
  where: string,
): readonly EncryptionKey[] {
  if (found.length < 1 || found.length > VAULT_KEYS_MAX) {
    throw new SetupError(`${where}: 1 to ${VAULT_KEYS_MAX} keys are needed, has ${found.length}`);
  }
  const seen = new Set<string>();
  return found.map(({ id, key: text }, index) => {
    const place = `${where}: keys[${index}]`;
    if (!ID_FORM.test(id)) {
      throw new SetupError(`${place} needs an id of 1 to 32 letters, digits, dots, dashes`);
    }
    if (seen.has(id)) throw new SetupError(`${place} has the id ${id}, as one before it`);
    seen.add(id);
    const key = Buffer.from(text, "base64");
    if (key.length !== KEY_BYTES || !BASE64_FORM.test(text)) {
      throw new SetupError(`${place} (${id}) needs a key of ${KEY_BYTES} bytes in base64`);
    }
    return { id, key };
  });
}

function field(entry: unknown, name: string): string {
  if (typeof entry !== "object" || entry === null) return "";
  const value: unknown = Reflect.get(entry, name);
  return typeof value === "string" ? value : "";
}

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const MODE_OWNER_ONLY = 0o600;
const MODE_OTHERS = 0o077;
const ID_FORM = /^[\w.-]{1,32}$/;
const BASE64_FORM = /^[A-Za-z0-9+/]{43}=$/;
const HEADING = `# Whoever has this file and the database can read every API key. Keep a copy of it
# elsewhere: without it no key can be shown again. The first key seals; put a new one above it to
# rotate.

`;
