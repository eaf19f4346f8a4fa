/**
 * A successor's side of a hand-over: it tells its predecessor when it is ready, and listens when
 * that permits it. Without a predecessor it ends: whatever then restarts the service starts anew.
 */

import type { ListenAddress } from "../../config/value-types.ts";
import type { Clock } from "../../core/clock.ts";
import { SetupError } from "../../core/errors.ts";
import type { Predecessor, UpgradeCounts } from "../../edge/handover.ts";
import type { ReceiptImporter, ReceiptMessage } from "../../edge/handover-receipts.ts";
import { OTHER_SERVER } from "../../edge/inherited-listener.ts";
import type { QuicSockets } from "../../native-ingress/ingress-threads.ts";
import { SUCCESSOR_LOOK_MS } from "../limits.ts";
import {
  type FromSuccessor,
  HANDOVER_VARIABLE,
  type HandoverNote,
  readNote,
  readToSuccessor,
} from "./messages.ts";

/** The channel to the predecessor: the part of `process` that is used. */
export interface ParentChannel {
  readonly env: Record<string, string | undefined>;
  send?(message: FromSuccessor): unknown;
  on(event: "message", act: (message: unknown) => void): unknown;
  once(event: "disconnect", act: () => void): unknown;
}

export interface PredecessorLink extends Predecessor {
  /** Upgrades of this edge: those that the predecessor knows, and this one once it serves. */
  readonly counts: UpgradeCounts;
  /** Tells the predecessor that this process serves. */
  serving(): void;
  /** Tells it why this process will not. */
  failed(reason: string): void;
}

export interface PredecessorDeps {
  readonly clock: Clock;
  readonly parent: ParentChannel;
  /** This process's `http.listen`. */
  readonly listen: string;
  /** Its `quic.listen`; null: it serves no QUIC clients. */
  readonly quicListen: ListenAddress | null;
  /** Takes over an inherited listening socket; null: it is none. */
  readonly inherit: (socket: number) => number | null;
  /**
   * How long it waits for permission once it is ready; the predecessor sends all receipts before
   * that.
   */
  readonly timeoutMs: number;
}

/**
 * The note of the predecessor that started this process; null: there is none. Removes the variable,
 * so that no other process takes it for its own.
 */
export function takeNote(parent: ParentChannel): HandoverNote | null {
  const text = parent.env[HANDOVER_VARIABLE];
  delete parent.env[HANDOVER_VARIABLE];
  return text === undefined || parent.send === undefined ? null : readNote(text);
}

/** @throws SetupError when this process cannot listen where the predecessor does */
export function linkPredecessor(
  note: HandoverNote,
  { clock, parent, timeoutMs, ...own }: PredecessorDeps,
): PredecessorLink {
  let isGone = false;
  let onGone = (): void => {};
  let onPermission = (): void => {};
  let importer: ReceiptImporter | null = null;
  const early: ReceiptMessage[] = [];
  const { succeeded, failed } = note;
  const counts: UpgradeCounts = { succeeded, failed, lastSeconds: Number.NaN };
  parent.once("disconnect", () => {
    isGone = true;
    onGone();
    importer?.ended();
  });
  parent.on("message", (message) => {
    const told = readToSuccessor(message);
    if (told?.kind === "takeOver") onPermission();
    else if (told?.kind !== "receipts") return;
    else if (importer === null) early.push(told.message);
    else importer.receive(told.message);
  });
  const tell = (message: FromSuccessor): void => {
    if (!isGone) parent.send?.(message);
  };
  return {
    listener: listenerOf(note, own, tell),
    get isGone() {
      return isGone;
    },
    counts,
    serving() {
      counts.succeeded += 1;
      counts.lastSeconds = (clock.unixMs() - note.startedUnixMs) / 1000;
      tell({ kind: "serving" });
    },
    failed: (reason) => tell({ kind: "failed", reason }),
    connectReceipts(create) {
      importer = create((number) => tell({ kind: "ask", number }));
      for (const message of early.splice(0)) importer.receive(message);
      if (isGone) importer.ended();
    },
    async takeOver(missing) {
      const gone = new Promise<never>((_, reject) => {
        onGone = () => reject(new SetupError(GONE));
        if (isGone) onGone();
      });
      await Promise.race([gone, untilReady(clock, missing, tell)]);
      const permission = new Promise<void>((resolve) => {
        onPermission = resolve;
      });
      tell({ kind: "ready" });
      await Promise.race([gone, permission, timeout(clock, timeoutMs)]);
    },
  };
}

const GONE = "the process that this one was to replace has ended before it handed over";

/** A successor cannot listen elsewhere: clients would be refused in between. */
function listenerOf(
  { socket, port, quicSockets, succeeded, listen: before }: HandoverNote,
  { listen, quicListen, inherit }: Pick<PredecessorDeps, "listen" | "quicListen" | "inherit">,
  tell: (message: FromSuccessor) => void,
): Predecessor["listener"] {
  const refuse = (reason: string): never => {
    tell({ kind: "failed", reason });
    throw new SetupError(reason);
  };
  if (listen !== before) {
    refuse(
      `http.listen is ${listen} and was ${before}: an upgrade keeps the address; restart instead`,
    );
  }
  const quicPlaces = placesAt(quicListen, quicSockets);
  const others = { port, quicPlaces, processNumber: succeeded + 1 };
  if (socket === null) return { socket: null, ...others };
  const inherited = inherit(socket);
  if (inherited !== null) return { socket: inherited, ...others };
  return refuse(OTHER_SERVER);
}

/** On another port none of the predecessor's sockets stands before this process's. */
function placesAt(listen: ListenAddress | null, sockets: QuicSockets | null): readonly number[] {
  const isSame = listen?.host === sockets?.host && listen?.port === sockets?.port;
  return isSame ? (sockets?.places ?? []) : [];
}

function untilReady(
  clock: Clock,
  missing: () => readonly string[],
  tell: (message: FromSuccessor) => void,
): Promise<void> {
  return new Promise((resolve) => {
    let last = "";
    const timer = clock.every(SUCCESSOR_LOOK_MS, () => {
      const now = missing();
      if (now.length === 0) {
        timer.cancel();
        resolve();
      } else if (now.join() !== last) {
        last = now.join();
        tell({ kind: "waiting", missing: now });
      }
    });
  });
}

function timeout(clock: Clock, timeoutMs: number): Promise<never> {
  return new Promise((_, reject) => {
    clock.after(timeoutMs, () => {
      reject(new SetupError(`no permission to listen came within ${timeoutMs} ms`));
    });
  });
}
