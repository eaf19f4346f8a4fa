/**
 * A transport without a network: each connection does what the test says, when it says it.
 */

import type { Identity } from "../../src/send/identity.ts";
import type { SharedRoutes } from "../../src/send/native/shared-route-table.ts";
import type {
  Connection,
  ConnectionEvents,
  Ending,
  Fate,
  SharedConnection,
  Transport,
} from "../../src/send/transport.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  DROPPED,
  FLYING,
  STOPPED,
  TOO_LARGE,
  WAITING,
} from "../../src/send/transport.ts";

const FAKE_ENGINE = 3;

export class FakeConnection implements Connection {
  shared: SharedConnection | null = null;
  established = false;
  admitted = false;
  rttUs = 0;
  worn = false;
  retried = false;
  keepsAlive = false;
  /** As an engine that does not tell what it hears; 0 for one that does. */
  heard = -1;
  /** Streams that may still be opened. */
  credit = 0;
  /** Largest stream that the other side takes. */
  streamBytesMax = 4096;
  pings = 0;
  closed = false;
  readonly sent: Uint8Array[] = [];
  /** For how long each may wait in line, in milliseconds; undefined: not told. */
  readonly ttlsMs: (number | undefined)[] = [];
  readonly address: string;
  readonly #events: ConnectionEvents;
  readonly #fates = new Map<number, Fate>();
  /** What the next `send` answers instead, ending the connection first. */
  endOnSend: Ending | null = null;

  constructor(address: string, events: ConnectionEvents) {
    this.address = address;
    this.#events = events;
  }

  get streamsLeft(): number {
    return this.credit;
  }

  send(bytes: Uint8Array, ttlMs?: number): number {
    if (this.endOnSend !== null) this.end(this.endOnSend);
    if (this.closed) return CLOSED;
    if (bytes.length > this.streamBytesMax) return TOO_LARGE;
    if (this.credit === 0) return BLOCKED;
    this.credit -= 1;
    this.sent.push(Uint8Array.from(bytes));
    this.ttlsMs.push(ttlMs);
    return this.#nextStream?.() ?? this.sent.length - 1;
  }

  /** Draws the streams that fronts draw too. */
  #nextStream: (() => number) | null = null;

  sentNs = 0;
  endNs = 0;
  /** Whether more copies than a few wait in the engine. */
  crowded = false;

  /** Lets fronts send over it. */
  share(routes: SharedRoutes, peer: number): void {
    const connection = this;
    const cell = routes.takeCell();
    this.#nextStream = () => routes.nextStream(cell);
    this.shared = {
      peer,
      cell,
      crowded() {
        return connection.crowded;
      },
      get streamBytesMax() {
        return connection.streamBytesMax;
      },
      adopt: (stream, waits) => {
        const hasNews = this.#fates.has(stream);
        if (!hasNews && waits) this.#fates.set(stream, WAITING);
        return hasNews;
      },
    };
  }

  fate(stream: number): Fate {
    const fate = this.#fates.get(stream) ?? FLYING;
    if (fate !== WAITING) this.#fates.delete(stream);
    return fate;
  }

  ping(): void {
    this.pings += 1;
  }

  close(): void {
    this.closed = true;
  }

  /** The handshake is done. */
  establish(): void {
    this.established = true;
    this.#events.progress();
  }

  /** The handshake is done and streams are granted. */
  admit(credit = 1_000): void {
    this.established = true;
    this.admitted = true;
    this.grant(credit);
  }

  grant(credit: number): void {
    this.credit += credit;
    this.#events.progress();
  }

  /** The other side acknowledged the transaction that was sent as number `stream`. */
  ack(stream: number): void {
    this.#fates.set(stream, ACKED);
    this.#events.progress();
  }

  /** A later `send` that is answered `stream` has to wait; call it before that. */
  delay(stream: number): void {
    this.#fates.set(stream, WAITING);
  }

  /** What had to wait is on the wire. */
  fly(stream: number): void {
    this.#fates.set(stream, FLYING);
    this.#events.progress();
  }

  /** What had to wait is given up; `reason` is its place in COPY_REASONS. */
  refuse(stream: number, reason: number): void {
    this.#fates.set(stream, DROPPED + reason);
    this.#events.progress();
  }

  stop(stream: number): void {
    this.#fates.set(stream, STOPPED);
    this.#events.progress();
  }

  end(ending: Ending): void {
    if (this.closed) return;
    this.closed = true;
    this.#events.ended(ending);
  }
}

export interface FakeTransport extends Transport {
  /** Every connection that was ever begun, oldest first. */
  readonly made: FakeConnection[];
  /** The newest connection to an address; throws when there was none. */
  to(address: string): FakeConnection;
  /** The identities that it was told to use. */
  readonly identities: Identity[];
  /** While true, `connect` answers null. */
  failing: boolean;
  readonly running: boolean;
}

/** With `routes` fronts may send over its connections, which the engine names 1, 2 and so on. */
export function createFakeTransport(routes: SharedRoutes | null = null): FakeTransport {
  const made: FakeConnection[] = [];
  const identities: Identity[] = [];
  let running = false;
  return {
    made,
    identities,
    useIdentity: (identity) => void identities.push(identity),
    failing: false,
    counters: {},
    get running() {
      return running;
    },
    to(address) {
      const connection = made.findLast((it) => it.address === address);
      if (connection === undefined) throw new Error(`no connection to ${address} was begun`);
      return connection;
    },
    async start() {
      running = true;
      routes?.useEngine(FAKE_ENGINE);
    },
    async stop() {
      running = false;
      routes?.useEngine(0);
    },
    connect(address, events) {
      if (this.failing) return null;
      const connection = new FakeConnection(address, events);
      made.push(connection);
      if (routes !== null) connection.share(routes, made.length);
      return connection;
    },
  };
}
