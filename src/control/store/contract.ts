/**
 * The contract between the account store and the dashboard: every record and every operation.
 *
 * Times are milliseconds since the Unix epoch; `null` means none. Operations on an account's data
 * take the account's id, and another account's id finds nothing: the store is the last place where
 * that is checked, not the only one. An operation that may fail by design returns `refused` with a
 * reason; an unreachable database throws `DatabaseError`. Every change writes its audit entry in
 * the same transaction.
 */

import type { KeyEncryption } from "../vault.ts";
import type { Usage } from "./usage-contract.ts";

/** The actor of an audit entry. */
export interface Actor {
  readonly kind: "account" | "token" | "operator" | "system";
  /** The acting account; an operator may act on another account. */
  readonly accountId: string | null;
  /** Source IP address; null for a command on this host. */
  readonly address: string | null;
  readonly userAgent: string | null;
}

/** Why the store rejected an operation. */
export type StoreReason =
  /** Missing, or of another account. */
  | "not_found"
  /** The account is disabled. */
  | "disabled"
  /** The account has the maximum number of these. */
  | "too_many"
  /** The plan does not exist. */
  | "plan_unknown"
  /** Text, range or time out of bounds; `detail` names the field and the limits. */
  | "invalid"
  /** The key is revoked or expired. */
  | "key_ended"
  /** The key was rotated before; `detail` names its successor. */
  | "key_replaced"
  /** The challenge is unknown, used or expired. */
  | "challenge_ended"
  /** The signature of a challenge does not verify. */
  | "signature_wrong"
  /** The public key is registered already. */
  | "key_taken"
  /** The key was stored without its text (created before the vault, or loaded as a hash). */
  | "not_revealable"
  /** The vault lacks the key-encryption key, or has a different one. */
  | "vault"
  /** The last admin cannot be removed. */
  | "last_admin";

export interface Refusal {
  readonly kind: "refused";
  readonly reason: StoreReason;
  /** One sentence without a full stop; shown to users, contains no secret. */
  readonly detail: string;
}

export type Result<T> = { readonly kind: "ok"; readonly value: T } | Refusal;

// Plans and accounts

