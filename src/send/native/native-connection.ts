/**
 * One connection of the native engine, as the sender sees it.
 *
 * The surprise: a connection's work is done by whichever thread holds its baton, so a copy may be
 * left to the I/O thread, or wait in the engine's queue for credit. `send` says which by the
 * stream's fate, WAITING until the record of it comes. Keeping connections alive is the engine's
 * own work.
 *
 * Where fronts send over it as well, all draw the streams' numbers from one cell in shared memory,
 * and what fronts sent is entered here afterwards (`adopt`).
 *
 * Hot path: `send` is one call into Rust and one place in an array.
 */

import type { NativeSending } from "../../native/contract.ts";
import {
  COPIES_IN_FLIGHT_MAX,
  FRONT_TX_MIN,
  NATIVE_COPIES_IN_FLIGHT_MAX,
  NATIVE_COPIES_WAITING_MAX,
  ROUTE_WAITING_MAX,
} from "../limits.ts";
import { Fates } from "../portable/stream-results.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  type Connection,
  type ConnectionEvents,
  type Ending,
  type Fate,
  FLYING,
  type SharedConnection,
  STOPPED,
  TOO_LARGE,
  WAITING,
} from "../transport.ts";
import { TakenRate } from "./drain-rate.ts";
import type { EarlyNews } from "./early-outcomes.ts";
import type { SharedRoutes } from "./shared-route-table.ts";

/** Who ended a connection: `EndCause` of `native/src/quic/event_ring.rs`. */
const END_KINDS: readonly Ending["kind"][] = [
  "local",
  "local",
  "app",
  "transport",
  "local",
  "silence",
  "silence",
  "local",
  "silence",
  "local",
];

/** `txSend`'s answer for one copy that is on the wire. */
const ON_WIRE = 1;
/** `cell` of a connection that no front can use. */
const NO_CELL = -1;

/** Written by `peerFigures`; one thread uses it, and not across calls. */
const FIGURES = new Float64Array(10);
const FIGURE_QUEUED = 2;
const FIGURE_HEARD = 8;
const FIGURE_STREAMS_LEFT = 9;

export interface Engine {
  readonly native: NativeSending;
  readonly handle: number;
  /** What is shared with fronts; null: nothing is. */
  readonly fronts: { readonly routes: SharedRoutes; readonly early: EarlyNews } | null;
}

/** What a connection may hold. */
export interface ConnectionBounds {
  readonly queuePerPeer: number;
  readonly copyTtlMs: number;
}

export class NativeConnection implements Connection, SharedConnection {
  readonly shared: SharedConnection | null;
  established = false;
  admitted = false;
  rttUs = 0;
  readonly worn = false;
  retried = false;
  readonly keepsAlive = true;
  sentNs = 0;
  endNs = 0;
  /** Most bytes that this leader takes on one stream. */
  streamBytesMax = 0;
  over = false;
  /** Whether `progress` is due once the batch of records is through. */
  touched = false;
  readonly peer: number;
  readonly cell: number;
  readonly #native: NativeSending;
  readonly #engine: number;
  readonly #routes: SharedRoutes | null;
  readonly #early: EarlyNews | null;
  readonly #events: ConnectionEvents;
  readonly #fates: Fates;
  /** Copies that the engine has and that are not on the wire yet. */
  #waiting = 0;
  readonly #copy: Uint32Array;
  readonly #ttlMs: number;
  /** What the engine has no room for is refused, and the news of that would bring it here again. */
  readonly #queueMax: number;
  readonly #taken = new TakenRate();
  /** Copies that may wait in the engine: as many as may when other threads put them there. */
  #waitingMax: number;
  #streams = 0;

  constructor(
    engine: Engine,
    peer: number,
    { copyTtlMs, queuePerPeer }: ConnectionBounds,
    events: ConnectionEvents,
  ) {
    this.#native = engine.native;
    this.#engine = engine.handle;
    this.peer = peer;
    this.#ttlMs = copyTtlMs;
    this.#queueMax = queuePerPeer;
    this.#waitingMax = Math.min(NATIVE_COPIES_WAITING_MAX, queuePerPeer);
    this.#events = events;
    this.#copy = Uint32Array.of(peer, 0);
    this.cell = engine.fronts?.routes.takeCell() ?? NO_CELL;
    const isShared = this.cell !== NO_CELL;
    this.shared = isShared ? this : null;
    this.#routes = isShared ? (engine.fronts?.routes ?? null) : null;
    this.#early = isShared ? (engine.fronts?.early ?? null) : null;
    this.#fates = new Fates(isShared ? NATIVE_COPIES_IN_FLIGHT_MAX : COPIES_IN_FLIGHT_MAX);
  }

