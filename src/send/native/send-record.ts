/** What a thread of the native engine reports of one transaction that it sent. */

import { TARGETS_MAX } from "../../core/limits.ts";

/** Created once and overwritten. */
export interface SendRecord {
  /** The number of its delivery on each connection. */
  number: number;
  /** How many connections it was offered to. */
  count: number;
  /** The engine's handle of each. */
  readonly peers: Uint32Array;
  /**
   * As `txSend` returns: bit i: the delivery on connection i is on the wire; bit 16 + i: it is
   * queued, or corked to leave in a batch.
   */
  status: number;
  /** Whether it was corked, to leave together with others. */
  corked: boolean;
}

export function newSendRecord(): SendRecord {
  return {
    number: 0,
    count: 0,
    peers: new Uint32Array(TARGETS_MAX),
    status: 0,
    corked: false,
  };
}
