/**
 * When a leader may be tried again. Pure.
 *
 * Agave counts connections for each address: eight, and eight new ones a minute, and who asks more
 * often is ignored for minutes. So a leader is tried at most once in `reconnectMs` whatever
 * happens, and less often when it says no: each failure in a row doubles the pause, up to
 * `reconnectMsMax`. A connection that lived for a while clears the record.
 *
 *   ended by                            pause counted from   length
 *   close 0, 5, idle silence, faults    the attempt          reconnectMs, first failure
 *   close 1 (evicted)                   the end              one leader's window, first failure
 *   close 2, 4, 3 and unknown codes     the end              reconnectMs, first failure
 *   refused, TLS fault                  the end              reconnectMs, first failure
 *   no answer to the handshake          the attempt          reconnectMs, first failure
 *
 * The table of codes: Agave `streamer/src/nonblocking/quic.rs`, 4.3, 2026-11.
 */

import { NS_PER_MS } from "../core/clock.ts";
import type { Ending } from "./transport.ts";

export interface PaceOptions {
  /** At most one attempt for a leader in this time. */
  readonly reconnectMs: number;
  /** Longest pause between two attempts. */
  readonly reconnectMsMax: number;
  /** From 0 to below 1. */
  readonly random: () => number;
}

/** Four slots of 250 ms: an evicted connection is not tried again within the same window. */
const LEADER_WINDOW_MS = 1_000;
/** A pause is lengthened by up to this share, so that edges do not come back in step. */
const JITTER_SHARE = 0.25;
/** A connection that lived this many times `reconnectMs` clears the record of failures. */
const CLEARING_LIVES = 2;
const DOUBLINGS_MAX = 16;

/** Agave's close codes. */
export const CLOSE_DROPPED = 1;
export const CLOSE_INVALID_STREAM = 5;

export class Pace {
  /** `Clock.nowNs` from which the next attempt is allowed. */
  nextAttemptNs = 0;
  /** Connections in a row that ended before they lived for long. */
  failures = 0;
  #attemptNs = 0;
  readonly #options: PaceOptions;

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  /** An attempt begins now. */
  attempted(nowNs: number): void {
    this.#attemptNs = nowNs;
    this.nextAttemptNs = nowNs + this.#options.reconnectMs * NS_PER_MS;
  }

  /** A connection ended now; `liveNs` is since when it took transactions, 0 if it never did. */
  ended(ending: Ending, liveNs: number, nowNs: number): void {
    const { reconnectMs, reconnectMsMax, random } = this.#options;
    const livedNs = liveNs === 0 ? 0 : nowNs - liveNs;
    if (livedNs >= CLEARING_LIVES * reconnectMs * NS_PER_MS) this.failures = 0;
    this.failures += 1;

    const isEviction = ending.kind === "app" && ending.code === CLOSE_DROPPED;
    const baseMs = isEviction ? Math.min(LEADER_WINDOW_MS, reconnectMs) : reconnectMs;
    const doublings = Math.min(this.failures - 1, DOUBLINGS_MAX);
    const pauseMs = Math.min(baseMs * 2 ** doublings, reconnectMsMax);
    const jitteredNs = pauseMs * (1 + JITTER_SHARE * random()) * NS_PER_MS;
    const fromNs = countsFromEnd(ending) ? nowNs : this.#attemptNs;
    const earliestNs = this.#attemptNs + reconnectMs * NS_PER_MS;
    this.nextAttemptNs = Math.max(fromNs + jitteredNs, earliestNs);
  }
}

/** Whether the leader itself said no, so that it is the end and not the attempt that counts. */
function countsFromEnd(ending: Ending): boolean {
  if (ending.kind === "transport") return true;
  return ending.kind === "app" && ending.code !== 0 && ending.code !== CLOSE_INVALID_STREAM;
}
