/**
 * Whether a request may come from where it comes from. Browsers say so themselves, by
 * `Sec-Fetch-Site` and by `Origin`; a request that changes something and says neither is refused,
 * unless it carries a token, which no other site's page can make a browser send.
 */

import { ApiError } from "../api-error.ts";
import { RETURN_PATH_CHARS_MAX } from "../limits.ts";

export interface Provenance {
  readonly method: string;
  readonly origin: string | null;
  readonly fetchSite: string | null;
  /** Whether a token alone decides who calls, so that no cookie of the request counts. */
  readonly bearer: boolean;
}

/** @throws ApiError `cross_site` when another site's page may have sent this */
export function refuseCrossSite(request: Provenance, publicUrl: string): void {
  const { method, origin, fetchSite, bearer } = request;
  if (bearer) return;
  const changes = method !== "GET" && method !== "HEAD";
  if (fetchSite !== null && fetchSite !== "same-origin" && (changes || fetchSite !== "none")) {
    throw foreign();
  }
  if (origin !== null && origin !== publicUrl) throw foreign();
  if (changes && fetchSite === null && origin === null) throw foreign();
}

function foreign(): ApiError {
  return new ApiError("cross_site", "this was not sent by a page of the dashboard");
}

/** The path that a login returns to: one of this site, or `/`. */
export function returnPath(given: string | null): string {
  if (given === null || !/^\/[!-~]*$/.test(given) || /[\\]/.test(given)) return "/";
  const base = "http://site.invalid";
  if (given.startsWith("//") || !URL.canParse(given, base)) return "/";
  const { origin, pathname, search, hash } = new URL(given, base);
  // `/.//elsewhere` is a path of this site to the parser, and another site to a browser.
  if (origin !== base || pathname.startsWith("//")) return "/";
  const path = pathname + search + hash;
  // Encoded, some characters are three.
  return path.length <= RETURN_PATH_CHARS_MAX ? path : "/";
}
