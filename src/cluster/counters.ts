/** Counters of the cluster stage; each watcher increments only its own fields. */

import type { HeightCounters } from "./blocks/height.ts";

export interface ClusterCounters extends HeightCounters {
  /** Slot events from the WebSocket. */
  slotEvents: number;
  /** Slot events dropped because the main thread did not read them in time. */
  slotEventsLost: number;
  /** Responses to slot polls. */
  slotPolls: number;
  slotPollFailures: number;
  /** WebSocket connections opened. */
  socketsOpened: number;
  /** WebSocket connections that ended or could not be opened. */
  socketsClosed: number;
  /** Subscriptions that the node rejected. */
  subscriptionsRefused: number;
  /** Connections closed because they were silent. */
  socketsSilent: number;
  scheduleFetches: number;
  scheduleFailures: number;
  contactFetches: number;
  contactFailures: number;
  /** Times the nodes' addresses were requested early because a leader was unreachable. */
  contactsEarlyRefreshes: number;
  /** Requests for the block height or the latest blockhashes. */
  blockPolls: number;
  blockFailures: number;
  /** Requests for the delinquent leaders. */
  voteFetches: number;
  voteFailures: number;
  /** Requests for the statuses of signatures. */
  statusFetches: number;
  statusFailures: number;
  /** Times the node was asked whether the confirmation stands still, and how often it failed. */
  confirmationChecks: number;
  confirmationCheckFailures: number;
  /** Requests for the cluster's consensus. */
  consensusPolls: number;
  consensusFailures: number;
  /** Times the node was probed with signatures of its own blocks, and how many probes failed. */
  statusProbes: number;
  statusProbeFailures: number;
  /** Requests not sent because the node asked for a pause. */
  requestsSuppressed: number;
  /** gRPC streams that were opened, that ended, and that were closed because they were silent. */
  geyserOpened: number;
  geyserClosed: number;
  geyserSilent: number;
  /** Updates over gRPC, and those that report a landing. */
  geyserUpdates: number;
  geyserStatuses: number;
  /** gRPC messages that could not be decoded. */
  geyserGarbage: number;
  /** Landings and confirmations dropped because the main thread did not read them in time. */
  geyserLost: number;
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
    confirmationChecks: 0,
    confirmationCheckFailures: 0,
    consensusPolls: 0,
    consensusFailures: 0,
    statusProbes: 0,
    statusProbeFailures: 0,
    requestsSuppressed: 0,
    geyserOpened: 0,
    geyserClosed: 0,
    geyserSilent: 0,
    geyserUpdates: 0,
    geyserStatuses: 0,
    geyserGarbage: 0,
    geyserLost: 0,
  };
}

/** Their names, in the order in which threads share them. */
// The record's keys are the interface's, in the order of creation.
export const CLUSTER_COUNTERS = Object.keys(createClusterCounters()) as (keyof ClusterCounters)[];
