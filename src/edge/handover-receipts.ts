/**
 * How a successor gets the receipts of the edge that it replaces: all of them, oldest first, before
 * it listens; then those that change, until the old process ends. So clients ask the successor
 * alone, and its streams continue those of the old process.
 *
 * Changes are numbered on: the successor begins far above the numbers of the old process, which
 * says at its retirement up to which change its streams were told. What arrives before that is
 * stored in silence, and everything after it is a change for the successor's streams.
 */

import type { Clock, Timer } from "../core/clock.ts";
import type { Receipts, ReceiptTransfer } from "../receipts/receipts.ts";
import type { ReceiptSlice } from "../receipts/transfer.ts";
import { CATCH_UP_MS_MAX, RECEIPTS_PER_SLICE, RECEIPTS_ROUND_MS } from "./limits.ts";

/** What the old process tells its successor. */
export type ReceiptMessage =
  /** First: how its changes are numbered. */
  | { readonly kind: "log"; readonly epoch: string; readonly next: number }
  | { readonly kind: "slice"; readonly slice: ReceiptSlice }
  /** Its streams were told the changes up to this one, and end. */
  | { readonly kind: "retired"; readonly last: number }
  /** All that it knew when it was asked has been sent. */
  | { readonly kind: "caughtUp"; readonly ask: number };

export interface ReceiptExporterDeps {
  readonly clock: Clock;
  readonly receipts: Pick<Receipts, "transfer">;
  /** Brings receipts up to date. */
  readonly flushEvents: () => void;
}

export interface ReceiptExporter {
  /** Sends all receipts, and then what changes. Resolves when all are sent. `send` may reject. */
  start(send: (message: ReceiptMessage) => Promise<void>): Promise<void>;
  /** The streams were told all changes so far. */
  retired(): void;
  /** The successor asks for all that is known. */
  asked(ask: number): void;
  /** Sends what is left, if any successor listens. */
  finish(): Promise<void>;
  /** The successor has ended. */
  stop(): void;
}

export function createReceiptExporter(deps: ReceiptExporterDeps): ReceiptExporter {
  const { clock, receipts, flushEvents } = deps;
  const { transfer } = receipts;
  let send: ((message: ReceiptMessage) => Promise<void>) | null = null;
  let timer: Timer | null = null;
  /** The next change to send. */
  let cursor = 0;
  let isRoundDue = false;
  /** Everything is sent in one order. */
  let work: Promise<void> = Promise.resolve();

  function stop(): void {
    send = null;
    transfer.log.isFollowed = false;
    isRoundDue = false;
    timer?.cancel();
    timer = null;
  }

  /**
   * Queues work for the current successor, which is skipped if that successor is gone by then. A
   * successor that does not listen any more has ended, or this process ends it.
   */
  function enqueue(act: (send: (message: ReceiptMessage) => Promise<void>) => Promise<void>) {
    const own = send;
    work = work.then(async () => {
      if (own === null || own !== send) return;
      try {
        await act(own);
      } catch {
        // Another one may have been started meanwhile.
        if (own === send) stop();
      }
    });
    return work;
  }

  async function sendAll(to: (message: ReceiptMessage) => Promise<void>): Promise<void> {
    const { log } = transfer;
    flushEvents();
    cursor = log.next;
    await to({ kind: "log", epoch: log.epoch, next: log.next });
    for (let from = 0; ; ) {
      const exported = transfer.exportFrom(from, RECEIPTS_PER_SLICE);
      if (exported === null) return;
      from = exported.next;
      await to({ kind: "slice", slice: exported.slice });
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  /** Sends the receipts of the changes before `to`. */
  async function sendChanges(
    to: (message: ReceiptMessage) => Promise<void>,
    end: number,
  ): Promise<void> {
    while (cursor < end) {
      const { slice, next } = transfer.exportChanges(cursor, end, RECEIPTS_PER_SLICE);
      cursor = next;
      if (slice.count > 0) await to({ kind: "slice", slice });
    }
  }

  function round(): void {
    if (isRoundDue) return;
    isRoundDue = true;
    void enqueue(async (to) => {
      isRoundDue = false;
      flushEvents();
      await sendChanges(to, transfer.log.next);
    });
  }

  return {
    stop,
    start(given) {
      stop();
      send = given;
      transfer.log.isFollowed = true;
      timer = clock.every(RECEIPTS_ROUND_MS, round);
      return enqueue(sendAll);
    },
    retired() {
      const { next } = transfer.log;
      void enqueue(async (to) => {
        await sendChanges(to, next);
        await to({ kind: "retired", last: next - 1 });
      });
    },
    asked(ask) {
      void enqueue(async (to) => {
        flushEvents();
        await sendChanges(to, transfer.log.next);
        await to({ kind: "caughtUp", ask });
      });
    },
    async finish() {
      round();
      await work;
      stop();
    },
  };
}

/** Where a successor gets receipts from. */
export interface ReceiptOrigin {
  /** Connects the receipts: the importer gets its messages, those that came before included. */
  connectReceipts(create: (ask: (number: number) => void) => ReceiptImporter): void;
}

/** Receives the receipts of a predecessor, if there is one; returns what a successor needs. */
export function connectReceipts(
  predecessor: ReceiptOrigin | null,
  deps: ReceiptExporterDeps,
): ReceiptExporter {
  const { transfer } = deps.receipts;
  predecessor?.connectReceipts((ask) => createReceiptImporter(deps.clock, transfer, ask));
  return createReceiptExporter(deps);
}

export interface ReceiptImporter {
  receive(message: ReceiptMessage): void;
  /** The old process has ended: it is not asked any more. */
  ended(): void;
}

/** `ask` asks the old process for all that it knows. */
export function createReceiptImporter(
  clock: Clock,
  transfer: ReceiptTransfer,
  ask: (number: number) => void,
): ReceiptImporter {
  let isLogged = false;
  let hasEnded = false;
  let asked = 0;
  const waiting = new Map<number, () => void>();

  function catchUp(): Promise<void> | null {
    if (hasEnded) return null;
    asked += 1;
    const number = asked;
    return new Promise((resolve) => {
      const timer = clock.after(CATCH_UP_MS_MAX, () => waiting.get(number)?.());
      waiting.set(number, () => {
        waiting.delete(number);
        timer.cancel();
        resolve();
      });
      ask(number);
    });
  }

  transfer.useCatchUp(catchUp);
  return {
    receive(message) {
      if (message.kind === "log") transfer.log.continueFrom(message.epoch, message.next);
      else if (message.kind === "slice") transfer.import(message.slice, isLogged);
      else if (message.kind === "caughtUp") waiting.get(message.ask)?.();
      else if (message.kind === "retired") {
        transfer.log.otherEnded(message.last);
        isLogged = true;
      }
    },
    ended() {
      hasEnded = true;
      if (!isLogged) transfer.log.otherEnded(Number.POSITIVE_INFINITY);
      for (const done of [...waiting.values()]) done();
    },
  };
}
