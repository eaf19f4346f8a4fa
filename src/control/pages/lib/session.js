/**
 * Login and logout. The API returns the provider's addresses; the return path is the current page.
 * Logout continues at the provider if it can end the login there too: otherwise the next user of
 * this browser would be let in without authenticating.
 */

import { ApiError, post } from "./api.js";
import { loginEnded } from "./login-state.js";

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
