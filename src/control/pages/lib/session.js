/**
 * Logging in and out. The provider's address comes from the API; the way back is a path of this
 * site, the page the reader was on.
 */

import { post } from "./api.js";

/**
 * Leaves for the provider.
 * @param {string} returnTo a path of this site
 * @param {{fresh?: boolean}} [options] fresh: asks who they are even when the provider knows
 */
export async function logIn(returnTo, { fresh = false } = {}) {
  const { url } = await post("/api/v1/login", { return_to: returnTo, fresh });
  location.href = url;
}

export async function logOut() {
  await post("/api/v1/logout");
  location.href = "/";
}

export async function logOutEverywhere() {
  await post("/api/v1/logout-everywhere");
  location.href = "/";
}
