/**
 * The page that the provider redirects the browser to. It responds with a redirect to a path of
 * this site, with the reason in the query if the login failed.
 */

import type { Call } from "../web/route.ts";
import type { Login } from "./login.ts";

export function createCallback(
  login: Login,
  { sessionMsMax }: { readonly sessionMsMax: number },
): (call: Call<null, null, null>, query: string) => Promise<string> {
  return async (call, query) => {
    const end = await login.finish({
      query,
      state: new URLSearchParams(query).get("state"),
      binding: call.cookie("login"),
      secret: call.cookie("session"),
      address: call.address,
      userAgent: call.userAgent,
    });
    if (end.kind === "out") return `/?login_error=${end.reason}`;
    call.setCookie("session", end.secret, sessionMsMax);
    return end.returnTo;
  };
}
