/**
 * All fronts, as the main thread has them: starts their threads, gives them passes, takes what they
 * move here, and takes what they did into the books ("adoption"). A front sends first and tells
 * afterwards; whatever on this thread depends on what was sent calls `adopt` before.
 *
 * The books can wait and a front cannot: where both have one processor, the system would let the
 * books go on for as long as a front takes for ten transactions. So they give way after every few
 * (p99 at 5,000 tx/s on two processors: 0.6 to 0.8 times).
 *
 * A front that dies ends the process: its clients' connections would stay open with nobody behind
 * them, and who starts the edge anew gives them others.
 */

import { Bell } from "../core/bell.ts";
import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import {
  FRONT_RECORDS_A_TURN,
  FRONT_RECORDS_BEHIND,
  FRONTS_START_MS_MAX,
  FRONTS_STOP_MS_MAX,
} from "../core/front-limits.ts";
import { sumOf } from "../core/shared-figures.ts";
import type { DeskFigures } from "../ingress/desk.ts";
import type { MoveReason } from "../ingress/moved.ts";
import { MOVE_REASONS } from "../ingress/moved-requests.ts";
import type { PassCounters } from "../ingress/passes.ts";
import { FrontHandle, type HandleDeps, type HandleOptions } from "./handle.ts";
import { Ledger, type LedgerCounters, type LedgerDeps, type PassOwner } from "./ledger.ts";
import type { RecordReader } from "./records.ts";

export interface FrontsDeps extends LedgerDeps, HandleDeps {
  readonly clock: Clock;
  /** Lets threads that wait for this processor have their turn first. */
  readonly giveWay: () => void;
  /**
   * Calls `adopt`, and has the engine's news taken in as well, so that nobody is woken for them a
   * moment later; for when a front woke this thread.
   */
  readonly settle: () => void;
}

export interface FrontsOptions extends Omit<HandleOptions, "bell"> {
  readonly count: number;
}

export interface Fronts {
  /** Takes into the books all that fronts did so far. */
  adopt(): void;
  /** Lets a front that waits for this processor have its turn, unless a ring could fill up. */
  giveWay(): void;
  /** What each counts. */
  readonly figures: readonly DeskFigures[];
  /** Requests that were moved to the main thread, and those of them that have no answer yet. */
  readonly moves: Readonly<Record<MoveReason, number>>;
  readonly moved: number;
  /** Records that are not in the books yet. */
  readonly waiting: number;
  readonly counters: LedgerCounters;
  readonly passes: PassCounters;
  /** Resolves when each takes connections. @throws SetupError when one does not come up */
  start(): Promise<void>;
  /** New work is refused from now on. */
  drain(): void;
  /** Resolves when what is in hand is answered, and in the books. @throws what one died of then */
  stop(): Promise<void>;
}

export function createFronts(deps: FrontsDeps, options: FrontsOptions): Fronts {
  const owners: PassOwner[] = [];
  const ledger = new Ledger(deps, owners);
  const fronts = Array.from({ length: options.count }, () => new FrontHandle(deps, owners, adopt));
  const bell = new Bell(deps.settle);

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

  return {
    adopt,
    giveWay,
    counters: ledger.counters,
    passes: deps.passes.counters,
    figures: fronts.map(({ figures }) => figures),
    moves: sumOf(
      MOVE_REASONS,
      fronts.map(({ moves }) => moves),
    ),
    get moved() {
      return fronts.reduce((sum, { moved }) => sum + moved, 0);
    },
    get waiting() {
      return fronts.reduce((sum, { records }) => sum + records.depth, 0);
    },
    async start() {
      const { clock } = deps;
      bell.start();
      const up = fronts.map((front) => front.start({ ...options, bell: bell.memory }));
      const cause = await firstFailure(clock, up);
      if (cause === null) return;
      for (const front of fronts) front.kill();
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new SetupError(`http.threads: a thread could not be started: ${why}`, { cause });
    },
    drain() {
      for (const front of fronts) front.tell({ kind: "drain" });
    },
    async stop() {
      const kill = deps.clock.after(FRONTS_STOP_MS_MAX, () => {
        for (const front of fronts) front.kill();
      });
      const ends = await Promise.allSettled(fronts.map((front) => front.stop()));
      kill.cancel();
      deps.passes.stop();
      adopt();
      bell.stop();
      const failed = ends.find((end) => end.status === "rejected");
      if (failed !== undefined) throw failed.reason;
    },
  };
}

/** Resolves with null once all are up, or with the first reason why one is not. */
function firstFailure(clock: Clock, ups: readonly Promise<unknown>[]): Promise<unknown> {
  return new Promise((resolve) => {
    const late = new Error(`not up after ${FRONTS_START_MS_MAX} ms`);
    const timer = clock.after(FRONTS_START_MS_MAX, () => resolve(late));
    let missing = ups.length;
    for (const up of ups) {
      void up.then((cause) => {
        missing -= 1;
        if (cause === null && missing > 0) return;
        timer.cancel();
        resolve(cause);
      });
    }
  });
}
