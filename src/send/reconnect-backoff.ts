/**
 * When a leader may be tried again. No I/O of its own.
 *
 * The wait after a close comes from the table in close-policy.ts; each consecutive failure doubles
 * it, up to `reconnectMsMax`, and a connection that lived long enough resets the count. So does one
 * that was evicted after it carried a delivery: a full node evicts all the time, and accepts the
 * next connection as well. At most eight attempts fall into the period in which a leader grants
 * eight: Agave counts the new connections of each address, and ignores an address above that for
 * minutes (`streamer/src/nonblocking/connection_rate_limiter.rs`, 4.3, 2026-11).
 */

import { NS_PER_MS } from "../core/clock.ts";
import { CLOSE_POLICIES, type ClosePolicy, type CloseReason } from "./close-policy.ts";
import { LEADER_ATTEMPTS_MAX } from "./limits.ts";

export interface ReconnectBackoffOptions {
  /** The period in which a leader grants one more new connection. */
  readonly reconnectMs: number;
  /** Longest wait between two attempts. */
  readonly reconnectMsMax: number;
  /** From 0 to below 1. */
  readonly random: () => number;
}

/** A wait is lengthened by up to this share, so that edges do not reconnect in lockstep. */
const JITTER_SHARE = 0.25;
/** A connection that lived this many times `reconnectMs` resets the failure count. */
const CLEARING_LIVES = 2;
const DOUBLINGS_MAX = 16;

export class ReconnectBackoff {
  /** `Clock.nowNs` from which the next attempt is allowed. */
  nextAttemptNs = 0;
  /** Consecutive connections that neither lived long enough nor were evicted after use. */
  failures = 0;
  #attemptNs = 0;
  /** Times of the last attempts, as a ring. */
  readonly #attempts = new Float64Array(LEADER_ATTEMPTS_MAX).fill(Number.NEGATIVE_INFINITY);
  #at = 0;
  readonly #options: ReconnectBackoffOptions;

  constructor(options: ReconnectBackoffOptions) {
    this.#options = options;
  }

  /** An attempt begins now. */
  recordAttempt(nowNs: number): void {
    this.#attemptNs = nowNs;
    this.#attempts[this.#at] = nowNs;
    this.#at = (this.#at + 1) % LEADER_ATTEMPTS_MAX;
    this.nextAttemptNs = this.#budgetNs();
  }

  /**
   * A connection ended now; `liveNs`: since when it was live, 0 if it never was; `carried`: it
   * carried at least one delivery.
   */
  ended(name: CloseReason, liveNs: number, carried: boolean, nowNs: number): void {
    const { reconnectMs, reconnectMsMax, random } = this.#options;
    const { wait, from, next }: ClosePolicy = CLOSE_POLICIES[name];
    const livedNs = liveNs === 0 ? 0 : nowNs - liveNs;
    const livedLong = livedNs >= CLEARING_LIVES * reconnectMs * NS_PER_MS;
    const evictedAfterUse = next === "before_window" && carried;
    if (livedLong || evictedAfterUse) this.failures = 0;
    this.failures += 1;

    const doublings = Math.min(this.failures - 1, DOUBLINGS_MAX);
    const pauseMs = Math.min(wait * reconnectMs * 2 ** doublings, reconnectMsMax);
    const jitteredNs = pauseMs * (1 + JITTER_SHARE * random()) * NS_PER_MS;
    const fromNs = from === "end" ? nowNs : this.#attemptNs;
    this.nextAttemptNs = Math.max(fromNs + jitteredNs, this.#budgetNs());
  }

  /** When the oldest counted attempt leaves the period. */
  #budgetNs(): number {
    const oldestNs = this.#attempts[this.#at] ?? 0;
    return Math.max(0, oldestNs + LEADER_ATTEMPTS_MAX * this.#options.reconnectMs * NS_PER_MS);
  }
}
