/** What a front says of one transaction that it sent, as the books read it. */

import { SHARED_TARGETS_MAX } from "../../core/limits.ts";

/** Made once and written over. */
export interface SendRecord {
  /** Of the routes that it went by. */
  version: number;
  /** The first so many routes of that version were given a copy. */
  count: number;
  /** Of each the stream. */
  readonly streams: Uint32Array;
  /**
   * As `txSend` answers: bit i, route i's copy is on the wire; bit 16 + i, it waits, or leaves
   * together with others in a moment.
   */
  status: number;
  /** Whether it was held, to leave together with others. */
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
