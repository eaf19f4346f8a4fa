/**
 * Whether a connection still answers just before its leader's turn. Pure.
 *
 * Once for each turn the other side is made to answer, so early that there is time for another
 * connection. An engine that does not tell what it hears is not asked.
 *
 *      ping            answer due                       turn
 *   ────┬──────────────────┬─────────────────────────────┬────▶
 *       └── answerMs ──────┴── two handshakes ───────────┘
 */

import { NS_PER_MS } from "../core/clock.ts";
import type { Link } from "./leader-connection.ts";
import { LOOK_LATE_MS, LOOK_SOON_MS } from "./ticker.ts";

export interface TurnTimes {
  answerMs(identity: string): number;
  checkLeadMs(identity: string): number;
}

/** Plans tell the same turn a little differently each time; two turns are further apart. */
const SAME_TURN_MS = 600;

export function createTurnCheck() {
  let checkedTurnNs = Number.NEGATIVE_INFINITY;
  let asked: Link | null = null;
  let askedNs = 0;
  let heard = 0;

  return {
    /** In how many milliseconds `isSilent` may have something to ask or to say. */
    nextLookMs(turnNs: number, nowNs: number, identity: string, times: TurnTimes): number {
      if (asked !== null) return LOOK_SOON_MS;
      const leadNs = times.checkLeadMs(identity) * NS_PER_MS;
      if (turnNs <= nowNs || Math.abs(turnNs - checkedTurnNs) < SAME_TURN_MS * NS_PER_MS) {
        return LOOK_LATE_MS;
      }
      return (turnNs - leadNs - nowNs) / NS_PER_MS;
    },
    /** True once, when the connection was asked for this turn and said nothing in time. */
    isSilent(link: Link, turnNs: number, nowNs: number, identity: string, times: TurnTimes) {
      const { connection } = link;
      if (connection === null) return false;
      if (asked === link) {
        if (connection.heard !== heard) asked = null;
        else if (nowNs - askedNs >= times.answerMs(identity) * NS_PER_MS) {
          asked = null;
          return true;
        }
        return false;
      }
      // Of a connection that is not there any more nothing will be heard.
      asked = null;
      const leftNs = turnNs - nowNs;
      if (leftNs <= 0 || leftNs > times.checkLeadMs(identity) * NS_PER_MS) return false;
      if (Math.abs(turnNs - checkedTurnNs) < SAME_TURN_MS * NS_PER_MS) return false;
      checkedTurnNs = turnNs;
      heard = connection.heard;
      if (heard < 0) return false;
      asked = link;
      askedNs = nowNs;
      connection.ping();
      return false;
    },
  };
}
