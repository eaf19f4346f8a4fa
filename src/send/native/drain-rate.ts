/**
 * How fast a leader accepts deliveries, and from that how many may be queued before it counts as
 * backlogged. A leader that accepts thousands per second may have dozens queued after a short
 * interruption and drain them within milliseconds; for one that accepts a few per second, the same
 * number is a second of work.
 *
 * Hot path: `record`.
 */

import { NS_PER_MS } from "../../core/clock.ts";
import { TARGET_BACKLOG_MAX, TARGET_BACKLOG_MS } from "../limits.ts";

/** Length of the measured span. */
const SPAN_NS = 100 * NS_PER_MS;
/** Spans without an acknowledgement after which the rate counts as unknown. */
const STALE_SPANS = 3;

export class DrainRate {
  #count = 0;
  #sinceNs = 0;
  #perNs = 0;

  /** The leader acknowledged a delivery. */
  record(atNs: number): void {
    // An event from before this span arrived late and counted as missing there.
    if (atNs < this.#sinceNs) return;
    this.#count += 1;
    const spanNs = atNs - this.#sinceNs;
    if (spanNs < SPAN_NS) return;
    this.#perNs = this.#count / spanNs;
    this.#count = 0;
    this.#sinceNs = atNs;
  }

  /** The deliveries that it accepts within TARGET_BACKLOG_MS, at least TARGET_BACKLOG_MAX. */
  backlogMax(nowNs: number): number {
    // Events may be late if this thread was interrupted, but not this late.
    if (nowNs - this.#sinceNs >= STALE_SPANS * SPAN_NS) return TARGET_BACKLOG_MAX;
    return Math.max(TARGET_BACKLOG_MAX, Math.floor(this.#perNs * TARGET_BACKLOG_MS * NS_PER_MS));
  }
}
