/**
 * Shared by the files of the store: results, row types, and validation of user input. The columns
 * that a statement must select are next to the function that reads them.
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
export function pageOf<R, T>(
  rows: readonly R[],
  limit: number,
  itemOf: (row: R) => T,
  cursorOf: (row: R) => string,
): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items: shown.map(itemOf), next: more ? cursorOf(last) : null };
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

export interface AccountRow {
  readonly id: string;
  readonly name: string;
  readonly admin: boolean;
  readonly created_at: number;
  readonly disabled_at: number | null;
  readonly plan_name: string;
  readonly plan_rate: number;
  readonly plan_burst: number;
  readonly plan_shared: boolean;
  readonly plan_rights: Readonly<Record<string, unknown>>;
}

/** Columns of `touchdown.accounts a join touchdown.plans p`. */
export const ACCOUNT_COLUMNS = `a.id, a.name, a.admin, a.created_at, a.disabled_at,
  p.name as plan_name, p.rate_per_second as plan_rate, p.burst as plan_burst,
  p.shared as plan_shared, p.rights as plan_rights`;
export const ACCOUNTS_WITH_PLAN = "touchdown.accounts a join touchdown.plans p on p.name = a.plan";

export function accountOf(row: AccountRow): Account {
  return {
    id: row.id,
    name: row.name,
    plan: {
      name: row.plan_name,
      ratePerSecond: row.plan_rate,
      burst: row.plan_burst,
      shared: row.plan_shared,
      rights: row.plan_rights,
    },
    admin: row.admin,
    createdAtMs: row.created_at,
    disabledAtMs: row.disabled_at,
  };
}

/** The account; null for none. `lock` makes other changes of it and of its keys wait. */
export async function findAccount(
  tx: Queryable,
  id: string,
  how: { readonly lock: boolean },
): Promise<Account | null> {
  if (!isUuid(id)) return null;
  const [row] = await tx.query<AccountRow>(
    `select ${ACCOUNT_COLUMNS} from ${ACCOUNTS_WITH_PLAN} where a.id = $1
     ${how.lock ? "for no key update of a" : ""}`,
    [id],
  );
  return row === undefined ? null : accountOf(row);
}

/** The account to change; a rejection if it is missing or disabled. */
export async function lockAccount(tx: Queryable, id: string): Promise<Result<Account>> {
  const account = await findAccount(tx, id, { lock: true });
  if (account === null) return refused("not_found", "there is no such account");
  if (account.disabledAtMs !== null) return refused("disabled", "the account is disabled");
  return ok(account);
}

export interface KeyRecordRow {
  readonly id: string;
  readonly account_id: string;
  readonly hint: string;
  readonly public_key: Buffer | null;
  readonly label: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly used_at: number | null;
  readonly cidrs: readonly string[];
  readonly rate_per_second: number | null;
  readonly burst: number | null;
  readonly rotated_from: string | null;
  readonly replaced_by: KeyRecord["replacedBy"];
  readonly revealable: boolean;
}

/** Columns of `touchdown.keys k`. */
export const KEY_COLUMNS = `k.id, k.account_id, k.hint, k.public_key, k.label, k.created_at,
  k.expires_at, k.revoked_at, k.cidrs::text[] as cidrs, k.rate_per_second, k.burst, k.rotated_from,
  k.ciphertext is not null as revealable,
  (select json_build_object('id', s.id, 'hint', s.hint) from touchdown.keys s
   where s.rotated_from = k.id and s.account_id = k.account_id
   order by s.created_at desc, s.id limit 1) as replaced_by,
  (select max(u.used_at) from touchdown.key_uses u where u.key_id = k.id) as used_at`;

/** The condition for a key that is live at the time in parameter `n`. */
export function isLive(n: number): string {
  return `(k.revoked_at is null and (k.expires_at is null or k.expires_at > $${n}))`;
}

export function keyOf(row: KeyRecordRow, nowMs: number): KeyRecord {
  const expired = row.expires_at !== null && row.expires_at <= nowMs;
  return {
    id: row.id,
    accountId: row.account_id,
    hint: row.hint,
    publicKey: row.public_key === null ? null : encodeKey(row.public_key),
    label: row.label,
    createdAtMs: row.created_at,
    expiresAtMs: row.expires_at,
    revokedAtMs: row.revoked_at,
    lastUsedAtMs: row.used_at,
    cidrs: row.cidrs,
    ratePerSecond: row.rate_per_second,
    burst: row.burst,
    rotatedFrom: row.rotated_from,
    replacedBy: row.replaced_by,
    revealable: row.revealable,
    state: row.revoked_at !== null ? "revoked" : expired ? "expired" : "live",
  };
}

const UUID_FORM = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const CURSOR_FORM = /^(\d{1,15})_([0-9a-f-]{36})$/;
/** Control characters, line ends, bidirectional overrides, unpaired surrogates. */
const CONTROL = /\p{Cc}|\p{Cs}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;
const CONTROLS = new RegExp(CONTROL.source, "gu");
