/**
 * Keeps the addresses of the cluster's nodes current.
 *
 * On failure the known addresses stay. The same applies when no node in the response takes QUIC
 * transactions, as from a node that has just started.
 *
 * Decision: docs/decisions/0009-reread-addresses-of-unreachable-leaders.md
 */

import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { BackOffOptions } from "../back-off.ts";
import type { ClusterCounters } from "../counters.ts";
import { createPollLoop, type PollLoop } from "../polling-loop.ts";
import type { ClusterSink } from "../ports.ts";
import type { Rpc } from "../rpc/rpc.ts";

export interface ContactWatcherDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "contacts">;
  readonly sink: Pick<ClusterSink, "setContacts">;
  readonly counters: ClusterCounters;
  readonly backOff: BackOffOptions;
}

export interface ContactWatcherOptions {
  /** How often the nodes are read, in milliseconds. */
  readonly intervalMs: number;
}

export function createContactWatcher(
  deps: ContactWatcherDeps,
  options: ContactWatcherOptions,
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
      return options.intervalMs;
    },
    onFailure(error, failures) {
      counters.contactFailures += 1;
      const reason = error instanceof Error ? error.message : String(error);
      if (failures === 1) log.warn({ reason }, "the cluster's nodes could not be read");
    },
  });
}
