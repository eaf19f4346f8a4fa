/**
 * What an ingress thread reports of one transaction that it sent, as the record consumer reads it.
 */

import { SHARED_TARGETS_MAX } from "../../core/limits.ts";

/** Created once and overwritten. */
export interface SendRecord {
  /** Of the target table that was used. */
  version: number;
  /** The first `count` targets of that version were sent a delivery. */
  count: number;
  /** The stream of each delivery. */
  readonly streams: Uint32Array;
  /**
   * As `txSend` returns: bit i: the delivery of target i is on the wire; bit 16 + i: it is queued,
   * or corked to leave in a batch.
   */
  status: number;
  /** Whether it was corked, to leave together with others. */
  corked: boolean;
}

export function newSendRecord(): SendRecord {
  return {
    version: 0,
    count: 0,
    streams: new Uint32Array(SHARED_TARGETS_MAX),
    status: 0,
    corked: false,
  };
}
