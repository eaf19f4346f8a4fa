/**
 * The round trip of one connection of the portable engine, measured beside quiche. Pure. Hot path:
 * `sent`, `heard`.
 *
 * quiche 0.18 takes a packet's time of sending from its pacer even where pacing is off. Once losses
 * have made the congestion window smaller than five datagrams, that time lies further back than a
 * round trip, and each sample makes the next one longer: 100 s were believed after a minute of
 * losses, and until those are over nothing is sent again and no silence is noticed. So the round
 * trip, and since when an answer is owed, are known here, and who is misjudged is to be replaced.
 * Source: quiche 0.18.0 `recovery/mod.rs` `on_packet_sent`, `recovery/pacer.rs` `send`, 2026-11.
 */

import { NS_PER_S, NS_PER_US } from "../../core/clock.ts";

/** Samples of which the least counts: one that was lost and sent again says nothing. */
const SAMPLES = 8;
/** A transaction that is not acknowledged by then was lost at least once. */
const SAMPLE_NS = 2 * NS_PER_S;
/** More than quiche adds to a round trip of its own that it judges well. */
const MISJUDGED_TIMES = 4;
const MISJUDGED_US = 200_000;
const NONE = -1;

export class RoundTrip {
  /** Microseconds; 0 when not known. */
  us = 0;
  /** Since when an answer is owed, `Clock.nowNs`; 0: none is. */
  owedNs = 0;
  /** The stream whose acknowledgement is awaited as a sample; below 0: none. */
  stream = NONE;
  /** Whether quiche takes the round trip for far longer than it is. */
  misjudged = false;
  readonly #silenceNs: number;
  #heardNs = 0;
  #sentNs = 0;
  #pingNs = 0;
  #leastUs = Number.POSITIVE_INFINITY;
  #samples = 0;

  /** `silenceNs` is for how long either side keeps a connection of which it hears nothing. */
  constructor(silenceNs: number) {
    this.#silenceNs = silenceNs;
  }

  /** A transaction goes on the wire on this stream. */
  sent(stream: number, nowNs: number): void {
    if (this.owedNs === 0) this.owedNs = nowNs;
    this.#pingNs = 0;
    if (this.stream >= 0 && nowNs - this.#sentNs < SAMPLE_NS) return;
    this.stream = stream;
    this.#sentNs = nowNs;
  }

  /** The answer to a ping is a sample where nothing else is awaited. */
  pinged(nowNs: number): void {
    this.#pingNs = this.owedNs === 0 && this.stream < 0 ? nowNs : 0;
    if (this.owedNs === 0) this.owedNs = nowNs;
  }

  /**
   * Whether silence has lasted so long that the leader has forgotten us, counted from what was
   * heard last or from the first that was said after it. RFC 9000 section 10.1.
   */
  isOver(nowNs: number): boolean {
    const sinceNs = this.owedNs || this.#heardNs;
    return sinceNs !== 0 && nowNs - sinceNs >= this.#silenceNs;
  }

  /**
   * A datagram came; `isAcked`: `stream` is acknowledged. True when it is time to `compare`. One
   * that lay here while this process was stopped is no sign of life.
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

  /** `believedUs` is what quiche takes it for. */
  compare(believedUs: number): void {
    this.misjudged = believedUs > MISJUDGED_TIMES * this.us + MISJUDGED_US;
  }
}
