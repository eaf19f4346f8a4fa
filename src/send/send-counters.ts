/**
 * The sender's counters. Every delivery counts once in `deliveries` and ends once in
 * `deliveriesAcked`, `deliveriesFailed` or `deliveriesDropped`; until then it is queued or in
 * flight. The sum of the reasons is failed plus dropped.
 */

import { DELIVERY_REASONS, type DeliveryReason } from "../core/errors.ts";

export interface SendCounters {
  /** Packets accepted by at least one live connection. */
  packetsAccepted: number;
  /** Packets that no connection accepted: nothing was sent or queued. */
  packetsRejected: number;
  /** Packets of ingress threads whose record was too late to know their leaders: no deliveries. */
  packetsRecordedLate: number;
  deliveries: number;
  deliveriesQueued: number;
  deliveriesSent: number;
  deliveriesAcked: number;
  deliveriesFailed: number;
  deliveriesDropped: number;
  connectionsAttempted: number;
  /** Could not be started: an invalid address, or no socket for its family. */
  connectionsFailed: number;
  connectionsAdmitted: number;
  /** Started, and ended by the leader, an error or a timeout before they were admitted. */
  connectionsNotAdmitted: number;
  connectionsRecycled: number;
  /** Changes of the identity. */
  identityChanges: number;
  /** Wanted by the plan but above the connection limit. */
  connectionsOverLimit: number;
  connectionsEnded: number;
  endedEvicted: number;
  endedDisallowed: number;
  endedTooMany: number;
  endedInvalidStream: number;
  endedOtherCode: number;
  endedTransport: number;
  endedIdle: number;
  endedLocal: number;
  handshakeTimeouts: number;
  /** Connections that did not respond just before their leader window. */
  silentBeforeWindow: number;
  /** Failed and dropped deliveries, by reason. */
  readonly reasons: Record<DeliveryReason, number>;
}

export function newSendCounters(): SendCounters {
  return {
    packetsAccepted: 0,
    packetsRejected: 0,
    packetsRecordedLate: 0,
    deliveries: 0,
    deliveriesQueued: 0,
    deliveriesSent: 0,
    deliveriesAcked: 0,
    deliveriesFailed: 0,
    deliveriesDropped: 0,
    connectionsAttempted: 0,
    connectionsFailed: 0,
    connectionsAdmitted: 0,
    connectionsNotAdmitted: 0,
    connectionsRecycled: 0,
    identityChanges: 0,
    connectionsOverLimit: 0,
    connectionsEnded: 0,
    endedEvicted: 0,
    endedDisallowed: 0,
    endedTooMany: 0,
    endedInvalidStream: 0,
    endedOtherCode: 0,
    endedTransport: 0,
    endedIdle: 0,
    endedLocal: 0,
    handshakeTimeouts: 0,
    silentBeforeWindow: 0,
    reasons: newReasons(),
  };
}

function newReasons(): Record<DeliveryReason, number> {
  const entries = Object.keys(DELIVERY_REASONS).map((reason) => [reason, 0]);
  // `Object.fromEntries` loses the key type; the keys are those of the table.
  return Object.fromEntries(entries) as Record<DeliveryReason, number>;
}
