/**
 * The QUIC address of each leader, and which leaders are excluded.
 *
 * The table is replaced completely, because the cluster's gossip is read completely; a leader
 * missing from the new one is gone. Addresses that cannot be connected to are skipped and counted,
 * because gossip is untrusted. A leader that the operator denies or that is reported as delinquent
 * has no address here, so all callers skip it. A list that marks more than half of the table
 * delinquent reflects a fault of the node that sent it and is ignored; the table also holds nodes
 * that never lead, so the vote watcher first rejects a list by which most of the stake is
 * delinquent.
 */

import { parseAddress } from "../core/address.ts";
import { CONTACTS_MAX } from "../core/limits.ts";
import { RouteCounters } from "./counters.ts";

export interface Contact {
  /** The node's identity, base58. */
  readonly identity: string;
  /** "ip:port" or "[ipv6]:port", the node's `tpuQuic`; null when it gossips none. */
  readonly address: string | null;
  /** The version that the node gossips; null or absent if none. */
  readonly version?: string | null;
}

export interface Contacts {
  /** Replaces the table. */
  replace(contacts: Iterable<Contact>): void;
  /** Replaces the list of delinquent leaders. */
  setDelinquent(identities: Iterable<string>): void;
  /** The address of a usable leader; null if none is known. */
  address(identity: string): string | null;
  /** The version that a leader gossips; null if none. */
  version(identity: string): string | null;
  readonly size: number;
  /** Leaders skipped as delinquent. */
  readonly delinquentCount: number;
}

interface Row {
  readonly address: string;
  readonly version: string | null;
}

export function createContacts(
  counters: RouteCounters = new RouteCounters(),
  deny: Iterable<string> = [],
): Contacts {
  const denied = new Set(deny);
  let table: ReadonlyMap<string, Row> = new Map();
  let reported: ReadonlySet<string> = new Set();
  let delinquent: ReadonlySet<string> = reported;

  /** Depends on both tables, so it runs when either changes. */
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
        // Nearly all are unchanged since a minute ago; this halves the time for 5,000 contacts.
        const isKnown = table.get(identity)?.address === address;
        if (!isKnown && parseAddress(address) === null) counters.contactsInvalid += 1;
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
