/** Counters of the landing stage, read by the metrics. */

import { END_REASONS, type EndReason } from "../core/errors.ts";

export interface LandCounters {
  /** Transactions accepted and passed to a leader: each has ended or is in flight. */
  accepted: number;
  landed: number;
  /** Those of `landed` whose block reports an error. */
  landedFailed: number;
  expired: number;
  dropped: number;
  /** Ends without landing, by their reason. */
  readonly reasons: Record<EndReason, number>;
  /** Submissions merged with a transaction in flight. */
  duplicatesMerged: number;
  /** Resends, and the deliveries they made. */
  resends: number;
  resendDeliveries: number;
  /** Resends skipped for lack of time: others that rank higher went first. */
  resendsShed: number;
  /** Resends skipped because an ingress thread is sending the transaction, or has just sent it. */
  resendsSuperseded: number;
  /**
   * Times the marks of the leaders that have a transaction were cleared, by cause, and times they
   * were kept because that had happened too often.
   */
  marksClearedSlotBack: number;
  marksClearedUnconfirmed: number;
  markClearsRefused: number;
  /** Status requests by outcome: succeeded, failed, or timed out. */
  requestsSucceeded: number;
  requestsFailed: number;
  requestsLate: number;
  /** Transactions whose status was requested; repeated requests count each time. */
  statusesRequested: number;
  /** Blockhashes that the node was asked for, by its response. */
  blockhashesKnown: number;
  blockhashesUnknown: number;
  blockhashChecksFailed: number;
  /** Transactions seen in an unconfirmed block, and those that were rolled back. */
  processed: number;
  rolledBack: number;
  /** Of `processed`, those that were forgotten for two newer ones in other banks of the slot. */
  sightingsOmitted: number;
}

export function newLandCounters(): LandCounters {
  const zeros = Object.keys(END_REASONS).map((reason) => [reason, 0]);
  return {
    accepted: 0,
    landed: 0,
    landedFailed: 0,
    expired: 0,
    dropped: 0,
    // The keys are those of the table; `Object.keys` types them as plain strings.
    reasons: Object.fromEntries(zeros) as Record<EndReason, number>,
    duplicatesMerged: 0,
    resends: 0,
    resendDeliveries: 0,
    resendsShed: 0,
    resendsSuperseded: 0,
    marksClearedSlotBack: 0,
    marksClearedUnconfirmed: 0,
    markClearsRefused: 0,
    requestsSucceeded: 0,
    requestsFailed: 0,
    requestsLate: 0,
    statusesRequested: 0,
    blockhashesKnown: 0,
    blockhashesUnknown: 0,
    blockhashChecksFailed: 0,
    processed: 0,
    rolledBack: 0,
    sightingsOmitted: 0,
  };
}
