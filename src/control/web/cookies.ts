/**
 * Reads and writes the two cookies. Both are `__Host-`: bound to this host, over HTTPS, for every
 * path; scripts cannot read them. They are `Lax`, because the browser must send them when it
 * returns from the identity provider, and other sites' pages cannot change anything with them
 * (`guard.ts`). Browsers accept `Secure` cookies over plain HTTP from loopback, as the sandbox
 * needs.
 */

import type { CookieName } from "./route.ts";

const NAMES: Readonly<Record<CookieName, string>> = {
  session: "__Host-td-session",
  login: "__Host-td-login",
};

/** The value in a `Cookie` header; null when missing or malformed. */
export function readCookie(header: string | undefined, name: CookieName): string | null {
  for (const part of (header ?? "").split(";")) {
    const [key = "", value = ""] = part.trim().split("=", 2);
    if (key === NAMES[name]) return VALUE.test(value) ? value : null;
  }
  return null;
}

/** A `Set-Cookie` header; a null value deletes the cookie. */
export function writeCookie(name: CookieName, value: string | null, maxAgeMs: number): string {
  const seconds = value === null ? 0 : Math.floor(maxAgeMs / 1000);
  const attributes = `Path=/; Max-Age=${seconds}; HttpOnly; Secure; SameSite=Lax`;
  return `${NAMES[name]}=${value ?? ""}; ${attributes}`;
}

/** The base64url form of the values that this server generates; anything else is rejected. */
const VALUE = /^[A-Za-z0-9_-]{16,128}$/;
