/**
 * The store's contract in memory, on a clock of the test's: for tests of what stands in front of
 * the store. The real one, on a real Postgres, has its own tests and those of the whole path.
 */

import { createHash, randomBytes, randomUUID } from "node:crypto";
import { DatabaseError } from "../../src/accounts/database-error.ts";
import { generateToken, looksMistyped } from "../../src/accounts/key-format.ts";
import type {
  Account,
  AccountSummary,
  Accounts,
  ApiToken,
  ApiTokens,
  AuditAction,
  AuditEntry,
  FreshKey,
  Identity,
  KeyOptions,
  KeyRecord,
  Keys,
  LoginAttempt,
  Logins,
  PlanRecord,
  Refusal,
  Session,
  Sessions,
  Store,
  StoreReason,
} from "../../src/control/store/contract.ts";
import type { UsageFigures } from "../../src/control/store/usage-contract.ts";
import type { Clock } from "../../src/core/clock.ts";
import { stub } from "./stub.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export interface MemoryStore extends Store {
  readonly entries: AuditEntry[];
  /** Has every call rejected, as by a database that is gone. */
  gone: boolean;
  /** Adds a key whose account nobody logs in to; its text. */
  orphanKey(): string;
}

export const BETA: PlanRecord = {
  name: "Beta",
  ratePerSecond: 50,
  burst: 100,
  shared: false,
  rights: {},
};

export function createMemoryStore(
  clock: Clock,
  { idleMs = 1_800_000, maxMs = 43_200_000 } = {},
): MemoryStore {
  return assembled(new Memory(clock, idleMs, maxMs));
}

interface HeldKey extends Mutable<KeyRecord> {
  token: string;
}

interface HeldSession {
  secret: string;
  session: Mutable<Session>;
}

class Memory {
  readonly clock: Clock;
  readonly idleMs: number;
  readonly maxMs: number;
  readonly accounts = new Map<string, Mutable<Account>>();
  readonly people: (Identity & { accountId: string })[] = [];
  readonly keys: HeldKey[] = [];
  readonly attempts = new Map<string, LoginAttempt>();
  readonly sessions: HeldSession[] = [];
  readonly tokens: { token: string; apiToken: ApiToken }[] = [];
  readonly entries: AuditEntry[] = [];
  readonly plans: PlanRecord[] = [BETA, { ...BETA, name: "Pro", ratePerSecond: 500 }];

  constructor(clock: Clock, idleMs: number, maxMs: number) {
    this.clock = clock;
    this.idleMs = idleMs;
    this.maxMs = maxMs;
  }

  note(accountId: string | null, action: AuditAction, actor: AuditEntry["actor"], detail = {}) {
    const id = String(this.entries.length + 1);
    this.entries.push({ id, atMs: this.clock.unixMs(), accountId, actor, action, detail });
  }

  newAccount(name: string): Mutable<Account> {
    const account = {
      id: randomUUID(),
      name,
      plan: BETA,
      admin: false,
      createdAtMs: this.clock.unixMs(),
      disabledAtMs: null,
    };
    this.accounts.set(account.id, account);
    return account;
  }

  newKey(accountId: string, options: KeyOptions, rotatedFrom: string | null = null): HeldKey {
    const token = generateToken("test");
    const key: HeldKey = {
      ...options,
      id: randomUUID(),
      accountId,
      hint: `td_…${token.slice(-4)}`,
      createdAtMs: this.clock.unixMs(),
      revokedAtMs: null,
      lastUsedAtMs: null,
      rotatedFrom,
      revealable: true,
      state: "live",
      token,
    };
    this.keys.push(key);
    return key;
  }

  keyOf(accountId: string, keyId: string): HeldKey | null {
    return this.keys.find((key) => key.accountId === accountId && key.id === keyId) ?? null;
  }

  live(held: HeldSession): boolean {
    const now = this.clock.unixMs();
    const { session } = held;
    return now < session.idleEndsAtMs && now < session.endsAtMs;
  }
}

function refused(reason: StoreReason): Refusal {
  return { kind: "refused", reason, detail: `the store says ${reason}` };
}

const ok = <T>(value: T) => ({ kind: "ok", value }) as const;

function recordOf({ token: _, ...key }: HeldKey): KeyRecord {
  return key;
}

const NO_OPTIONS: KeyOptions = {
  label: "first key",
  expiresAtMs: null,
  cidrs: [],
  ratePerSecond: null,
  burst: null,
};

