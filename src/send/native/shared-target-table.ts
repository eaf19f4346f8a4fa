/**
 * The current leaders, in shared memory: the sender writes it, and ingress threads
 * (`native/src/submit/target_table.rs`) read it, to send without the sender.
 *
 *   word  0      rises with each write; odd while the table is written
 *         1      whether ingress threads may send now
 *         2      number of ingress threads
 *         3 ..   engine, version, count, delivery TTL in ms, maximum bytes, excluded leaders
 *         9 ..   for each target the engine's handle of the connection
 *        25 ..   and the cell from which its stream numbers are allocated
 *        64 ..   the cells
 *
 * A cell belongs to one connection at a time and is reused afterwards. Its count continues, so that
 * it never allocates a number twice. An ingress thread with an old table may still allocate from
 * it, which is harmless: the next connection has a gap in its numbers, and its stream results only
 * need numbers that lie close together; the engine has forgotten the old connection, so it rejects
 * the delivery.
 *
 * Hot path: `nextStream`.
 */

import { SHARED_TARGETS_MAX } from "../../core/limits.ts";
import { TARGET_CELLS_MAX } from "../limits.ts";
import type { SharedConnection } from "../transport.ts";

/** Indices of the words above. */
export const SEQUENCE = 0;
export const OPEN = 1;
export const INGRESS_THREADS = 2;
export const ENGINE = 3;
export const VERSION = 4;
export const COUNT = 5;
export const TTL_MS = 6;
export const BYTES_MAX = 7;
export const EXCLUDED = 8;
export const PEERS = 9;
export const CELLS_OF = PEERS + SHARED_TARGETS_MAX;
const CELLS = 64;

/** Size of the shared memory. */
export const SHARED_TARGET_TABLE_BYTES = (CELLS + TARGET_CELLS_MAX) * Uint32Array.BYTES_PER_ELEMENT;

/** Allocates the next stream number of a cell, shared by many threads; never 0. */
export function allocateStream(words: Uint32Array, cell: number): number {
  for (;;) {
    const stream = (Atomics.add(words, CELLS + cell, 1) + 1) >>> 0;
    if (stream !== 0) return stream;
  }
}

/** The side of the thread that runs the sender. */
export class SharedTargetTable {
  /**
   * Called after engine events were taken and before they are processed, to record what ingress
   * threads sent. Returns false while not all of it is known: then the events wait. Must not throw.
   */
  beforeEvents: () => boolean = () => true;
  /** Called after every few events: an ingress thread may need this processor. Must not throw. */
  yieldThread: () => void = () => {};
  /** Called after the events are read. Set by the sender. */
  afterEvents: () => void = () => {};
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

  nextStream(cell: number): number {
    return allocateStream(this.#words, cell);
  }

  /** The engine starts, or stops (0): no thread sends before the next `publish`. */
  useEngine(engine: number): void {
    this.engine = engine;
    this.publish([], 0, 0);
  }

  /**
   * Replaces the targets, at most SHARED_TARGETS_MAX, and closes the table. `excluded`: the number
   * of other connected leaders, to which the sender sends. Returns the version.
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

  /** Whether ingress threads may send. An ingress thread may also close the table itself. */
  open(may: boolean): void {
    const value = may ? 1 : 0;
    if (Atomics.load(this.#words, OPEN) !== value) Atomics.store(this.#words, OPEN, value);
  }
}
