/**
 * What the store of accounts promises to the dashboard: every record and every act, in one place.
 *
 * Times are milliseconds since the Unix epoch, `null` is none. Whatever belongs to an account is
 * asked for with the account's id, and another account's id finds nothing: the store is the last
 * place where that is checked, not the only one. An act that may fail by design answers with
 * `refused` and a reason; a database that is gone throws `DatabaseError`. Every change writes its
 * audit entry in the same transaction.
 */

import type { KeyEncryption } from "../vault.ts";
import type { Usage } from "./usage-contract.ts";

/** Who does something, as the audit has it. */
export interface Actor {
  readonly kind: "account" | "token" | "operator" | "system";
  /** The account that acts, which may be another than the one acted on (an operator). */
  readonly accountId: string | null;
  /** From where: an IP address; null when it is a command on this host. */
  readonly address: string | null;
  readonly userAgent: string | null;
}

/** Why the store does not do what it was asked. */
export type StoreReason =
  /** No such record, or not this account's. */
  | "not_found"
  /** The account is disabled. */
  | "disabled"
  /** The account has as many of these as it may. */
  | "too_many"
  /** The plan is not there. */
  | "plan_unknown"
  /** The plan still has accounts. */
  | "plan_in_use"
  /** Text, range or time out of bounds; `detail` says which and what is needed. */
  | "invalid"
  /** The key is revoked or expired. */
  | "key_ended"
  /** The key was rotated before; `detail` names its successor. */
  | "key_replaced"
  /** The key belongs to an account that somebody logs in to. */
  | "key_owned"
  /** The key was stored without its text (made before the vault, or loaded as a hash). */
  | "not_revealable"
  /** The vault lacks the key-encryption key, or it is not the right one. */
  | "vault"
  /** The last admin cannot be taken away. */
  | "last_admin";

export interface Refusal {
  readonly kind: "refused";
  readonly reason: StoreReason;
  /** One sentence without a full stop; fit for a user's eyes, holds no secret. */
  readonly detail: string;
}

export type Result<T> = { readonly kind: "ok"; readonly value: T } | Refusal;

// Plans and accounts

export interface PlanRecord {
  readonly name: string;
  readonly ratePerSecond: number;
  readonly burst: number;
  /** Whether one limit holds over all edges; else it holds for each edge. */
  readonly shared: boolean;
  /** What the operator's plans grant beside the rate, e.g. `{"keys_max": 10}`. */
  readonly rights: Readonly<Record<string, unknown>>;
}

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly plan: PlanRecord;
  readonly admin: boolean;
  readonly createdAtMs: number;
  readonly disabledAtMs: number | null;
}

/** A login at a provider. The e-mail is for display alone and proves nothing. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | null;
  readonly name: string | null;
}

export interface IdentityRecord extends Identity {
  readonly createdAtMs: number;
  readonly lastLoginAtMs: number;
}

/** `key` is the first key of a new account, null for an account that was there. */
export interface Registration {
  readonly account: Account;
  readonly key: KeyRecord | null;
}

/** One line of the operator's list. */
export interface AccountSummary extends Account {
  readonly keyCount: number;
  readonly lastUsedAtMs: number | null;
  /** E-mail or name of its first login, for display. */
  readonly contact: string | null;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Give it back for the next page; null at the end. */
  readonly next: string | null;
}

export interface Accounts {
  /**
   * The account of this login; on the first login a new one on plan Beta with one key. Any number
   * of calls at once make one account. A disabled account answers `disabled`.
   */
  register(identity: Identity, actor: Actor): Promise<Result<Registration>>;
  byId(id: string): Promise<Account | null>;
  identities(id: string): Promise<readonly IdentityRecord[]>;
  rename(id: string, name: string, actor: Actor): Promise<Result<Account>>;
  /** For operators: an account without a login, e.g. for `touchdown keys create`. */
  create(name: string, plan: string, actor: Actor): Promise<Result<Account>>;
  /** By name, exactly; several accounts may share one. */
  byName(name: string): Promise<readonly Account[]>;
  /** For operators: newest first, filtered by a part of name, contact, id or plan. */
  list(filter: {
    readonly search: string;
    readonly limit: number;
    readonly after: string | null;
  }): Promise<Page<AccountSummary>>;
  setPlan(id: string, plan: string, actor: Actor): Promise<Result<Account>>;
  /** A disabled account's keys are refused by every edge, its sessions and tokens end. */
  setDisabled(id: string, disabled: boolean, actor: Actor): Promise<Result<Account>>;
  setAdmin(id: string, admin: boolean, actor: Actor): Promise<Result<Account>>;
}

