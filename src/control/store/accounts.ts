/**
 * Accounts and their logins. An identity is an issuer and a subject; its e-mail is for display and
 * proves nothing. The first login creates an account on plan Beta with one key, atomically;
 * concurrent first logins of one identity create one account.
 */

import type { Queryable } from "../../accounts/database/database.ts";
import { note } from "./audit.ts";
import type {
  Account,
  AccountSummary,
  Accounts,
  Actor,
  AdminRevocation,
  AuditAction,
  Identity,
  IdentityRecord,
  Registration,
  Result,
} from "./contract.ts";
import { UNRESTRICTED } from "./key-options.ts";
import { createKey, type KeyStoreOptions } from "./keys.ts";
import {
  ACCOUNT_COLUMNS,
  ACCOUNTS_WITH_PLAN,
  checkText,
  cutText,
  exactTime,
  findAccount,
  instant,
  isUuid,
  ok,
  pageOf,
  readCursor,
  refused,
  type StoreDeps,
  writeCursor,
} from "./records.ts";

export function createAccounts(deps: StoreDeps, options: KeyStoreOptions): Accounts {
  const { database, clock } = deps;

  return {
    register: (identity, actor) =>
      database.transaction((tx) => register(tx, deps, options, identity, actor)),
    byId: (id) => findAccount(database, id, { lock: false }),
    async identities(id) {
      if (!isUuid(id)) return [];
      return await database.query<IdentityRecord>(
        `select issuer, subject, email, name, created_at as "createdAtMs",
           last_login_at as "lastLoginAtMs"
         from touchdown.identities where account_id = $1 order by created_at`,
        [id],
      );
    },
    async rename(id, name, actor) {
      const checked = checkText("the name", name, 1);
      if (checked.kind === "refused") return checked;
      return await changeAccount(deps, id, "account.rename", { name: checked.value }, actor, (tx) =>
        tx.query("update touchdown.accounts set name = $2 where id = $1", [id, checked.value]),
      );
    },
    create: (name, plan, actor) =>
      database.transaction((tx) => createLoginless(tx, deps, name, plan, actor)),
    createOnce: (name, plan, actor) =>
      database.transaction(async (tx) => {
        await tx.query("select pg_advisory_xact_lock(hashtextextended($1, $2))", [
          name.trim(),
          NAME_LOCK_SPACE,
        ]);
        const [known] = await byName(tx, `${NAMED} and not ${HAS_LOGIN}`, name.trim());
        return known === undefined ? await createLoginless(tx, deps, name, plan, actor) : ok(known);
      }),
    byName: (name) => byName(database, NAMED, name),
    list: (filter) => listAccounts(deps, filter),
    setPlan: (id, plan, actor) =>
      changeAccount(deps, id, "account.plan", { plan }, actor, async (tx) => {
        if (!(await planExists(tx, plan))) return noPlan(plan);
        return await tx.query("update touchdown.accounts set plan = $2 where id = $1", [id, plan]);
      }),
    setDisabled: (id, disabled, actor) =>
      changeAccount(
        deps,
        id,
        disabled ? "account.disable" : "account.enable",
        {},
        actor,
        (tx, account) => setDisabled(tx, account, disabled, clock.unixMs()),
      ),
    setAdmin: (id, admin, actor) =>
      changeAccount(deps, id, "account.admin", { admin }, actor, (tx, account) =>
        setAdmin(tx, account, admin),
      ),
    revokeAdmins: (of, actor) => revokeAdmins(deps, of, actor),
  };
}

