/**
 * The round trip of one connection of the portable engine, measured independently of quiche. Pure.
 * Hot path: `sent`, `heard`.
 *
 * quiche 0.18 takes the send time of a packet from its pacer even when pacing is off. Once losses
 * have reduced the congestion window below five datagrams, that time lies further back than a round
 * trip, and each sample increases the next: after a minute of losses the estimate was 100 s, and
 * until it expires nothing is retransmitted and no silence is detected. So the round trip, and
 * since when a response is owed, are measured here, and a connection with a wrong estimate is
 * replaced. Source: quiche 0.18.0 `recovery/mod.rs` `on_packet_sent`, `recovery/pacer.rs` `send`,
 * 2026-11.
 */

import { NS_PER_S, NS_PER_US } from "../../core/clock.ts";

/** The minimum of these samples counts: a lost and retransmitted packet distorts one. */
const SAMPLES = 8;
/** A transaction not acknowledged after this time was lost at least once. */
const SAMPLE_NS = 2 * NS_PER_S;
/** quiche adds less than this to a correct estimate. */
const MISJUDGED_TIMES = 4;
const MISJUDGED_US = 200_000;
const NONE = -1;

export class RoundTrip {
  /** Microseconds; 0 when not known. */
  us = 0;
  /** Since when a response is owed, `Clock.nowNs`; 0: none is. */
  owedNs = 0;
  /** The stream whose acknowledgement is the next sample; below 0: none. */
  stream = NONE;
  /** Whether quiche's estimate is far too long. */
  misjudged = false;
  readonly #silenceNs: number;
  #heardNs = 0;
  #sentNs = 0;
  #pingNs = 0;
  #leastUs = Number.POSITIVE_INFINITY;
  #samples = 0;

  /** `silenceNs`: the idle timeout of both sides. */
  constructor(silenceNs: number) {
    this.#silenceNs = silenceNs;
  }

  /** A transaction is sent on this stream. */
  sent(stream: number, nowNs: number): void {
    if (this.owedNs === 0) this.owedNs = nowNs;
    this.#pingNs = 0;
    if (this.stream >= 0 && nowNs - this.#sentNs < SAMPLE_NS) return;
    this.stream = stream;
    this.#sentNs = nowNs;
  }

  /** The response to a ping is a sample if no stream is awaited. */
  pinged(nowNs: number): void {
    this.#pingNs = this.owedNs === 0 && this.stream < 0 ? nowNs : 0;
    if (this.owedNs === 0) this.owedNs = nowNs;
  }

  /**
   * Whether the idle timeout has passed on the leader's side, counted from the last received
   * datagram or the first one sent after it. RFC 9000 section 10.1.
   */
  isOver(nowNs: number): boolean {
    const sinceNs = this.owedNs || this.#heardNs;
    return sinceNs !== 0 && nowNs - sinceNs >= this.#silenceNs;
  }

  /**
   * A datagram arrived; `isAcked`: `stream` is acknowledged. True when `compare` is due. A datagram
   * that was buffered while this process was suspended is no sign of life.
   */
  heard(isAcked: boolean, nowNs: number): boolean {
    if (this.isOver(nowNs)) return false;
    this.owedNs = 0;
    this.#heardNs = nowNs;
    const sinceNs = isAcked ? this.#sentNs : this.#pingNs;
    if (isAcked) this.stream = NONE;
    this.#pingNs = 0;
    if (sinceNs === 0) return false;
    this.#leastUs = Math.min(this.#leastUs, (nowNs - sinceNs) / NS_PER_US);
    this.#samples += 1;
    if (this.us === 0 || this.#leastUs < this.us) this.us = this.#leastUs;
    if (this.#samples < SAMPLES) return false;
    this.us = this.#leastUs;
    this.#leastUs = Number.POSITIVE_INFINITY;
    this.#samples = 0;
    return true;
  }

  /** `believedUs`: quiche's estimate. */
  compare(believedUs: number): void {
    this.misjudged = believedUs > MISJUDGED_TIMES * this.us + MISJUDGED_US;
  }
}