export interface Plans {
  list(): Promise<readonly (PlanRecord & { readonly accountCount: number })[]>;
  byName(name: string): Promise<PlanRecord | null>;
  /** Makes the plan or changes it. */
  save(plan: PlanRecord, actor: Actor): Promise<Result<PlanRecord>>;
  remove(name: string, actor: Actor): Promise<Result<null>>;
}

// Keys

export interface KeyRecord {
  readonly id: string;
  readonly accountId: string;
  /** `td_…wxyz` */
  readonly hint: string;
  readonly label: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  readonly lastUsedAtMs: number | null;
  /** Networks that it may be used from, e.g. `203.0.113.0/24`; empty: from anywhere. */
  readonly cidrs: readonly string[];
  /** Its own limit below the account's; both null for none. */
  readonly ratePerSecond: number | null;
  readonly burst: number | null;
  readonly rotatedFrom: string | null;
  /** The key that a rotation put in its place; such a key cannot be rotated again. */
  readonly replacedBy: { readonly id: string; readonly hint: string } | null;
  /** Whether `reveal` can show it. */
  readonly revealable: boolean;
  readonly state: "live" | "expired" | "revoked";
}

export interface KeyOptions {
  readonly label: string;
  readonly expiresAtMs: number | null;
  readonly cidrs: readonly string[];
  readonly ratePerSecond: number | null;
  readonly burst: number | null;
}

/** The one answer that carries a fresh key. */
export interface FreshKey {
  readonly key: KeyRecord;
  readonly token: string;
}

export interface Keys {
  /** Live ones first, then by age; at most `KEY_RECORDS_SHOWN_MAX`. */
  list(accountId: string): Promise<readonly KeyRecord[]>;
  byId(accountId: string, keyId: string): Promise<KeyRecord | null>;
  create(accountId: string, options: KeyOptions, actor: Actor): Promise<Result<FreshKey>>;
  /** Changes what is given, leaves the rest. */
  change(
    accountId: string,
    keyId: string,
    change: Partial<KeyOptions>,
    actor: Actor,
  ): Promise<Result<KeyRecord>>;
  /**
   * A new key with the same options; the old one ends after `overlapMs` (0: at once). A key that
   * was rotated before is refused (`key_replaced`): its life was cut to the overlap, and the new
   * key would take that over.
   */
  rotate(
    accountId: string,
    keyId: string,
    overlapMs: number,
    actor: Actor,
  ): Promise<Result<FreshKey>>;
  /** Revoking twice is no fault. */
  revoke(accountId: string, keyId: string, actor: Actor): Promise<Result<KeyRecord>>;
  /** The key's text. The caller has checked that the login is recent. */
  reveal(accountId: string, keyId: string, actor: Actor): Promise<Result<FreshKey>>;
  /**
   * Moves the key with this text to the account: proof is the key itself, and only a key whose
   * account nobody logs in to can be moved. An unknown, ended or owned key answers the same
   * (`not_found`), so that guessing learns nothing; the true reason stands in the audit.
   */
  link(accountId: string, token: string, actor: Actor): Promise<Result<KeyRecord>>;
  /** For operators: over all accounts; `which` is the key or 8 to 64 digits of its SHA-256. */
  find(which: string): Promise<readonly (KeyRecord & { readonly sha256: string })[]>;
  /** For operators: every live key, by account. */
  listAll(filter: {
    readonly limit: number;
    readonly after: string | null;
  }): Promise<
    Page<
      KeyRecord & { readonly sha256: string; readonly accountName: string; readonly plan: string }
    >
  >;
  /** Wraps what older key-encryption keys hold with the first one; how many were changed. */
  rewrap(): Promise<{ readonly rewrapped: number; readonly failed: number }>;
  /** Whether all stored keys can be opened: ids of key-encryption keys in use but not here. */
  missingEncryptionKeys(): Promise<readonly string[]>;
}

// Logins and sessions

/** What a login needs to remember until the provider sends the browser back. */
export interface LoginAttempt {
  /** The `state` parameter; kept as a SHA-256. */
  readonly state: string;
  /** PKCE code verifier. */
  readonly verifier: string;
  readonly nonce: string;
  /** A path on this site. */
  readonly returnTo: string;
  /** What the pre-login cookie holds, to bind the attempt to the browser; kept as a SHA-256. */
  readonly binding: string;
  /** Whether a fresh login was demanded (`max_age=0`), e.g. before a reveal. */
  readonly reauthenticate: boolean;
}

export interface Logins {
  /** Keeps the attempt for `LOGIN_ATTEMPT_MS_MAX`. At the bound the oldest go first. */
  startLogin(attempt: LoginAttempt): Promise<void>;
  /** The attempt with this state and binding, once: a second call answers null. */
  take(
    state: string,
    binding: string,
  ): Promise<Pick<LoginAttempt, "verifier" | "nonce" | "returnTo" | "reauthenticate"> | null>;
}

