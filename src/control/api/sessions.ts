/**
 * Login and logout: starts a login, ends this session, another session of the account, or all of
 * them. The provider's redirect target is in `callback.ts`, because it is a page and not an API
 * call.
 */

import { ApiError } from "../api-error.ts";
import { LOGIN_COOKIE_MS_MAX, RETURN_PATH_CHARS_MAX } from "../limits.ts";
import type { Login } from "../login/login.ts";
import type { Session, Store } from "../store/contract.ts";
import { openRoute, type Route, route } from "../web/route.ts";
import { id, iso, time, z } from "../web/schema.ts";

const sessionShape = z.object({
  id: z.string(),
  current: z.boolean(),
  created_at: time,
  last_seen_at: time,
  ends_at: time,
  address: z.string().nullable(),
  user_agent: z.string().nullable(),
});
const endedShape = z.object({ ended: z.number() });
/** `url`: where to end the login at the provider as well; null if the provider has no such page. */
const logoutShape = endedShape.extend({ url: z.string().nullable() });

interface Deps {
  readonly store: Pick<Store, "sessions">;
  readonly login: Login;
  /** Logout page of the provider; null if it has none. */
  readonly endUrl: () => string | null;
}

export function sessionRoutes({ store: { sessions }, login, endUrl }: Deps): readonly Route[] {
  return [
    openRoute(
      ["POST", "/api/v1/login"],
      "Where the browser must go to log in; `fresh` asks for a new login of a known user",
      {
        body: z.strictObject({
          return_to: z.string().max(RETURN_PATH_CHARS_MAX).optional(),
          fresh: z.boolean().default(false),
        }),
        response: z.object({ url: z.string() }),
        limit: "login",
      },
      async (call) => {
        const { return_to = null, fresh } = call.body;
        const started = await login.startLogin(return_to, fresh, call.cookie("login"));
        if (started === null) {
          throw new ApiError("login_unavailable", "the identity provider cannot be reached now");
        }
        call.setCookie("login", started.binding, LOGIN_COOKIE_MS_MAX);
        return { url: started.url };
      },
    ),
    route(
      ["POST", "/api/v1/logout"],
      "session",
      "Ends this session; `url` leads on to ending the login at the provider, for who wants that",
      { response: logoutShape, recentLogin: false },
      async (call) => {
        const secret = call.cookie("session");
        if (secret !== null) await sessions.close(secret, call.caller.actor);
        call.setCookie("session", null);
        call.setCookie("login", null);
        return { ended: 1, url: endUrl() };
      },
    ),
    route(
      ["POST", "/api/v1/logout-everywhere"],
      "session",
      "Ends all sessions of the account, this one included; `url` as for logout",
      { response: logoutShape, recentLogin: false },
      async (call) => {
        const { account, actor } = call.caller;
        const ended = await sessions.endAll(account.id, actor);
        call.setCookie("session", null);
        call.setCookie("login", null);
        return { ended, url: endUrl() };
      },
    ),
    route(
      ["GET", "/api/v1/sessions"],
      "session",
      "The account's sessions",
      { response: z.object({ sessions: z.array(sessionShape) }) },
      async ({ caller }) => {
        const list = await sessions.list(caller.account.id);
        return { sessions: list.map((session) => shownOf(session, caller.session)) };
      },
    ),
    route(
      ["DELETE", "/api/v1/sessions/{session_id}"],
      "session",
      "Ends one of the account's sessions",
      { params: z.strictObject({ session_id: id }), response: endedShape, recentLogin: false },
      async ({ caller: { account, actor }, params: { session_id } }) => {
        const ended = await sessions.end(account.id, session_id, actor);
        if (!ended) throw new ApiError("not_found", "there is no such session");
        return { ended: 1 };
      },
    ),
  ];
}

function shownOf(session: Session, current: Session | null): z.input<typeof sessionShape> {
  return {
    id: session.id,
    current: session.id === current?.id,
    created_at: iso(session.createdAtMs),
    last_seen_at: iso(session.seenAtMs),
    ends_at: iso(Math.min(session.endsAtMs, session.idleEndsAtMs)),
    address: session.address,
    user_agent: session.userAgent,
  };
}