  send(bytes: Uint8Array, ttlMs = this.#ttlMs): number {
    if (this.over) return CLOSED;
    if (!this.admitted) return BLOCKED;
    if (bytes.length === 0 || bytes.length > this.streamBytesMax) return TOO_LARGE;
    // The engine keeps them in the order of coming; with the peer the best paid one goes first.
    if (this.#isBusy()) return BLOCKED;
    // The tag names the stream in the records.
    const stream = this.#nextStream();
    this.#copy[1] = stream;
    const mask = this.#native.txSend(this.#engine, this.#copy, bytes, stream, ttlMs);
    if (mask === 0) return BLOCKED;
    if (mask !== ON_WIRE) this.#waiting += 1;
    this.#fates.open(stream, mask === ON_WIRE ? FLYING : WAITING);
    return stream;
  }

  #nextStream(): number {
    if (this.#routes !== null) return this.#routes.nextStream(this.cell);
    this.#streams = (this.#streams + 1) >>> 0 || 1;
    return this.#streams;
  }

  adopt(stream: number, waits: boolean): boolean {
    if (waits) this.#waiting += 1;
    this.#fates.open(stream, waits ? WAITING : FLYING);
    const news = this.#early?.take(this.cell, stream) ?? null;
    if (news === null) return false;
    if (news.sentNs !== 0) this.settle(stream, FLYING, news.sentNs, FRONT_TX_MIN);
    if (news.fate !== FLYING) this.settle(stream, news.fate, news.endNs, FRONT_TX_MIN);
    return true;
  }

  crowded(nowNs: number): boolean {
    // Other threads do not look at each copy, so half of the queue is for what they put there.
    const most = Math.min(this.#taken.waitingMax(nowNs), this.#queueMax / 2);
    const crowd = Math.floor(Math.max(ROUTE_WAITING_MAX, most)) + 1;
    const isCrowded = this.#hasWaiting(Math.min(crowd, this.#queueMax));
    const ownMax = Math.max(NATIVE_COPIES_WAITING_MAX, isCrowded ? 0 : most);
    this.#waitingMax = Math.min(ownMax, this.#queueMax);
    return isCrowded;
  }

  get streamsLeft(): number {
    return this.admitted ? this.#figure(FIGURE_STREAMS_LEFT) : 0;
  }

  get heard(): number {
    return this.#figure(FIGURE_HEARD);
  }

  /** -1 where the connection is over. */
  #figure(which: number): number {
    if (this.over) return -1;
    const count = this.#native.peerFigures(this.#engine, this.peer, FIGURES);
    return which < count ? (FIGURES[which] ?? -1) : -1;
  }

  #isBusy(): boolean {
    return this.#hasWaiting(this.#waitingMax);
  }

  /** Records can be lost, so the engine is asked when it seems to have so many. */
  #hasWaiting(count: number): boolean {
    if (this.#waiting < count) return false;
    this.#waiting = Math.max(0, this.#figure(FIGURE_QUEUED));
    return this.#waiting >= count;
  }

  fate(stream: number): Fate {
    const fate = this.#fates.of(stream);
    this.sentNs = this.#fates.sentNsOf(stream);
    if (fate === FLYING || fate === WAITING) return fate;
    this.endNs = this.#fates.endNsOf(stream);
    this.#fates.close(stream);
    return fate < 0 ? STOPPED : fate;
  }

  ping(): void {
    if (!this.over) this.#native.peerPing(this.#engine, this.peer);
  }

  close(): void {
    if (this.over) return;
    this.over = true;
    this.#native.peerClose(this.#engine, this.peer, 0);
  }

  /**
   * News of a copy. One that is not among the fates was refused at once, or a front sent it and it
   * is not adopted yet: `tx`, the transaction's number with the engine, says so.
   */
  settle(stream: number, fate: Fate, atNs: number, tx: number): void {
    const before = this.#fates.of(stream);
    if (before < 0) {
      if (tx >= FRONT_TX_MIN) this.#early?.note(this.cell, stream, fate, atNs);
      return;
    }
    if (before === WAITING && fate !== WAITING) this.#waiting = Math.max(0, this.#waiting - 1);
    if (fate === ACKED) this.#taken.took(atNs);
    this.#fates.settle(stream, fate, atNs);
  }

  progress(): void {
    this.touched = false;
    if (!this.over) this.#events.progress();
  }

  /** Tells what its copies came to, then its end. */
  end(cause: number, code: number): void {
    this.progress();
    if (this.over) return;
    this.over = true;
    const kind = END_KINDS[cause] ?? "local";
    this.#events.ended({ kind, code: kind === "app" || kind === "transport" ? code : 0 });
  }
}
