// Hot path: inline adds a few comparisons; for a worker see worker-group.ts, worker-handle.ts.
/**
 * Decides on which thread a transaction is decoded, and ensures that each is answered once.
 *
 *     accept ─┬─ first few of its turn, more while every worker is behind ─▶ inline
 *             └─ otherwise ─▶ the worker with the fewest pending ─ring─▶ … ─▶ done
 *
 * Waking a thread costs as much as half a verification, and far more on busy processors, so the
 * first few of a turn stay on the calling thread, and the rest of a burst is spread over the
 * workers. A worker without processor time delays only its own transactions: each turn starts
 * inline regardless of the queues, and once every ring is behind this thread decodes more. When a
 * ring is full the result is `ring_full` (overloaded) immediately; when a worker dies, its pending
 * transactions are answered `worker_died` (internal) and another starts. A turn is one iteration of
 * the event loop: it ends with setImmediate, after all readable sockets have been served. That
 * costs an iteration that does not sleep, so small turns skip it: what they decoded, less than a
 * quarter of the limit, counts for the next turn.
 *
 * Decision: docs/decisions/0001-run-to-completion.md
 */

import type { Clock } from "../../core/clock.ts";
import { DECODE_ERROR } from "../../core/decode-errors.ts";
import type { Packet, Rejected, ValidationResult } from "../../core/flow.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import { withFastProperties } from "../../runtime/fast-object.ts";
import type { Decoder, DecoderOptions } from "../decoder.ts";
import {
  DECODE_BEHIND,
  DECODE_INLINE_PER_TURN_MAX,
  DECODE_INLINE_PER_TURN_MIN,
  DECODE_RING_SLOTS,
} from "../limits.ts";
import type { VerifierCounters } from "../verify.ts";
import type { WorkerPool } from "./piscina-pool.ts";
import { WorkerGroup } from "./worker-group.ts";
import type { DecodeDone } from "./worker-handle.ts";

export interface DispatchDeps {
  readonly clock: Clock;
  /** For transactions decoded on the calling thread. */
  readonly decoder: Pick<Decoder, "decode">;
  readonly workers: WorkerPool;
  readonly log: Log;
}

export interface DispatchOptions {
  /**
   * auto: see the header. never: by workers only, rejected while none is up. always: on the calling
   * thread only.
   */
  readonly inline: "auto" | "never" | "always";
  /** Worker threads; 0 is the same as `always`. */
  readonly workers: number;
  /** Options of each worker's decoder. */
  readonly decoder: DecoderOptions;
  /** Decoded inline per turn in any case; `inlinePerTurnMax`: while every worker is behind. */
  readonly inlinePerTurnMin?: number;
  readonly inlinePerTurnMax?: number;
  /** Slots of each worker's rings, a power of two; default DECODE_RING_SLOTS. */
  readonly ringSlots?: number;
}

export interface DispatchCounters {
  /** Decoded on the calling thread. */
  readonly inline: number;
  /** Passed to a worker. */
  readonly handed: number;
  /** Rejected because the rings were full, no worker was up, or the stage had stopped. */
  readonly full: number;
  /** Answered `worker_died` because the decoder threw on the calling thread. */
  readonly failed: number;
  /** Answered `worker_died` because a worker died while they were pending. */
  readonly lost: number;
  /** Deaths of worker threads; each is followed by a restart, unless the stage stops. */
  readonly deaths: number;
}

export interface Dispatch {
  /**
   * Decodes a packet and calls `done` exactly once: during the call, or later on this thread. The
   * packet passed to `done` has the same fields; its bytes are borrowed until `done` returns.
   */
  accept(packet: Packet, done: DecodeDone): void;
  readonly counters: DispatchCounters;
  /** The sum of the workers' signature counters; `deps.decoder` has its own. */
  readonly verifierCounters: VerifierCounters;
  /** Transactions pending in workers. */
  readonly depth: number;
  /** Worker threads that are up and accept transactions. */
  readonly workersUp: number;
  /** Resolves when all workers are up; a SetupError when one cannot start, then none is left. */
  start(): Promise<void>;
  /** Accepts nothing more, answers everything pending, ends the threads. */
  stop(): Promise<void>;
}

