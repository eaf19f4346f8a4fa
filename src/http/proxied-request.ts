/**
 * Metadata of a request that an ingress thread proxies to the main thread's server: a header placed
 * before the client's own. Its name is random per start and secret, and an ingress thread does not
 * proxy a head that already contains it, so a client cannot forge it.
 */

import { randomBytes } from "node:crypto";

export interface ProxiedRequest {
  /** The client's address in text form; "" when unknown. */
  readonly remoteAddress: string;
  /** Index of the ingress thread; -1 when unknown. */
  readonly ingressThread: number;
  /** Whether the ingress thread charged the limit. */
  readonly isLimitCharged: boolean;
  /**
   * `Clock.nowNs` when the ingress thread had the complete request; 0 when the rest of the body
   * follows, and for requests that started after the ingress thread began to drain.
   */
  readonly receivedNs: number;
}

const NAME_BYTES = 16;

/** A random header name, in lower case. */
export function createForwardedHeaderName(): string {
  return `x-${randomBytes(NAME_BYTES).toString("hex")}`;
}

/**
 * For a request without the header: the ingress thread could not add it, because the head is at
 * its size limit or was not parsed. The client's address is then unknown; the connection's remote
 * address is loopback.
 */
const NO_FORWARDED_HEADER: ProxiedRequest = {
  remoteAddress: "",
  ingressThread: -1,
  isLimitCharged: false,
  receivedNs: 0,
};

/**
 * Parses the header value, separated by blanks: address, thread, 1 if the limit was charged or 0,
 * and time.
 */
export function readForwardedHeader(value: string): ProxiedRequest {
  if (value === "") return NO_FORWARDED_HEADER;
  const [remoteAddress = "", ingressThread, isLimitCharged, receivedNs] = value.split(" ");
  return {
    remoteAddress,
    ingressThread: Number(ingressThread),
    isLimitCharged: isLimitCharged === "1",
    receivedNs: Number(receivedNs),
  };
}
