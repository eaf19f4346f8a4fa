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
  HEIGHT_DOUBT_DOWN_MS,
  HEIGHT_DOUBT_UP_MS,
  HEIGHT_FIRST_BLOCKS,
  HEIGHT_PACE_MS_MAX,
  HEIGHT_PACE_MS_MIN,
  HEIGHT_SLACK_BLOCKS,
} from "../limits.ts";

export interface HeightCounters {
  /** Heights that fitted, of which those that told nothing new are left out. */
  heightsBelieved: number;
  /** Heights that did not fit what was known. */
  heightsDoubted: number;
  /** Times that doubted heights were believed after all. */
  heightsRebased: number;
}

export interface Height {
  /** Somebody tells of a confirmed block with this height. Answers whether it fits. */
  tell(height: number): boolean;
  /** The highest that is believed; null before the first two. Goes back only when set anew. */
  readonly value: number | null;
  /** When that was told first. */
  readonly sinceNs: number;
}

export function createHeight(nowNs: () => number, counters: HeightCounters): Height {
  let value: number | null = null;
  let sinceNs = 0;
  /** When what is believed was told last. */
  let toldNs = 0;
  /** What is doubted, if anything is. */
  let rival: Rival | null = null;

  function believe(height: number, atNs: number): void {
    value = height;
    sinceNs = atNs;
    toldNs = atNs;
    rival = null;
    counters.heightsBelieved += 1;
  }

  function doubt(height: number, atNs: number): boolean {
    counters.heightsDoubted += 1;
    const spanMs = rival === null ? 0 : (atNs - rival.firstNs) / NS_PER_MS;
    if (rival === null || !follows(height, rival.height, spanMs, HEIGHT_PACE_MS_MIN)) {
      rival = { height, firstNs: atNs };
      return false;
    }
    const doubtMs = height > (value ?? 0) ? HEIGHT_DOUBT_UP_MS : HEIGHT_DOUBT_DOWN_MS;
    const isMoving = height - rival.height >= spanMs / HEIGHT_PACE_MS_MAX;
    if (spanMs < doubtMs || !isMoving) return false;
    counters.heightsRebased += 1;
    believe(height, atNs);
    return true;
  }

  /** Two nodes of a balancer may be far apart, and take turns. */
  function begin(height: number, atNs: number): boolean {
    if (rival !== null && Math.abs(height - rival.height) <= HEIGHT_FIRST_BLOCKS) {
      believe(Math.max(height, rival.height), atNs);
      return true;
    }
    counters.heightsDoubted += 1;
    rival = { height, firstNs: atNs };
    return false;
  }

  return {
    tell(height) {
      const atNs = nowNs();
      if (value === null) return begin(height, atNs);
      if (height > value) {
        const passedMs = (atNs - toldNs) / NS_PER_MS;
        if (!follows(height, value, passedMs, HEIGHT_BLOCK_MS_MIN)) return doubt(height, atNs);
        believe(height, atNs);
        return true;
      }
      if (height < value - HEIGHT_BACK_MAX) return doubt(height, atNs);
      // Who stands still or lags does not speak against what is doubted.
      if (height === value) toldNs = atNs;
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

interface Rival {
  /** The first of those that go on from each other, and when it was told. */
  readonly height: number;
  readonly firstNs: number;
}

/** Whether a chain that was at `before` can have come to `height` in that time. */
function follows(height: number, before: number, passedMs: number, blockMs: number): boolean {
  const blocksMax = passedMs / blockMs + HEIGHT_SLACK_BLOCKS;
  return height >= before - HEIGHT_BACK_MAX && height - before <= blocksMax;
}
