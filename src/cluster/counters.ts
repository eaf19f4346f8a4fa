/** Counters of the cluster stage; each watcher increments only its own fields. */

import type { HeightCounters } from "./blocks/height.ts";

export class ClusterCounters implements HeightCounters {
  /** Slot events from the WebSocket. */
  slotEvents = 0;
  /** Slot events dropped because the main thread did not read them in time. */
  slotEventsLost = 0;
  /** Responses to slot polls. */
  slotPolls = 0;
  slotPollFailures = 0;
  /** WebSocket connections opened. */
  socketsOpened = 0;
  /** WebSocket connections that ended or could not be opened. */
  socketsClosed = 0;
  /** Subscriptions that the node rejected. */
  subscriptionsRefused = 0;
  /** Connections closed because they were silent. */
  socketsSilent = 0;
  scheduleFetches = 0;
  scheduleFailures = 0;
  contactFetches = 0;
  contactFailures = 0;
  /** Times the nodes' addresses were requested early because a leader was unreachable. */
  contactsEarlyRefreshes = 0;
  /** Requests for the block height or the latest blockhashes. */
  blockPolls = 0;
  blockFailures = 0;
  /** Plausible heights, without those that changed nothing. */
  heightsAccepted = 0;
  /** Implausible heights. */
  heightsImplausible = 0;
  /** Times an implausible height was accepted after all. */
  heightsReanchored = 0;
  /** Requests for the delinquent leaders. */
  voteFetches = 0;
  voteFailures = 0;
  /** Requests for the statuses of signatures. */
  statusFetches = 0;
  statusFailures = 0;
  /** Times the node was asked whether the confirmation stands still, and how often it failed. */
  confirmationChecks = 0;
  confirmationCheckFailures = 0;
  /** Requests for the cluster's consensus. */
  consensusPolls = 0;
  consensusFailures = 0;
  /** Times the node was probed with signatures of its own blocks, and how many probes failed. */
  statusProbes = 0;
  statusProbeFailures = 0;
  /** Requests not sent because the node asked for a pause. */
  requestsSuppressed = 0;
  /** gRPC streams that were opened, that ended, and that were closed because they were silent. */
  geyserOpened = 0;
  geyserClosed = 0;
  geyserSilent = 0;
  /** Updates over gRPC, and those that report a landing. */
  geyserUpdates = 0;
  geyserStatuses = 0;
  /** gRPC messages that could not be decoded. */
  geyserGarbage = 0;
  /** Landings and confirmations dropped because the main thread did not read them in time. */
  geyserLost = 0;
}

/** Their names, in the order in which threads share them. */
// The record's keys are the interface's, in the order of creation.
export const CLUSTER_COUNTERS = Object.keys(new ClusterCounters()) as (keyof ClusterCounters)[];
