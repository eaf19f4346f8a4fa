/**
 * Whether a connection still answers just before its leader's turn. Pure.
 *
 * Once for each turn the other side is made to answer, so early that there is time for another
 * connection. An engine that does not tell what it hears is not asked.
 *
 *      ping            answer due                       turn
 *   ────┬──────────────────┬─────────────────────────────┬────▶
 *       └── responseMs ──────┴── two handshakes ───────────┘
 */

import { NS_PER_MS } from "../core/clock.ts";
import type { LeaderConnection } from "./leader-connection.ts";
import { POLL_FAST_MS, POLL_SLOW_MS } from "./poll-timer.ts";

export interface ProbeTimes {
  responseMs(identity: string): number;
  probeLeadMs(identity: string): number;
}

/** Plans tell the same turn a little differently each time; two turns are further apart. */
const SAME_WINDOW_MS = 600;

export function createLivenessProbe() {
  let probedWindowNs = Number.NEGATIVE_INFINITY;
  let probed: LeaderConnection | null = null;
  let probedNs = 0;
  let heard = 0;

  return {
    /** In how many milliseconds `isUnresponsive` may have something to ask or to say. */
    nextPollMs(windowStartNs: number, nowNs: number, identity: string, times: ProbeTimes): number {
      if (probed !== null) return POLL_FAST_MS;
      const leadNs = times.probeLeadMs(identity) * NS_PER_MS;
      if (
        windowStartNs <= nowNs ||
        Math.abs(windowStartNs - probedWindowNs) < SAME_WINDOW_MS * NS_PER_MS
      ) {
        return POLL_SLOW_MS;
      }
      return (windowStartNs - leadNs - nowNs) / NS_PER_MS;
    },
    /** True once, when the connection was asked for this turn and said nothing in time. */
    isUnresponsive(
      connection: LeaderConnection,
      windowStartNs: number,
      nowNs: number,
      identity: string,
      times: ProbeTimes,
    ) {
      const { engineConnection } = connection;
      if (engineConnection === null) return false;
      if (probed === connection) {
        if (engineConnection.heard !== heard) probed = null;
        else if (nowNs - probedNs >= times.responseMs(identity) * NS_PER_MS) {
          probed = null;
          return true;
        }
        return false;
      }
      // Of a connection that is not there any more nothing will be heard.
      probed = null;
      const leftNs = windowStartNs - nowNs;
      if (leftNs <= 0 || leftNs > times.probeLeadMs(identity) * NS_PER_MS) return false;
      if (Math.abs(windowStartNs - probedWindowNs) < SAME_WINDOW_MS * NS_PER_MS) return false;
      probedWindowNs = windowStartNs;
      heard = engineConnection.heard;
      if (heard < 0) return false;
      probed = connection;
      probedNs = nowNs;
      engineConnection.ping();
      return false;
    },
  };
}
