/**
 * Login and logout. The API returns the provider's addresses; the return path is the current page.
 * Logout continues at the provider if it can end the login there too: otherwise the next user of
 * this browser would be let in without authenticating.
 */

import { ApiError, post } from "./api.js";
import { loginEnded } from "./login-state.js";

/** Messages for the errors that the callback puts in the URL. */
export const LOGIN_ERRORS = new Map([
  ["login_expired", "That login took too long or was used already. Try again."],
  ["login_failed", "The identity provider's response was rejected. Try again."],
  ["login_unavailable", "The identity provider cannot be reached now. Try again in a moment."],
  ["unavailable", "The accounts cannot be read now. Try again in a moment."],
  ["rate_limited", "Too many logins were tried from here. Wait a minute, then try again."],
  ["disabled", "This account is disabled. Ask whoever runs this service."],
]);

/** Why the login that led here failed, in words; null if none did. */
export function loginError() {
  const error = new URLSearchParams(location.search).get("login_error");
  if (error === null) return null;
  return LOGIN_ERRORS.get(error) ?? "The login did not work. Try again.";
}

/**
 * Redirects to the provider.
 * @param {string} returnTo a path of this site
 * @param {{fresh?: boolean}} [options] fresh: the user must authenticate again at the provider
 */
export async function logIn(returnTo, { fresh = false } = {}) {
  const { url } = await post("/api/v1/login", { return_to: returnTo, fresh });
  location.href = url;
}

/** Ends this session. */
export const logOut = () => leave("/api/v1/logout");

/** Ends all sessions of the account. */
export const logOutEverywhere = () => leave("/api/v1/logout-everywhere");

/** @param {string} path */
async function leave(path) {
  let url = null;
  try {
    ({ url } = await post(path));
  } catch (error) {
    // A session that has already ended is fine.
    if (!(error instanceof ApiError && error.reason === "unauthorized")) throw error;
  }
  loginEnded();
  location.href = url ?? "/";
}
