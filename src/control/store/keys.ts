/**
 * The keys of an account, from creation to end.
 *
 * The text of a key is in the result that creates or reveals it, and sealed in the database;
 * everything else uses its SHA-256. Changes to the keys of one account wait for each other on the
 * account's row, so that limits hold under concurrency. The database itself notifies the edges.
 */

import { randomUUID, timingSafeEqual } from "node:crypto";
import type { Queryable } from "../../accounts/database/database.ts";
import { clientKeyOf } from "../../accounts/keys/client-key.ts";
import { generateToken } from "../../accounts/keys/format.ts";
import { publicKeySha256 } from "../../accounts/keys/public-key.ts";
import {
  KEY_LIFE_MS_MAX,
  KEY_OVERLAP_MS_MAX,
  KEY_RECORDS_SHOWN_MAX,
  KEYS_PER_ACCOUNT_MAX,
} from "../limits.ts";
import type { Sealed } from "../vault.ts";
import { note } from "./audit.ts";
import type {
  Account,
  Actor,
  FreshKey,
  KeyOptions,
  KeyRecord,
  Keys,
  PlanRecord,
  Result,
} from "./contract.ts";
import { checkOptions } from "./key-options.ts";
import {
  findAccount,
  instant,
  isLive,
  isUuid,
  KEY_COLUMNS,
  type KeyRow,
  keyOf,
  lockAccount,
  ok,
  refused,
  type StoreDeps,
  sha256,
} from "./records.ts";

type OwnKeys = Pick<Keys, "list" | "byId" | "create" | "change" | "rotate" | "revoke" | "reveal">;

export interface KeyStoreOptions {
  /** The text after `td_`. */
  readonly environment: string;
}

export function createOwnKeys(deps: StoreDeps, options: KeyStoreOptions): OwnKeys {
  const { database, clock } = deps;

  /** Changes one key under the lock of its account. */
  function change<T>(
    accountId: string,
    keyId: string,
    act: (tx: Queryable, account: Account, key: KeyRecord) => Promise<Result<T>>,
  ): Promise<Result<T>> {
    return database.transaction(async (tx) => {
      const locked = await lockAccount(tx, accountId);
      if (locked.kind === "refused") return locked;
      const key = await findKey(tx, accountId, keyId, clock.unixMs());
      if (key === null) return refused("not_found", "there is no such key");
      return await act(tx, locked.value, key);
    });
  }

  return {
    async list(accountId) {
      if (!isUuid(accountId)) return [];
      const nowMs = clock.unixMs();
      const rows = await database.query<KeyRow>(
        `select ${KEY_COLUMNS} from touchdown.keys k where k.account_id = $1
         order by ${isLive(2)} desc, k.created_at desc, k.id
         limit greatest($3::bigint, (
           select count(*) from touchdown.keys k where k.account_id = $1 and ${isLive(2)}
         ))`,
        [accountId, instant(nowMs), KEY_RECORDS_SHOWN_MAX],
      );
      return rows.map((row) => keyOf(row, nowMs));
    },
    byId: (accountId, keyId) => findKey(database, accountId, keyId, clock.unixMs()),
    create: (accountId, wanted, actor) =>
      database.transaction(async (tx) => {
        const locked = await lockAccount(tx, accountId);
        if (locked.kind === "refused") return locked;
        return await createKey(tx, deps, options, locked.value, wanted, actor);
      }),
    change: (accountId, keyId, wanted, actor) =>
      change(accountId, keyId, (tx, account, key) =>
        changeKey(tx, deps, account, key, wanted, actor),
      ),
    rotate: (accountId, keyId, overlapMs, actor) =>
      change(accountId, keyId, (tx, account, key) =>
        rotateKey(tx, deps, options, account, key, overlapMs, actor),
      ),
    revoke: (accountId, keyId, actor) => revokeKey(deps, accountId, keyId, actor),
    reveal: (accountId, keyId, actor) =>
      change(accountId, keyId, (tx, _, key) => revealKey(tx, deps, key, actor)),
  };
}

