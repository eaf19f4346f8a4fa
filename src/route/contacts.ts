/**
 * Where each leader takes QUIC transactions.
 *
 * The table is replaced as a whole, as the cluster's gossip is read as a whole; a leader missing
 * from the new one is gone. Whatever is no address that can be connected to is left out and
 * counted: gossip is written by strangers.
 */

import { isIPv4, isIPv6 } from "node:net";
import { CONTACTS_MAX } from "../core/limits.ts";
import { createRouteCounters, type RouteCounters } from "./counters.ts";

export interface Contact {
  /** The node's identity, base58. */
  readonly identity: string;
  /** "ip:port" or "[ipv6]:port", the node's `tpuQuic`; null when it gossips none. */
  readonly address: string | null;
}

export interface Contacts {
  /** Puts a new table in place of the old one. */
  replace(contacts: Iterable<Contact>): void;
  /** The address of a leader; null when none is known. */
  address(identity: string): string | null;
  readonly size: number;
}

export function createContacts(counters: RouteCounters = createRouteCounters()): Contacts {
  let table: ReadonlyMap<string, string> = new Map();
  return {
    replace(contacts) {
      const next = new Map<string, string>();
      for (const { identity, address } of contacts) {
        if (address === null) continue;
        if (!isReachable(address)) counters.contactsInvalid += 1;
        else if (next.size >= CONTACTS_MAX) counters.contactsOverflow += 1;
        else next.set(identity, address);
      }
      counters.contactsSet += 1;
      table = next;
    },
    address: (identity) => table.get(identity) ?? null,
    get size() {
      return table.size;
    },
  };
}

/** An IP and a port that something can listen on; names are not resolved. */
function isReachable(address: string): boolean {
  const colon = address.lastIndexOf(":");
  if (colon <= 0) return false;
  const port = address.slice(colon + 1);
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65_535) return false;
  const host = address.slice(0, colon);
  if (host.startsWith("[") && host.endsWith("]")) {
    const ip = host.slice(1, -1);
    return isIPv6(ip) && !ip.includes("%") && ip !== "::";
  }
  return isIPv4(host) && host !== "0.0.0.0";
}