export interface PlanRecord {
  readonly name: string;
  readonly ratePerSecond: number;
  readonly burst: number;
  /** Whether one limit covers all edges; otherwise each edge applies it separately. */
  readonly shared: boolean;
  /** What the plan grants besides the rate, e.g. `{"keys_max": 10}`. */
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

/** A login at a provider. The e-mail is for display only and proves nothing. */
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

/** `key` is the first key of a new account; null for an existing account. */
export interface Registration {
  readonly account: Account;
  readonly key: KeyRecord | null;
}

/** One row of the operator's list. */
export interface AccountSummary extends Account {
  readonly keyCount: number;
  readonly lastUsedAtMs: number | null;
  readonly contact: string | null;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Pass it to get the next page; null on the last page. */
  readonly next: string | null;
}

export interface Accounts {
  /**
   * Returns the account of this login; the first login creates one on plan Beta with one key.
   * Concurrent calls create one account. A disabled account returns `disabled`.
   */
  register(identity: Identity, actor: Actor): Promise<Result<Registration>>;
  byId(id: string): Promise<Account | null>;
  identities(id: string): Promise<readonly IdentityRecord[]>;
  rename(id: string, name: string, actor: Actor): Promise<Result<Account>>;
  /** For operators: creates an account without a login, e.g. for `touchdown keys create`. */
  create(name: string, plan: string, actor: Actor): Promise<Result<Account>>;
  /** The same, unless there is one of this name without a login: then that, on whichever plan. */
  createOnce(name: string, plan: string, actor: Actor): Promise<Result<Account>>;
  /** Finds by exact name; several accounts may share one. Those without a login are first. */
  byName(name: string): Promise<readonly Account[]>;
  /** For operators: newest first, filtered by a substring of name, contact, id or plan. */
  list(filter: {
    readonly search: string;
    readonly limit: number;
    readonly after: string | null;
  }): Promise<Page<AccountSummary>>;
  setPlan(id: string, plan: string, actor: Actor): Promise<Result<Account>>;
  /** Every edge rejects the keys of a disabled account; its sessions and tokens end. */
  setDisabled(id: string, disabled: boolean, actor: Actor): Promise<Result<Account>>;
  setAdmin(id: string, admin: boolean, actor: Actor): Promise<Result<Account>>;
  /** Removes the admin right; returns how many accounts had it. */
  revokeAdmins(of: AdminRevocation, actor: Actor): Promise<number>;
}

/** Whose admin right ends. */
export interface AdminRevocation {
  /** Accounts that one of these identities logs in to keep it; each as "issuer subject". */
  readonly except: readonly string[];
  /** null: all other accounts. */
  readonly accountId: string | null;
}

export interface Plans {
  list(): Promise<readonly (PlanRecord & { readonly accountCount: number })[]>;
}

// Keys

export interface KeyRecord {
  readonly id: string;
  readonly accountId: string;
  /** `td_…wxyz`; of a public key the start and the end, `7Np4…x9Qz`. */
  readonly hint: string;
  /** Base58, for a public key; null for an API key. */
  readonly publicKey: string | null;
  readonly label: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  readonly lastUsedAtMs: number | null;
  /** Networks that the key may be used from, e.g. `203.0.113.0/24`; empty: any. */
  readonly cidrs: readonly string[];
  /** The key's own limit, below the account's; both null for none. */
  readonly ratePerSecond: number | null;
  readonly burst: number | null;
  readonly rotatedFrom: string | null;
  /** The key that a rotation replaced this one with; such a key cannot be rotated again. */
  readonly replacedBy: { readonly id: string; readonly hint: string } | null;
  /** Whether `reveal` can return it. */
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

/** The only result that contains a new key. */
export interface FreshKey {
  readonly key: KeyRecord;
  readonly token: string;
}

/** What the holder of a public key signs. */
export interface KeyChallenge {
  readonly id: string;
  /** One line of printable ASCII. */
  readonly text: string;
  readonly expiresAtMs: number;
}

export interface Keys {
  /** All live keys, then ended ones by age up to `KEY_RECORDS_SHOWN_MAX` keys in all. */
  list(accountId: string): Promise<readonly KeyRecord[]>;
  byId(accountId: string, keyId: string): Promise<KeyRecord | null>;
  create(accountId: string, options: KeyOptions, actor: Actor): Promise<Result<FreshKey>>;
  /** Changes the given options and keeps the others. */
  change(
    accountId: string,
    keyId: string,
    change: Partial<KeyOptions>,
    actor: Actor,
  ): Promise<Result<KeyRecord>>;
  /**
   * Creates a new key with the same options; the old one ends after `overlapMs` (0: immediately). A
   * public key is not rotated, and a key that was already rotated is rejected (`key_replaced`): its
   * lifetime was cut to the overlap, and the new key would inherit that.
   */
  rotate(
    accountId: string,
    keyId: string,
    overlapMs: number,
    actor: Actor,
  ): Promise<Result<FreshKey>>;
  /** Revoking twice is not an error. */
  revoke(accountId: string, keyId: string, actor: Actor): Promise<Result<KeyRecord>>;
  /** Returns the key's text. The caller has checked that the login is recent. */
  reveal(accountId: string, keyId: string, actor: Actor): Promise<Result<FreshKey>>;
  /**
   * Moves the key with this text to the account. Possession of the text is the proof, and only a
   * key whose account has no login can be moved. Unknown, ended and owned keys give the same result
   * (`not_found`), so that guessing reveals nothing; the audit log has the actual reason.
   */
  link(accountId: string, token: string, actor: Actor): Promise<Result<KeyRecord>>;
  /** A text for the holder of this public key (base58) to sign, for this account. */
  challenge(accountId: string, publicKey: string): Promise<Result<KeyChallenge>>;
  /**
   * Registers the public key of a challenge, whose text `signature` signs (base58 or base64). A
   * challenge is used once.
   */
  register(
    accountId: string,
    proof: { readonly challengeId: string; readonly signature: string },
    options: KeyOptions,
    actor: Actor,
  ): Promise<Result<KeyRecord>>;
  /**
   * For operators: searches all accounts; `which` is the key, a public key in base58, or 8 to 64
   * digits of the SHA-256.
   */
  find(which: string): Promise<readonly (KeyRecord & { readonly sha256: string })[]>;
  listAll(filter: {
    readonly limit: number;
    readonly after: string | null;
  }): Promise<
    Page<
      KeyRecord & { readonly sha256: string; readonly accountName: string; readonly plan: string }
    >
  >;
  /**
   * Reseals with the first key-encryption key everything that an older one sealed; returns the
   * count.
   */
  rewrap(): Promise<{ readonly rewrapped: number; readonly failed: number }>;
  /** Ids of key-encryption keys that stored texts need and the vault lacks, or has others of. */
  missingEncryptionKeys(): Promise<readonly string[]>;
}

// Logins and sessions

/** The state of a login until the provider redirects the browser back. */
export interface LoginAttempt {
  /** The `state` parameter; stored as a SHA-256. */
  readonly state: string;
  /** PKCE code verifier. */
  readonly verifier: string;
  readonly nonce: string;
  /** A path on this site. */
  readonly returnTo: string;
  /**
   * The value of the pre-login cookie, which binds the attempt to the browser; stored as a SHA-256.
   */
  readonly binding: string;
  /** Whether a fresh login was requested (`max_age=0`), e.g. before a reveal. */
  readonly reauthenticate: boolean;
}

export interface Logins {
  /** Keeps the attempt for `LOGIN_ATTEMPT_MS_MAX`. Above the limit the oldest are dropped. */
  startLogin(attempt: LoginAttempt): Promise<void>;
  /** Consumes the attempt with this state and binding: a second call returns null. */
  take(
    state: string,
    binding: string,
  ): Promise<Pick<LoginAttempt, "verifier" | "nonce" | "returnTo" | "reauthenticate"> | null>;
}

export interface Session {
  /** Public id for the list of sessions; never the cookie's value. */
  readonly id: string;
  readonly account: Account;
  readonly issuer: string;
  readonly subject: string;
  readonly createdAtMs: number;
  readonly seenAtMs: number;
  /** When the user last authenticated at the provider. */
  readonly authenticatedAtMs: number;
  readonly idleEndsAtMs: number;
  readonly endsAtMs: number;
  readonly address: string | null;
  readonly userAgent: string | null;
}

export interface Sessions {
  /**
   * Creates a session; `secret` (256 bits, base64url) goes into the cookie and is stored as a hash.
   */
  open(
    login: {
      readonly accountId: string;
      readonly issuer: string;
      readonly subject: string;
      /** The provider's `auth_time`: a single sign-on of this morning is not a recent login. */
      readonly authenticatedAtMs: number;
    },
    actor: Actor,
  ): Promise<Result<{ readonly session: Session; readonly secret: string }>>;
  /** Returns the live session with this secret and extends its idle timeout; null for none. */
  touch(secret: string): Promise<Session | null>;
  /** The same without extending the idle timeout, for requests that no user made. */
  look(secret: string): Promise<Session | null>;
  /** After a login within a session: issues a new secret and invalidates the old one. */
  renew(
    secret: string,
    actor: Actor,
    authenticatedAtMs: number,
  ): Promise<{ readonly session: Session; readonly secret: string } | null>;
  close(secret: string, actor: Actor): Promise<void>;
  list(accountId: string): Promise<readonly Session[]>;
  /** Ends one session of the account by its public id. */
  end(accountId: string, sessionId: string, actor: Actor): Promise<boolean>;
  /** Logs out everywhere; returns the number of sessions ended. */
  endAll(accountId: string, actor: Actor): Promise<number>;
}

/** The scopes of a management token. */
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
  /** `token` (`tdm_…`) is shown once and stored as a hash. */
  create(
    accountId: string,
    options: {
      readonly label: string;
      readonly scope: TokenScope;
      readonly expiresAtMs: number | null;
    },
    actor: Actor,
  ): Promise<Result<{ readonly apiToken: ApiToken; readonly token: string }>>;
  /** Returns the live token and its account and records the use (to the minute); null for none. */
  authenticate(
    token: string,
  ): Promise<{ readonly apiToken: ApiToken; readonly account: Account } | null>;
  list(accountId: string): Promise<readonly ApiToken[]>;
  revoke(accountId: string, tokenId: string, actor: Actor): Promise<Result<ApiToken>>;
}

// Audit

/** Name of the action, e.g. `key.revoke`. */
export type AuditAction =
  | `account.${"register" | "create" | "rename" | "plan" | "disable" | "enable" | "admin"}`
  | `key.${"create" | "change" | "rotate" | "revoke" | "reveal"}`
  | `key.${"link" | "link_refused" | "moved"}`
  | `session.${"login" | "renew" | "logout" | "end" | "end_all"}`
  | `token.${"create" | "revoke"}`;

export interface AuditEntry {
  readonly id: string;
  readonly atMs: number;
  readonly accountId: string | null;
  readonly actor: Actor;
  readonly action: AuditAction;
  /** Numbers and names, never a secret: e.g. `{ keyId, hint, label }`. */
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface Audit {
  /** Newest first. */
  list(
    accountId: string,
    page: { readonly limit: number; readonly after: string | null },
  ): Promise<Page<AuditEntry>>;
}

/** The complete store. */
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
  check(): Promise<void>;
  /** Deletes expired rows in bounded steps; returns the number of rows. Call it hourly. */
  prune(): Promise<number>;
}
