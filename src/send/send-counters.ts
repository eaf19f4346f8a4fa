/**
 * What the sender counts. Every copy is counted once in `copies` and ends once in `copiesAcked`,
 * `copiesFailed` or `copiesDropped`; until then it is queued or in flight. The reasons add up to
 * failed and dropped.
 */

import { COPY_REASONS, type CopyReason } from "../core/errors.ts";

export interface SendCounters {
  /** Packets that at least one live connection took. */
  packetsTaken: number;
  /** Packets that none could take: nothing of them was sent or kept. */
  packetsRefused: number;
  /** Packets of fronts that were told of so late that nobody knows who was sent to: no copies. */
  packetsAdoptedLate: number;
  copies: number;
  copiesQueued: number;
  copiesSent: number;
  copiesAcked: number;
  copiesFailed: number;
  copiesDropped: number;
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
  endedSilent: number;
  endedLocal: number;
  handshakeTimeouts: number;
  /** Connections that did not answer just before their leader's turn. */
  silentBeforeTurn: number;
  /** By reason: copies that failed or were dropped. */
  readonly reasons: Record<CopyReason, number>;
}

export function newSendCounters(): SendCounters {
  return {
    packetsTaken: 0,
    packetsRefused: 0,
    packetsAdoptedLate: 0,
    copies: 0,
    copiesQueued: 0,
    copiesSent: 0,
    copiesAcked: 0,
    copiesFailed: 0,
    copiesDropped: 0,
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
    endedSilent: 0,
    endedLocal: 0,
    handshakeTimeouts: 0,
    silentBeforeTurn: 0,
    reasons: newReasons(),
  };
}

function newReasons(): Record<CopyReason, number> {
  const entries = Object.keys(COPY_REASONS).map((reason) => [reason, 0]);
  // `Object.fromEntries` forgets the keys' type; they are those of the table.
  return Object.fromEntries(entries) as Record<CopyReason, number>;
}
