/**
 * Splits the name and password from a URL, because the native engine takes the header separately:
 * no URL that it could report carries a secret.
 */

import { unescape as decoded } from "node:querystring";

export interface UrlWithoutCredentials {
  readonly href: string;
  /** Value of the `authorization` header; empty for none. */
  readonly authorization: string;
}

/** @throws TypeError for an invalid URL */
export function urlWithoutCredentials(text: string): UrlWithoutCredentials {
  const url = new URL(text);
  // Invalid percent-encoding is taken literally, as by the portable engine.
  const name = `${decoded(url.username)}:${decoded(url.password)}`;
  url.username = "";
  url.password = "";
  url.hash = "";
  const authorization = name === ":" ? "" : `Basic ${Buffer.from(name).toString("base64")}`;
  return { href: url.href, authorization };
}
