/**
 * The native engine as a transport: Rust sends on the calling thread, an I/O thread of its own
 * receives, and what happened comes back in batches of records, one wake a batch.
 *
 * The surprise: a connection's work is done by whichever thread holds its baton, so a copy may be
 * left to the I/O thread, or wait in the engine's queue for credit. `send` says which by the
 * stream's fate, WAITING until the record of it comes. Keeping connections alive is the engine's
 * own work.
 *
 * Hot path: `send` is one call into Rust and one place in an array.
 */

import { getSystemErrorName } from "node:util";
import {
  NATIVE_COPIES_IN_FLIGHT_MAX,
  NATIVE_COPIES_WAITING_MAX,
  NATIVE_RECORDS_A_DRAIN,
  NATIVE_RECORDS_MAX,
  V1_TRANSACTION_BYTES_MAX,
} from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import { type NativeSending, OK, RECORD_NUMBERS, START_SOCKET } from "../native/contract.ts";
import { Fates } from "./fates.ts";
import type { Identity } from "./identity.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  type Connection,
  type ConnectionEvents,
  DROPPED,
  type Ending,
  type Fate,
  FLYING,
  STOPPED,
  TOO_LARGE,
  type Transport,
  WAITING,
} from "./transport.ts";

export interface NativeTransportOptions {
  /** Local "ip:port" addresses to send from, port 0 for any. */
  readonly binds: readonly string[];
  /** How long the I/O thread looks for datagrams before it sleeps; 0: not at all. */
  readonly busyPollUs: number;
  /** Silence after which a connection is over. */
  readonly idleTimeoutMs: number;
  readonly keepAliveMs: number;
  /** A leader that grants no stream for so long is given up. */
  readonly admissionTimeoutMs: number;
  /** Copies that wait for one leader's credit, at most, and how long. */
  readonly queuePerPeer: number;
  readonly copyTtlMs: number;
}

export interface NativeTransportDeps {
  readonly native: NativeSending;
  readonly identity: Identity;
  readonly log: Log;
}

/** What the first number of a record says: `native/src/send/outcomes.rs`. */
const SENT = 1;
const COPY_ACKED = 2;
const COPY_FAILED = 3;
const COPY_DROPPED = 4;
const CONNECTED = 5;
const ADMITTED = 6;
const CLOSED_RECORD = 7;

/** Who ended a connection: `EndCause` of `native/src/send/outcomes.rs`. */
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

/** Answers of `engineStart`: `native/src/codes.rs`. */
const START_FAULTS: Readonly<Record<number, string>> = {
  [-10]: "16 native engines run in this process, and there may be no more",
  [-11]: "the native engine refuses its options",
  [-13]: "the native engine makes no certificate of this identity",
  [-14]: "the native engine cannot start its thread",
};

function startFault(answer: number): string {
  if (answer < START_SOCKET) {
    return `${getSystemErrorName(answer - START_SOCKET)}, says the native engine`;
  }
  return START_FAULTS[answer] ?? `the native engine answers ${answer}`;
}

/** `Reason::StreamStopped` there. */
const STREAM_STOPPED = 6;
/** `txSend`'s answer for one copy that is on the wire. */
const ON_WIRE = 1;
/** How long the engine waits for goodbyes when it stops. */
const STOP_LINGER_MS = 100;
/** Leaders of Agave acknowledge at once when asked to; others keep their own habit. */
const ACK_EVERY = 10;
const ACK_DELAY_MS = 25;

interface Engine {
  readonly native: NativeSending;
  readonly handle: number;
}

/** Written by `peerFigures`; one thread uses it, and not across calls. */
const FIGURES = new Float64Array(10);
const FIGURE_QUEUED = 2;
const FIGURE_HEARD = 8;
const FIGURE_STREAMS_LEFT = 9;

class NativeConnection implements Connection {
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
  readonly #native: NativeSending;
  readonly #engine: number;
  readonly #peer: number;
  readonly #events: ConnectionEvents;
  readonly #fates = new Fates();
  /** Copies that the engine has and that are not on the wire yet. */
  #waiting = 0;
  readonly #copy: Uint32Array;
  readonly #ttlMs: number;
  readonly #waitingMax: number;
  #streams = 0;

  constructor(
    engine: Engine,
    peer: number,
    { copyTtlMs, queuePerPeer }: NativeTransportOptions,
    events: ConnectionEvents,
  ) {
    this.#native = engine.native;
    this.#engine = engine.handle;
    this.#peer = peer;
    this.#ttlMs = copyTtlMs;
    // What the engine has no room for is refused, and the news of that would bring it here again.
    this.#waitingMax = Math.min(NATIVE_COPIES_WAITING_MAX, queuePerPeer);
    this.#events = events;
    this.#copy = Uint32Array.of(peer, 0);
  }