/** Creates a key for an account whose row is locked. */
export async function createKey(
  tx: Queryable,
  deps: StoreDeps,
  options: KeyStoreOptions,
  account: Account,
  wanted: KeyOptions,
  actor: Actor,
): Promise<Result<FreshKey>> {
  const checked = checkOptions(wanted, account.plan, deps.clock.unixMs());
  if (checked.kind === "refused") return checked;
  const countMax = keysMax(account.plan);
  if ((await liveCount(tx, deps, account.id)) >= countMax) {
    return refused("too_many", `an account may have ${countMax} keys at a time, revoke one first`);
  }
  const fresh = await insertToken(tx, deps, options, account.id, checked.value, null);
  await note(tx, deps.clock, account.id, "key.create", auditDetail(fresh.key), actor);
  return ok(fresh);
}

async function changeKey(
  tx: Queryable,
  { clock }: StoreDeps,
  account: Account,
  key: KeyRecord,
  wanted: Partial<KeyOptions>,
  actor: Actor,
): Promise<Result<KeyRecord>> {
  if (key.state !== "live") return refused("key_ended", `the key is ${key.state}`);
  const nowMs = clock.unixMs();
  const { ratePerSecond, burst } = { ...key, ...wanted };
  // A limit set before the plan was lowered must not block a change of the label.
  const sameLimit = ratePerSecond === key.ratePerSecond && burst === key.burst;
  const limit = sameLimit ? { ratePerSecond: null, burst: null } : { ratePerSecond, burst };
  const checked = checkOptions({ ...optionsOf(key), ...wanted, ...limit }, account.plan, nowMs);
  if (checked.kind === "refused") return checked;
  const { label, expiresAtMs, cidrs } = checked.value;
  await tx.query(
    `update touchdown.keys set label = $2, expires_at = $3, ${CIDRS} = ${networks(4)},
       rate_per_second = $5, burst = $6 where id = $1`,
    [key.id, label, instant(expiresAtMs), cidrs, ratePerSecond, burst],
  );
  const changed = await findKey(tx, account.id, key.id, nowMs);
  if (changed === null) return refused("not_found", "there is no such key");
  const was = optionsNamed(wanted, key);
  const detail = { ...auditDetail(key), ...optionsNamed(wanted, changed), was };
  await note(tx, clock, account.id, "key.change", detail, actor);
  return ok(changed);
}

/** Of a key, the options that `wanted` names. */
function optionsNamed(wanted: Partial<KeyOptions>, key: KeyRecord): Partial<KeyOptions> {
  const isNamed = ([name]: readonly [string, unknown]) => Object.hasOwn(wanted, name);
  return Object.fromEntries(Object.entries(optionsOf(key)).filter(isNamed));
}

async function rotateKey(
  tx: Queryable,
  deps: StoreDeps,
  options: KeyStoreOptions,
  account: Account,
  key: KeyRecord,
  overlapMs: number,
  actor: Actor,
): Promise<Result<FreshKey>> {
  if (key.state !== "live") return refused("key_ended", `the key is ${key.state}`);
  if (key.publicKey !== null) {
    return refused("invalid", "a public key is not rotated: register another, then revoke this");
  }
  if (key.replacedBy !== null) {
    const { hint } = key.replacedBy;
    return refused("key_replaced", `the key was rotated before; rotate its successor ${hint}`);
  }
  if (!(overlapMs >= 0 && overlapMs <= KEY_OVERLAP_MS_MAX)) {
    return refused("invalid", "the overlap must be from 0 to 30 days");
  }
  // Old keys that still overlap do not block this, unless there are very many.
  if ((await liveCount(tx, deps, account.id)) >= 2 * keysMax(account.plan)) {
    return refused("too_many", "too many keys overlap, revoke one first");
  }
  const nowMs = deps.clock.unixMs();
  // A prolonged key may have a longer total lifetime than a new one can get.
  const lifeMs =
    key.expiresAtMs === null ? null : Math.min(key.expiresAtMs - key.createdAtMs, KEY_LIFE_MS_MAX);
  const wanted = { ...optionsOf(key), expiresAtMs: lifeMs === null ? null : nowMs + lifeMs };
  const fresh = await insertToken(tx, deps, options, account.id, wanted, key.id);
  const endMs = Math.min(nowMs + overlapMs, key.expiresAtMs ?? Number.POSITIVE_INFINITY);
  await tx.query(
    overlapMs === 0
      ? "update touchdown.keys set revoked_at = $2 where id = $1"
      : "update touchdown.keys set expires_at = $2 where id = $1",
    [key.id, instant(endMs)],
  );
  const detail = { ...auditDetail(fresh.key), from: key.id, fromHint: key.hint, overlapMs };
  await note(tx, deps.clock, account.id, "key.rotate", detail, actor);
  return ok(fresh);
}

