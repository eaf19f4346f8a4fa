/**
 * One connection of a peer, with the copies that it carries. Hot path: `send`, `settle`.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { type FlyingCopy, InFlight } from "./in-flight.ts";
import { CLOSED, type Connection, DROPPED, type Fate, FLYING, WAITING } from "./transport.ts";

export class Link {
  /** null until the transport has answered. */
  connection: Connection | null = null;
  readonly attemptNs: number;
  /** Since when the handshake is done; 0: it is not. */
  establishedNs = 0;
  /** Since when it takes copies; 0: not yet. */
  liveNs = 0;
  /** Since when it takes none any more; 0: it does. */
  retiredNs = 0;
  /** Made with an identity that is no longer this edge's. */
  outdated = false;
  /** Ended or closed; nothing more is heard of it. */
  over = false;
  /** Whether it took any copy, and the largest one. */
  carried = false;
  bytesMax = 0;
  readonly inFlight: InFlight;
  #spokeNs: number;

  constructor(attemptNs: number, inFlightMax: number) {
    this.attemptNs = attemptNs;
    this.#spokeNs = attemptNs;
    this.inFlight = new InFlight(inFlightMax);
  }

  /** As `Connection.send`. */
  send(bytes: Uint8Array, nowNs: number, ttlMs?: number): number {
    if (this.connection === null || this.over) return CLOSED;
    const stream = this.connection.send(bytes, ttlMs);
    if (stream >= 0) this.#carries(bytes.length, nowNs);
    return stream;
  }

  /** A front sent a copy over it. Answers as `SharedConnection.adopt`. */
  adopt(stream: number, size: number, waits: boolean, sentNs: number): boolean {
    this.#carries(size, sentNs);
    return this.connection?.shared?.adopt(stream, waits) ?? false;
  }

  #carries(size: number, nowNs: number): void {
    this.#spokeNs = nowNs;
    this.carried = true;
    if (size > this.bytesMax) this.bytesMax = size;
  }

  /** Closes it; false when it was over already. What it carried is the caller's to end. */
  shut(): boolean {
    if (this.over) return false;
    this.over = true;
    this.connection?.close();
    return true;
  }

  /** Pings when the connection said nothing for `periodNs`. */
  keepAlive(nowNs: number, periodNs: number): void {
    const { connection } = this;
    if (connection?.established !== true || connection.keepsAlive) return;
    if (nowNs - this.#spokeNs < periodNs) return;
    this.#spokeNs = nowNs;
    connection.ping();
  }

  /** In how many milliseconds `keepAlive` pings; never where the engine does that. */
  nextPingMs(nowNs: number, periodNs: number): number {
    if (this.connection?.keepsAlive !== false) return Number.POSITIVE_INFINITY;
    return (this.#spokeNs + periodNs - nowNs) / NS_PER_MS;
  }

  /** Whether a copy that `send` took is not on the wire yet. */
  waits(stream: number): boolean {
    return this.connection?.fate(stream) === WAITING;
  }

  /**
   * Takes what is done from the head of those in flight, oldest first. A copy that had to wait is
   * told of once it is on the wire, whatever the older ones wait for.
   */
  settle(
    nowNs: number,
    onWire: (copy: FlyingCopy) => void,
    done: (copy: FlyingCopy, fate: Fate) => void,
  ): void {
    const connection = this.connection;
    if (connection === null) return;
    const { inFlight } = this;
    for (let row = inFlight.oldest(); row !== null; row = inFlight.oldest()) {
      const fate = learn(row, connection, nowNs, onWire);
      if (fate === WAITING || fate === FLYING) break;
      done(row, fate);
      inFlight.drop();
    }
    for (let row = inFlight.waiting(); row !== null; row = inFlight.waiting()) {
      if (learn(row, connection, nowNs, onWire) === WAITING) return;
    }
  }

  /** Takes all that is in flight: what has its end, behind one that has none, keeps it. */
  failAll(
    nowNs: number,
    onWire: (copy: FlyingCopy) => void,
    done: (copy: FlyingCopy, fate: Fate) => void,
    failed: (copy: FlyingCopy) => void,
  ): void {
    const { connection } = this;
    for (let row = this.inFlight.oldest(); row !== null; row = this.inFlight.oldest()) {
      const fate = connection === null ? WAITING : learn(row, connection, nowNs, onWire);
      if (fate === WAITING || fate === FLYING) failed(row);
      else done(row, fate);
      this.inFlight.drop();
    }
  }
}

/** Asks what became of a copy, and keeps an end, because the connection tells it once. */
function learn(
  copy: FlyingCopy,
  connection: Connection,
  nowNs: number,
  onWire: (copy: FlyingCopy) => void,
): Fate {
  if (copy.fate !== FLYING) return copy.fate;
  const fate = connection.fate(copy.stream);
  if (copy.sentNs === 0 && fate !== WAITING && fate < DROPPED) {
    copy.sentNs = connection.sentNs || nowNs;
    onWire(copy);
  }
  if (fate === WAITING || fate === FLYING) return fate;
  copy.fate = fate;
  copy.endNs = connection.endNs;
  return fate;
}