  send(bytes: Uint8Array, ttlMs = this.#ttlMs): number {
    if (this.over) return CLOSED;
    if (!this.admitted) return BLOCKED;
    if (bytes.length === 0 || bytes.length > this.streamBytesMax) return TOO_LARGE;
    // The engine keeps them in the order of coming; with the peer the best paid one goes first.
    if (this.#isBusy()) return BLOCKED;
    // The tag names the stream in the records.
    this.#streams = (this.#streams + 1) >>> 0 || 1;
    const stream = this.#streams;
    this.#copy[1] = stream;
    const mask = this.#native.txSend(this.#engine, this.#copy, bytes, stream, ttlMs);
    if (mask === 0) return BLOCKED;
    if (mask !== ON_WIRE) this.#waiting += 1;
    this.#fates.open(stream, mask === ON_WIRE ? FLYING : WAITING);
    return stream;
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
    const count = this.#native.peerFigures(this.#engine, this.#peer, FIGURES);
    return which < count ? (FIGURES[which] ?? -1) : -1;
  }

  /** Records can be lost, so the engine is asked when it seems to have too much. */
  #isBusy(): boolean {
    if (this.#waiting < this.#waitingMax) return false;
    this.#waiting = Math.max(0, this.#figure(FIGURE_QUEUED));
    return this.#waiting >= this.#waitingMax;
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
    if (!this.over) this.#native.peerPing(this.#engine, this.#peer);
  }

  close(): void {
    if (this.over) return;
    this.over = true;
    this.#native.peerClose(this.#engine, this.#peer, 0);
  }

  /** News of a copy; one that was refused at once is not among the fates. */
  settle(stream: number, fate: Fate, atNs: number): void {
    const before = this.#fates.of(stream);
    if (before < 0) return;
    if (before === WAITING && fate !== WAITING) this.#waiting = Math.max(0, this.#waiting - 1);
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

/** @throws Error from `start` when the engine refuses its options or no socket can be bound */
export function createNativeTransport(
  deps: NativeTransportDeps,
  options: NativeTransportOptions,
): Transport {
  const { native, log } = deps;
  let { identity } = deps;
  const counters = { recordsDrained: 0, wakes: 0, connectErrors: 0 };
  const connections = new Map<number, NativeConnection>();
  const records = new Float64Array(NATIVE_RECORDS_A_DRAIN * RECORD_NUMBERS);
  const touched: NativeConnection[] = [];
  /** What ends the connections whose end is among the records of this batch. */
  const endings: (() => void)[] = [];
  /** 0: not running. */
  let handle = 0;

  function take(at: number): void {
    const kind = records[at] ?? 0;
    const peer = records[at + 2] ?? 0;
    const connection = connections.get(peer);
    if (connection === undefined) return;
    const rttUs = records[at + 6] ?? 0;
    if (rttUs > 0) connection.rttUs = rttUs;
    const stream = records[at + 3] ?? 0;
    const reason = records[at + 4] ?? 0;
    const atNs = records[at + 5] ?? 0;
    if (kind === CLOSED_RECORD) {
      // The engine tells of connections first: what their copies came to is still behind.
      const code = records[at + 7] ?? 0;
      endings.push(() => {
        connections.delete(peer);
        connection.end(reason, code);
      });
      return;
    }
    if (!connection.touched) touched.push(connection);
    connection.touched = true;
    if (kind === SENT) connection.settle(stream, FLYING, atNs);
    else if (kind === COPY_ACKED) connection.settle(stream, ACKED, atNs);
    // Any other failure is the connection's end, whose record follows.
    else if (kind === COPY_FAILED && reason === STREAM_STOPPED)
      connection.settle(stream, STOPPED, atNs);
    else if (kind === COPY_DROPPED)
      connection.settle(stream, DROPPED + Math.max(0, reason - 1), atNs);
    else if (kind === CONNECTED) {
      connection.established = true;
      connection.retried = reason === 1;
      connection.streamBytesMax = Math.min(records[at + 7] ?? 0, V1_TRANSACTION_BYTES_MAX);
    } else if (kind === ADMITTED) connection.admitted = true;
  }

  function drain(): void {
    counters.wakes += 1;
    for (let full = true; full; ) {
      const count = native.outcomesDrain(handle, records);
      counters.recordsDrained += count;
      for (let index = 0; index < count; index += 1) take(index * RECORD_NUMBERS);
      full = count === NATIVE_RECORDS_A_DRAIN;
    }
    for (const end of endings) end();
    endings.length = 0;
    for (const connection of touched) connection.progress();
    touched.length = 0;
  }

  return {
    counters,
    async start() {
      const answer = native.engineStart(
        {
          binds: [...options.binds],
          seed: identity.seed,
          queueMax: options.queuePerPeer,
          inFlightMax: NATIVE_COPIES_IN_FLIGHT_MAX,
          outcomesMax: NATIVE_RECORDS_MAX,
          admissionTimeoutMs: options.admissionTimeoutMs,
          idleTimeoutMs: options.idleTimeoutMs,
          keepAliveMs: options.keepAliveMs,
          ackEvery: ACK_EVERY,
          ackDelayMs: ACK_DELAY_MS,
          busyPollUs: options.busyPollUs,
        },
        drain,
      );
      if (answer <= 0) throw new Error(startFault(answer));
      handle = answer;
    },
    useIdentity(next) {
      const code = handle === 0 ? OK : native.identitySet(handle, next.seed);
      if (code !== OK) throw new Error(START_FAULTS[code] ?? `the native engine answers ${code}`);
      identity = next;
    },
    async stop() {
      if (handle === 0) return;
      const engine = handle;
      handle = 0;
      native.engineStop(engine, STOP_LINGER_MS);
      connections.clear();
      log.info({ ...counters }, "native engine stopped");
    },
    connect(address, events) {
      const peer = native.peerOpen(handle, address);
      if (peer <= 0) {
        counters.connectErrors += 1;
        return null;
      }
      const connection = new NativeConnection({ native, handle }, peer, options, events);
      connections.set(peer, connection);
      return connection;
    },
  };
}
