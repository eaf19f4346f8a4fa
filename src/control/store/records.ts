/**
 * Shared by the files of the store: results, columns, and validation of user input. Statements name
 * columns as the records of `contract.ts` name their fields, so that a row is a record.
 */

import { createHash } from "node:crypto";
import type { Database, Queryable } from "../../accounts/database/database.ts";
import type { Clock } from "../../core/clock.ts";
import { encodeKey } from "../../core/encoding.ts";
import { ACCOUNT_NAME_CHARS_MAX } from "../../core/limits.ts";
import type { KeyEncryption } from "../vault.ts";
import type { Account, KeyRecord, Page, Refusal, Result, StoreReason } from "./contract.ts";

export interface StoreDeps {
  readonly database: Database;
  readonly vault: KeyEncryption;
  readonly clock: Clock;
}

export function ok<T>(value: T): Result<T> {
  return { kind: "ok", value };
}

export function refused(reason: StoreReason, detail: string): Refusal {
  return { kind: "refused", reason, detail };
}

/** A time in the driver's form. */
export function instant(unixMs: number): Date;
export function instant(unixMs: number | null): Date | null;
export function instant(unixMs: number | null): Date | null {
  return unixMs === null ? null : new Date(unixMs);
}

export function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Ids come from URLs; an invalid one is treated as not found instead of raising an error. */
export function isUuid(text: string): boolean {
  return UUID_FORM.test(text);
}

/** A name or label in its stored form; a rejection if invalid. */
export function checkText(what: string, text: string, charsMin: number): Result<string> {
  const trimmed = text.trim();
  const { length } = [...trimmed];
  if (length < charsMin || length > ACCOUNT_NAME_CHARS_MAX || CONTROL.test(trimmed)) {
    const range = `${charsMin} to ${ACCOUNT_NAME_CHARS_MAX} characters without control characters`;
    return refused("invalid", `${what} must have ${range}, has ${length}`);
  }
  return ok(trimmed);
}

/** Text from a provider in its stored form: without control characters, cut to a length. */
export function cutText(text: string | null, charsMax: number): string | null {
  if (text === null) return null;
  const clean = text.replace(CONTROLS, " ").trim();
  return clean === "" ? null : [...clean].slice(0, charsMax).join("");
}

/** Turns the one extra row of a query into the cursor of the next page. */
export function pageOf<T>(
  rows: readonly T[],
  limit: number,
  cursorOf: (row: T) => string,
): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? cursorOf(last) : null };
}

/** A cursor made of a time and an id; null if invalid. */
export function readCursor(text: string | null): { readonly at: Date; readonly id: string } | null {
  const match = text === null ? null : CURSOR_FORM.exec(text);
  const [, ms = "", id = ""] = match ?? [];
  return match === null || !isUuid(id) ? null : { at: instant(Number(ms)), id };
}

export function writeCursor(atMs: number, id: string): string {
  return `${atMs}_${id}`;
}

/**
 * When the record of a cursor was made: its id is parameter `id`, and the cursor's time `at`. That
 * has milliseconds, and a record made by hand in SQL may have microseconds.
 */
export function exactTime(table: "accounts" | "keys", id: number, at: number): string {
  const made = `select created_at from touchdown.${table} where id = $${id}::uuid`;
  return `coalesce((${made}), $${at}::timestamptz)`;
}

/** Columns of `touchdown.plans p`. */
export const PLAN_COLUMNS =
  'p.name, p.rate_per_second as "ratePerSecond", p.burst, p.shared, p.rights';

/** Columns of `ACCOUNTS_WITH_PLAN`, as an `Account`. */
export const ACCOUNT_COLUMNS = `a.id, a.name, a.admin, a.created_at as "createdAtMs",
  a.disabled_at as "disabledAtMs",
  (select row_to_json(one) from (select ${PLAN_COLUMNS}) as one) as plan`;
export const ACCOUNTS_WITH_PLAN = "touchdown.accounts a join touchdown.plans p on p.name = a.plan";

/** Takes an account out of a row that has further columns. */
export function splitAccount<Row extends Account>(row: Row) {
  const { id, name, plan, admin, createdAtMs, disabledAtMs, ...rest } = row;
  return { account: { id, name, plan, admin, createdAtMs, disabledAtMs }, rest };
}

/** The account; null for none. `lock` makes other changes of it and of its keys wait. */
export async function findAccount(
  tx: Queryable,
  id: string,
  how: { readonly lock: boolean },
): Promise<Account | null> {
  if (!isUuid(id)) return null;
  const [account] = await tx.query<Account>(
    `select ${ACCOUNT_COLUMNS} from ${ACCOUNTS_WITH_PLAN} where a.id = $1
     ${how.lock ? "for no key update of a" : ""}`,
    [id],
  );
  return account ?? null;
}

/** The account to change; a rejection if it is missing or disabled. */
export async function lockAccount(tx: Queryable, id: string): Promise<Result<Account>> {
  const account = await findAccount(tx, id, { lock: true });
  if (account === null) return refused("not_found", "there is no such account");
  if (account.disabledAtMs !== null) return refused("disabled", "the account is disabled");
  return ok(account);
}

/** A key as `KEY_COLUMNS` select it. */
export interface KeyRow extends Omit<KeyRecord, "publicKey" | "state"> {
  readonly publicKey: Buffer | null;
}

/** Columns of `touchdown.keys k`. */
export const KEY_COLUMNS = `k.id, k.account_id as "accountId", k.hint, k.public_key as "publicKey",
  k.label, k.created_at as "createdAtMs", k.expires_at as "expiresAtMs",
  k.revoked_at as "revokedAtMs", k.cidrs::text[] as cidrs, k.rate_per_second as "ratePerSecond",
  k.burst, k.rotated_from as "rotatedFrom", k.ciphertext is not null as revealable,
  (select json_build_object('id', s.id, 'hint', s.hint) from touchdown.keys s
   where s.rotated_from = k.id and s.account_id = k.account_id
   order by s.created_at desc, s.id limit 1) as "replacedBy",
  (select max(u.used_at) from touchdown.key_uses u where u.key_id = k.id) as "lastUsedAtMs"`;

/** The condition for a key that is live at the time in parameter `n`. */
export function isLive(n: number): string {
  return `(k.revoked_at is null and (k.expires_at is null or k.expires_at > $${n}))`;
}

/** The record of a row; further columns stay. */
export function keyOf<Row extends KeyRow>({ publicKey, ...row }: Row, nowMs: number) {
  const expired = row.expiresAtMs !== null && row.expiresAtMs <= nowMs;
  const state: KeyRecord["state"] =
    row.revokedAtMs !== null ? "revoked" : expired ? "expired" : "live";
  return { ...row, publicKey: publicKey === null ? null : encodeKey(publicKey), state };
}

const UUID_FORM = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const CURSOR_FORM = /^(\d{1,15})_([0-9a-f-]{36})$/;
/** Control characters, line ends, bidirectional overrides, unpaired surrogates. */
const CONTROL = /\p{Cc}|\p{Cs}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;
const CONTROLS = new RegExp(CONTROL.source, "gu");
