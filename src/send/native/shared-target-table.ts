/**
 * The current leaders, in shared memory: the sender writes it, and the path of a transaction
 * (`native/src/submit/target_table.rs`) reads it, on ingress threads and on the main thread.
 *
 *   word  0      rises with each write; odd while the table is written
 *         1      number of threads that read it
 *         2 ..   engine, count, delivery TTL in ms
 *         5 ..   for each target the engine's handle of the connection
 *        21 ..   for each target the largest transaction that it accepts
 */

import { SHARED_TARGETS_MAX } from "../../core/limits.ts";

/** Indices of the words above. */
export const SEQUENCE = 0;
export const INGRESS_THREADS = 1;
export const ENGINE = 2;
export const COUNT = 3;
export const TTL_MS = 4;
export const PEERS = 5;
export const BYTES_MAX = PEERS + SHARED_TARGETS_MAX;

/** Size of the shared memory. */
export const SHARED_TARGET_TABLE_BYTES =
  (BYTES_MAX + SHARED_TARGETS_MAX) * Uint32Array.BYTES_PER_ELEMENT;

/** The side of the thread that runs the sender. */
export class SharedTargetTable {
  /** Called after the events are read. Set by the sender. */
  afterEvents: () => void = () => {};
  /** The native engine's handle; 0: it does not run. */
  engine = 0;
  readonly #words: Uint32Array;

  /** `memory` has SHARED_TARGET_TABLE_BYTES and is all zero. */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Uint32Array(memory);
  }

  /** The engine starts, or stops (0): no thread sends before the next `publish`. */
  useEngine(engine: number): void {
    this.engine = engine;
    this.publish([], 0, []);
  }

  /**
   * Replaces the targets, at most SHARED_TARGETS_MAX, by these connections, each of which accepts
   * transactions of so many bytes.
   */
  publish(peers: readonly number[], ttlMs: number, bytesMax: readonly number[]): void {
    const words = this.#words;
    Atomics.add(words, SEQUENCE, 1);
    Atomics.store(words, ENGINE, this.engine);
    Atomics.store(words, COUNT, peers.length);
    Atomics.store(words, TTL_MS, ttlMs);
    for (const [index, peer] of peers.entries()) Atomics.store(words, PEERS + index, peer);
    for (const [index, size] of bytesMax.entries()) Atomics.store(words, BYTES_MAX + index, size);
    Atomics.add(words, SEQUENCE, 1);
  }
}
