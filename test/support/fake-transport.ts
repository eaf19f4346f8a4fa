/**
 * A transport without a network: the test controls each connection.
 */

import type { Identity } from "../../src/send/identity.ts";
import type { SharedTargetTable } from "../../src/send/native/shared-target-table.ts";
import type {
  CloseCause,
  ConnectionEvents,
  EngineConnection,
  Offer,
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
  NO_OFFER,
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
  isDegraded = false;
  retried = false;
  keepsAlive = false;
  /** -1 as for an engine that does not count datagrams; 0 or more for one that does. */
  datagramsReceived = -1;
  /** Streams that may still be opened. */
  credit = 0;
  /** Largest stream that the other side accepts. */
  streamBytesMax = 4096;
  pings = 0;
  closed = false;
  readonly sent: Uint8Array[] = [];
  /** How long each may be queued, in milliseconds; undefined: not given. */
  readonly ttlsMs: (number | undefined)[] = [];
  readonly offers: Offer[] = [];
  readonly address: string;
  readonly #events: ConnectionEvents;
  readonly #streamResults = new Map<number, StreamResult>();
  /** What the next `send` returns instead, ending the connection first. */
  endOnSend: CloseCause | null = null;

  constructor(address: string, events: ConnectionEvents) {
    this.address = address;
    this.#events = events;
  }

  get streamsLeft(): number {
    return this.credit;
  }

  send(bytes: Uint8Array, ttlMs?: number, offer: Offer = NO_OFFER): number {
    if (this.endOnSend !== null) this.end(this.endOnSend);
    if (this.closed) return CLOSED;
    if (this.result !== null) return this.result;
    if (bytes.length > this.streamBytesMax) return TOO_LARGE;
    if (this.credit === 0) return BLOCKED;
    this.credit -= 1;
    this.sent.push(Uint8Array.from(bytes));
    this.ttlsMs.push(ttlMs);
    this.offers.push(offer);
    return this.#nextStream?.() ?? this.sent.length - 1;
  }

  /** Allocates the streams, shared with ingress threads. */
  #nextStream: (() => number) | null = null;

  sentNs = 0;
  endNs = 0;
  readonly unqueued: number[] = [];
  /** What the next sends return instead; null: nothing. */
  result: number | null = null;

  get isIdle(): boolean {
    return this.credit > 0 && ![...this.#streamResults.values()].includes(QUEUED);
  }

  /** Lets ingress threads send over it. */
  share(targetTable: SharedTargetTable, peer: number): void {
    const connection = this;
    const cell = targetTable.allocateCell();
    this.#nextStream = () => targetTable.nextStream(cell);
    this.shared = {
      peer,
      cell,
      get streamBytesMax() {
        return connection.streamBytesMax;
      },
      recordSend: (stream, isQueued) => {
        if (isQueued) this.#streamResults.set(stream, QUEUED);
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

  /** The handshake completes. */
  establish(): void {
    this.established = true;
    this.#events.progress();
  }

  /** The handshake completes and streams are granted. */
  admit(credit = 1_000): void {
    this.established = true;
    this.admitted = true;
    this.grant(credit);
  }

  grant(credit: number): void {
    this.credit += credit;
    this.#events.progress();
  }

  /** The other side acknowledges the transaction that was sent as stream `stream`. */
  ack(stream: number): void {
    this.#resolve(stream, ACKED);
  }

  #resolve(stream: number, result: StreamResult): void {
    if (this.#streamResults.get(stream) === QUEUED) this.unqueued.push(stream);
    this.#streamResults.set(stream, result);
    this.#events.progress();
  }

  /** A later `send` that returns `stream` is queued; call it before that. */
  delay(stream: number): void {
    this.#streamResults.set(stream, QUEUED);
  }

  /** A queued delivery is on the wire. */
  sendQueued(stream: number): void {
    this.#resolve(stream, IN_FLIGHT);
  }

  /** A queued delivery is dropped; `reason` is its index in DELIVERY_REASONS. */
  refuse(stream: number, reason: number): void {
    this.#resolve(stream, DROPPED + reason);
  }

  stop(stream: number): void {
    this.#resolve(stream, STOPPED);
  }

  end(cause: CloseCause): void {
    if (this.closed) return;
    this.closed = true;
    this.#events.ended(cause);
  }
}

export interface FakeTransport extends Transport {
  /** Every connection that was ever opened, oldest first. */
  readonly made: FakeConnection[];
  /** The newest connection to an address; throws when there was none. */
  to(address: string): FakeConnection;
  /** The identities that it was given. */
  readonly identities: Identity[];
  /** While true, `connect` returns null. */
  failing: boolean;
  readonly running: boolean;
}

/** With `targetTable` ingress threads may send over its connections, with engine handles from 1. */
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
      if (connection === undefined) throw new Error(`no connection to ${address} was opened`);
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
