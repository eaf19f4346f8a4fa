/**
 * Keeps the addresses of the cluster's nodes fresh.
 *
 * A failure changes nothing: the addresses that are known stay, and so they do when a node answers
 * with a list in which nobody takes QUIC transactions, as one that has just started does.
 *
 * Decision: docs/decisions/0009-reread-addresses-of-unreachable-leaders.md
 */

import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { BackOffOptions } from "../back-off.ts";
import type { ChainCounters } from "../counters.ts";
import { createRefresh, type Refresh } from "../polling-loop.ts";
import type { Rpc } from "../rpc/rpc.ts";
import type { ChainTarget } from "../target.ts";

export interface ContactFeedDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "contacts">;
  readonly target: Pick<ChainTarget, "setContacts">;
  readonly counters: ChainCounters;
  readonly backOff: BackOffOptions;
}

export interface ContactFeedOptions {
  /** How often the nodes are asked for, in milliseconds. */
  readonly refreshMs: number;
}

export function createContactFeed(deps: ContactFeedDeps, options: ContactFeedOptions): Refresh {
  const { clock, log, rpc, target, counters, backOff } = deps;
  return createRefresh({
    clock,
    backOff,
    async act() {
      counters.contactFetches += 1;
      const contacts = await rpc.contacts();
      if (contacts.every((contact) => contact.address === null)) {
        throw new Error("no node takes QUIC transactions");
      }
      target.setContacts(contacts);
      return options.refreshMs;
    },
    onFailure(error, failures) {
      counters.contactFailures += 1;
      const reason = error instanceof Error ? error.message : String(error);
      if (failures === 1) log.warn({ reason }, "the cluster's nodes could not be read");
    },
  });
}
