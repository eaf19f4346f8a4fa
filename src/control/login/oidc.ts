/**
 * OpenID Connect with any provider that supports discovery: code flow, PKCE, state, nonce.
 *
 * The provider is discovered in the background with growing delays, and once more when a user wants
 * to log in. While it is unreachable, new logins are rejected and everything else works. The ID
 * token is verified against the provider's current keys: they are fetched for each login, so that a
 * key rotation at the provider fails no login.
 *
 * Decision: docs/decisions/0039-login-reads-provider-keys-afresh.md
 */

import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  calculatePKCECodeChallenge,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import {
  PERSON_TEXT_CHARS_MAX,
  PROVIDER_RESPONSE_S_MAX,
  PROVIDER_RETRY_MS_MAX,
  PROVIDER_RETRY_MS_MIN,
} from "../limits.ts";
import type { Identity } from "../store/contract.ts";

export interface OidcOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | null;
  readonly scope: string;
  /** The redirect URI, exactly as registered. */
  readonly redirectUri: string;
  /** Where the provider may send the browser after a logout; registered there. */
  readonly afterLogoutUri: string;
  /** Maximum age of the login when a fresh one is requested. */
  readonly freshMs: number;
}

/** State to keep until the browser returns. */
export interface Attempt {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** An identity that the provider authenticated. */
export interface Proof {
  readonly identity: Identity;
  /**
   * Time of authentication by the provider's clock, never later than now. Where the provider does
   * not tell it: now for a fresh login, else 0, because a single sign-on may be of any age.
   */
  readonly authenticatedAtMs: number;
}

export type Finished =
  | { readonly kind: "ok"; readonly proof: Proof }
  /** `detail` is for the log. */
  | { readonly kind: "failed" | "unavailable"; readonly detail: unknown };

interface OidcDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export function createOidc(deps: OidcDeps, options: OidcOptions): Oidc {
  return new Oidc(deps, options);
}

export class Oidc {
  readonly counters = { discovered: 0, discoveryFailed: 0 };
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #options: OidcOptions;
  #known: Configuration | null = null;
  #asking: Promise<void> | null = null;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #waitMs = PROVIDER_RETRY_MS_MIN;
  #timer: Timer | null = null;
  #stopped = false;

  constructor({ clock, log }: OidcDeps, options: OidcOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#options = options;
  }

  /** Whether the provider was discovered; it may still be unreachable now. */
  available(): boolean {
    return this.#known !== null;
  }

