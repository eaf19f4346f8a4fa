/**
 * Rejects cross-site requests. Browsers send `Sec-Fetch-Site` and `Origin`; a changing request with
 * neither is rejected, unless it carries a token, which another site's page cannot make a browser
 * send.
 */

import { ApiError } from "../api-error.ts";
import { RETURN_PATH_CHARS_MAX } from "../limits.ts";

export interface Provenance {
  readonly method: string;
  readonly origin: string | null;
  readonly fetchSite: string | null;
  /** Whether a token alone authenticates, so that no cookie of the request counts. */
  readonly bearer: boolean;
}

/** @throws ApiError `cross_site` when another site's page may have sent this */
export function rejectCrossSite(request: Provenance, publicUrl: string): void {
  const { method, origin, fetchSite, bearer } = request;
  if (bearer) return;
  const changes = method !== "GET" && method !== "HEAD";
  if (fetchSite !== null && fetchSite !== "same-origin" && (changes || fetchSite !== "none")) {
    throw crossSite();
  }
  if (origin !== null && origin !== publicUrl) throw crossSite();
  if (changes && fetchSite === null && origin === null) throw crossSite();
}

function crossSite(): ApiError {
  return new ApiError("cross_site", "this was not sent by a page of the dashboard");
}

/** The path that a login returns to: a path of this site, or `/`. */
export function returnPath(given: string | null): string {
  if (given === null || !/^\/[!-~]*$/.test(given) || /[\\]/.test(given)) return "/";
  const base = "http://site.invalid";
  if (given.startsWith("//") || !URL.canParse(given, base)) return "/";
  const { origin, pathname, search, hash } = new URL(given, base);
  // To the parser `/.//elsewhere` is a path of this site, to a browser it is another site.
  if (origin !== base || pathname.startsWith("//")) return "/";
  const path = pathname + search + hash;
  // Some characters take three when encoded.
  return path.length <= RETURN_PATH_CHARS_MAX ? path : "/";
}
