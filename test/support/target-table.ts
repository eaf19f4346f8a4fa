/**
 * The target table as an ingress thread reads it, on any thread of a test: its last read state. The
 * real one is `native/src/submit/target_table.rs`.
 */

import { SHARED_TARGETS_MAX } from "../../src/core/limits.ts";
import {
  BYTES_MAX,
  COUNT,
  ENGINE,
  INGRESS_THREADS,
  PEERS,
  SEQUENCE,
  TTL_MS,
} from "../../src/send/native/shared-target-table.ts";

/** A write takes less than a microsecond; after this many retries the last table read is used. */
const TRIES = 8;

export class TargetTable {
  /** Counts up from 1 among the ingress threads that share the memory. */
  readonly threadNumber: number;
  engine = 0;
  count = 0;
  ttlMs = 0;
  /** The engine's handle of each target, and the largest transaction that it accepts. */
  readonly peers = new Uint32Array(SHARED_TARGETS_MAX);
  readonly bytesMax = new Uint32Array(SHARED_TARGETS_MAX);
  readonly #int32: Uint32Array;
  #sequence = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#int32 = new Uint32Array(memory);
    this.threadNumber = Atomics.add(this.#int32, INGRESS_THREADS, 1) + 1;
  }

  /** Reads changes; false where it is being written repeatedly. */
  refresh(): boolean {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const sequence = Atomics.load(this.#int32, SEQUENCE);
      if (sequence === this.#sequence) return true;
      if (sequence % 2 === 0 && this.#read(sequence)) return true;
    }
    return false;
  }

  #read(sequence: number): boolean {
    const int32 = this.#int32;
    // The values read below are valid only after the final check.
    this.#sequence = 0;
    this.engine = Atomics.load(int32, ENGINE);
    this.count = Math.min(Atomics.load(int32, COUNT), SHARED_TARGETS_MAX);
    this.ttlMs = Atomics.load(int32, TTL_MS);
    for (let index = 0; index < this.count; index += 1) {
      this.peers[index] = Atomics.load(int32, PEERS + index);
      this.bytesMax[index] = Atomics.load(int32, BYTES_MAX + index);
    }
    if (Atomics.load(int32, SEQUENCE) !== sequence) return false;
    this.#sequence = sequence;
    return true;
  }
}
