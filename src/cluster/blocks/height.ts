/**
 * The height of the highest confirmed block, with a plausibility check.
 *
 * Too high a height would expire every transaction in flight, so reported heights are checked
 * against time: blocks come in sequence, at most as fast as slots can pass. A plausible height is
 * accepted immediately. An implausible one becomes a candidate: it is accepted only if later
 * reports continue from it at a cluster's pace for long enough, while no source reports a next
 * height that is plausible. So neither one wrong response nor a node that restarted and catches up
 * changes anything; after this machine slept, or a cluster was restarted from genesis, the new
 * height is accepted after a while. The very first height needs a second one close to it; a thread
 * that replaces another continues from the height known by then.
 *
 *   report ─▶ plausible? ─yes─▶ accepted
 *                 └───no──▶ candidate ─▶ at a cluster's pace for long enough? ─yes─▶ accepted
 * (reanchored)
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
  /** Plausible heights, without those that changed nothing. */
  heightsAccepted: number;
  /** Implausible heights. */
  heightsImplausible: number;
  /** Times an implausible height was accepted after all. */
  heightsReanchored: number;
}

export interface Height {
  /** Reports a confirmed block with this height. Returns whether it is plausible. */
  observe(height: number): boolean;
  /** The highest accepted height; null before the first two. Decreases only when reanchored. */
  readonly value: number | null;
  /** When that height was first reported. */
  readonly sinceNs: number;
}

/** A height that was accepted before, and when it was first reported. */
export interface KnownHeight {
  readonly height: number;
  readonly sinceNs: number;
}

export function createHeight(
  nowNs: () => number,
  counters: HeightCounters,
  known: KnownHeight | null = null,
): Height {
  let value = known?.height ?? null;
  let sinceNs = known?.sinceNs ?? 0;
  /** When the accepted height was last reported. */
  let reportedNs = sinceNs;
  /** The implausible height under observation, if any. */
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

  /** Two nodes behind a load balancer may be far apart and respond alternately. */
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
      // A stalled or lagging node does not disprove the candidate.
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
  /** The first in a run of heights that continue each other, and when it was reported. */
  readonly height: number;
  readonly firstNs: number;
}

/** Whether a cluster at height `before` can have reached `height` in that time. */
function follows(height: number, before: number, passedMs: number, blockMs: number): boolean {
  const blocksMax = passedMs / blockMs + HEIGHT_SLACK_BLOCKS;
  return height >= before - HEIGHT_BACK_MAX && height - before <= blocksMax;
}
