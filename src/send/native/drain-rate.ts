/**
 * How quickly a leader takes copies, and so how many may wait for it before it is one that keeps
 * them waiting. Who takes thousands a second and is interrupted for a moment has dozens waiting
 * that are gone a moment later; of one that takes a few, as many are work for a second.
 *
 * Hot path: `took`.
 */

import { NS_PER_MS } from "../../core/clock.ts";
import { TARGET_BACKLOG_MAX, TARGET_BACKLOG_MS } from "../limits.ts";

/** Over so long a time it is counted. */
const SPAN_NS = 100 * NS_PER_MS;
/** Spans without news, after which nothing is known of it. */
const STALE_SPANS = 3;

export class DrainRate {
  #count = 0;
  #sinceNs = 0;
  #perNs = 0;

  /** The leader has told that it took a copy. */
  record(atNs: number): void {
    // News of before is late, and was left out there.
    if (atNs < this.#sinceNs) return;
    this.#count += 1;
    const spanNs = atNs - this.#sinceNs;
    if (spanNs < SPAN_NS) return;
    this.#perNs = this.#count / spanNs;
    this.#count = 0;
    this.#sinceNs = atNs;
  }

  /** As many copies as it takes in a moment, and TARGET_BACKLOG_MAX at the least. */
  backlogMax(nowNs: number): number {
    // News may be behind, where this thread was interrupted; after so long there is none.
    if (nowNs - this.#sinceNs >= STALE_SPANS * SPAN_NS) return TARGET_BACKLOG_MAX;
    return Math.max(TARGET_BACKLOG_MAX, Math.floor(this.#perNs * TARGET_BACKLOG_MS * NS_PER_MS));
  }
}