export interface Session {
  /** Public id, for the list of sessions; never the cookie's value. */
  readonly id: string;
  readonly account: Account;
  readonly issuer: string;
  readonly subject: string;
  readonly createdAtMs: number;
  readonly seenAtMs: number;
  /** When the user last proved who they are at the provider. */
  readonly authenticatedAtMs: number;
  readonly idleEndsAtMs: number;
  readonly endsAtMs: number;
  readonly address: string | null;
  readonly userAgent: string | null;
}

export interface Sessions {
  /** A new session; `secret` (256 bits, base64url) goes into the cookie and is kept as a hash. */
  open(
    login: {
      readonly accountId: string;
      readonly issuer: string;
      readonly subject: string;
      /** The provider's `auth_time`: a single sign-on of this morning is no recent login. */
      readonly authenticatedAtMs: number;
    },
    actor: Actor,
  ): Promise<Result<{ readonly session: Session; readonly secret: string }>>;
  /** The live session with this secret, its idle end moved on; null when it ended or never was. */
  touch(secret: string): Promise<Session | null>;
  /** The same without moving its idle end: for what nobody did. */
  look(secret: string): Promise<Session | null>;
  /** After a login within a session: a new secret for the same session, the old one is void. */
  renew(
    secret: string,
    actor: Actor,
    authenticatedAtMs: number,
  ): Promise<{ readonly session: Session; readonly secret: string } | null>;
  close(secret: string, actor: Actor): Promise<void>;
  list(accountId: string): Promise<readonly Session[]>;
  /** Ends one of the account's sessions by its public id. */
  end(accountId: string, sessionId: string, actor: Actor): Promise<boolean>;
  /** Log out everywhere; how many sessions ended. */
  endAll(accountId: string, actor: Actor): Promise<number>;
}

/** What a management token may do. */
export type TokenScope = "read" | "write";

export interface ApiToken {
  readonly id: string;
  readonly accountId: string;
  readonly hint: string;
  readonly label: string;
  readonly scope: TokenScope;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly lastUsedAtMs: number | null;
}

export interface ApiTokens {
  /** `token` (`tdm_…`) is shown once and kept as a hash. */
  create(
    accountId: string,
    options: {
      readonly label: string;
      readonly scope: TokenScope;
      readonly expiresAtMs: number | null;
    },
    actor: Actor,
  ): Promise<Result<{ readonly apiToken: ApiToken; readonly token: string }>>;
  /** The live token and its account, last use noted (to the minute); null for none. */
  authenticate(
    token: string,
  ): Promise<{ readonly apiToken: ApiToken; readonly account: Account } | null>;
  list(accountId: string): Promise<readonly ApiToken[]>;
  revoke(accountId: string, tokenId: string, actor: Actor): Promise<Result<ApiToken>>;
}

// Audit

/** A word for what was done, e.g. `key.revoke`. */
export type AuditAction =
  | `account.${"register" | "create" | "rename" | "plan" | "disable" | "enable" | "admin"}`
  | `key.${"create" | "change" | "rotate" | "revoke" | "reveal"}`
  | `key.${"link" | "link_refused" | "moved"}`
  | `plan.${"save" | "remove"}`
  | `session.${"login" | "renew" | "logout" | "end" | "end_all"}`
  | `token.${"create" | "revoke"}`;

export interface AuditEntry {
  readonly id: string;
  readonly atMs: number;
  readonly accountId: string | null;
  readonly actor: Actor;
  readonly action: AuditAction;
  /** Figures and names, never a secret: e.g. `{ keyId, hint, label }`. */
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface Audit {
  append(
    accountId: string | null,
    action: AuditAction,
    detail: Readonly<Record<string, unknown>>,
    actor: Actor,
  ): Promise<void>;
  /** Newest first. */
  list(
    accountId: string,
    page: { readonly limit: number; readonly after: string | null },
  ): Promise<Page<AuditEntry>>;
}

/** The whole store. */
export interface Store {
  readonly plans: Plans;
  readonly accounts: Accounts;
  readonly keys: Keys;
  readonly logins: Logins;
  readonly sessions: Sessions;
  readonly apiTokens: ApiTokens;
  readonly audit: Audit;
  readonly usage: Usage;
  readonly vault: KeyEncryption;
  /** One round trip to the database; throws `DatabaseError` when it is gone. */
  check(): Promise<void>;
  /** Deletes what is past its time, in bounded steps; how many rows went. Call it hourly. */
  prune(): Promise<number>;
}