function assembled(memory: Memory): MemoryStore {
  const state = { gone: false };
  const guarded = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, name, receiver) {
        const value: unknown = Reflect.get(target, name, receiver);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (!state.gone) return value.apply(target, args);
          return Promise.reject(new DatabaseError("unavailable", "gone", null, null));
        };
      },
    });
  const figures: UsageFigures = {
    ...{ requests: 3, accepted: 2, refused: 1, bytes: 600, landed: 1, expired: 0, dropped: 0 },
    ...{ landedShare: 1, wireNsP50: 150_000, wireNsP99: 400_000 },
    ...{ slotDeltaP50: 1, slotDeltaP99: 2 },
  };
  return {
    entries: memory.entries,
    get gone() {
      return state.gone;
    },
    set gone(gone) {
      state.gone = gone;
    },
    orphanKey: () => memory.newKey(memory.newAccount("orphan").id, NO_OPTIONS).token,
    accounts: guarded(accountsOf(memory)),
    keys: guarded(keysOf(memory)),
    logins: guarded(loginsOf(memory)),
    sessions: guarded(sessionsOf(memory)),
    apiTokens: guarded(apiTokensOf(memory)),
    plans: guarded(
      stub<Store["plans"]>({
        list: async () => memory.plans.map((plan) => ({ ...plan, accountCount: 1 })),
      }),
    ),
    audit: guarded({
      append: async (accountId, action, detail, actor) =>
        memory.note(accountId, action, actor, detail),
      list: async (accountId, { limit }) => ({
        items: memory.entries.filter((entry) => entry.accountId === accountId).slice(-limit),
        next: null,
      }),
    }),
    usage: guarded({
      overview: async (_, { span }) => ({
        ...{ span, fromMs: 0, toMs: 3_600_000, stepMs: 60_000, total: figures },
        points: [{ atMs: 0, ...figures }],
        byRegion: [{ region: "local", ...figures }],
        ...{ byKey: [], byReason: [] },
      }),
      recent: async () => figures,
      overall: async () => figures,
    }),
    vault: stub<Store["vault"]>({}),
    check: async () => {},
    prune: async () => 0,
  };
}

function accountsOf(memory: Memory): Accounts {
  const change = async (id: string, act: (account: Mutable<Account>) => unknown) => {
    const account = memory.accounts.get(id);
    if (account === undefined) return refused("not_found");
    act(account);
    return ok(account);
  };
  return stub<Accounts>({
    async register(identity) {
      const { issuer, subject } = identity;
      const known = memory.people.find((one) => one.issuer === issuer && one.subject === subject);
      if (known === undefined) {
        const account = memory.newAccount(identity.name ?? subject);
        memory.people.push({ ...identity, accountId: account.id });
        return ok({ account, key: recordOf(memory.newKey(account.id, NO_OPTIONS)) });
      }
      const account = memory.accounts.get(known.accountId);
      if (account === undefined) return refused("not_found");
      return account.disabledAtMs === null ? ok({ account, key: null }) : refused("disabled");
    },
    byId: async (id) => memory.accounts.get(id) ?? null,
    identities: async (id) =>
      memory.people
        .filter(({ accountId }) => accountId === id)
        .map(({ accountId: _, ...one }) => ({ ...one, createdAtMs: 0, lastLoginAtMs: 0 })),
    rename: (id, name) => change(id, (account) => Object.assign(account, { name })),
    async list() {
      const items: AccountSummary[] = [...memory.accounts.values()].map((account) => ({
        ...account,
        ...{ keyCount: 1, lastUsedAtMs: null, contact: null },
      }));
      return { items, next: null };
    },
    async setPlan(id, plan) {
      const found = memory.plans.find(({ name }) => name === plan);
      if (found === undefined) return refused("plan_unknown");
      return await change(id, (account) => Object.assign(account, { plan: found }));
    },
    setDisabled: (id, disabled) =>
      change(id, (account) => {
        account.disabledAtMs = disabled ? memory.clock.unixMs() : null;
        if (disabled) drop(memory.sessions, ({ session }) => session.account.id === id);
      }),
    setAdmin: (id, admin) => change(id, (account) => Object.assign(account, { admin })),
  });
}

function drop<T>(list: T[], goes: (item: T) => boolean): number {
  const kept = list.filter((item) => !goes(item));
  const count = list.length - kept.length;
  list.splice(0, list.length, ...kept);
  return count;
}

