/**
 * Browser sessions. Only the cookie holds the secret; the database holds its SHA-256, so that
 * reading the database grants no login. A session ends when it is idle, too old or closed, and when
 * its account is disabled; from then on it is treated as nonexistent.
 */

import { randomBytes, randomUUID } from "node:crypto";
import type { Queryable } from "../../accounts/database/database.ts";
import { SESSION_TOUCH_MS, SESSIONS_PER_ACCOUNT_MAX } from "../limits.ts";
import { ADDRESS_CHARS_MAX, note, USER_AGENT_CHARS_MAX } from "./audit.ts";
import type { Account, Session, Sessions } from "./contract.ts";
import {
  ACCOUNT_COLUMNS,
  ACCOUNTS_WITH_PLAN,
  cutText,
  instant,
  isUuid,
  lockAccount,
  ok,
  type StoreDeps,
  sha256,
  splitAccount,
} from "./records.ts";

export interface SessionOptions {
  /** Idle timeout of a session, in milliseconds. */
  readonly sessionIdleMs: number;
  /** Maximum lifetime of a session, in milliseconds. */
  readonly sessionMsMax: number;
}

export function createSessions(deps: StoreDeps, options: SessionOptions): Sessions {
  const { database, clock } = deps;
  const { sessionIdleMs, sessionMsMax } = options;

  return {
    open: ({ accountId, issuer, subject, authenticatedAtMs }, actor) =>
      database.transaction(async (tx) => {
        const locked = await lockAccount(tx, accountId);
        if (locked.kind === "refused") return locked;
        const nowMs = clock.unixMs();
        const secret = newSecret();
        const id = randomUUID();
        await tx.query(
          `insert into touchdown.sessions (id, secret_sha256, account_id, issuer, subject,
             created_at, seen_at, authenticated_at, idle_ends_at, ends_at, address, user_agent)
           values ($1, $2, $3, $4, $5, $6, $6, $11, $7, $8, $9, $10)`,
          [
            id,
            sha256(secret),
            accountId,
            issuer,
            subject,
            instant(nowMs),
            instant(nowMs + sessionIdleMs),
            instant(nowMs + sessionMsMax),
            cutText(actor.address, ADDRESS_CHARS_MAX),
            cutText(actor.userAgent, USER_AGENT_CHARS_MAX),
            instant(authenticatedAtMs),
          ],
        );
        await endOldest(tx, accountId);
        await note(tx, clock, accountId, "session.login", { sessionId: id, issuer }, actor);
        const session = await findLive(tx, secret, nowMs);
        if (session === null) throw new Error("a session that was just opened is not there");
        return ok({ session, secret });
      }),
    look: (secret) => findLive(database, secret, clock.unixMs()),
    async touch(secret) {
      const nowMs = clock.unixMs();
      const session = await findLive(database, secret, nowMs);
      if (session === null || nowMs - session.seenAtMs < SESSION_TOUCH_MS) return session;
      const idleEndsAtMs = nowMs + sessionIdleMs;
      await database.query(
        "update touchdown.sessions set seen_at = $2, idle_ends_at = $3 where id = $1",
        [session.id, instant(nowMs), instant(idleEndsAtMs)],
      );
      return { ...session, seenAtMs: nowMs, idleEndsAtMs };
    },
    renew: (secret, actor, authenticatedAtMs) =>
      database.transaction(async (tx) => {
        const nowMs = clock.unixMs();
        const before = await findLive(tx, secret, nowMs);
        if (before === null) return null;
        const fresh = newSecret();
        const changed = await tx.query(
          `update touchdown.sessions set secret_sha256 = $2, seen_at = $3, authenticated_at = $6,
             idle_ends_at = $4, ends_at = $5 where secret_sha256 = $1 returning 1`,
          [
            sha256(secret),
            sha256(fresh),
            instant(nowMs),
            instant(nowMs + sessionIdleMs),
            instant(nowMs + sessionMsMax),
            instant(authenticatedAtMs),
          ],
        );
        if (changed.length === 0) return null;
        const detail = { sessionId: before.id };
        await note(tx, clock, before.account.id, "session.renew", detail, actor);
        const session = await findLive(tx, fresh, nowMs);
        return session === null ? null : { session, secret: fresh };
      }),
    close: (secret, actor) =>
      database.transaction(async (tx) => {
        const [gone] = await tx.query<{ readonly id: string; readonly account_id: string }>(
          "delete from touchdown.sessions where secret_sha256 = $1 returning id, account_id",
          [sha256(secret)],
        );
        if (gone === undefined) return;
        const detail = { sessionId: gone.id };
        await note(tx, clock, gone.account_id, "session.logout", detail, actor);
      }),
    async list(accountId) {
      if (!isUuid(accountId)) return [];
      const rows = await database.query<SessionRow>(
        `${SELECT} where s.account_id = $1 and ${LIVE} order by s.seen_at desc`,
        [accountId, instant(clock.unixMs())],
      );
      return rows.map(sessionOf);
    },
    end: (accountId, sessionId, actor) =>
      database.transaction(async (tx) => {
        if (!isUuid(accountId) || !isUuid(sessionId)) return false;
        const gone = await tx.query(
          "delete from touchdown.sessions where account_id = $1 and id = $2 returning 1",
          [accountId, sessionId],
        );
        if (gone.length === 0) return false;
        await note(tx, clock, accountId, "session.end", { sessionId }, actor);
        return true;
      }),
    endAll: (accountId, actor) =>
      database.transaction(async (tx) => {
        if (!isUuid(accountId)) return 0;
        const gone = await tx.query(
          "delete from touchdown.sessions where account_id = $1 returning 1",
          [accountId],
        );
        await note(tx, clock, accountId, "session.end_all", { count: gone.length }, actor);
        return gone.length;
      }),
  };
}

/** The session of this secret at this time; null for none. */
async function findLive(tx: Queryable, secret: string, nowMs: number): Promise<Session | null> {
  const [row] = await tx.query<SessionRow>(`${SELECT} where s.secret_sha256 = $1 and ${LIVE}`, [
    sha256(secret),
    instant(nowMs),
  ]);
  return row === undefined ? null : sessionOf(row);
}

/** Keeps the newest sessions of an account, up to the limit. */
async function endOldest(tx: Queryable, accountId: string): Promise<void> {
  await tx.query(
    `delete from touchdown.sessions where id in
       (select id from touchdown.sessions where account_id = $1
        order by created_at desc, id offset ${SESSIONS_PER_ACCOUNT_MAX})`,
    [accountId],
  );
}

/** A session's columns besides those of its account. */
interface SessionColumns extends Omit<Session, "id" | "account" | "createdAtMs"> {
  readonly sessionId: string;
  readonly openedAtMs: number;
}

type SessionRow = Account & SessionColumns;

function sessionOf(row: SessionRow): Session {
  const { account, rest } = splitAccount(row);
  const { sessionId: id, openedAtMs: createdAtMs, ...session } = rest;
  return { id, account, createdAtMs, ...session };
}

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

const SECRET_BYTES = 32;
const SELECT = `select ${ACCOUNT_COLUMNS}, s.id as "sessionId", s.issuer, s.subject,
    s.created_at as "openedAtMs", s.seen_at as "seenAtMs",
    s.authenticated_at as "authenticatedAtMs", s.idle_ends_at as "idleEndsAtMs",
    s.ends_at as "endsAtMs", s.address, s.user_agent as "userAgent"
  from ${ACCOUNTS_WITH_PLAN} join touchdown.sessions s on s.account_id = a.id`;
const LIVE = "s.idle_ends_at > $2 and s.ends_at > $2 and a.disabled_at is null";
