/**
 * Deletes expired rows, a bounded number per step, so that no step blocks other statements. It runs
 * hourly; the next run continues what one run does not finish.
 */

import {
  AUDIT_KEEP_MS,
  CHANGES_KEEP_MS,
  PRUNE_ROWS_PER_STEP,
  PRUNE_STEPS_MAX,
  USAGE_HOURS_KEEP_MS,
  USAGE_MINUTES_KEEP_MS,
} from "../limits.ts";
import { instant, type StoreDeps } from "./records.ts";

/** Returns the number of rows deleted. */
export async function prune({ database, clock }: StoreDeps): Promise<number> {
  const nowMs = clock.unixMs();
  let gone = 0;
  for (const { table, past, keepMs } of RULES) {
    const before = instant(nowMs - keepMs);
    for (let step = 0; step < PRUNE_STEPS_MAX; step += 1) {
      const rows = await database.query(
        `delete from touchdown.${table} where ctid = any (array(
           select ctid from touchdown.${table} where ${past} limit ${PRUNE_ROWS_PER_STEP}))
         returning 1`,
        [before],
      );
      gone += rows.length;
      if (rows.length < PRUNE_ROWS_PER_STEP) break;
    }
  }
  return gone;
}

/** Condition for expired rows: parameter 1 is the current time minus the retention. */
const RULES: readonly { readonly table: string; readonly past: string; readonly keepMs: number }[] =
  [
    { table: "login_attempts", past: "expires_at <= $1", keepMs: 0 },
    { table: "key_challenges", past: "expires_at <= $1", keepMs: 0 },
    { table: "sessions", past: "ends_at <= $1 or idle_ends_at <= $1", keepMs: 0 },
    {
      table: "api_tokens",
      past: "revoked_at <= $1 or expires_at <= $1",
      keepMs: CHANGES_KEEP_MS,
    },
    { table: "key_changes", past: "at <= $1", keepMs: CHANGES_KEEP_MS },
    { table: "usage_batches", past: "written_at <= $1", keepMs: USAGE_MINUTES_KEEP_MS },
    { table: "usage_minutes", past: "at < $1", keepMs: USAGE_MINUTES_KEEP_MS },
    { table: "usage_reason_minutes", past: "at < $1", keepMs: USAGE_MINUTES_KEEP_MS },
    { table: "usage_hours", past: "at < $1", keepMs: USAGE_HOURS_KEEP_MS },
    { table: "usage_reason_hours", past: "at < $1", keepMs: USAGE_HOURS_KEEP_MS },
    { table: "audit", past: "at < $1", keepMs: AUDIT_KEEP_MS },
  ];
