/**
 * How many streams a leader that reads slowly is given at once. Pure. Hot path: `mayOpen`.
 *
 * Agave grants 128 streams or more, but reads 20 in 100 ms of an unstaked address: what fills its
 * grant waits there for 600 ms and cannot be overtaken by what pays more. So once a leader keeps
 * this side waiting for a while, its rate is measured, and it is given no more than it reads in a
 * round trip and one of its intervals; the rest waits here, best paid first. The room above the
 * measured rate lets the measure grow when the leader does.
 *
 * What is unread is the grant less what is left of it. Agave grants by the round trip, so the grant
 * is each connection's own, and may become smaller while one lives: then the difference never goes
 * away, and a leader to which nothing could be opened for a second is taken to have read it all.
 * Firedancer grants 2^60 once and never tells of more, and the native engine counts no further than
 * 1,024: of so many it is not known what is unread, and who grants them reads them as they come.
 *
 * Source: Agave `swqos.rs`, `stream_throttle.rs`, 4.3, 2026-11.
 *
 * Decision: docs/decisions/0027-adapt-to-a-leader-by-evidence.md
 */

import { NS_PER_MS } from "../core/clock.ts";

/** The least that an address is read, and in which time. */
const UNSTAKED_STREAMS = 20;
const INTERVAL_MS = 100;
/** Waiting for so long is no burst any more. */
const SLOW_MS = 200;
/** A leader that reads at all has told of new streams by then. */
const STUCK_MS = 1_000;
const ROOM = 1.25;
/** Leaders tell of new streams when an eighth of their window was read. */
const ANNOUNCED_SHARE = 1 / 8;
/** More than Agave grants without stake: 128 for each 50 ms of a round trip, up to 350 ms. */
const AMPLE_STREAMS = 1_024;
/** So long after the last wait the leader is taken for a fast one again. */
const FORGET_MS = 10_000;

const NONE = -1;

export class StreamWindow {
  /** The streams that the leader lets be unread. */
  streamsMax = 0;
  /** Streams that may be unread at once; 0: as many as are granted. */
  limit = 0;
  /** Since when copies wait; NONE: none does. */
  #blockedSinceNs = NONE;
  #lastNs = 0;
  #opened = 0;

  /** A connection begins with so many streams; below 0 when it is not known. */
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

  /** A copy cannot go, for want of credit or because of the limit. */
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
    // By the limit alone: it opens as soon as the leader is told to have read.
    if (this.#opened === 0 && streamsLeft > 0 && !this.mayOpen(streamsLeft)) {
      if (elapsedMs >= STUCK_MS) this.streamsMax = streamsLeft;
      return;
    }
    const perInterval = Math.max(UNSTAKED_STREAMS, (this.#opened * INTERVAL_MS) / elapsedMs);
    const intervals = 1 + rttUs / 1000 / INTERVAL_MS;
    const unannounced = Math.ceil(this.streamsMax * ANNOUNCED_SHARE);
    this.limit = Math.ceil(perInterval * ROOM * intervals) + unannounced;
    this.#blockedSinceNs = nowNs;
    this.#opened = 0;
  }

  /** Nothing waits; told again and again while that is so. */
  drained(nowNs: number): void {
    const isForgotten = nowNs - this.#lastNs >= FORGET_MS * NS_PER_MS;
    if (isForgotten) this.limit = 0;
    // Where nothing was opened, copies did not go but were given up: the wait for a stream goes on.
    if (isForgotten || this.#opened > 0) this.#blockedSinceNs = NONE;
  }
}
