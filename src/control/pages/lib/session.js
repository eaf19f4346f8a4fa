/**
 * Logging in and out. The provider's addresses come from the API; the way back is a path of this
 * site, the page the reader was on. Logging out leads on to the provider where it can end the login
 * there too: somebody else at this browser would otherwise be let in without being asked.
 */

import { ApiError, post } from "./api.js";
import { loginEnded } from "./login-state.js";

/**
 * Leaves for the provider.
 * @param {string} returnTo a path of this site
 * @param {{fresh?: boolean}} [options] fresh: asks who they are even when the provider knows
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
    // A session that ended by itself meanwhile is what was wanted.
    if (!(error instanceof ApiError && error.reason === "unauthorized")) throw error;
  }
  loginEnded();
  location.href = url ?? "/";
}
