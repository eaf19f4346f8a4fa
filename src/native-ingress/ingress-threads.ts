/**
 * All fronts, as the main thread has them: starts their threads, gives them passes, and takes what
 * they did into the books ("adoption"). A front sends first and tells afterwards; whatever on this
 * thread depends on what was sent calls `adopt` before. The threads are the native engine's
 * (`native/src/submit`), and no JavaScript runs on them.
 *
 * The books can wait and a front cannot: where both have one processor, the system would let the
 * books go on for as long as a front takes for ten transactions. So they give way after every few
 * (p99 at 5,000 tx/s on two processors: 0.6 to 0.8 times).
 *
 * A front that dies ends the process: its clients' connections are gone, and who starts the edge
 * anew gives them others.
 *
 * Decision: docs/decisions/0002-ingress-threads-send-first.md
 */

import { SetupError } from "../core/errors.ts";
import type { DeskFigures } from "../http/request-tracker.ts";
import type { KeyOwner } from "../limits/gate.ts";
import type { PassCounters } from "../limits/key-cache-sync.ts";
import { sumOf } from "../runtime/shared-counters.ts";
import { FrontHandle, type FrontTask, type HandleDeps } from "./ingress-thread.ts";
import { FRONT_RECORDS_A_TURN, FRONT_RECORDS_BEHIND, FRONTS_STOP_MS_MAX } from "./limits.ts";
import { Ledger, type LedgerCounters, type LedgerDeps, type PassOwner } from "./record-consumer.ts";
import type { RecordReader } from "./record-ring.ts";
import { RELAY_REASONS, type Relayed } from "./thread-counters.ts";

export interface FrontsDeps extends LedgerDeps, HandleDeps {
  /** Lets threads that wait for this processor have their turn first. */
  readonly giveWay: () => void;
  /**
   * Calls `adopt`, and has the engine's news taken in as well, so that nobody is woken for them a
   * moment later; for when a front woke this thread.
   */
  readonly settle: () => void;
}

export interface FrontsOptions extends Omit<FrontTask, "engine" | "behindPort"> {
  readonly count: number;
  /** The native engine's handle, once it runs. */
  readonly engine: () => number;
  /** The public address. */
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Connections that one address may hold, over all fronts. */
  readonly connectionsPerAddress: number;
}

export interface Fronts {
  /** Takes into the books all that fronts did so far. */
  adopt(): void;
  /** Lets a front that waits for this processor have its turn, unless a ring could fill up. */
  giveWay(): void;
  /** That front relayed a submission of this key, which is good: it may get a pass. */
  known(front: number, token: string, owner: KeyOwner): void;
  /** What each counts. */
  readonly figures: readonly DeskFigures[];
  /** Requests that were left to the main thread. */
  readonly relayed: Relayed;
  /** Records that are not in the books yet. */
  readonly waiting: number;
  readonly counters: LedgerCounters;
  readonly passes: PassCounters;
  /**
   * Listens. What they leave goes to `behindPort` of loopback.
   *
   * @throws SetupError when a thread does not come up, or the port is taken
   */
  start(behindPort: number): { readonly port: number };
  /** New work is refused from now on. */
  drain(): void;
  /** Resolves when what is in hand is answered, and in the books. @throws what one died of then */
  stop(): Promise<void>;
}

export function createFronts(deps: FrontsDeps, options: FrontsOptions): Fronts {
  const { clock, native, passes } = deps;
  const owners: PassOwner[] = [];
  const ledger = new Ledger(deps, owners);
  const fronts = Array.from({ length: options.count }, () => new FrontHandle(deps, owners, adopt));

  function adopt(): void {
    for (const { records } of fronts) adoptOf(records);
  }

  /** No more than was there: what comes meanwhile rings for itself. */
  function adoptOf(records: RecordReader): void {
    const depth = records.depth;
    for (let taken = 1; taken <= depth && records.read(ledger.take); taken += 1) {
      if (taken % FRONT_RECORDS_A_TURN === 0) giveWay();
    }
  }

  function giveWay(): void {
    for (const { records } of fronts) if (records.depth >= FRONT_RECORDS_BEHIND) return;
    deps.giveWay();
  }

  /** A front has something. */
  function heed(): void {
    // First of all: what comes from now on wakes again.
    for (const front of fronts) front.heed();
    deps.settle();
  }

  function listen(): number {
    const handles = Uint32Array.from(fronts, ({ front }) => front);
    const { host, port, connectionsPerAddress } = options;
    const answer = native.frontsListen(handles, host, port, connectionsPerAddress);
    if (answer > 0) return answer;
    throw new SetupError(
      `http.listen: cannot listen on ${host}:${port}; either the port is taken, ` +
        "perhaps by another edge, or the address is not one of this machine",
    );
  }

  return {
    adopt,
    giveWay,
    known: (front, token, owner) => fronts[front]?.grant(token, owner),
    counters: ledger.counters,
    passes: passes.counters,
    figures: fronts.map(({ figures }) => figures),
    relayed: sumOf(
      RELAY_REASONS,
      fronts.map(({ figures }) => figures.relayed),
    ),
    get waiting() {
      return fronts.reduce((sum, { records }) => sum + records.depth, 0);
    },
    start(behindPort) {
      try {
        const task = { ...options, engine: options.engine(), behindPort };
        for (const [number, front] of fronts.entries()) front.start(task, number, heed);
        return { port: listen() };
      } catch (error) {
        for (const front of fronts) front.kill();
        throw error;
      }
    },
    drain() {
      for (const front of fronts) front.drain();
    },
    async stop() {
      const kill = clock.after(FRONTS_STOP_MS_MAX, () => {
        for (const front of fronts) front.kill();
      });
      // All of them, so that a client has its answer, if only a refusal, while any is in hand.
      await Promise.all(fronts.map((front) => front.stop()));
      const ends = await Promise.allSettled(fronts.map((front) => front.end()));
      kill.cancel();
      passes.stop();
      adopt();
      const failed = ends.find((end) => end.status === "rejected");
      if (failed !== undefined) throw failed.reason;
    },
  };
}