function keysOf(memory: Memory): Keys {
  const withKey = async <T>(accountId: string, keyId: string, act: (key: HeldKey) => T) => {
    const key = memory.keyOf(accountId, keyId);
    return key === null ? refused("not_found") : ok(act(key));
  };
  const fresh = (key: HeldKey): FreshKey => ({ key: recordOf(key), token: key.token });
  return stub<Keys>({
    list: async (accountId) =>
      memory.keys.filter((key) => key.accountId === accountId).map(recordOf),
    create: async (accountId, options) => ok(fresh(memory.newKey(accountId, options))),
    change: (accountId, keyId, options) =>
      withKey(accountId, keyId, (key) => recordOf(Object.assign(key, options))),
    rotate: (accountId, keyId, overlapMs) =>
      withKey(accountId, keyId, (key) => {
        key.expiresAtMs = memory.clock.unixMs() + overlapMs;
        return fresh(memory.newKey(accountId, NO_OPTIONS, keyId));
      }),
    revoke: (accountId, keyId) =>
      withKey(accountId, keyId, (key) => {
        key.revokedAtMs = memory.clock.unixMs();
        key.state = "revoked";
        return recordOf(key);
      }),
    reveal: (accountId, keyId, actor) =>
      withKey(accountId, keyId, (key) => {
        memory.note(accountId, "key.reveal", actor, { keyId });
        return fresh(key);
      }),
    async link(accountId, token) {
      const key = memory.keys.find((one) => one.token === token);
      const owned = memory.people.some((one) => one.accountId === key?.accountId);
      if (key === undefined || looksMistyped(token) || owned) return refused("not_found");
      key.accountId = accountId;
      return ok(recordOf(key));
    },
  });
}

function loginsOf(memory: Memory): Logins {
  return {
    async begin(attempt) {
      memory.attempts.set(attempt.state, attempt);
    },
    async take(state, binding) {
      const attempt = memory.attempts.get(state);
      if (attempt === undefined || attempt.binding !== binding) return null;
      memory.attempts.delete(state);
      return attempt;
    },
  };
}

function sessionsOf(memory: Memory): Sessions {
  const newSecret = () => randomBytes(32).toString("base64url");
  const find = (secret: string) =>
    memory.sessions.find((held) => held.secret === secret && memory.live(held)) ?? null;
  return {
    async open({ accountId, issuer, subject, authenticatedAtMs }, actor) {
      const account = memory.accounts.get(accountId);
      if (account === undefined) return refused("not_found");
      const now = memory.clock.unixMs();
      const session = {
        ...{ id: randomUUID(), account, issuer, subject, authenticatedAtMs },
        ...{ createdAtMs: now, seenAtMs: now },
        ...{ idleEndsAtMs: now + memory.idleMs, endsAtMs: now + memory.maxMs },
        ...{ address: actor.address, userAgent: actor.userAgent },
      };
      const secret = newSecret();
      memory.sessions.push({ secret, session });
      return ok({ session, secret });
    },
    async touch(secret) {
      const held = find(secret);
      if (held === null) return null;
      held.session.idleEndsAtMs = memory.clock.unixMs() + memory.idleMs;
      return held.session;
    },
    async renew(secret, _, authenticatedAtMs) {
      const held = find(secret);
      if (held === null) return null;
      held.secret = newSecret();
      held.session.authenticatedAtMs = authenticatedAtMs;
      return { session: held.session, secret: held.secret };
    },
    async close(secret) {
      drop(memory.sessions, (held) => held.secret === secret);
    },
    list: async (accountId) =>
      memory.sessions
        .filter((held) => held.session.account.id === accountId && memory.live(held))
        .map(({ session }) => session),
    end: async (accountId, sessionId) =>
      drop(
        memory.sessions,
        ({ session }) => session.account.id === accountId && session.id === sessionId,
      ) > 0,
    endAll: async (accountId) =>
      drop(memory.sessions, ({ session }) => session.account.id === accountId),
  };
}

function apiTokensOf(memory: Memory): ApiTokens {
  return {
    async create(accountId, { label, scope, expiresAtMs }) {
      const token = `tdm_${createHash("sha256").update(randomBytes(32)).digest("hex")}`;
      const apiToken: ApiToken = {
        ...{ id: randomUUID(), accountId, label, scope, expiresAtMs },
        ...{ hint: `tdm_…${token.slice(-4)}`, createdAtMs: 0, lastUsedAtMs: null },
      };
      memory.tokens.push({ token, apiToken });
      return ok({ apiToken, token });
    },
    async authenticate(token) {
      const held = memory.tokens.find((one) => one.token === token);
      const account = memory.accounts.get(held?.apiToken.accountId ?? "");
      return held === undefined || account === undefined
        ? null
        : { apiToken: held.apiToken, account };
    },
    list: async (accountId) =>
      memory.tokens.map(({ apiToken }) => apiToken).filter((one) => one.accountId === accountId),
    async revoke(accountId, tokenId) {
      const held = memory.tokens.find(
        ({ apiToken }) => apiToken.id === tokenId && apiToken.accountId === accountId,
      );
      if (held === undefined) return refused("not_found");
      drop(memory.tokens, (one) => one === held);
      return ok(held.apiToken);
    },
  };
}
