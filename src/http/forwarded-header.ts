/**
 * The header with which an ingress thread forwards the client's address with a request that it
 * proxies to the main thread's server, in front of the client's own headers. Its name is random per
 * start and secret, and an ingress thread does not proxy a head that already contains it, so a
 * client cannot forge it.
 */

import { randomBytes } from "node:crypto";

const NAME_BYTES = 16;

/** A random header name, in lower case. */
export function createForwardedHeaderName(): string {
  return `x-${randomBytes(NAME_BYTES).toString("hex")}`;
}
