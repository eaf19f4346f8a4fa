/**
 * The native engine as a transport: Rust sends on the calling thread, an I/O thread of its own
 * receives, and what happened comes back in batches of records, one wake a batch.
 *
 * A record may tell of a copy that a front sent and nobody here knows of yet: fronts' copies are
 * adopted before each batch, and what comes before its copy all the same is kept for it.
 *
 * Hot path: `processEvent`.
 */

import { getSystemErrorName } from "node:util";
import { V1_TRANSACTION_BYTES_MAX } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import { type NativeSending, OK, RECORD_NUMBERS, START_SOCKET } from "../../native/contract.ts";
import type { Identity } from "../identity.ts";
import {
  ENGINE_EVENTS_PER_SLICE,
  NATIVE_DELIVERIES_IN_FLIGHT_MAX,
  NATIVE_EVENTS_PER_DRAIN,
  NATIVE_RECORDS_MAX,
} from "../limits.ts";
import { ACKED, DROPPED, IN_FLIGHT, type Losses, STOPPED, type Transport } from "../transport.ts";
import { EarlyOutcomes } from "./early-outcomes.ts";
import { NativeConnection } from "./native-connection.ts";
import type { SharedTargetTable } from "./shared-target-table.ts";

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
  /** By which fronts send over the connections too; none where it is not given. */
  readonly targetTable?: SharedTargetTable | null;
}

/** What the first number of a record says: `native/src/quic/event_ring.rs`. */
const SENT = 1;
const DELIVERY_ACKED = 2;
const DELIVERY_FAILED = 3;
const DELIVERY_DROPPED = 4;
const CONNECTED = 5;
const ADMITTED = 6;
const CLOSED_RECORD = 7;
/** The number of a record that says when it happened. */
const AT_NS = 5;

/** Answers of `engineStart`: `native/src/node/status_codes.rs`. */
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
/** Numbers of `engineCounters`. */
const ENGINE_COUNTERS = 6;
/** How long the engine waits for goodbyes when it stops. */
const STOP_TIMEOUT_MS = 100;
/** Leaders of Agave acknowledge at once when asked to; others keep their own habit. */
const ACK_EVERY = 10;
const ACK_DELAY_MS = 25;

