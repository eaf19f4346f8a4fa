/**
 * Keeps the addresses of the cluster's nodes current.
 *
 * On failure the known addresses stay. The same applies when no node in the response takes QUIC
 * transactions, as from a node that has just started.
 *
 * Decision: docs/decisions/0009-reread-addresses-of-unreachable-leaders.md
 */

import { createPollLoop, type PollLoop, warnAtFirst } from "../polling-loop.ts";
import type { WatcherDeps, WatcherOptions } from "./watcher-deps.ts";

export function createContactWatcher(
  deps: WatcherDeps<"contacts", "setContacts">,
  { intervalMs }: WatcherOptions,
): PollLoop {
  const { clock, log, rpc, sink, counters, backOff } = deps;
  return createPollLoop({
    clock,
    backOff,
    async poll() {
      counters.contactFetches += 1;
      const contacts = await rpc.contacts();
      if (contacts.every((contact) => contact.address === null)) {
        throw new Error("no node takes QUIC transactions");
      }
      sink.setContacts(contacts);
      return intervalMs;
    },
    onFailure: warnAtFirst(log, "the cluster's nodes could not be read", () => {
      counters.contactFailures += 1;
    }),
  });
}
