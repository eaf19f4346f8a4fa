/**
 * A transport without a network: each connection does what the test says, when it says it.
 */

import type { Identity } from "../../src/send/identity.ts";
import type { SharedTargetTable } from "../../src/send/native/shared-target-table.ts";
import type {
  CloseCause,
  ConnectionEvents,
  EngineConnection,
  SharedConnection,
  StreamResult,
  Transport,
} from "../../src/send/transport.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  DROPPED,
  IN_FLIGHT,
  QUEUED,
  STOPPED,
  TOO_LARGE,
} from "../../src/send/transport.ts";

const FAKE_ENGINE = 3;

export class FakeConnection implements EngineConnection {
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
  readonly #streamResults = new Map<number, StreamResult>();
  /** What the next `send` answers instead, ending the connection first. */
  endOnSend: CloseCause | null = null;

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
  isBacklogged = false;

  /** Lets fronts send over it. */
  share(targetTable: SharedTargetTable, peer: number): void {
    const connection = this;
    const cell = targetTable.allocateCell();
    this.#nextStream = () => targetTable.nextStream(cell);
    this.shared = {
      peer,
      cell,
      isBacklogged() {
        return connection.isBacklogged;
      },
      get streamBytesMax() {
        return connection.streamBytesMax;
      },
      recordSend: (stream, isQueued) => {
        const hasEarlyOutcome = this.#streamResults.has(stream);
        if (!hasEarlyOutcome && isQueued) this.#streamResults.set(stream, QUEUED);
        return hasEarlyOutcome;
      },
    };
  }

  streamResult(stream: number): StreamResult {
    const streamResult = this.#streamResults.get(stream) ?? IN_FLIGHT;
    if (streamResult !== QUEUED) this.#streamResults.delete(stream);
    return streamResult;
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
    this.#streamResults.set(stream, ACKED);
    this.#events.progress();
  }

  /** A later `send` that is answered `stream` has to wait; call it before that. */
  delay(stream: number): void {
    this.#streamResults.set(stream, QUEUED);
  }

  /** What had to wait is on the wire. */
  sendQueued(stream: number): void {
    this.#streamResults.set(stream, IN_FLIGHT);
    this.#events.progress();
  }

  /** What had to wait is given up; `reason` is its place in DELIVERY_REASONS. */
  refuse(stream: number, reason: number): void {
    this.#streamResults.set(stream, DROPPED + reason);
    this.#events.progress();
  }

  stop(stream: number): void {
    this.#streamResults.set(stream, STOPPED);
    this.#events.progress();
  }

  end(cause: CloseCause): void {
    if (this.closed) return;
    this.closed = true;
    this.#events.ended(cause);
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
export function createFakeTransport(targetTable: SharedTargetTable | null = null): FakeTransport {
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
      targetTable?.useEngine(FAKE_ENGINE);
    },
    async stop() {
      running = false;
      targetTable?.useEngine(0);
    },
    connect(address, events) {
      if (this.failing) return null;
      const connection = new FakeConnection(address, events);
      made.push(connection);
      if (targetTable !== null) connection.share(targetTable, made.length);
      return connection;
    },
  };
}
