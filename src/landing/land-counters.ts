/** Counters of the landing stage, read by the metrics. */

import { END_REASON_NAMES, type EndReason } from "../core/errors.ts";

export class LandCounters {
  /** Transactions accepted and passed to a leader: each has ended or is in flight. */
  accepted = 0;
  landed = 0;
  /** Those of `landed` whose block reports an error. */
  landedFailed = 0;
  expired = 0;
  dropped = 0;
  /** Ends without landing, by their reason. */
  // `Object.fromEntries` loses the key type; the keys are those names.
  readonly reasons = Object.fromEntries(END_REASON_NAMES.map((reason) => [reason, 0])) as Record<
    EndReason,
    number
  >;
  /** Submissions merged with a transaction in flight. */
  duplicatesMerged = 0;
  /** Resends, and the deliveries they made. */
  resends = 0;
  resendDeliveries = 0;
  /** Resends skipped for lack of time: others that rank higher went first. */
  resendsShed = 0;
  /** Resends skipped because an ingress thread is sending the transaction, or has just sent it. */
  resendsSuperseded = 0;
  /**
   * Times the marks of the leaders that have a transaction were cleared, by cause, and times they
   * were kept because that had happened too often.
   */
  marksClearedSlotBack = 0;
  marksClearedUnconfirmed = 0;
  markClearsRefused = 0;
  /** Status requests by outcome: succeeded, failed, or timed out. */
  requestsSucceeded = 0;
  requestsFailed = 0;
  requestsLate = 0;
  /** Transactions whose status was requested; repeated requests count each time. */
  statusesRequested = 0;
  /** Blockhashes that the node was asked for, by its response. */
  blockhashesKnown = 0;
  blockhashesUnknown = 0;
  blockhashChecksFailed = 0;
  /** Transactions seen in an unconfirmed block, and those that were rolled back. */
  processed = 0;
  rolledBack = 0;
  /** Of `processed`, those that were forgotten for two newer ones in other banks of the slot. */
  sightingsOmitted = 0;
}