/** Also for a disabled account: ending a key is always allowed. */
function revokeKey(
  { database, clock }: StoreDeps,
  accountId: string,
  keyId: string,
  actor: Actor,
): Promise<Result<KeyRecord>> {
  return database.transaction(async (tx) => {
    const nowMs = clock.unixMs();
    await findAccount(tx, accountId, { lock: true });
    const key = await findKey(tx, accountId, keyId, nowMs);
    if (key === null) return refused("not_found", "there is no such key");
    if (key.state === "revoked") return ok(key);
    await tx.query("update touchdown.keys set revoked_at = $2 where id = $1", [
      keyId,
      instant(nowMs),
    ]);
    await note(tx, clock, accountId, "key.revoke", auditDetail(key), actor);
    return ok({ ...key, revokedAtMs: nowMs, state: "revoked" });
  });
}

async function revealKey(
  tx: Queryable,
  { vault, clock }: StoreDeps,
  key: KeyRecord,
  actor: Actor,
): Promise<Result<FreshKey>> {
  if (key.state !== "live") return refused("key_ended", `the key is ${key.state}`);
  if (key.publicKey !== null) return refused("not_revealable", "a public key has no text to show");
  if (!key.revealable) {
    return refused("not_revealable", "this key was stored without its text; rotate it to get one");
  }
  const [row] = await tx.query<Sealed & { readonly sha256: Buffer }>(
    `select sha256, ${SEALED_COLUMNS} from touchdown.keys where id = $1`,
    [key.id],
  );
  if (row === undefined) return refused("not_found", "there is no such key");
  const { kekId } = row;
  const opened = vault.open(row, { accountId: key.accountId, keyId: key.id });
  if (opened.kind === "missing") {
    return refused("vault", `the key-encryption key ${kekId} is not on the control host`);
  }
  if (opened.kind === "wrong" || !timingSafeEqual(sha256(opened.text), row.sha256)) {
    return refused("vault", `the stored text does not open with the key-encryption key ${kekId}`);
  }
  // A key that was made before client keys were stored, unless its client key was registered since.
  await tx.query(
    `update touchdown.keys set client_sha256 = $2 where id = $1 and client_sha256 is null
     and not exists (
       select 1 from touchdown.keys
       where sha256 = $2 and public_key is not null and revoked_at is null
     )`,
    [key.id, publicKeySha256(clientKeyOf(opened.text))],
  );
  await note(tx, clock, key.accountId, "key.reveal", auditDetail(key), actor);
  return ok({ key, token: opened.text });
}

async function insertToken(
  tx: Queryable,
  { vault, clock }: StoreDeps,
  { environment }: KeyStoreOptions,
  accountId: string,
  wanted: KeyOptions,
  rotatedFrom: string | null,
): Promise<FreshKey> {
  const token = generateToken(environment);
  const id = randomUUID();
  const sealed = vault.seal(token, { accountId, keyId: id });
  const secret = {
    ...{ id, sha256: sha256(token), clientSha256: publicKeySha256(clientKeyOf(token)) },
    ...{ hint: hintOf(token), sealed, publicKey: null },
  };
  const key = await insertKey(tx, clock.unixMs(), accountId, secret, wanted, rotatedFrom);
  if (key === null) throw new Error("an API key was taken for a public key");
  return { key, token };
}

