/**
 * From the login button to a session: `begin` stores an attempt and returns the provider's page;
 * `finish` consumes the attempt (it works once), validates the provider's response, and opens a
 * session with a new id, or renews the session of the same account.
 *
 *   begin ─▶ provider ─▶ finish ─┬▶ no attempt, or another browser's: login_expired
 *                                ├▶ provider unreachable: login_unavailable
 *                                ├▶ invalid response: login_failed
 *                                └▶ session
 *
 * A cookie binds an attempt to the browser, so that following a link from an attacker cannot log a
 * user in to the attacker's account. One browser may have several attempts pending.
 */

import { randomBytes } from "node:crypto";
import type { ControlReason } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Actor, Session, Store } from "../store/contract.ts";
import { returnPath } from "../web/guard.ts";
import type { Oidc, Proof } from "./oidc.ts";

export interface LoginDeps {
  readonly store: Pick<Store, "accounts" | "logins" | "sessions">;
  readonly oidc: Oidc;
  readonly log: Log;
}

export interface LoginOptions {
  /** Operators, as "issuer subject". */
  readonly admins: readonly string[];
}

export interface StartedLogin {
  readonly url: string;
  /** For the login cookie. */
  readonly binding: string;
}

export type LoginEnd =
  | {
      readonly kind: "in";
      readonly session: Session;
      /** For the session cookie. */
      readonly secret: string;
      readonly returnTo: string;
    }
  | { readonly kind: "out"; readonly reason: ControlReason };

/** What the browser sends when it returns. */
export interface Return {
  readonly query: string;
  readonly state: string | null;
  readonly binding: string | null;
  /** Secret of the session that the browser already has. */
  readonly secret: string | null;
  readonly address: string;
  readonly userAgent: string | null;
}

export interface Login {
  readonly counters: { started: number; finished: number; refused: Record<string, number> };
  /**
   * Null while the provider is unreachable. `binding` is the binding cookie that the browser
   * already has.
   */
  startLogin(
    returnTo: string | null,
    fresh: boolean,
    binding: string | null,
  ): Promise<StartedLogin | null>;
  finish(back: Return): Promise<LoginEnd>;
}

export function createLogin({ store, oidc, log }: LoginDeps, options: LoginOptions): Login {
  const counters: Login["counters"] = { started: 0, finished: 0, refused: {} };

  function refuse(reason: ControlReason): LoginEnd {
    counters.refused[reason] = (counters.refused[reason] ?? 0) + 1;
    return { kind: "out", reason };
  }

  async function enter(proof: Proof, back: Return, returnTo: string): Promise<LoginEnd> {
    const { identity } = proof;
    const stranger = actorOf(null, back);
    const registered = await store.accounts.register(identity, stranger);
    if (registered.kind === "refused") {
      return refuse(registered.reason === "disabled" ? "disabled" : "login_failed");
    }
    const { account } = registered.value;
    const actor = actorOf(account.id, back);
    const operator = options.admins.includes(`${identity.issuer} ${identity.subject}`);
    const system = { ...actor, kind: "system" } as const;
    if (operator && !account.admin) await store.accounts.setAdmin(account.id, true, system);
    // While this process started, another one may have given the right by an older list. It stays
    // where another identity of the account is in the list.
    if (!operator && account.admin) {
      await store.accounts.revokeAdmins({ except: options.admins, accountId: account.id }, system);
    }
    const { authenticatedAtMs } = proof;
    const before = back.secret === null ? null : await store.sessions.touch(back.secret);
    if (before !== null && back.secret !== null) {
      const same = before.account.id === account.id;
      const renewed = same
        ? await store.sessions.renew(back.secret, actor, authenticatedAtMs)
        : null;
      if (renewed !== null) return { kind: "in", ...renewed, returnTo };
      await store.sessions.close(back.secret, actorOf(before.account.id, back));
    }
    const { issuer, subject } = identity;
    const login = { accountId: account.id, issuer, subject, authenticatedAtMs };
    const opened = await store.sessions.open(login, actor);
    if (opened.kind === "refused") {
      return refuse(opened.reason === "disabled" ? "disabled" : "login_failed");
    }
    return { kind: "in", ...opened.value, returnTo };
  }

  return {
    counters,
    async startLogin(returnTo, fresh, bound) {
      const started = await oidc.startLogin(fresh);
      if (started === null) {
        refuse("login_unavailable");
        return null;
      }
      const binding = bound ?? randomBytes(32).toString("base64url");
      const path = returnPath(returnTo);
      const { state, nonce, verifier } = started.attempt;
      const attempt = { state, nonce, verifier, binding, returnTo: path, reauthenticate: fresh };
      await store.logins.startLogin(attempt);
      counters.started += 1;
      return { url: started.url, binding };
    },
    async finish(back) {
      const { state, binding } = back;
      if (state === null || binding === null) return refuse("login_expired");
      const attempt = await store.logins.take(state, binding);
      if (attempt === null) return refuse("login_expired");
      const { nonce, verifier, reauthenticate } = attempt;
      const done = await oidc.finish(back.query, { state, nonce, verifier }, reauthenticate);
      if (done.kind !== "ok") {
        log.warn({ err: done.detail }, `a login was refused: ${done.kind}`);
        return refuse(done.kind === "failed" ? "login_failed" : "login_unavailable");
      }
      const end = await enter(done.proof, back, attempt.returnTo);
      if (end.kind === "in") counters.finished += 1;
      return end;
    },
  };
}

function actorOf(accountId: string | null, { address, userAgent }: Return): Actor {
  return { kind: "account", accountId, address, userAgent };
}
