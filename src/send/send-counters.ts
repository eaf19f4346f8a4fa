/**
 * The sender's counters. Every delivery counts once in `deliveries` and ends once in
 * `deliveriesAcked`, `deliveriesFailed` or `deliveriesDropped`; until then it is queued or in
 * flight. The sum of the reasons is failed plus dropped.
 */

import { DELIVERY_REASON_NAMES } from "../core/errors.ts";
import { CLOSE_REASONS } from "./close-policy.ts";

export type SendCounters = ReturnType<typeof newSendCounters>;

export function newSendCounters() {
  return {
    /** Packets accepted by at least one live connection. */
    packetsAccepted: 0,
    /** Packets that no connection accepted: nothing was sent or queued. */
    packetsRejected: 0,
    deliveries: 0,
    /** Queued here, and evicted from or refused by a full queue; the engine counts its own. */
    deliveriesQueued: 0,
    deliveriesEvicted: 0,
    /** Resends refused while others of the same leader were on the wire. */
    resendsRefused: 0,
    deliveriesSent: 0,
    deliveriesAcked: 0,
    deliveriesFailed: 0,
    deliveriesDropped: 0,
    /** Those of them whose end the engine did not report. */
    deliveriesUnreported: 0,
    connectionsAttempted: 0,
    /** Could not be started: an invalid address, or no socket for its family. */
    connectionsFailed: 0,
    connectionsAdmitted: 0,
    /** Started, and ended by the leader, an error or a timeout before they were admitted. */
    connectionsNotAdmitted: 0,
    connectionsRecycled: 0,
    /** Changes of the identity. */
    identityChanges: 0,
    /** Wanted by the plan but above the connection limit. */
    connectionsOverLimit: 0,
    connectionsEnded: 0,
    /** Ended connections, by reason. */
    ends: countersOf(CLOSE_REASONS),
    handshakeTimeouts: 0,
    /** Connections that did not respond just before their leader window. */
    silentBeforeWindow: 0,
    /** Failed and dropped deliveries, by reason. */
    reasons: countersOf(DELIVERY_REASON_NAMES),
  };
}

function countersOf<Name extends string>(names: readonly Name[]): Record<Name, number> {
  // `Object.fromEntries` loses the key type; the keys are those names.
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}
