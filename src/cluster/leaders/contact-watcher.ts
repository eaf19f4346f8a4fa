/**
 * Keeps the addresses of the cluster's nodes current.
 *
 * On failure the known addresses stay. The same applies when no node in the response takes QUIC
 * transactions, or less than half as many as before: a node that has just started knows itself and
 * few others. If the response stays that short for minutes, the cluster itself has shrunk.
 *
 * Decision: docs/decisions/0009-reread-addresses-of-unreachable-leaders.md
 */

import { NS_PER_MS } from "../../core/clock.ts";
import { CONTACTS_GAP_MS, CONTACTS_SHORT_MS_MAX } from "../limits.ts";
import { createPollLoop, type PollLoop, warnAtFirst } from "../polling-loop.ts";
import type { WatcherDeps, WatcherOptions } from "./watcher-deps.ts";

export interface ContactWatcher extends PollLoop {
  /** The node is of another cluster: its addresses are read soon, however few they are. */
  forget(): void;
}

export function createContactWatcher(
  deps: WatcherDeps<"contacts", "setContacts">,
  { intervalMs }: WatcherOptions,
): ContactWatcher {
  const { clock, log, rpc, sink, counters, backOff } = deps;
  /** Addresses in the accepted response, and when it arrived. */
  let known = 0;
  let acceptedNs = 0;
  /** Counts calls of `forget`: a response that was requested before the last one is dropped. */
  let clusters = 0;

  const loop = createPollLoop({
    clock,
    backOff,
    async poll() {
      counters.contactFetches += 1;
      const cluster = clusters;
      const contacts = await rpc.contacts();
      if (cluster !== clusters) return CONTACTS_GAP_MS;
      const count = contacts.filter(({ address }) => address !== null).length;
      const ageMs = (clock.nowNs() - acceptedNs) / NS_PER_MS;
      if (count === 0) throw new Error("no node takes QUIC transactions");
      if (count * 2 < known && ageMs < CONTACTS_SHORT_MS_MAX) {
        throw new Error(`only ${count} nodes take QUIC transactions; ${known} did before`);
      }
      known = count;
      acceptedNs = clock.nowNs();
      sink.setContacts(contacts);
      return intervalMs;
    },
    onFailure: warnAtFirst(log, "the cluster's nodes could not be read", () => {
      counters.contactFailures += 1;
    }),
  });

  return {
    ...loop,
    forget() {
      known = 0;
      clusters += 1;
      loop.pollNow(CONTACTS_GAP_MS);
    },
  };
}