async function register(
  tx: Queryable,
  deps: StoreDeps,
  options: KeyStoreOptions,
  identity: Identity,
  actor: Actor,
): Promise<Result<Registration>> {
  const { issuer, subject } = identity;
  if (issuer === "" || subject === "" || issuer.length > 512 || subject.length > 512) {
    return refused("invalid", "an identity needs an issuer and a subject of up to 512 characters");
  }
  // Concurrent first logins of one identity wait for each other here, before there is a row to
  // lock.
  await tx.query("select pg_advisory_xact_lock(hashtextextended($1, $2))", [
    JSON.stringify([issuer, subject]),
    LOCK_SPACE,
  ]);
  const email = cutText(identity.email, EMAIL_CHARS_MAX);
  const name = cutText(identity.name, NAME_CHARS_MAX);
  const now = instant(deps.clock.unixMs());
  const [known] = await tx.query<{ readonly account_id: string }>(
    // Both are null if the request for the user's profile failed; then the stored ones stay.
    `update touchdown.identities
     set last_login_at = $3, email = coalesce($4, email), name = coalesce($5, name)
     where issuer = $1 and subject = $2 returning account_id`,
    [issuer, subject, now, email, name],
  );
  if (known !== undefined) {
    const account = await findAccount(tx, known.account_id, { lock: false });
    if (account === null) throw new Error("an identity without an account");
    return account.disabledAtMs === null
      ? ok({ account, key: null })
      : refused("disabled", "the account is disabled");
  }
  const shown = cutText(identity.name ?? identity.email, ACCOUNT_CHARS_MAX) ?? "Account";
  const account = await insertAccount(tx, deps, shown, FIRST_PLAN);
  await tx.query(
    `insert into touchdown.identities
       (issuer, subject, account_id, email, name, created_at, last_login_at)
     values ($1, $2, $3, $4, $5, $6, $6)`,
    [issuer, subject, account.id, email, name, now],
  );
  await note(tx, deps.clock, account.id, "account.register", { issuer }, actor);
  const key = await createKey(tx, deps, options, account, FIRST_KEY, actor);
  if (key.kind === "refused") throw new Error(`a new account gets no key: ${key.detail}`);
  return ok({ account, key: key.value.key });
}

async function createLoginless(
  tx: Queryable,
  deps: StoreDeps,
  name: string,
  plan: string,
  actor: Actor,
): Promise<Result<Account>> {
  const checked = checkText("the name", name, 1);
  if (checked.kind === "refused") return checked;
  if (!(await planExists(tx, plan))) return noPlan(plan);
  const account = await insertAccount(tx, deps, checked.value, plan);
  const detail = { name: checked.value, plan };
  await note(tx, deps.clock, account.id, "account.create", detail, actor);
  return ok(account);
}

/** Those without a login first. */
function byName(tx: Queryable, where: string, name: string): Promise<readonly Account[]> {
  return tx.query<Account>(
    `select ${ACCOUNT_COLUMNS} from ${ACCOUNTS_WITH_PLAN} where ${where}
     order by ${HAS_LOGIN}, a.created_at limit ${SAME_NAME_MAX}`,
    [name],
  );
}

async function insertAccount(
  tx: Queryable,
  { clock }: StoreDeps,
  name: string,
  plan: string,
): Promise<Account> {
  const [row] = await tx.query<{ readonly id: string }>(
    "insert into touchdown.accounts (name, plan, created_at) values ($1, $2, $3) returning id",
    [name, plan, instant(clock.unixMs())],
  );
  const account = row === undefined ? null : await findAccount(tx, row.id, { lock: false });
  if (account === null) throw new Error("an account that was just made is not there");
  return account;
}

/** Changes an account under its lock and writes an audit entry; `act` may reject instead. */
function changeAccount(
  { database, clock }: StoreDeps,
  id: string,
  action: AuditAction,
  detail: Readonly<Record<string, unknown>>,
  actor: Actor,
  act: (tx: Queryable, account: Account) => Promise<unknown>,
): Promise<Result<Account>> {
  return database.transaction(async (tx) => {
    const before = await findAccount(tx, id, { lock: true });
    if (before === null) return refused("not_found", "there is no such account");
    const done = await act(tx, before);
    if (isRefusal(done)) return done;
    const was = { name: before.name, plan: before.plan.name };
    await note(tx, clock, id, action, { ...detail, was }, actor);
    const after = await findAccount(tx, id, { lock: false });
    return after === null ? refused("not_found", "there is no such account") : ok(after);
  });
}

async function setDisabled(
  tx: Queryable,
  account: Account,
  disabled: boolean,
  nowMs: number,
): Promise<unknown> {
  const { id, admin, disabledAtMs } = account;
  if (disabled === (disabledAtMs !== null)) return null;
  if (disabled && admin && !(await otherAdmin(tx, id))) return NO_ADMIN_LEFT;
  const at = disabled ? instant(nowMs) : null;
  await tx.query("update touchdown.accounts set disabled_at = $2 where id = $1", [id, at]);
  if (!disabled) return null;
  await tx.query("delete from touchdown.sessions where account_id = $1", [id]);
  return await tx.query(
    "update touchdown.api_tokens set revoked_at = $2 where account_id = $1 and revoked_at is null",
    [id, at],
  );
}