  start(): void {
    void this.#discover();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Where to send the browser, and the state to keep; null while the provider is unreachable. */
  async startLogin(fresh: boolean) {
    // A user is waiting at the login page: retry now instead of waiting for the back-off.
    const idleMs = this.#clock.nowNs() / NS_PER_MS - this.#askedAtMs;
    if (this.#known === null && (this.#asking !== null || idleMs >= PROVIDER_RETRY_MS_MIN)) {
      await this.#discover();
    }
    if (this.#known === null) return null;
    const attempt = {
      state: randomState(),
      nonce: randomNonce(),
      verifier: randomPKCECodeVerifier(),
    };
    const url = buildAuthorizationUrl(this.#known, {
      redirect_uri: this.#options.redirectUri,
      scope: this.#options.scope,
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: "S256",
      // With a `max_age` the provider must tell when the user authenticated: OpenID Connect Core
      // 1.0, section 3.1.2.1, 2026-11.
      max_age: String(fresh ? this.#freshSeconds() : LOGIN_AGE_S_MAX),
      ...(fresh ? { prompt: "login" } : {}),
    });
    return { url: url.href, attempt };
  }

  /** `query` is the query of the redirect, with its `?`. Never rejects. */
  async finish(query: string, attempt: Attempt, fresh: boolean): Promise<Finished> {
    if (this.#known === null) return { kind: "unavailable", detail: "not discovered" };
    const provider = this.#afresh(this.#known);
    // The user can remove `prompt` and `max_age` from the address, so a provider that supports
    // `auth_time` must send it.
    const canProve = provider.serverMetadata().claims_supported?.includes("auth_time") === true;
    try {
      const tokens = await authorizationCodeGrant(
        provider,
        new URL(this.#options.redirectUri + query),
        {
          pkceCodeVerifier: attempt.verifier,
          expectedState: attempt.state,
          expectedNonce: attempt.nonce,
          idTokenExpected: true,
          ...(fresh && canProve ? { maxAge: this.#freshSeconds() } : {}),
        },
      );
      const claims = tokens.claims();
      if (claims === undefined) return { kind: "failed", detail: "no ID token" };
      const profile: Readonly<Record<string, unknown>> =
        claims["email"] === undefined && claims["name"] === undefined
          ? await this.#userInfo(provider, tokens.access_token, claims.sub)
          : claims;
      const identity = {
        issuer: claims.iss,
        subject: claims.sub,
        email: personText(profile["email"]),
        name: personText(profile["name"]),
      };
      const now = this.#clock.unixMs();
      const unproven = fresh ? now : NEVER_MS;
      const at = typeof claims.auth_time === "number" ? claims.auth_time * 1000 : unproven;
      return { kind: "ok", proof: { identity, authenticatedAtMs: Math.min(at, now) } };
    } catch (error) {
      return { kind: isUnreachable(error) ? "unavailable" : "failed", detail: error };
    }
  }

  /** The provider's logout page; null if unavailable. */
  endUrl(): string | null {
    if (this.#known?.serverMetadata().end_session_endpoint === undefined) return null;
    // No ID token is kept as a hint: the provider asks the user instead.
    return buildEndSessionUrl(this.#known, {
      post_logout_redirect_uri: this.#options.afterLogoutUri,
    }).href;
  }

  #freshSeconds(): number {
    return Math.max(1, Math.floor(this.#options.freshMs / 1000));
  }

  /** The name is for display; a login does not fail without it. */
  async #userInfo(
    provider: Configuration,
    accessToken: string,
    subject: string,
  ): Promise<Readonly<Record<string, unknown>>> {
    try {
      return await fetchUserInfo(provider, accessToken, subject);
    } catch (error) {
      this.#log.info({ err: error }, "the identity provider returned no name");
      return {};
    }
  }

  /** The same provider without its keys: the library caches them per metadata object. */
  #afresh(known: Configuration): Configuration {
    const { clientId, clientSecret } = this.#options;
    const metadata = structuredClone({ ...known.serverMetadata() });
    const methods = metadata.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const authentication =
      clientSecret === null
        ? None()
        : methods.includes("client_secret_basic")
          ? ClientSecretBasic(clientSecret)
          : ClientSecretPost(clientSecret);
    const provider = new Configuration(metadata, clientId, undefined, authentication);
    return this.#equipped(provider);
  }

  #equipped(provider: Configuration): Configuration {
    provider.timeout = PROVIDER_RESPONSE_S_MAX;
    enableNonRepudiationChecks(provider);
    // The configuration allows plain HTTP for loopback only.
    if (this.#options.issuer.startsWith("http:")) allowInsecureRequests(provider);
    return provider;
  }

  /** One attempt at a time; never rejects. Until one succeeds, the next is scheduled. */
  #discover(): Promise<void> {
    this.#asking ??= this.#tryToDiscover().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #tryToDiscover(): Promise<void> {
    if (this.#stopped || this.#known !== null) return;
    const { issuer, clientId } = this.#options;
    this.#timer?.cancel();
    this.#askedAtMs = this.#clock.nowNs() / NS_PER_MS;
    try {
      const insecure = issuer.startsWith("http:") ? [allowInsecureRequests] : [];
      this.#known = await discovery(new URL(issuer), clientId, undefined, None(), {
        execute: insecure,
        timeout: PROVIDER_RESPONSE_S_MAX,
      });
      this.counters.discovered += 1;
      this.#log.info({ issuer }, "the identity provider was discovered");
    } catch (error) {
      this.counters.discoveryFailed += 1;
      this.#log.warn({ issuer, err: error }, "the identity provider could not be discovered");
      if (this.#stopped) return;
      this.#timer = this.#clock.after(this.#waitMs, () => void this.#discover());
      this.#waitMs = Math.min(this.#waitMs * 2, PROVIDER_RETRY_MS_MAX);
    }
  }
}

const NEVER_MS = 0;
/** A year: so old a single sign-on is accepted. */
const LOGIN_AGE_S_MAX = 31_536_000;

/** Whether the provider did not respond, as opposed to rejecting the request. */
function isUnreachable(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; depth += 1) {
    const code = "code" in cause ? String(cause.code) : "";
    if (UNREACHABLE.test(code) || cause.name === "TimeoutError") return true;
    if (cause.cause instanceof Response && cause.cause.status >= 500) return true;
    cause = cause.cause;
  }
  return false;
}

const UNREACHABLE = /^(?:E(?:CONN|HOST|NET|PIPE|AI_|NOTFOUND|TIMEDOUT)|UND_ERR_|OAUTH_TIMEOUT)/;

/** A name or an address in its stored form: one line of bounded length, or null. */
function personText(profile: unknown): string | null {
  if (typeof profile !== "string") return null;
  const line = profile
    .replaceAll(/\p{Cc}/gu, "")
    .trim()
    .slice(0, PERSON_TEXT_CHARS_MAX);
  return line === "" ? null : line;
}