/** @throws Error from `start` when the engine refuses its options or no socket can be bound */
export function createNativeTransport(
  deps: NativeTransportDeps,
  options: NativeTransportOptions,
): Transport {
  const { native, log } = deps;
  const targetTable = deps.targetTable ?? null;
  const early = targetTable === null ? null : new EarlyOutcomes();
  let { identity } = deps;
  const counters = { recordsDrained: 0, wakes: 0, connectErrors: 0 };
  const connections = new Map<number, NativeConnection>();
  const records = new Float64Array(NATIVE_EVENTS_PER_DRAIN * RECORD_NUMBERS);
  const engineCounters = new Float64Array(ENGINE_COUNTERS);
  const touched: NativeConnection[] = [];
  /** What ends the connections whose end is among the records of this batch. */
  const pendingCloses: (() => void)[] = [];
  /** 0: not running. */
  let handle = 0;

  function processEvent(at: number): void {
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
      pendingCloses.push(() => {
        forget(peer, connection);
        connection.end(reason, code);
      });
      return;
    }
    if (!connection.touched) touched.push(connection);
    connection.touched = true;
    const tx = records[at + 1] ?? 0;
    if (kind === SENT) connection.recordResult(stream, IN_FLIGHT, atNs, tx);
    else if (kind === DELIVERY_ACKED) connection.recordResult(stream, ACKED, atNs, tx);
    // Any other failure is the connection's end, whose record follows.
    else if (kind === DELIVERY_FAILED && reason === STREAM_STOPPED)
      connection.recordResult(stream, STOPPED, atNs, tx);
    else if (kind === DELIVERY_DROPPED)
      connection.recordResult(stream, DROPPED + Math.max(0, reason - 1), atNs, tx);
    else if (kind === CONNECTED) {
      connection.established = true;
      connection.retried = reason === 1;
      connection.streamBytesMax = Math.min(records[at + 7] ?? 0, V1_TRANSACTION_BYTES_MAX);
    } else if (kind === ADMITTED) connection.admitted = true;
  }

  function forget(peer: number, connection: NativeConnection): void {
    connections.delete(peer);
    if (connection.shared !== null) targetTable?.freeCell(connection.cell);
  }

  /** Records come nearly in the order of time, so the last one tells the time. */
  function expireEarly(count: number): void {
    if (early === null || early.size === 0 || count === 0) return;
    early.expire(records[(count - 1) * RECORD_NUMBERS + AT_NS] ?? 0);
  }

  /** Of an engine that is stopped what was known when it was. */
  function losses(): Losses {
    if (handle !== 0) native.engineCounters(handle, engineCounters);
    const [, , recordsLost = 0, datagramsDropped = 0, datagramsRefused = 0, panics = 0] =
      engineCounters;
    const { expired: outcomesExpired = 0, evicted: outcomesEvicted = 0 } = early ?? {};
    return {
      outcomesExpired,
      outcomesEvicted,
      recordsLost,
      datagramsDropped,
      datagramsRefused,
      panics,
    };
  }

  /** Takes what fronts sent and then the engine's news, of which some may be of those copies. */
  function drain(): void {
    targetTable?.markDrain();
    targetTable?.beforeDrain();
    for (let full = true; full; ) {
      const count = native.outcomesDrain(handle, records);
      counters.recordsDrained += count;
      for (let index = 0; index < count; index += 1) {
        if (index % ENGINE_EVENTS_PER_SLICE === ENGINE_EVENTS_PER_SLICE - 1)
          targetTable?.yieldThread();
        processEvent(index * RECORD_NUMBERS);
      }
      expireEarly(count);
      full = count === NATIVE_EVENTS_PER_DRAIN;
    }
    targetTable?.markDrain();
    for (const end of pendingCloses) end();
    pendingCloses.length = 0;
    for (const connection of touched) connection.progress();
    touched.length = 0;
    targetTable?.afterDrain();
  }

  return {
    counters,
    losses,
    async start() {
      const answer = native.engineStart(
        {
          binds: [...options.binds],
          seed: identity.seed,
          queueMax: options.queuePerPeer,
          inFlightMax: NATIVE_DELIVERIES_IN_FLIGHT_MAX,
          outcomesMax: NATIVE_RECORDS_MAX,
          admissionTimeoutMs: options.admissionTimeoutMs,
          idleTimeoutMs: options.idleTimeoutMs,
          keepAliveMs: options.keepAliveMs,
          ackEvery: ACK_EVERY,
          ackDelayMs: ACK_DELAY_MS,
          busyPollUs: options.busyPollUs,
        },
        () => {
          counters.wakes += 1;
          drain();
        },
      );
      if (answer <= 0) throw new Error(startFault(answer));
      handle = answer;
      targetTable?.useEngine(handle);
    },
    flushEvents() {
      if (handle === 0) targetTable?.beforeDrain();
      else drain();
    },
    useIdentity(next) {
      const code = handle === 0 ? OK : native.identitySet(handle, next.seed);
      if (code !== OK) throw new Error(START_FAULTS[code] ?? `the native engine answers ${code}`);
      identity = next;
    },
    async stop() {
      if (handle === 0) return;
      const engine = handle;
      const lost = losses();
      handle = 0;
      // A front that sends at this moment is refused by the engine.
      targetTable?.useEngine(0);
      native.engineStop(engine, STOP_TIMEOUT_MS);
      for (const [peer, connection] of connections) forget(peer, connection);
      log.info({ ...counters, ...lost }, "native engine stopped");
    },
    connect(address, events) {
      const peer = native.peerOpen(handle, address);
      if (peer <= 0) {
        counters.connectErrors += 1;
        return null;
      }
      const ingressThreads = targetTable === null || early === null ? null : { targetTable, early };
      const connection = new NativeConnection(
        { native, handle, ingressThreads },
        peer,
        options,
        events,
      );
      connections.set(peer, connection);
      return connection;
    },
  };
}