async function setAdmin(tx: Queryable, account: Account, admin: boolean): Promise<unknown> {
  if (!admin && account.admin && !(await otherAdmin(tx, account.id))) return NO_ADMIN_LEFT;
  return await tx.query("update touchdown.accounts set admin = $2 where id = $1", [
    account.id,
    admin,
  ]);
}

function revokeAdmins(
  { database, clock }: StoreDeps,
  { except, accountId }: AdminRevocation,
  actor: Actor,
): Promise<number> {
  return database.transaction(async (tx) => {
    const changed = await tx.query<{ readonly id: string }>(
      `update touchdown.accounts a set admin = false
       where admin and a.id = coalesce($2::uuid, a.id) and not exists (
         select from touchdown.identities i
         where i.account_id = a.id and i.issuer || ' ' || i.subject = any($1)
       ) returning id`,
      [except, accountId],
    );
    for (const { id } of changed) await note(tx, clock, id, "account.admin", REVOKED, actor);
    return changed.length;
  });
}

/** Two admins that remove each other's right concurrently wait on the lock, and one is rejected. */
async function otherAdmin(tx: Queryable, id: string): Promise<boolean> {
  await tx.query("select pg_advisory_xact_lock($1)", [ADMIN_LOCK]);
  const [other] = await tx.query(
    "select from touchdown.accounts where admin and disabled_at is null and id <> $1 limit 1",
    [id],
  );
  return other !== undefined;
}

async function listAccounts(
  { database }: StoreDeps,
  filter: Parameters<Accounts["list"]>[0],
): ReturnType<Accounts["list"]> {
  const after = readCursor(filter.after);
  const search = filter.search.trim();
  const pattern = search === "" ? null : `%${search.replace(/[\\%_]/g, "\\$&")}%`;
  const rows = await database.query<AccountSummary>(
    `select ${ACCOUNT_COLUMNS},
       (select count(*) from touchdown.keys k where k.account_id = a.id
          and k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))
          as "keyCount",
       (select max(u.used_at) from touchdown.keys k join touchdown.key_uses u on u.key_id = k.id
          where k.account_id = a.id) as "lastUsedAtMs",
       (select coalesce(i.email, i.name) from touchdown.identities i where i.account_id = a.id
          order by i.created_at limit 1) as contact
     from ${ACCOUNTS_WITH_PLAN}
     where ($2::uuid is null or (a.created_at, a.id) < (${exactTime("accounts", 2, 1)}, $2::uuid))
       and ($3::text is null or a.name ilike $3 or a.plan ilike $3 or a.id::text ilike $3
         or exists (select from touchdown.identities i where i.account_id = a.id
           and (i.email ilike $3 or i.name ilike $3)))
     order by a.created_at desc, a.id desc limit $4`,
    [after?.at ?? null, after?.id ?? null, pattern, filter.limit + 1],
  );
  return pageOf(rows, filter.limit, ({ createdAtMs, id }) => writeCursor(createdAtMs, id));
}

async function planExists(tx: Queryable, name: string): Promise<boolean> {
  return (await tx.query("select from touchdown.plans where name = $1", [name])).length === 1;
}

/** The rejection for a missing plan. */
export function noPlan(name: string) {
  return refused("plan_unknown", `there is no plan ${JSON.stringify(name.slice(0, 64))}`);
}

function isRefusal(value: unknown): value is ReturnType<typeof refused> {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "refused";
}

const NO_ADMIN_LEFT = refused("last_admin", "there would be no admin left");
const REVOKED = { admin: false };
const FIRST_PLAN = "Beta";
const FIRST_KEY = { ...UNRESTRICTED, label: "First key" };
/** Lock seeds; arbitrary but distinct. */
const LOCK_SPACE = 0x74_64_69_64;
const NAME_LOCK_SPACE = 0x74_64_6e_61;
const ADMIN_LOCK = 0x74_64_61_64;
const SAME_NAME_MAX = 16;
const NAMED = "a.name = $1";
const HAS_LOGIN = "exists (select from touchdown.identities i where i.account_id = a.id)";
/** As in the schema. */
const ACCOUNT_CHARS_MAX = 64;
const EMAIL_CHARS_MAX = 320;
const NAME_CHARS_MAX = 256;
