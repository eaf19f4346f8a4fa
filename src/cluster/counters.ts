/** What the chain stage counts; each feed increments only its own fields. */

import type { HeightCounters } from "./blocks/height.ts";

export interface ClusterCounters extends HeightCounters {
  /** Slot events from the WebSocket. */
  slotEvents: number;
  /** Slot events that were dropped because this thread did not take them in time. */
  slotEventsLost: number;
  /** Answers to asking for the slot. */
  slotPolls: number;
  slotPollFailures: number;
  /** WebSocket connections that were opened. */
  socketsOpened: number;
  /** WebSocket connections that ended or could not be opened. */
  socketsClosed: number;
  /** Subscriptions that the node refused. */
  subscriptionsRefused: number;
  /** Connections given up because they stayed silent. */
  socketsSilent: number;
  scheduleFetches: number;
  scheduleFailures: number;
  contactFetches: number;
  contactFailures: number;
  /** Times that the nodes' addresses were wanted sooner, because a leader was missed. */
  contactsEarlyRefreshes: number;
  /** Questions for the block height or the latest blockhashes. */
  blockPolls: number;
  blockFailures: number;
  /** Questions for the delinquent leaders. */
  voteFetches: number;
  voteFailures: number;
  /** Questions for the statuses of signatures. */
  statusFetches: number;
  statusFailures: number;
  /** Times that the node was tried with signatures of its own blocks, and those that failed. */
  statusProbes: number;
  statusProbeFailures: number;
  /** Questions that were not asked because the node wants to be left alone. */
  requestsSuppressed: number;
  /** gRPC streams that were opened, that ended, and that were given up because they were silent. */
  geyserOpened: number;
  geyserClosed: number;
  geyserSilent: number;
  /** Updates over gRPC, and those of them that tell of a landing. */
  geyserUpdates: number;
  geyserStatuses: number;
  /** Messages over gRPC that make no sense. */
  geyserGarbage: number;
}

export function createClusterCounters(): ClusterCounters {
  return {
    slotEvents: 0,
    slotEventsLost: 0,
    slotPolls: 0,
    slotPollFailures: 0,
    socketsOpened: 0,
    socketsClosed: 0,
    subscriptionsRefused: 0,
    socketsSilent: 0,
    scheduleFetches: 0,
    scheduleFailures: 0,
    contactFetches: 0,
    contactFailures: 0,
    contactsEarlyRefreshes: 0,
    blockPolls: 0,
    blockFailures: 0,
    heightsAccepted: 0,
    heightsImplausible: 0,
    heightsReanchored: 0,
    voteFetches: 0,
    voteFailures: 0,
    statusFetches: 0,
    statusFailures: 0,
    statusProbes: 0,
    statusProbeFailures: 0,
    requestsSuppressed: 0,
    geyserOpened: 0,
    geyserClosed: 0,
    geyserSilent: 0,
    geyserUpdates: 0,
    geyserStatuses: 0,
    geyserGarbage: 0,
  };
}
