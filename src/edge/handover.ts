/**
 * How one edge process replaces another without a refused connection:
 *
 *   predecessor                                   successor
 *   lend: leaves the key journal             ──▶  starts everything but the listeners
 *   sends all receipts, then what changes    ──▶  stores them (handover-receipts.ts)
 *   release: closes the admin listener       ◀──  is ready
 *                                            ──▶  listens: admin, and the same public socket
 *   retire: accepts no more, closes each     ◀──  serves
 *           connection with its next response
 *   ends when nothing is in hand any more,
 *   and its own predecessor has ended
 *
 * Both have the public socket during that time, so no connection in its queue is lost. Until the
 * successor serves, `takeBack` undoes the first two steps.
 *
 * Decision: docs/decisions/0052-hand-over.md
 */

import type { HttpServer } from "../http/server.ts";
import type { Landing } from "../landing/landing.ts";
import type { IngressThreads } from "../native-ingress/ingress-threads.ts";
import type { SenderStatus } from "../send/sender.ts";
import type { Admin, Readiness } from "../telemetry/admin.ts";
import type { Clients } from "./clients.ts";
import type { ReceiptExporter, ReceiptOrigin } from "./handover-receipts.ts";
import type { InheritedListener, PredecessorListener } from "./inherited-listener.ts";
import type { EdgeKeys } from "./keys.ts";
import type { Lifecycle } from "./leaders.ts";

/** The process that an edge replaces, as that edge sees it. */
export interface Predecessor extends ReceiptOrigin {
  readonly listener: PredecessorListener;
  /** Whether it has ended: it sends no receipts any more. */
  readonly isGone: boolean;
  /**
   * Resolves once this edge may listen. `missing` names what it still needs to be ready, and
   * returns an empty list when it is.
   */
  takeOver(missing: () => readonly string[]): Promise<void>;
}

/** Upgrades of an edge, over all of its processes: each successor continues the counts. */
export interface UpgradeCounts {
  succeeded: number;
  failed: number;
  /** Seconds of the last one, from the start of the successor to its end; NaN before the first. */
  lastSeconds: number;
}

export function newUpgradeCounts(): UpgradeCounts {
  return { succeeded: 0, failed: 0, lastSeconds: Number.NaN };
}

/** What one edge does for the process that replaces it, in this order. */
export interface EdgeHandover {
  /**
   * Milliseconds until this process may be replaced: the one that it replaced may have QUIC sockets
   * until then, and of three processes on one port the last would reach the wrong one. 0: it may.
   */
  waitMs(): number;
  /** The public listeners, for the successor. */
  listener(): InheritedListener;
  /** Leaves to the successor the files that only one process may write. */
  lend(): void;
  /** Leaves the admin listener to it. */
  release(): Promise<void>;
  /** The successor has ended without serving: takes back what was left to it. @throws SetupError */
  takeBack(): Promise<void>;
  /** The successor serves: accepts no more, and closes each connection with its next response. */
  retire(): void;
  /** Sends receipts to the successor. */
  readonly receipts: Omit<ReceiptExporter, "retired">;
  /** What this process must still finish. */
  inHand(): InHand;
}

export interface InHand {
  /** Clients' connections. */
  readonly connections: number;
  /** Transactions whose end is not known yet. */
  readonly transactions: number;
  /**
   * Whether the process that this one replaced is still there: it learns the ends of its
   * transactions, and this process alone passes them on to the successor.
   */
  readonly hasPredecessor: boolean;
}

export interface HandoverDeps {
  readonly predecessor: Pick<Predecessor, "isGone"> | null;
  readonly keys: Pick<EdgeKeys, "lendJournal" | "takeBackJournal">;
  readonly admin: Pick<Admin, "start" | "stop">;
  readonly http: Pick<HttpServer, "retire">;
  readonly ingressThreads: Pick<
    IngressThreads,
    "retire" | "takeBack" | "socket" | "quicSockets" | "quicAloneInMs"
  > | null;
  readonly clients: Pick<Clients, "counters">;
  readonly landing: Pick<Landing, "inFlight">;
  readonly exporter: ReceiptExporter;
  /** Reads the engine's events, so that accounting has all submissions and outcomes so far. */
  readonly flushEvents: () => void;
  /** The bound port. */
  readonly httpPort: () => number;
}

export function createHandover(deps: HandoverDeps): EdgeHandover {
  const { predecessor, keys, admin, http, ingressThreads, clients, landing } = deps;
  const { exporter, flushEvents, httpPort } = deps;
  let isReleased = false;
  return {
    waitMs: () => ingressThreads?.quicAloneInMs ?? 0,
    listener: () => ({
      socket: ingressThreads?.socket ?? null,
      port: httpPort(),
      quicSockets: ingressThreads?.quicSockets ?? null,
    }),
    lend: () => keys.lendJournal(),
    async release() {
      isReleased = true;
      await admin.stop();
    },
    async takeBack() {
      // Only then the successor may have listened.
      if (isReleased) ingressThreads?.takeBack();
      try {
        keys.takeBackJournal();
      } finally {
        // Without it no one could read the metrics, or upgrade again.
        if (isReleased) await admin.start();
        isReleased = false;
      }
    },
    retire() {
      ingressThreads?.retire();
      http.retire();
      exporter.retired();
    },
    receipts: exporter,
    inHand() {
      flushEvents();
      return {
        connections: clients.counters.connections,
        transactions: landing.inFlight,
        hasPredecessor: predecessor !== null && !predecessor.isGone,
      };
    },
  };
}

/**
 * The step of the start in which a successor waits until it may listen. One live connection makes
 * an edge ready; a successor waits until every leader that it would send to is connected, or could
 * not be in the time of a handshake, because its predecessor has all of them: with fewer, the first
 * queue that fills refuses transactions.
 */
export function takingOver(
  predecessor: Predecessor | null,
  check: () => Readiness,
  sender: Pick<SenderStatus, "sendableCount" | "openingCount">,
): readonly Lifecycle[] {
  if (predecessor === null) return [];
  // It serves only after this step.
  const missing = (): readonly string[] => {
    const names = check().checks.flatMap(({ name, ok }) =>
      ok || name === "serving" ? [] : [name],
    );
    const hasLeaders = sender.sendableCount > 0 && sender.openingCount === 0;
    return hasLeaders ? names : [...names, "leaders"];
  };
  return [{ start: () => predecessor.takeOver(missing), stop() {} }];
}
