/**
 * Management tokens: a program that presents one may do what its account may do on the dashboard,
 * within the scope. Shown once, stored as a SHA-256. Ended tokens are kept for the record until
 * they are pruned.
 */

import { randomBytes, randomUUID } from "node:crypto";
import { API_TOKEN_TOUCH_MS, API_TOKENS_PER_ACCOUNT_MAX, KEY_LIFE_MS_MAX } from "../limits.ts";
import { note } from "./audit.ts";
import type { Account, ApiToken, ApiTokens } from "./contract.ts";
import {
  ACCOUNT_COLUMNS,
  ACCOUNTS_WITH_PLAN,
  checkText,
  instant,
  isUuid,
  lockAccount,
  ok,
  refused,
  type StoreDeps,
  sha256,
  splitAccount,
} from "./records.ts";

export function createApiTokens(deps: StoreDeps): ApiTokens {
  const { database, clock } = deps;
  return {
    create: (accountId, { label, scope, expiresAtMs }, actor) =>
      database.transaction(async (tx) => {
        const checked = checkText("the label", label, 0);
        if (checked.kind === "refused") return checked;
        const nowMs = clock.unixMs();
        const tooLate = expiresAtMs !== null && !(expiresAtMs <= nowMs + KEY_LIFE_MS_MAX);
        if (tooLate || (expiresAtMs !== null && expiresAtMs <= nowMs)) {
          return refused("invalid", "the end of a token must be to come, within 10 years");
        }
        const locked = await lockAccount(tx, accountId);
        if (locked.kind === "refused") return locked;
        const there = await tx.query(`${SELECT_LIVE} and t.account_id = $2`, [
          instant(nowMs),
          accountId,
        ]);
        if (there.length >= API_TOKENS_PER_ACCOUNT_MAX) {
          const limit = `an account may have ${API_TOKENS_PER_ACCOUNT_MAX} tokens`;
          return refused("too_many", `${limit} at a time, revoke one first`);
        }
        const token = `tdm_${randomBytes(TOKEN_BYTES).toString("base64url")}`;
        const id = randomUUID();
        const hint = `tdm_…${token.slice(-4)}`;
        await tx.query(
          `insert into touchdown.api_tokens
             (id, account_id, sha256, hint, label, scope, created_at, expires_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8)`,
          [
            id,
            accountId,
            sha256(token),
            hint,
            checked.value,
            scope,
            instant(nowMs),
            instant(expiresAtMs),
          ],
        );
        const named = { hint, label: checked.value, scope };
        await note(tx, clock, accountId, "token.create", { tokenId: id, ...named }, actor);
        const times = { createdAtMs: nowMs, expiresAtMs, lastUsedAtMs: null };
        return ok({ apiToken: { id, accountId, ...named, ...times }, token });
      }),
    async authenticate(token) {
      const nowMs = clock.unixMs();
      const [row] = await database.query<Account & TokenRow>(
        `select ${ACCOUNT_COLUMNS}, ${TOKEN_COLUMNS}
         from ${ACCOUNTS_WITH_PLAN} join touchdown.api_tokens t on t.account_id = a.id
         where t.sha256 = $1 and a.disabled_at is null and ${LIVE.replace("$1", "$2")}`,
        [sha256(token), instant(nowMs)],
      );
      if (row === undefined) return null;
      if (row.lastUsedAtMs === null || nowMs - row.lastUsedAtMs >= API_TOKEN_TOUCH_MS) {
        await database.query("update touchdown.api_tokens set last_used_at = $2 where id = $1", [
          row.tokenId,
          instant(nowMs),
        ]);
      }
      const { account, rest } = splitAccount(row);
      return { apiToken: tokenOf(rest), account };
    },
    async list(accountId) {
      if (!isUuid(accountId)) return [];
      const rows = await database.query<TokenRow>(
        `${SELECT_LIVE} and t.account_id = $2 order by t.created_at desc`,
        [instant(clock.unixMs()), accountId],
      );
      return rows.map(tokenOf);
    },
    revoke: (accountId, tokenId, actor) =>
      database.transaction(async (tx) => {
        if (!isUuid(accountId) || !isUuid(tokenId)) {
          return refused("not_found", "there is no such token");
        }
        const [row] = await tx.query<TokenRow>(
          `update touchdown.api_tokens t set revoked_at = $3
           where t.account_id = $1 and t.id = $2 and t.revoked_at is null
           returning ${TOKEN_COLUMNS}`,
          [accountId, tokenId, instant(clock.unixMs())],
        );
        if (row === undefined) return refused("not_found", "there is no such token");
        const detail = { tokenId, hint: row.hint, label: row.label };
        await note(tx, clock, accountId, "token.revoke", detail, actor);
        return ok(tokenOf(row));
      }),
  };
}

/** A token as `TOKEN_COLUMNS` select it, whose names are not those of an account's columns. */
interface TokenRow extends Omit<ApiToken, "id" | "createdAtMs"> {
  readonly tokenId: string;
  readonly madeAtMs: number;
}

function tokenOf({ tokenId, madeAtMs, ...rest }: TokenRow): ApiToken {
  return { id: tokenId, createdAtMs: madeAtMs, ...rest };
}

const TOKEN_BYTES = 32;
const TOKEN_COLUMNS = `t.id as "tokenId", t.account_id as "accountId", t.hint, t.label, t.scope,
  t.created_at as "madeAtMs", t.expires_at as "expiresAtMs", t.last_used_at as "lastUsedAtMs"`;
const LIVE = "(t.revoked_at is null and (t.expires_at is null or t.expires_at > $1))";
const SELECT_LIVE = `select ${TOKEN_COLUMNS} from touchdown.api_tokens t where ${LIVE}`;
