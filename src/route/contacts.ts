/**
 * Where each leader takes QUIC transactions, and which leaders are not to be used.
 *
 * The table is replaced as a whole, as the cluster's gossip is read as a whole; a leader missing
 * from the new one is gone. Whatever is no address that can be connected to is left out and
 * counted: gossip is written by strangers. A leader that the operator denies, or that is said to be
 * delinquent, has no address here, so that everybody passes over it. A list that calls more than
 * half of the cluster delinquent speaks of the node that made it: it is ignored.
 */

import { isIPv4, isIPv6 } from "node:net";
import { createRouteCounters, type RouteCounters } from "./counters.ts";
import { CONTACTS_MAX } from "./limits.ts";

export interface Contact {
  /** The node's identity, base58. */
  readonly identity: string;
  /** "ip:port" or "[ipv6]:port", the node's `tpuQuic`; null when it gossips none. */
  readonly address: string | null;
  /** The version that the node gossips; null or absent when it tells none. */
  readonly version?: string | null;
}

export interface Contacts {
  /** Puts a new table in place of the old one. */
  replace(contacts: Iterable<Contact>): void;
  /** Puts a new list of delinquent leaders in place of the old one. */
  setDelinquent(identities: Iterable<string>): void;
  /** The address of a leader that may be used; null when none is known. */
  address(identity: string): string | null;
  /** The version that a leader gossips; null when it tells none. */
  version(identity: string): string | null;
  readonly size: number;
  /** Leaders that are passed over as delinquent. */
  readonly delinquentCount: number;
}

interface Row {
  readonly address: string;
  readonly version: string | null;
}

export function createContacts(
  counters: RouteCounters = createRouteCounters(),
  deny: Iterable<string> = [],
): Contacts {
  const denied = new Set(deny);
  let table: ReadonlyMap<string, Row> = new Map();
  let reported: ReadonlySet<string> = new Set();
  let delinquent: ReadonlySet<string> = reported;

  /** Both tables have a say, so this runs when either changes. */
  function judge(): void {
    let known = 0;
    for (const identity of reported) if (table.has(identity)) known += 1;
    const accepted = known * 2 <= table.size;
    if (!accepted) counters.delinquentIgnored += 1;
    delinquent = accepted ? reported : new Set();
  }

  return {
    replace(contacts) {
      const next = new Map<string, Row>();
      for (const { identity, address, version } of contacts) {
        if (address === null) continue;
        // Nearly all are as they were a minute ago, which halves the time for five thousand.
        const isKnown = table.get(identity)?.address === address;
        if (!isKnown && !isReachable(address)) counters.contactsInvalid += 1;
        else if (next.size >= CONTACTS_MAX) counters.contactsOverflow += 1;
        else next.set(identity, { address, version: version ?? null });
      }
      counters.contactsSet += 1;
      table = next;
      judge();
    },
    setDelinquent(identities) {
      const list = new Set<string>();
      for (const identity of identities) if (list.size < CONTACTS_MAX) list.add(identity);
      reported = list;
      judge();
    },
    address(identity) {
      if (denied.has(identity) || delinquent.has(identity)) return null;
      return table.get(identity)?.address ?? null;
    },
    version: (identity) => table.get(identity)?.version ?? null,
    get size() {
      return table.size;
    },
    get delinquentCount() {
      return delinquent.size;
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
