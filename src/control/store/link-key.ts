/**
 * Moves an existing key to an account that has a login.
 *
 * Possession of the key text is the proof. Only a key whose account has no login can be moved, so a
 * leaked key cannot be taken from its owner; nor can a key of a disabled account, which would undo
 * the disabling. Every rejection looks the same; the audit log of the calling account has the
 * reason.
 */

import type { Queryable } from "../../accounts/database/database.ts";
import { TOKEN_CHARS_MAX } from "../../core/limits.ts";
import { note } from "./audit.ts";
import type { Account, Actor, KeyRecord, Result } from "./contract.ts";
import { auditDetail, findKey, keysMax, liveCount } from "./keys.ts";
import { instant, lockAccount, ok, refused, type StoreDeps, sha256 } from "./records.ts";

/** Moves the key with this text to the account, or rejects with `not_found`. */
export function linkKey(
  deps: StoreDeps,
  accountId: string,
  token: string,
  actor: Actor,
): Promise<Result<KeyRecord>> {
  const { database, clock } = deps;
  return database.transaction(async (tx) => {
    const locked = await lockAccount(tx, accountId);
    if (locked.kind === "refused") return locked;
    const found = await findByToken(tx, token, clock.unixMs());
    const obstacle = await obstacleOf(tx, deps, locked.value, found);
    if (found === null || obstacle !== null) {
      const why = obstacle ?? "unknown";
      if (why === "own" && found !== null) return await mine(tx, deps, accountId, found.id);
      if (why === "too_many") {
        return refused("too_many", "the account has as many keys as it may, revoke one first");
      }
      await note(tx, clock, accountId, "key.link_refused", { why }, actor);
      return refused("not_found", "this key cannot be linked");
    }
    const sealed = deps.vault.seal(token, { accountId, keyId: found.id });
    await tx.query(
      `update touchdown.keys set account_id = $2, ciphertext = $3, nonce = $4, kek_id = $5,
         rotated_from = null where id = $1`,
      [found.id, accountId, sealed.ciphertext, sealed.nonce, sealed.kekId],
    );
    const key = await findKey(tx, accountId, found.id, clock.unixMs());
    if (key === null) throw new Error("a key that was just moved is not there");
    const detail = auditDetail(key);
    const from = found.accountId;
    await note(tx, clock, accountId, "key.link", { ...detail, from }, actor);
    await note(tx, clock, from, "key.moved", { ...detail, to: accountId }, actor);
    return ok(key);
  });
}

interface Found {
  readonly id: string;
  readonly accountId: string;
  readonly ended: boolean;
  readonly disabled: boolean;
  readonly owned: boolean;
}

/** Locks the key and its account, so that no concurrent call moves it or logs in to the account. */
async function findByToken(tx: Queryable, token: string, nowMs: number): Promise<Found | null> {
  if (token.length > TOKEN_CHARS_MAX) return null;
  const [row] = await tx.query<Found>(
    `select k.id, k.account_id as "accountId", a.disabled_at is not null as disabled,
       k.revoked_at is not null or coalesce(k.expires_at <= $2, false) as ended,
       exists (select from touchdown.identities i where i.account_id = a.id) as owned
     from touchdown.keys k join touchdown.accounts a on a.id = k.account_id
     where k.sha256 = $1 for update of k`,
    [sha256(token), instant(nowMs)],
  );
  return row ?? null;
}

async function obstacleOf(
  tx: Queryable,
  deps: StoreDeps,
  account: Account,
  found: Found | null,
): Promise<"unknown" | "own" | "ended" | "disabled" | "owned" | "too_many" | null> {
  if (found === null) return "unknown";
  if (found.accountId === account.id) return "own";
  if (found.disabled) return "disabled";
  if (found.ended) return "ended";
  if (found.owned) return "owned";
  return (await liveCount(tx, deps, account.id)) >= keysMax(account.plan) ? "too_many" : null;
}

async function mine(
  tx: Queryable,
  { clock }: StoreDeps,
  accountId: string,
  keyId: string,
): Promise<Result<KeyRecord>> {
  const key = await findKey(tx, accountId, keyId, clock.unixMs());
  return key === null ? refused("not_found", "this key cannot be linked") : ok(key);
}
