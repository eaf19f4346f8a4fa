/**
 * The height of the highest confirmed block, as far as it can be believed.
 *
 * A height that is told too high would call every transaction in flight too old, so what nodes say
 * is held against time: blocks come one after another, and no faster than slots can pass. What fits
 * is believed at once. What does not is doubted: it is believed only when it goes on from there at
 * a chain's pace for long enough, while nobody tells of a next height that fits. So one wild answer
 * changes nothing, nor does a node that was restarted and catches up; after this machine slept, or
 * a chain was begun anew, it is followed after a while. The first of all needs a second beside it.
 *
 *   told ─▶ fits? ─yes─▶ believed
 *              └───no──▶ doubted ─▶ at a chain's pace for long enough? ─yes─▶ believed, set anew
 *
 * Decision: docs/decisions/0008-check-heights-against-time.md
 */

import { NS_PER_MS } from "../../core/clock.ts";
import {
  HEIGHT_BACK_MAX,
  HEIGHT_BLOCK_MS_MIN,
  HEIGHT_FIRST_BLOCKS,
  HEIGHT_PACE_MS_MAX,
  HEIGHT_PACE_MS_MIN,
  HEIGHT_REANCHOR_DOWN_MS,
  HEIGHT_REANCHOR_UP_MS,
  HEIGHT_SLACK_BLOCKS,
} from "../limits.ts";

export interface HeightCounters {
  /** Heights that fitted, of which those that told nothing new are left out. */
  heightsAccepted: number;
  /** Heights that did not fit what was known. */
  heightsImplausible: number;
  /** Times that doubted heights were believed after all. */
  heightsReanchored: number;
}

export interface Height {
  /** Somebody tells of a confirmed block with this height. Answers whether it fits. */
  observe(height: number): boolean;
  /** The highest that is believed; null before the first two. Goes back only when set anew. */
  readonly value: number | null;
  /** When that was told first. */
  readonly sinceNs: number;
}

export function createHeight(nowNs: () => number, counters: HeightCounters): Height {
  let value: number | null = null;
  let sinceNs = 0;
  /** When what is believed was told last. */
  let reportedNs = 0;
  /** What is doubted, if anything is. */
  let candidate: Candidate | null = null;

  function accept(height: number, atNs: number): void {
    value = height;
    sinceNs = atNs;
    reportedNs = atNs;
    candidate = null;
    counters.heightsAccepted += 1;
  }

  function reject(height: number, atNs: number): boolean {
    counters.heightsImplausible += 1;
    const spanMs = candidate === null ? 0 : (atNs - candidate.firstNs) / NS_PER_MS;
    if (candidate === null || !follows(height, candidate.height, spanMs, HEIGHT_PACE_MS_MIN)) {
      candidate = { height, firstNs: atNs };
      return false;
    }
    const reanchorMs = height > (value ?? 0) ? HEIGHT_REANCHOR_UP_MS : HEIGHT_REANCHOR_DOWN_MS;
    const isMoving = height - candidate.height >= spanMs / HEIGHT_PACE_MS_MAX;
    if (spanMs < reanchorMs || !isMoving) return false;
    counters.heightsReanchored += 1;
    accept(height, atNs);
    return true;
  }

  /** Two nodes of a balancer may be far apart, and take turns. */
  function acceptFirst(height: number, atNs: number): boolean {
    if (candidate !== null && Math.abs(height - candidate.height) <= HEIGHT_FIRST_BLOCKS) {
      accept(Math.max(height, candidate.height), atNs);
      return true;
    }
    counters.heightsImplausible += 1;
    candidate = { height, firstNs: atNs };
    return false;
  }

  return {
    observe(height) {
      const atNs = nowNs();
      if (value === null) return acceptFirst(height, atNs);
      if (height > value) {
        const passedMs = (atNs - reportedNs) / NS_PER_MS;
        if (!follows(height, value, passedMs, HEIGHT_BLOCK_MS_MIN)) return reject(height, atNs);
        accept(height, atNs);
        return true;
      }
      if (height < value - HEIGHT_BACK_MAX) return reject(height, atNs);
      // Who stands still or lags does not speak against what is doubted.
      if (height === value) reportedNs = atNs;
      return true;
    },
    get value() {
      return value;
    },
    get sinceNs() {
      return sinceNs;
    },
  };
}

interface Candidate {
  /** The first of those that go on from each other, and when it was told. */
  readonly height: number;
  readonly firstNs: number;
}

/** Whether a chain that was at `before` can have come to `height` in that time. */
function follows(height: number, before: number, passedMs: number, blockMs: number): boolean {
  const blocksMax = passedMs / blockMs + HEIGHT_SLACK_BLOCKS;
  return height >= before - HEIGHT_BACK_MAX && height - before <= blocksMax;
}
