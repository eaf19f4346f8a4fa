/**
 * The connections to the current leaders, to which all threads of the native engine send. The
 * sender sets them; the engine keeps them (`native/src/quic/targets.rs`).
 */

import type { NativeSending } from "../../native/contract.ts";

export class TargetTable {
  /** Called after the events are read. Set by the sender. */
  afterEvents: () => void = () => {};
  /** The engine's handle; 0: it does not run, and nothing is sent. Set by the transport. */
  engine = 0;
  readonly #native: Pick<NativeSending, "targetsSet">;

  constructor(native: Pick<NativeSending, "targetsSet">) {
    this.#native = native;
  }

  /**
   * Replaces the targets, at most TARGETS_MAX, by these connections, each of which accepts
   * transactions of so many bytes.
   */
  set(peers: readonly number[], bytesMax: readonly number[], ttlMs: number): void {
    if (this.engine === 0) return;
    const lists = [Uint32Array.from(peers), Uint32Array.from(bytesMax)] as const;
    this.#native.targetsSet(this.engine, ...lists, ttlMs);
  }
}
