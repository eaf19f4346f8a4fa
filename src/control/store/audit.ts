/**
 * The audit log of an account: action, time and source. An entry is written in the transaction of
 * the change it records, so neither exists without the other, and the database allows no change of
 * entries.
 */

import type { Queryable } from "../../accounts/database/database.ts";
import type { Clock } from "../../core/clock.ts";
import type { Actor, Audit, AuditAction, AuditEntry } from "./contract.ts";
import { cutText, instant, isUuid, pageOf, type StoreDeps } from "./records.ts";

export async function note(
  tx: Queryable,
  clock: Clock,
  accountId: string | null,
  action: AuditAction,
  detail: Readonly<Record<string, unknown>>,
  actor: Actor,
): Promise<void> {
  await tx.query(
    `insert into touchdown.audit
       (at, account_id, actor_kind, actor_id, address, user_agent, action, detail)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      instant(clock.unixMs()),
      accountId,
      actor.kind,
      actor.accountId,
      cutText(actor.address, ADDRESS_CHARS_MAX),
      cutText(actor.userAgent, USER_AGENT_CHARS_MAX),
      action,
      JSON.stringify(detail),
    ],
  );
}

export function createAudit({ database }: StoreDeps): Audit {
  return {
    async list(accountId, { limit, after }) {
      if (!isUuid(accountId)) return { items: [], next: null };
      const before = after !== null && /^\d{1,15}$/.test(after) ? Number(after) : null;
      const rows = await database.query<AuditEntry>(
        `select id::text, at as "atMs", account_id as "accountId", action, detail,
           json_build_object('kind', actor_kind, 'accountId', actor_id, 'address', address,
             'userAgent', user_agent) as actor
         from touchdown.audit
         where account_id = $1 and ($2::bigint is null or id < $2)
         order by audit.id desc limit $3`,
        [accountId, before, limit + 1],
      );
      return pageOf(rows, limit, ({ id }) => id);
    },
  };
}

/** As the schema has it. */
export const ADDRESS_CHARS_MAX = 64;
export const USER_AGENT_CHARS_MAX = 256;
