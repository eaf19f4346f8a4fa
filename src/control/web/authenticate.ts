/**
 * Authenticates the caller: a session by its cookie, or a management token. A request with a token
 * is authenticated by the token alone, whatever cookies it has. Authorization of a route is checked
 * here and nowhere else.
 */

import type { Clock } from "../../core/clock.ts";
import { ApiError } from "../api-error.ts";
import type { Account, Session, Store } from "../store/contract.ts";
import type { Access, Caller } from "./route.ts";

export interface Credentials {
  /** The `Authorization` header. */
  readonly authorization: string | null;
  /** Value of the session cookie. */
  readonly secret: string | null;
  readonly address: string;
  readonly userAgent: string | null;
  /** Whether a page sends this automatically: it does not extend the session. */
  readonly unattended: boolean;
}

export interface Demand {
  readonly access: Exclude<Access, "open">;
  /** Whether the call changes something. */
  readonly writes: boolean;
  /** Whether a session needs a recent login; tokens have no login and are exempt. */
  readonly recentLogin: boolean;
}

export interface Authenticator {
  /** @throws ApiError when the caller is unknown or not authorized */
  caller(credentials: Credentials, demand: Demand): Promise<Caller>;
}

interface Deps {
  readonly store: Pick<Store, "apiTokens" | "sessions">;
  readonly clock: Clock;
}

export function createAuthenticator(
  { store, clock }: Deps,
  { recentLoginMs }: { readonly recentLoginMs: number },
): Authenticator {
  async function byToken(credentials: Credentials, demand: Demand): Promise<Caller> {
    const token = BEARER.exec(credentials.authorization ?? "")?.[1];
    const known = token === undefined ? null : await store.apiTokens.authenticate(token);
    if (known === null) throw new ApiError("unauthorized", "this management token is not known");
    if (demand.access !== "account") {
      throw new ApiError("forbidden", "this needs a session in a browser, a token cannot do it");
    }
    if (demand.writes && known.apiToken.scope !== "write") {
      throw new ApiError("forbidden", "this token may only read");
    }
    return {
      account: enabled(known.account),
      session: null,
      token: known.apiToken,
      actor: actorOf("token", known.account, credentials),
    };
  }

  async function bySession(credentials: Credentials, demand: Demand): Promise<Caller> {
    const { secret, unattended } = credentials;
    const { sessions } = store;
    const known = unattended ? sessions.look : sessions.touch;
    const session = secret === null ? null : await known(secret);
    if (session === null) throw new ApiError("unauthorized", "no user is logged in");
    const account = enabled(session.account);
    if (demand.access === "admin" && !account.admin) {
      throw new ApiError("forbidden", "this needs the admin right");
    }
    if (demand.recentLogin) demandRecent(session);
    return { account, session, token: null, actor: actorOf("account", account, credentials) };
  }

  function demandRecent({ authenticatedAtMs }: Session): void {
    if (clock.unixMs() - authenticatedAtMs < recentLoginMs) return;
    const seconds = recentLoginMs / 1000;
    throw new ApiError("login_again", `this needs a login of the last ${seconds} s`, {
      recent_login_seconds: seconds,
    });
  }

  return {
    caller: (credentials, demand) =>
      credentials.authorization === null
        ? bySession(credentials, demand)
        : byToken(credentials, demand),
  };
}

function enabled(account: Account): Account {
  if (account.disabledAtMs === null) return account;
  throw new ApiError("disabled", "this account is disabled");
}

function actorOf(kind: "account" | "token", { id }: Account, from: Credentials) {
  return { kind, accountId: id, address: from.address, userAgent: from.userAgent } as const;
}

const BEARER = /^Bearer (tdm_[A-Za-z0-9_-]{16,128})$/i;
