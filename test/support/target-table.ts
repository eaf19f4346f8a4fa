/**
 * The targets that the sender set last, as threads of the engine send to them (the real ones are in
 * `native/src/quic/targets.rs`).
 */

import { type NativeSending, OK } from "../../src/native/contract.ts";

export class TestTargets {
  engine = 0;
  peers: readonly number[] = [];
  bytesMax: readonly number[] = [];
  ttlMs = 0;
  #threads = 0;
  readonly #native: Pick<NativeSending, "targetsSet"> | null;

  /** With an engine, which gets them too. */
  constructor(native: Pick<NativeSending, "targetsSet"> | null = null) {
    this.#native = native;
  }

  readonly targetsSet: NativeSending["targetsSet"] = (engine, peers, bytesMax, ttlMs) => {
    this.engine = engine;
    this.peers = [...peers];
    this.bytesMax = [...bytesMax];
    this.ttlMs = ttlMs;
    return this.#native?.targetsSet(engine, peers, bytesMax, ttlMs) ?? OK;
  };

  /** Counts one more thread that sends; returns its number, from 1. */
  registerThread(): number {
    this.#threads += 1;
    return this.#threads;
  }
}
