/**
 * Limits the concurrent streams to a leader that reads slowly. Hot path: `mayOpen`.
 *
 * Agave grants 128 streams or more, but reads few from an unstaked address: 20 per 100 ms before
 * 4.4, since then 40 while it is idle and 10 while it is loaded. Deliveries that fill its grant
 * wait there for up to 1.3 s and cannot be overtaken by higher priorities. So once a
 * leader keeps this side waiting for a while, its rate is measured, and it is given no more than it
 * reads in a round trip and one of its intervals; the rest is queued here, highest priority first.
 * The margin above the measured rate lets the measured rate grow with the leader's.
 *
 * The unread count is the grant less the streams left. Agave sizes the grant by the round trip, so
 * it differs per connection, and may shrink while one lives: then the difference never disappears,
 * and a leader to which nothing could be opened for a second is assumed to have read it all.
 * Firedancer grants 2^60 once and never updates it, and the native engine counts up to 1,024 only:
 * above that the unread count is unknown, and the leader reads streams as they arrive.
 *
 * Source: Agave `swqos.rs`, `stream_throttle.rs`, 4.2 to 4.4, 2026-11.
 *
 * Decision: docs/decisions/0027-adapt-to-a-leader-by-evidence.md
 */

import { NS_PER_MS } from "../core/clock.ts";

/** The fewest streams that a leader reads from an address in an interval, and the interval. */
const STREAMS_PER_INTERVAL_MIN = 10;
const INTERVAL_MS = 100;
/** A wait of this length is not a burst. */
const SLOW_MS = 200;
/** A leader that reads at all has granted new streams by then. */
const STUCK_MS = 1_000;
const ROOM = 1.25;
/** Leaders grant new streams when an eighth of their window was read. */
const ANNOUNCED_SHARE = 0.125;
/** More than Agave grants without stake: 128 per 50 ms of round trip, up to 350 ms. */
const AMPLE_STREAMS = 1_024;
/** This long after the last wait the leader counts as fast again. */
const FORGET_MS = 10_000;

const NONE = -1;

export class StreamWindow {
  /** The maximum number of unread streams that the leader allows. */
  streamsMax = 0;
  /** Streams that may be unread at once; 0: as many as are granted. */
  limit = 0;
  /** Since when deliveries are blocked; NONE: not blocked. */
  #blockedSinceNs = NONE;
  #lastNs = 0;
  #opened = 0;

  /** A connection starts with this many streams; below 0 when unknown. */
  setCredit(streamsLeft: number): void {
    if (streamsLeft >= 0) this.streamsMax = streamsLeft;
    if (this.streamsMax >= AMPLE_STREAMS) this.limit = 0;
  }

  mayOpen(streamsLeft: number): boolean {
    if (this.limit === 0 || streamsLeft < 0) return true;
    return this.streamsMax - streamsLeft < this.limit;
  }

  opened(): void {
    this.#opened += 1;
  }

  /** A delivery is blocked, by credit or by the limit. */
  recordBlocked(nowNs: number, rttUs: number, streamsLeft: number): void {
    if (this.streamsMax >= AMPLE_STREAMS) return;
    this.#lastNs = nowNs;
    if (this.#blockedSinceNs === NONE) {
      this.#blockedSinceNs = nowNs;
      this.#opened = 0;
      return;
    }
    const elapsedMs = (nowNs - this.#blockedSinceNs) / NS_PER_MS;
    if (elapsedMs < SLOW_MS) return;
    // Blocked by the limit alone: it opens as soon as the leader counts as having read.
    if (this.#opened === 0 && streamsLeft > 0 && !this.mayOpen(streamsLeft)) {
      if (elapsedMs >= STUCK_MS) this.streamsMax = streamsLeft;
      return;
    }
    const perInterval = Math.max(
      STREAMS_PER_INTERVAL_MIN,
      (this.#opened * INTERVAL_MS) / elapsedMs,
    );
    const intervals = 1 + rttUs / 1000 / INTERVAL_MS;
    const unannounced = Math.ceil(this.streamsMax * ANNOUNCED_SHARE);
    this.limit = Math.ceil(perInterval * ROOM * intervals) + unannounced;
    this.#blockedSinceNs = nowNs;
    this.#opened = 0;
  }

  /** The queue is empty; called repeatedly while that is so. */
  drained(nowNs: number): void {
    const isForgotten = nowNs - this.#lastNs >= FORGET_MS * NS_PER_MS;
    if (isForgotten) this.limit = 0;
    // Nothing was opened, so the deliveries expired: the leader still blocks.
    if (isForgotten || this.#opened > 0) this.#blockedSinceNs = NONE;
  }
}
