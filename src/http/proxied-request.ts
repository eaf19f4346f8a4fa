/**
 * What a front says of a request that it relays to the server of the main thread: a header line of
 * its own in front of the client's. The line's name is drawn at each start and told to nobody else,
 * and a front relays no head that has it already, so no client can speak for a front.
 */

import { randomBytes } from "node:crypto";

export interface ProxiedRequest {
  /** The address of the client's end of its connection in text form; "" where it is not known. */
  readonly remoteAddress: string;
  /** The front's number; -1 where it is not known. */
  readonly ingressThread: number;
  /** Whether the limit was charged for it. */
  readonly isPaid: boolean;
  /**
   * `Clock.nowNs` when the front had all of it; 0 where the rest of it follows, and of what began
   * once the front was told to drain.
   */
  readonly receivedNs: number;
}

const NAME_BYTES = 16;

/** A name for the line, in lower case. */
export function createForwardedHeaderName(): string {
  return `x-${randomBytes(NAME_BYTES).toString("hex")}`;
}

/**
 * Of a request without the line, which a front could not put in: its head is too long for one more,
 * or not understood. Nobody knows from where it came, least of all by the connection.
 */
const NO_FORWARDED_HEADER: ProxiedRequest = {
  remoteAddress: "",
  ingressThread: -1,
  isPaid: false,
  receivedNs: 0,
};

/** Reads the line's value: address, front, 1 or 0 for paid, and time, with blanks in between. */
export function readForwardedHeader(value: string): ProxiedRequest {
  if (value === "") return NO_FORWARDED_HEADER;
  const [remoteAddress = "", ingressThread, isPaid, receivedNs] = value.split(" ");
  return {
    remoteAddress,
    ingressThread: Number(ingressThread),
    isPaid: isPaid === "1",
    receivedNs: Number(receivedNs),
  };
}
