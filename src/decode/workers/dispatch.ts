// Hot path: inline adds a few comparisons; a worker costs what crew.ts and lane.ts say.
/**
 * Decides on which thread a transaction is decoded, and sees to it that each is answered once.
 *
 *     accept ─┬─ first few of its turn, some more while every worker is behind ─▶ here and now
 *             └─ otherwise ─▶ the worker with the least in hand ─ring─▶ … ─▶ done
 *
 * Waking a thread costs as much as half a verification, and far more where processors are busy, so
 * the first few of a turn stay on the calling thread, and the rest of a burst is spread over the
 * workers. How many are few is a matter of time: a signer that is not known takes ten times as
 * long. A worker that the machine gives no time delays only what it has: a new turn begins here
 * whatever waits there, and once every ring is some way behind this thread takes more. When a ring
 * is full the answer is `ring_full` (overloaded) at once; when a worker dies, what it had in hand
 * is answered `worker_died` (internal) and another takes its place. A turn is one round of the
 * event loop: it ends with setImmediate, after all sockets that were readable have been served.
 * That costs a round that does not sleep, so small turns go without: what they decoded, less than
 * a quarter of a share, counts for the turn that follows.
 *
 * Decision: docs/decisions/0001-run-to-completion.md
 */

import { type Clock, NS_PER_US } from "../../core/clock.ts";
import { DECODE_ERROR } from "../../core/decode-errors.ts";
import type { Packet, Rejected, ValidationResult } from "../../core/flow.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import { withFastProperties } from "../../runtime/fast-object.ts";
import type { Decoder, WorkerDecoder } from "../decoder.ts";
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
  /** For what is decoded on the calling thread. */
  readonly decoder: Pick<Decoder, "decode">;
  readonly workers: WorkerPool;
  readonly log: Log;
}

export interface DispatchOptions {
  /**
   * auto: as the header says. never: by workers only, and refused while none lives. always: on
   * the calling thread only.
   */
  readonly inline: "auto" | "never" | "always";
  /** Worker threads; 0 is the same as `always`. */
  readonly workers: number;
  /** What each worker's decoder is made with. */
  readonly decoder: WorkerDecoder;
  /** Decoded here in each turn whatever waits, and while every worker is behind. */
  readonly hereAtLeast?: number;
  readonly hereATurn?: number;
  /** What takes longer counts for as many of those as fit into it; each for one when not given. */
  readonly hereUnitUs?: number;
  /** Slots of each worker's rings, a power of two; DECODE_RING_SLOTS when not given. */
  readonly ringSlots?: number;
  /** How long a worker looks for more before it sleeps; not at all when not given. */
  readonly pollUs?: number;
}

export interface DispatchCounters {
  /** Decoded on the calling thread. */
  readonly inline: number;
  /** Handed to a worker. */
  readonly handed: number;
  /** Refused because the rings were full, no worker lived, or the stage had stopped. */
  readonly full: number;
  /** Answered `worker_died` because the decoder threw on the calling thread. */
  readonly failed: number;
  /** Answered `worker_died` because a worker died with them in hand. */
  readonly lost: number;
  /** Deaths of worker threads; each is followed by a restart, unless the stage stops. */
  readonly deaths: number;
}

export interface Dispatch {
  /**
   * Takes a packet, and calls `done` exactly once: during the call, or later on this thread. The
   * packet that `done` sees has the same fields; its bytes are lent until `done` returns.
   */
  accept(packet: Packet, done: DecodeDone): void;
  readonly counters: DispatchCounters;
  /** The workers' signature counters together; those of `deps.decoder` are its own. */
  readonly verifierCounters: VerifierCounters;
  /** Transactions that workers have in hand. */
  readonly depth: number;
  /** Worker threads that live and take transactions. */
  readonly workersUp: number;
  /** Resolves when all workers are up; a SetupError when one cannot start, and none is left. */
  start(): Promise<void>;
  /** Takes nothing more, answers everything in hand, ends the threads. */
  stop(): Promise<void>;
}

const FAILED: Rejected = {
  kind: "refused",
  errorCode: DECODE_ERROR.worker_died,
  found: 0,
  needed: 0,
};

/** The stage between ingress and route. It decodes inline until `start` has been called. */
export function createDispatch(deps: DispatchDeps, options: DispatchOptions): Dispatch {
  const slots = options.ringSlots ?? DECODE_RING_SLOTS;
  const workers = options.inline === "always" ? 0 : options.workers;
  const auto = options.inline === "auto";
  const hereAtLeast = options.hereAtLeast ?? DECODE_INLINE_PER_TURN_MIN;
  const hereATurn = options.hereATurn ?? DECODE_INLINE_PER_TURN_MAX;
  const group = new WorkerGroup(deps, {
    workers,
    slots,
    decoder: options.decoder,
    pollUs: options.pollUs ?? 0,
  });
  const unitNs = (options.hereUnitUs ?? Number.POSITIVE_INFINITY) * NS_PER_US;
  const own = { inline: 0, handed: 0, full: 0, failed: 0 };
  let stopped = false;
  /** Decoded here in this turn of the event loop, and in small ones just before, in units. */
  let hereInTurn = 0;
  /** From so many on the end of the turn is waited for. */
  const largeTurn = hereAtLeast >> 2;
  let isEndAwaited = false;
  const endTurn = (): void => {
    hereInTurn = 0;
    isEndAwaited = false;
  };

  function decodeHere(packet: Packet, done: DecodeDone): void {
    own.inline += 1;
    const beganNs = deps.clock.nowNs();
    let validation: ValidationResult = FAILED;
    try {
      validation = deps.decoder.decode(packet.bytes);
    } catch (error) {
      // The decoder promises not to throw; if it does, one sender is told and the rest go on.
      own.failed += 1;
      deps.log.error({ error: String(error) }, "the decoder threw");
    }
    hereInTurn += Math.max(1, (deps.clock.nowNs() - beganNs) / unitNs);
    if (hereInTurn > largeTurn && workers > 0 && !isEndAwaited) {
      isEndAwaited = true;
      setImmediate(endTurn);
    }
    done(packet, validation);
  }

  function reject(packet: Packet, done: DecodeDone): void {
    own.full += 1;
    const needed = slots * workers;
    done(packet, {
      kind: "refused",
      errorCode: DECODE_ERROR.ring_full,
      found: group.depth,
      needed,
    });
  }

  function share(packet: Packet, done: DecodeDone): void {
    const worker = group.leastBusy();
    const isBehind = worker === null || worker.pendingCount >= DECODE_BEHIND;
    const share = isBehind ? hereATurn : hereAtLeast;
    if (auto && (worker === null || hereInTurn < share)) decodeHere(packet, done);
    else if (worker?.offer(packet, done)) own.handed += 1;
    else reject(packet, done);
  }

  function accept(packet: Packet, done: DecodeDone): void {
    // What is longer than any transaction is refused by its length: no work to share.
    const noShare = workers === 0 || packet.bytes.length > V1_TRANSACTION_BYTES_MAX;
    if (stopped) reject(packet, done);
    else if (noShare) decodeHere(packet, done);
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

/** The stage's own counts and the crew's, as one record that is always up to date. */
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
