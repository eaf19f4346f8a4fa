/**
 * Pending logins: the state to keep while the browser is at the provider. Each can be consumed
 * once, by the browser that started it, before it expires; several at a time are normal.
 */

import { LOGIN_ATTEMPT_MS_MAX, LOGIN_ATTEMPTS_MAX } from "../limits.ts";
import type { LoginAttempt, Logins } from "./contract.ts";
import { instant, type StoreDeps, sha256 } from "./records.ts";

export function createLogins({ database, clock }: StoreDeps): Logins {
  return {
    async startLogin({ state, binding, verifier, nonce, returnTo, reauthenticate }) {
      const nowMs = clock.unixMs();
      await database.query(
        `insert into touchdown.login_attempts
           (state_sha256, binding_sha256, verifier, nonce, return_to, reauthenticate, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7)`,
        [
          sha256(state),
          sha256(binding),
          verifier,
          nonce,
          returnTo,
          reauthenticate,
          instant(nowMs + LOGIN_ATTEMPT_MS_MAX),
        ],
      );
      await database.query(
        `delete from touchdown.login_attempts where expires_at <= $1 or state_sha256 in
           (select state_sha256 from touchdown.login_attempts
            order by expires_at desc offset ${LOGIN_ATTEMPTS_MAX})`,
        [instant(nowMs)],
      );
    },
    async take(state, binding) {
      const [attempt] = await database.query<
        Pick<LoginAttempt, "verifier" | "nonce" | "returnTo" | "reauthenticate">
      >(
        `delete from touchdown.login_attempts
         where state_sha256 = $1 and binding_sha256 = $2 and expires_at > $3
         returning verifier, nonce, return_to as "returnTo", reauthenticate`,
        [sha256(state), sha256(binding), instant(clock.unixMs())],
      );
      return attempt ?? null;
    },
  };
}
