/**
 * Calls the dashboard's API. A rejection becomes an `ApiError` with the reason and a message that
 * can be shown as it is; so does an unreachable server.
 */

import { loginEnded } from "./login-state.js";

/** A rejection by the API, or an unreachable server. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 when the server did not respond
   * @param {{reason: string, message: string}} error
   */
  constructor(status, error) {
    super(error.message);
    this.name = "ApiError";
    this.status = status;
    this.reason = error.reason;
    /** @type {Record<string, any>} the numbers in the message, by name */
    this.fields = error;
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @param {AbortSignal} [signal]
 * @param {boolean} [unattended]
 * @returns {Promise<any>} the body of the response
 */
async function call(method, path, body, signal, unattended = false) {
  /** @type {RequestInit} */
  const init = { method, cache: "no-store" };
  if (unattended) init.headers = { "x-unattended": "1" };
  if (signal !== undefined) init.signal = signal;
  if (body !== undefined) {
    init.headers = { "content-type": "application/json" };
    init.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    const message = "the dashboard's server cannot be reached; is this device online?";
    throw new ApiError(0, { reason: "unreachable", message });
  }
  const answer = await parsed(response);
  if (response.ok) return answer;
  if (answer?.error?.reason === "unauthorized") loginEnded();
  const unknown = {
    reason: "internal",
    message: `the server responded with HTTP ${response.status}`,
  };
  throw new ApiError(response.status, answer?.error ?? unknown);
}

/** @param {Response} response */
async function parsed(response) {
  try {
    return await response.json();
  } catch {
    // A proxy may respond in another format; the status is enough.
    return null;
  }
}

/** @param {string} path @param {AbortSignal} [signal] */
export const read = (path, signal) => call("GET", path, undefined, signal);

/**
 * The same for automatic requests, which do not extend the session of an absent user.
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
export const readAlone = (path, signal) => call("GET", path, undefined, signal, true);

/** @param {string} path @param {object} [body] */
export const post = (path, body = {}) => call("POST", path, body);

/** @param {string} path @param {object} body */
export const patch = (path, body) => call("PATCH", path, body);

/** @param {string} path */
export const remove = (path) => call("DELETE", path);
