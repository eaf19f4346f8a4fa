/**
 * Reads from the accounts database: all keys, or the changes since a revision.
 *
 * Both run in a snapshot transaction. Nothing is applied here.
 */

import type { Queryable, Transaction } from "../database/database.ts";
import { KEY_CHANGES_MAX } from "../limits.ts";
import type { KeyChanges } from "./journal-line.ts";
import type { LentKey, Plan } from "./key.ts";
import { type EdgeKeyRow, keyOfRow, type PlanRow, planOfRow } from "./records.ts";
import { isSameRevision, type Revision } from "./revision.ts";
import { createKeySnapshotReader, KEY_ROWS_SQL, KEY_SNAPSHOT_SQL } from "./snapshot.ts";
import type { KeyTable } from "./table.ts";

const KEY_COLUMNS =
  "replace(key_id::text, '-', '') as id, sha256, account_id as account, plan, " +
  "expires_at as expires, cidrs, rate_per_second as rate, burst, is_derived";

/** Passes every key to `put`; returns their revision. */
export async function fetchAll(tx: Transaction, put: (key: LentKey) => void): Promise<Revision> {
  const at = await revisionNow(tx);
  const plans = new Map<string, Plan>();
  for (const row of await tx.query<PlanRow>(PLANS_SQL)) plans.set(row.name, planOfRow(row));
  const copy = createKeySnapshotReader(plans, put);
  await tx.streamSnapshot(KEY_SNAPSHOT_SQL, copy.take);
  copy.finish();
  return at;
}

async function revisionNow(tx: Queryable): Promise<Revision> {
  const [at] = await tx.query<Revision>(
    "select revision as number, mark from touchdown.edge_revision",
  );
  return at ?? { number: 0, mark: null };
}

const PLANS_SQL = "select name, rate_per_second as rate, burst, shared from touchdown.edge_plans";

interface ChangeRow {
  readonly revision: number;
  readonly kind: string;
  readonly id: string;
  readonly sha256: Buffer | null;
  /** Mark of the previous revision. */
  readonly mark_before: string | null;
}

/** The changes since a revision; null where a full read is required. */
export async function fetchChanges(
  tx: Queryable,
  since: Revision,
  table: KeyTable,
): Promise<KeyChanges | null> {
  const revision = await revisionNow(tx);
  const nothing = { since, revision, plans: [], puts: [], removals: [] };
  if (isSameRevision(revision, since)) return nothing;
  const changes = await tx.query<ChangeRow>(
    `select revision, kind, id, sha256, mark_before from touchdown.edge_changes
     where revision > $1 limit $2`,
    [since.number, KEY_CHANGES_MAX + 1],
  );
  if (changes.length > KEY_CHANGES_MAX || !follow(changes, since, revision)) return null;
  if (changes.some(({ kind, sha256 }) => !KINDS.has(kind) || (kind === "key" && !sha256))) {
    return null;
  }
  const idsOf = (kind: string) => changes.filter((it) => it.kind === kind).map(({ id }) => id);
  const [keyIds, accounts, planNames] = [idsOf("key"), idsOf("account"), idsOf("plan")];
  const planRows = await tx.query<PlanRow>(PLANS_SQL);
  const plans = new Map(planRows.map((row) => [row.name, planOfRow(row)]));
  const changed = await keyRows(
    tx,
    "key_id = any($1::uuid[]) or account_id = any($2::uuid[])",
    keyIds,
    accounts,
  );
  const touched = changes.flatMap(({ sha256 }) => (sha256 === null ? [] : [sha256]));
  const ended = without([...touched, ...table.digestsOf(new Set(accounts))], changed);
  // The holder may have registered the public key of an expired API key as a key of its own.
  const others = ended.length === 0 ? [] : await keyRows(tx, "sha256 = any($1)", ended);
  return {
    since,
    revision,
    plans: planNames.flatMap((name) => plans.get(name) ?? []),
    puts: [...changed, ...others].map((row) => keyOfRow(row, plans)),
    removals: without(ended, others),
  };
}

/** Those of the digests that no valid key has. */
export async function fetchEnded(
  tx: Queryable,
  digests: readonly Buffer[],
): Promise<readonly Buffer[]> {
  if (digests.length === 0) return [];
  return without(digests, await keyRows(tx, "sha256 = any($1)", digests));
}

function keyRows(tx: Queryable, where: string, ...values: readonly (readonly unknown[])[]) {
  return tx.query<EdgeKeyRow>(
    `select ${KEY_COLUMNS} from ${KEY_ROWS_SQL} as keys where ${where}`,
    values,
  );
}

/** The digests that no row has. */
function without(digests: readonly Buffer[], rows: readonly EdgeKeyRow[]): readonly Buffer[] {
  const taken = new Set(rows.map(({ sha256 }) => sha256.toString("hex")));
  return digests.filter((sha256) => !taken.has(sha256.toString("hex")));
}

/**
 * Whether the changes lead from one revision to the other. They do not if the database is another
 * one or was restored, or if `control` has deleted some because of their age. It may have deleted a
 * later one and not yet an earlier one: a change has the time at which its transaction began.
 */
function follow(changes: readonly ChangeRow[], since: Revision, to: Revision): boolean {
  const count = new Set(changes.map(({ revision }) => revision)).size;
  if (count !== to.number - since.number) return false;
  const first = changes.find(({ revision }) => revision === since.number + 1);
  return first !== undefined && since.mark !== null && first.mark_before === since.mark;
}

const KINDS: ReadonlySet<string> = new Set(["key", "account", "plan"]);
