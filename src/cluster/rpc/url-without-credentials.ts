/**
 * An address without the name and password in it, for the native engine, which takes what goes into
 * the header apart: so no address that it could ever tell of carries a secret.
 */

import { unescape as decoded } from "node:querystring";

export interface UrlWithoutCredentials {
  readonly href: string;
  /** Of the header `authorization`; empty for none. */
  readonly authorization: string;
}

/** @throws TypeError for what is no URL */
export function urlWithoutCredentials(text: string): UrlWithoutCredentials {
  const url = new URL(text);
  // What is no percent-encoding stands for itself, as for the portable engine.
  const name = `${decoded(url.username)}:${decoded(url.password)}`;
  url.username = "";
  url.password = "";
  url.hash = "";
  const authorization = name === ":" ? "" : `Basic ${Buffer.from(name).toString("base64")}`;
  return { href: url.href, authorization };
}
