/**
 * A transport without a network: the test controls each connection.
 */

import type { Identity } from "../../src/send/identity.ts";
import type { TargetTable } from "../../src/send/native/target-table.ts";
import type {
  CloseCause,
  ConnectionEvents,
  DeliveryResult,
  EngineConnection,
  Offer,
  Transport,
} from "../../src/send/transport.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  DROPPED,
  NO_OFFER,
  ON_WIRE,
  STOPPED,
  TOO_LARGE,
} from "../../src/send/transport.ts";

const FAKE_ENGINE = 3;

/** Events that a test ignores. */
export const NO_EVENTS: ConnectionEvents = {
  progress() {},
  result() {},
  sentElsewhere() {},
  ended() {},
};

export class FakeConnection implements EngineConnection {
  peer = 0;
  established = false;
  admitted = false;
  rttUs = 0;
  isDegraded = false;
  retried = false;
  keepsAlive = false;
  idleTimeoutMs = Number.POSITIVE_INFINITY;
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
  readonly events: ConnectionEvents;
  /** Later sends that are queued, and those of them without a result. */
  readonly #delayed = new Set<number>();
  readonly #queued = new Set<number>();
  /** The time of results. */
  nowNs: () => number = () => 1;
  /** What the next `send` returns instead, ending the connection first. */
  endOnSend: CloseCause | null = null;

  constructor(address: string, events: ConnectionEvents) {
    this.address = address;
    this.events = events;
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
    const number = this.sent.length - 1;
    this.waits = this.#delayed.delete(number);
    if (this.waits) this.#queued.add(number);
    return number;
  }

  waits = false;
  /** What the next sends return instead; null: nothing. */
  result: number | null = null;

  ping(): void {
    this.pings += 1;
  }

  close(): void {
    this.closed = true;
  }

  /** The handshake completes. */
  establish(): void {
    this.established = true;
    this.events.progress();
  }

  /** The handshake completes and streams are granted. */
  admit(credit = 1_000): void {
    this.established = true;
    this.admitted = true;
    this.grant(credit);
  }

  grant(credit: number): void {
    this.credit += credit;
    this.events.progress();
  }

  /** The other side acknowledges the delivery of that number. */
  ack(number: number): void {
    this.#resolve(number, ACKED);
  }

  #resolve(number: number, result: DeliveryResult): void {
    this.#queued.delete(number);
    this.events.result(number, result, this.nowNs());
    this.events.progress();
  }

  /** A later `send` that returns `number` is queued; call it before that. */
  delay(number: number): void {
    this.#delayed.add(number);
  }

  /** A queued delivery is on the wire. */
  sendQueued(number: number): void {
    this.#resolve(number, ON_WIRE);
  }

  /** A queued delivery is dropped; `reason` is its index in DELIVERY_REASONS. */
  refuse(number: number, reason: number): void {
    this.#resolve(number, DROPPED + reason);
  }

  stop(number: number): void {
    this.#resolve(number, STOPPED);
  }

  end(cause: CloseCause): void {
    if (this.closed) return;
    this.closed = true;
    this.events.ended(cause);
  }
}

export interface FakeTransport extends Transport {
  /** Every connection that was ever opened, oldest first. */
  readonly made: FakeConnection[];
  /** The newest connection to an address; throws when there was none. */
  to(address: string): FakeConnection;
  /** The identities that it was given. */
  readonly identities: Identity[];
  /** The time of results. */
  nowNs: () => number;
  /** While true, `connect` returns null. */
  failing: boolean;
  readonly running: boolean;
}

/** With `targetTable` ingress threads may send over its connections, with engine handles from 1. */
export function createFakeTransport(targetTable: TargetTable | null = null): FakeTransport {
  const made: FakeConnection[] = [];
  const identities: Identity[] = [];
  let running = false;
  return {
    made,
    identities,
    useIdentity: (identity) => void identities.push(identity),
    nowNs: () => 1,
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
      if (targetTable !== null) targetTable.engine = FAKE_ENGINE;
    },
    async stop() {
      running = false;
      if (targetTable !== null) targetTable.engine = 0;
    },
    connect(address, events) {
      if (this.failing) return null;
      const connection = new FakeConnection(address, events);
      connection.nowNs = () => this.nowNs();
      made.push(connection);
      if (targetTable !== null) connection.peer = made.length;
      return connection;
    },
    recordSend(peer, packet, delivery, sentNs, waits) {
      made[peer - 1]?.events.sentElsewhere(packet, delivery, sentNs, waits);
    },
  };
}
