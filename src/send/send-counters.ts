/**
 * What the sender counts. Every copy is counted once in `copies` and ends once in `deliveriesAcked`,
 * `deliveriesFailed` or `deliveriesDropped`; until then it is queued or in flight. The reasons add up to
 * failed and dropped.
 */

import { DELIVERY_REASONS, type DeliveryReason } from "../core/errors.ts";

export interface SendCounters {
  /** Packets that at least one live connection took. */
  packetsAccepted: number;
  /** Packets that none could take: nothing of them was sent or kept. */
  packetsRefused: number;
  /** Packets of fronts that were told of so late that nobody knows who was sent to: no copies. */
  packetsRecordedLate: number;
  deliveries: number;
  deliveriesQueued: number;
  deliveriesSent: number;
  deliveriesAcked: number;
  deliveriesFailed: number;
  deliveriesDropped: number;
  connectionsAttempted: number;
  /** Could not even be begun: a bad address, or no socket for its family. */
  connectionsFailed: number;
  connectionsAdmitted: number;
  /** Begun, and ended by the leader, a fault or the time before they were admitted. */
  connectionsNotAdmitted: number;
  connectionsRecycled: number;
  /** The identity was changed. */
  identityChanges: number;
  /** Wanted by the plan but above the bound on connections. */
  connectionsOverLimit: number;
  connectionsEnded: number;
  endedDropped: number;
  endedDisallowed: number;
  endedTooMany: number;
  endedInvalidStream: number;
  endedOtherCode: number;
  endedTransport: number;
  endedUnresponsive: number;
  endedLocal: number;
  handshakeTimeouts: number;
  /** Connections that did not answer just before their leader's turn. */
  silentBeforeTurn: number;
  /** By reason: copies that failed or were dropped. */
  readonly reasons: Record<DeliveryReason, number>;
}

export function newSendCounters(): SendCounters {
  return {
    packetsAccepted: 0,
    packetsRefused: 0,
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
    endedDropped: 0,
    endedDisallowed: 0,
    endedTooMany: 0,
    endedInvalidStream: 0,
    endedOtherCode: 0,
    endedTransport: 0,
    endedUnresponsive: 0,
    endedLocal: 0,
    handshakeTimeouts: 0,
    silentBeforeTurn: 0,
    reasons: newReasons(),
  };
}

function newReasons(): Record<DeliveryReason, number> {
  const entries = Object.keys(DELIVERY_REASONS).map((reason) => [reason, 0]);
  // `Object.fromEntries` forgets the keys' type; they are those of the table.
  return Object.fromEntries(entries) as Record<DeliveryReason, number>;
}
