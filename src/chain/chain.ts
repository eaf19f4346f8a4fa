/**
 * What the cluster says, kept current: slots, leader schedules and addresses, from one RPC node.
 *
 * Each feed lives by itself, retries by itself and survives a restart of the node. Nothing here
 * decides anything: events go to the router, and how old they are can be asked for.
 */

import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { BackOffOptions } from "./back-off.ts";
import { createContactFeed } from "./contact-feed.ts";
import { type ChainCounters, createChainCounters } from "./counters.ts";
import type { RefreshStatus } from "./refresh.ts";
import { createRpc } from "./rpc.ts";
import { createScheduleFeed } from "./schedule-feed.ts";
import { createSlotFeed, type SlotFeedStatus } from "./slot-feed.ts";
import type { ChainTarget } from "./target.ts";

export interface ChainDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly router: ChainTarget;
}

export interface ChainOptions {
  readonly rpcUrl: string;
  readonly wsUrl: string;
  /** A request without a whole answer in this time has failed. */
  readonly timeoutMs: number;
  /** Without a slot event for so long, another source is used as well. */
  readonly silenceMs: number;
  /** Without a slot event for so long, the WebSocket is opened anew. */
  readonly reconnectMs: number;
  readonly pollMs: number;
  /** How often the nodes' addresses are read. */
  readonly contactsMs: number;
  /** Shortest and longest time between two looks at the epoch. */
  readonly epochCheckMsMin: number;
  readonly epochCheckMsMax: number;
  readonly retryMsFirst: number;
  readonly retryMsMax: number;
  /** A number in [0, 1) for the jitter of retries. */
  readonly random: () => number;
}

export interface ChainStatus {
  readonly slots: SlotFeedStatus;
  readonly schedule: RefreshStatus;
  readonly contacts: RefreshStatus;
}

export interface Chain {
  start(): void;
  /** Ends every timer, request and connection. */
  stop(): void;
  status(): ChainStatus;
  readonly counters: ChainCounters;
}

const DEFAULTS: Omit<ChainOptions, "rpcUrl" | "wsUrl"> = {
  timeoutMs: 10_000,
  silenceMs: 2_500,
  reconnectMs: 20_000,
  pollMs: 400,
  contactsMs: 60_000,
  epochCheckMsMin: 1_000,
  epochCheckMsMax: 300_000,
  retryMsFirst: 500,
  retryMsMax: 15_000,
  random: Math.random,
};

/** Nothing is connected before `start`. */
export function createChain(
  deps: ChainDeps,
  given: Partial<ChainOptions> & Pick<ChainOptions, "rpcUrl" | "wsUrl">,
): Chain {
  const options: ChainOptions = { ...DEFAULTS, ...given };
  const { random, retryMsFirst: firstMs, retryMsMax: maxMs, epochCheckMsMin } = options;
  const backOff: BackOffOptions = { firstMs, maxMs, random };
  const counters = createChainCounters();
  const { clock, log, router: target } = deps;
  const rpc = createRpc(clock, options);
  const parts = { clock, log, rpc, target, counters, backOff };
  const slots = createSlotFeed(parts, options);
  const contacts = createContactFeed(parts, { refreshMs: options.contactsMs });
  const schedule = createScheduleFeed(parts, {
    checkMsMin: epochCheckMsMin,
    checkMsMax: options.epochCheckMsMax,
    nextRetryMs: Math.max(epochCheckMsMin, maxMs),
  });

  return {
    start() {
      slots.start();
      schedule.start();
      contacts.start();
    },
    stop() {
      slots.stop();
      schedule.stop();
      contacts.stop();
      rpc.close();
    },
    status: () => ({
      slots: slots.status(),
      schedule: schedule.status(),
      contacts: contacts.status(),
    }),
    counters,
  };
}
