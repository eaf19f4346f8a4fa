/**
 * The sender's counters. Every delivery counts once in `deliveries` and ends once in
 * `deliveriesAcked`, `deliveriesFailed` or `deliveriesDropped`; until then it is queued or in
 * flight. The sum of the reasons is failed plus dropped.
 */

import { DELIVERY_REASON_NAMES, type DeliveryReason } from "../core/errors.ts";
import { CLOSE_REASONS, type CloseReason } from "./close-policy.ts";

export interface SendCounters {
  /** Packets accepted by at least one live connection. */
  packetsAccepted: number;
  /** Packets that no connection accepted: nothing was sent or queued. */
  packetsRejected: number;
  deliveries: number;
  /** Queued here, and evicted from or refused by a full queue; the engine counts its own. */
  deliveriesQueued: number;
  deliveriesEvicted: number;
  deliveriesSent: number;
  deliveriesAcked: number;
  deliveriesFailed: number;
  deliveriesDropped: number;
  /** Those of them whose end the engine did not report. */
  deliveriesUnreported: number;
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
  /** Ended connections, by reason. */
  readonly ends: Record<CloseReason, number>;
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
    deliveries: 0,
    deliveriesQueued: 0,
    deliveriesEvicted: 0,
    deliveriesSent: 0,
    deliveriesAcked: 0,
    deliveriesFailed: 0,
    deliveriesDropped: 0,
    deliveriesUnreported: 0,
    connectionsAttempted: 0,
    connectionsFailed: 0,
    connectionsAdmitted: 0,
    connectionsNotAdmitted: 0,
    connectionsRecycled: 0,
    identityChanges: 0,
    connectionsOverLimit: 0,
    connectionsEnded: 0,
    ends: countersOf(CLOSE_REASONS),
    handshakeTimeouts: 0,
    silentBeforeWindow: 0,
    reasons: countersOf(DELIVERY_REASON_NAMES),
  };
}

function countersOf<Name extends string>(names: readonly Name[]): Record<Name, number> {
  // `Object.fromEntries` loses the key type; the keys are those names.
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}
