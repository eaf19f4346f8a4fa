/** What landing counts; the metrics read it. */

import { END_REASONS, type EndReason } from "../core/errors.ts";

export interface LandCounters {
  /** Transactions taken on and passed to a leader: each has one end or is in flight. */
  accepted: number;
  landed: number;
  /** Those of `landed` whose block tells of an error. */
  landedFailed: number;
  expired: number;
  dropped: number;
  /** Ends without landing, by their reason. */
  readonly reasons: Record<EndReason, number>;
  /** Submissions that joined a transaction in flight. */
  duplicatesMerged: number;
  /** Times that a transaction was sent again, and copies that this made. */
  resends: number;
  resendCopies: number;
  /** Resends given up for want of time: others that pay more went first. */
  resendsShed: number;
  /** Requests for statuses, by their end: answered, failed, or too late to be waited for. */
  requestsSucceeded: number;
  requestsFailed: number;
  requestsLate: number;
  /** Transactions whose status was asked for; one that is asked for twice counts twice. */
  statusesRequested: number;
  /** Transactions seen in a block that was not confirmed yet, and those that vanished from it. */
  processed: number;
  rolledBack: number;
}

export function newLandCounters(): LandCounters {
  const zeros = Object.keys(END_REASONS).map((reason) => [reason, 0]);
  return {
    accepted: 0,
    landed: 0,
    landedFailed: 0,
    expired: 0,
    dropped: 0,
    // The keys are those of the table, which `Object.keys` answers as plain strings.
    reasons: Object.fromEntries(zeros) as Record<EndReason, number>,
    duplicatesMerged: 0,
    resends: 0,
    resendCopies: 0,
    resendsShed: 0,
    requestsSucceeded: 0,
    requestsFailed: 0,
    requestsLate: 0,
    statusesRequested: 0,
    processed: 0,
    rolledBack: 0,
  };
}
