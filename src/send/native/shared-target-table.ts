/**
 * Where the leaders of the moment are, in shared memory: the sender writes it, and other threads
 * (the fronts, `native/src/submit/route_table.rs`) read it, to put copies on the wire by
 * themselves.
 *
 *   word  0      rises with each writing; odd while the table is written
 *         1      whether fronts may send now
 *         2      fronts so far
 *         3 ..   engine, version, count, time of a copy in ms, most bytes, leaders left out
 *         9      rises as the engine's news are begun to be taken and when they are; odd meanwhile
 *        10 ..   for each route the engine's handle of the connection
 *        26 ..   and the cell in which its streams are counted
 *        64 ..   the cells
 *
 * A cell is lent to a connection, and lent again when that one is forgotten. It counts on then, so
 * that no number is ever drawn twice of it. A front that still goes by an old table may draw of it,
 * which does no harm: the number is missing among those of the next connection, whose fates need
 * them close together but not without a gap; and the old connection is gone from the engine, so the
 * copy is refused.
 *
 * Hot path: `nextStream`.
 */

import { SHARED_TARGETS_MAX } from "../../core/limits.ts";
import { TARGET_CELLS_MAX } from "../limits.ts";
import type { SharedConnection } from "../transport.ts";

/** The words, as told above. */
export const SEQUENCE = 0;
export const OPEN = 1;
export const INGRESS_THREADS = 2;
export const ENGINE = 3;
export const VERSION = 4;
export const COUNT = 5;
export const TTL_MS = 6;
export const BYTES_MAX = 7;
export const EXCLUDED = 8;
export const DRAIN_COUNT = 9;
export const PEERS = 10;
export const CELLS_OF = PEERS + SHARED_TARGETS_MAX;
const CELLS = 64;

/** Size of the shared memory. */
export const SHARED_TARGET_TABLE_BYTES = (CELLS + TARGET_CELLS_MAX) * Uint32Array.BYTES_PER_ELEMENT;

/** The next of the numbers of a cell, which many threads may draw; never 0. */
export function allocateStream(words: Uint32Array, cell: number): number {
  for (;;) {
    const stream = (Atomics.add(words, CELLS + cell, 1) + 1) >>> 0;
    if (stream !== 0) return stream;
  }
}

/** The side of the thread that has the sender. */
export class SharedTargetTable {
  /** Called before news of the engine are taken, to adopt what fronts sent. Must not throw. */
  beforeDrain: () => void = () => {};
  /** Called after every few of them: a front may wait for this processor. Must not throw. */
  yieldThread: () => void = () => {};
  /** Called when they are taken. The sender's. */
  afterDrain: () => void = () => {};
  /** The native engine's handle; 0: it does not run. */
  engine = 0;
  #version = 0;
  readonly #words: Uint32Array;
  readonly #cellsFree: number[] = [];
  #cellsUsed = 0;

  /** `memory` has SHARED_TARGET_TABLE_BYTES and is all zero. */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Uint32Array(memory);
  }

  /** A cell for the stream numbers of a connection; -1 where none is left. */
  allocateCell(): number {
    const cell = this.#cellsFree.pop();
    if (cell !== undefined) return cell;
    if (this.#cellsUsed === TARGET_CELLS_MAX) return -1;
    this.#cellsUsed += 1;
    return this.#cellsUsed - 1;
  }

  freeCell(cell: number): void {
    this.#cellsFree.push(cell);
  }

  /** What fronts sent is adopted and the engine's news are taken from now on, or are all taken. */
  markDrain(): void {
    Atomics.add(this.#words, DRAIN_COUNT, 1);
  }

  nextStream(cell: number): number {
    return allocateStream(this.#words, cell);
  }

  /** The engine runs, or ends now (0): nothing is sent before the next `publish`. */
  useEngine(engine: number): void {
    this.engine = engine;
    this.publish([], 0, 0);
  }

  /**
   * Replaces the routes, SHARED_TARGETS_MAX at most, and closes them. `leftOut`: how many leaders
   * are connected beside those, for which the sender places the copies. Answers the version.
   */
  publish(
    targets: readonly SharedConnection[],
    ttlMs: number,
    bytesMax: number,
    excluded = 0,
  ): number {
    const words = this.#words;
    this.open(false);
    this.#version = (this.#version + 1) >>> 0 || 1;
    Atomics.add(words, SEQUENCE, 1);
    Atomics.store(words, ENGINE, this.engine);
    Atomics.store(words, VERSION, this.#version);
    Atomics.store(words, COUNT, targets.length);
    Atomics.store(words, TTL_MS, ttlMs);
    Atomics.store(words, BYTES_MAX, bytesMax);
    Atomics.store(words, EXCLUDED, excluded);
    for (const [index, { peer, cell }] of targets.entries()) {
      Atomics.store(words, PEERS + index, peer);
      Atomics.store(words, CELLS_OF + index, cell);
    }
    Atomics.add(words, SEQUENCE, 1);
    return this.#version;
  }

  /** Whether fronts may send. A front may have closed the routes by itself. */
  open(may: boolean): void {
    const value = may ? 1 : 0;
    if (Atomics.load(this.#words, OPEN) !== value) Atomics.store(this.#words, OPEN, value);
  }
}
