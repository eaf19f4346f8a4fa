/**
 * Whether a connection still responds just before its leader window.
 *
 * The other side is probed once per leader window, early enough to open another connection. An
 * engine that does not count received datagrams is not probed.
 *
 *      ping           response due                leader window
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

/** Plans estimate the start of a window slightly differently; two windows are further apart. */
const SAME_WINDOW_MS = 600;

export function createLivenessProbe() {
  let probedWindowNs = Number.NEGATIVE_INFINITY;
  let probed: LeaderConnection | null = null;
  let probedNs = 0;
  let heard = 0;

  return {
    /** Milliseconds until `isUnresponsive` may have to probe or has a result. */
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
    /** True once, when the connection was probed for this window and did not respond in time. */
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
        if (engineConnection.datagramsReceived !== heard) probed = null;
        else if (nowNs - probedNs >= times.responseMs(identity) * NS_PER_MS) {
          probed = null;
          return true;
        }
        return false;
      }
      // A closed connection cannot respond.
      probed = null;
      const leftNs = windowStartNs - nowNs;
      if (leftNs <= 0 || leftNs > times.probeLeadMs(identity) * NS_PER_MS) return false;
      if (Math.abs(windowStartNs - probedWindowNs) < SAME_WINDOW_MS * NS_PER_MS) return false;
      probedWindowNs = windowStartNs;
      heard = engineConnection.datagramsReceived;
      if (heard < 0) return false;
      probed = connection;
      probedNs = nowNs;
      engineConnection.ping();
      return false;
    },
  };
}