/** What a new key is recognized by. */
interface KeySecret {
  readonly id: string;
  readonly sha256: Buffer;
  readonly hint: string;
  /** The sealed text of an API key; null for a public key. */
  readonly sealed: Sealed | null;
  readonly publicKey: Uint8Array | null;
  /** The digest of the client key that follows from an API key; null for a public key. */
  readonly clientSha256: Buffer | null;
}

/** Null if it is a public key that is in use. */
export async function insertKey(
  tx: Queryable,
  nowMs: number,
  accountId: string,
  { id, sha256: digest, hint, sealed, publicKey, clientSha256 }: KeySecret,
  wanted: KeyOptions,
  rotatedFrom: string | null,
): Promise<KeyRecord | null> {
  const rows = await tx.query(
    `insert into touchdown.keys (id, account_id, sha256, hint, label, ciphertext, nonce, kek_id,
       created_at, expires_at, ${CIDRS}, rate_per_second, burst, rotated_from, public_key,
       client_sha256)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, ${networks(11)}, $12, $13, $14, $15, $16)
     on conflict (sha256) where public_key is not null and revoked_at is null
     do nothing returning 1`,
    [
      id,
      accountId,
      digest,
      hint,
      wanted.label,
      sealed?.ciphertext ?? null,
      sealed?.nonce ?? null,
      sealed?.kekId ?? null,
      instant(nowMs),
      instant(wanted.expiresAtMs),
      wanted.cidrs,
      wanted.ratePerSecond,
      wanted.burst,
      rotatedFrom,
      publicKey,
      clientSha256,
    ],
  );
  if (rows.length === 0) return null;
  const key = await findKey(tx, accountId, id, nowMs);
  if (key === null) throw new Error("a key that was just made is not there");
  return key;
}

/** The account's own key; null for none. */
export async function findKey(
  tx: Queryable,
  accountId: string,
  keyId: string,
  nowMs: number,
): Promise<KeyRecord | null> {
  if (!isUuid(accountId) || !isUuid(keyId)) return null;
  const [row] = await tx.query<KeyRow>(
    `select ${KEY_COLUMNS} from touchdown.keys k where k.id = $1 and k.account_id = $2`,
    [keyId, accountId],
  );
  return row === undefined ? null : keyOf(row, nowMs);
}

/** Number of live keys of the account. */
export async function liveCount(
  tx: Queryable,
  { clock }: StoreDeps,
  accountId: string,
): Promise<number> {
  const [row] = await tx.query<{ readonly count: number }>(
    `select count(*) as count from touchdown.keys k where k.account_id = $1 and ${isLive(2)}`,
    [accountId, instant(clock.unixMs())],
  );
  return row?.count ?? 0;
}

/** The maximum number of keys for this plan: its right `keys_max`, or the default. */
export function keysMax({ rights }: PlanRecord): number {
  const granted = rights["keys_max"];
  const valid = typeof granted === "number" && Number.isInteger(granted) && granted > 0;
  return valid ? granted : KEYS_PER_ACCOUNT_MAX;
}

/** `td_…wxyz`: enough to tell an account's keys apart. */
export function hintOf(token: string): string {
  return `${token.startsWith("td_") ? "td_" : ""}…${token.slice(-HINT_CHARS)}`;
}

/** The audit details of a key. */
export function auditDetail(key: KeyRecord): Readonly<Record<string, unknown>> {
  return { keyId: key.id, hint: key.hint, label: key.label };
}

function optionsOf(key: KeyRecord): KeyOptions {
  const { label, expiresAtMs, cidrs, ratePerSecond, burst } = key;
  return { label, expiresAtMs, cidrs, ratePerSecond, burst };
}

/** Parameter `n`, a list of texts, as networks: host bits are dropped. */
function networks(n: number): string {
  return `array(select network(text::inet) from unnest($${n}::text[]) as text)`;
}

/** Columns of `touchdown.keys`, as a `Sealed`; null for a key without its text. */
export const SEALED_COLUMNS = `ciphertext, nonce, kek_id as "kekId"`;
const CIDRS = "cidrs";
const HINT_CHARS = 4;