const FAILED: Rejected = {
  kind: "rejected",
  errorCode: DECODE_ERROR.worker_died,
  found: 0,
  needed: 0,
};

/** The stage between ingress and route. It decodes inline until `start` has been called. */
export function createDispatch(deps: DispatchDeps, options: DispatchOptions): Dispatch {
  const slots = options.ringSlots ?? DECODE_RING_SLOTS;
  const workers = options.inline === "always" ? 0 : options.workers;
  const auto = options.inline === "auto";
  const inlinePerTurnMin = options.inlinePerTurnMin ?? DECODE_INLINE_PER_TURN_MIN;
  const inlinePerTurnMax = options.inlinePerTurnMax ?? DECODE_INLINE_PER_TURN_MAX;
  const group = new WorkerGroup(deps, {
    workers,
    slots,
    decoder: options.decoder,
  });
  const own = { inline: 0, handed: 0, full: 0, failed: 0 };
  let stopped = false;
  /** Decoded inline in this turn, and in preceding small turns. */
  let inlineInTurn = 0;
  /** From this count on, the end of the turn is awaited. */
  const largeTurn = inlinePerTurnMin >> 2;
  let isEndAwaited = false;
  const endTurn = (): void => {
    inlineInTurn = 0;
    isEndAwaited = false;
  };

  function decodeInline(packet: Packet, done: DecodeDone): void {
    own.inline += 1;
    let validation: ValidationResult = FAILED;
    try {
      validation = deps.decoder.decode(packet.bytes);
    } catch (error) {
      // The decoder must not throw; if it does, only this transaction is rejected.
      own.failed += 1;
      deps.log.error({ error: String(error) }, "the decoder threw");
    }
    inlineInTurn += 1;
    if (inlineInTurn > largeTurn && workers > 0 && !isEndAwaited) {
      isEndAwaited = true;
      setImmediate(endTurn);
    }
    done(packet, validation);
  }

  function reject(packet: Packet, done: DecodeDone): void {
    own.full += 1;
    const needed = slots * workers;
    done(packet, {
      kind: "rejected",
      errorCode: DECODE_ERROR.ring_full,
      found: group.depth,
      needed,
    });
  }

  function share(packet: Packet, done: DecodeDone): void {
    const worker = group.leastBusy();
    const isBehind = worker === null || worker.pendingCount >= DECODE_BEHIND;
    const perTurn = isBehind ? inlinePerTurnMax : inlinePerTurnMin;
    if (auto && (worker === null || inlineInTurn < perTurn)) decodeInline(packet, done);
    else if (worker?.offer(packet, done)) own.handed += 1;
    else reject(packet, done);
  }

  function accept(packet: Packet, done: DecodeDone): void {
    // A body longer than any transaction is rejected by its length: no work to distribute.
    const mustBeInline = workers === 0 || packet.bytes.length > V1_TRANSACTION_BYTES_MAX;
    if (stopped) reject(packet, done);
    else if (mustBeInline) decodeInline(packet, done);
    else share(packet, done);
  }

  return withFastProperties({
    accept,
    counters: dispatchCounters(own, group),
    verifierCounters: group.verifierCounters,
    get depth() {
      return group.depth;
    },
    get workersUp() {
      return group.up;
    },
    start: () => group.start(),
    stop() {
      stopped = true;
      return group.stop();
    },
  });
}

type OwnCounters = Omit<DispatchCounters, "lost" | "deaths">;

/** The stage's own counters and the worker group's, as one live record. */
function dispatchCounters(own: OwnCounters, group: WorkerGroup): DispatchCounters {
  return {
    get inline() {
      return own.inline;
    },
    get handed() {
      return own.handed;
    },
    get full() {
      return own.full;
    },
    get failed() {
      return own.failed;
    },
    get lost() {
      return group.lost;
    },
    get deaths() {
      return group.deaths;
    },
  };
}
