/**
 * The native engine as a transport: Rust sends on the calling thread, its own I/O thread receives,
 * and events come back in batches of records, one wake-up per batch.
 *
 * An event may belong to the first delivery of a transaction, which some thread made on the path of
 * `native/src/submit`, after it published the transaction. What was published is read once a batch
 * of events is taken from the engine, before it is processed, so every event finds its delivery.
 * Through this file go resends, and deliveries that waited for a connection.
 *
 * Hot path: `processEvent`.
 */

import { getSystemErrorName } from "node:util";
import { V1_TRANSACTION_BYTES_MAX } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import {
  ENGINE_COUNTERS,
  type NativeSending,
  OK,
  RECORD_KIND,
  RECORD_NUMBERS,
  START_FULL,
  START_IDENTITY,
  START_OPTIONS,
  START_SOCKET,
  START_THREAD,
  STREAM_STOPPED,
} from "../../native/contract.ts";
import type { Identity } from "../identity.ts";
import {
  DELIVERY_NUMBERS,
  ENGINE_EVENTS_PER_SLICE,
  NATIVE_DELIVERIES_IN_FLIGHT_MAX,
  NATIVE_EVENTS_PER_DRAIN,
  NATIVE_RECORDS_MAX,
} from "../limits.ts";
import { ACKED, DROPPED, type Losses, ON_WIRE, STOPPED, type Transport } from "../transport.ts";
import { accountNumber } from "./account-number.ts";
import { NativeConnection } from "./native-connection.ts";
import type { SharedTargetTable } from "./shared-target-table.ts";

export interface NativeTransportOptions {
  /** Local "ip:port" addresses to send from, port 0 for any. */
  readonly binds: readonly string[];
  /** How long the I/O thread polls for datagrams before it sleeps; 0: no polling. */
  readonly busyPollUs: number;
  /** Idle time after which a connection ends. */
  readonly idleTimeoutMs: number;
  readonly keepAliveMs: number;
  /** A connection whose leader grants no stream for this long is closed. */
  readonly admissionTimeoutMs: number;
  /** Maximum number of deliveries queued for one leader's credit, and their TTL. */
  readonly queuePerLeader: number;
  readonly deliveryTtlMs: number;
}

export interface NativeTransportDeps {
  readonly native: NativeSending;
  readonly identity: Identity;
  readonly log: Log;
  /** Through which the path of a transaction knows the connections; missing: in tests. */
  readonly targetTable?: SharedTargetTable | null;
}

/** The kind of a record, its first number. */
const SENT = RECORD_KIND.sent;
const DELIVERY_ACKED = RECORD_KIND.acked;
const DELIVERY_FAILED = RECORD_KIND.failed;
const DELIVERY_DROPPED = RECORD_KIND.dropped;
const CONNECTED = RECORD_KIND.connected;
const ADMITTED = RECORD_KIND.admitted;
const CLOSED_RECORD = RECORD_KIND.closed;

/** Status codes of `engineStart`. */
const START_FAULTS: Readonly<Record<number, string>> = {
  [START_FULL]: "this process already runs 16 native engines, the maximum",
  [START_OPTIONS]: "the native engine rejected its options",
  [START_IDENTITY]: "the native engine cannot create a certificate for this identity",
  [START_THREAD]: "the native engine cannot start its thread",
};

function startFault(status: number): string {
  if (status < START_SOCKET) {
    return `the native engine failed to bind: ${getSystemErrorName(status - START_SOCKET)}`;
  }
  return START_FAULTS[status] ?? `the native engine failed to start: status ${status}`;
}

/** For less than one event. */
const NO_ROOM = new Float64Array(1);
/** How long the engine waits for acknowledgements when it stops. */
const STOP_TIMEOUT_MS = 100;
/** Agave leaders acknowledge immediately when requested; others apply their own policy. */
const ACK_EVERY = 10;
const ACK_DELAY_MS = 25;

/** @throws Error from `start` when the engine rejects its options or no socket can be bound */
export function createNativeTransport(
  deps: NativeTransportDeps,
  options: NativeTransportOptions,
): Transport {
  const { native, log } = deps;
  const targetTable = deps.targetTable ?? null;
  let { identity } = deps;
  const counters = { recordsDrained: 0, wakes: 0, connectErrors: 0 };
  const connections = new Map<number, NativeConnection>();
  const records = new Float64Array(NATIVE_EVENTS_PER_DRAIN * RECORD_NUMBERS);
  const engineCounters = new Float64Array(ENGINE_COUNTERS.length);
  const touched: NativeConnection[] = [];
  /** Deferred ends of connections whose end is among the records of this batch. */
  const pendingCloses: (() => void)[] = [];
  /** 0: not running. */
  let handle = 0;
  /** Events in `records` that are not processed. */
  let held = 0;

  function processEvent(at: number): void {
    const kind = records[at] ?? 0;
    const peer = records[at + 2] ?? 0;
    const connection = connections.get(peer);
    if (connection === undefined) return;
    const rttUs = records[at + 6] ?? 0;
    if (rttUs > 0) connection.rttUs = rttUs;
    const delivery = records[at + 3] ?? 0;
    const reason = records[at + 4] ?? 0;
    const atNs = records[at + 5] ?? 0;
    if (kind === CLOSED_RECORD) {
      // The engine puts the end of a connection before the results of its deliveries.
      const code = records[at + 7] ?? 0;
      pendingCloses.push(() => {
        connections.delete(peer);
        connection.end(reason, code);
      });
      return;
    }
    if (!connection.touched) touched.push(connection);
    connection.touched = true;
    if (kind === SENT) connection.result(delivery, ON_WIRE, atNs);
    else if (kind === DELIVERY_ACKED) connection.result(delivery, ACKED, atNs);
    // Any other failure belongs to the end of the connection, whose event comes before or after.
    else if (kind === DELIVERY_FAILED && reason === STREAM_STOPPED)
      connection.result(delivery, STOPPED, atNs);
    else if (kind === DELIVERY_DROPPED)
      connection.result(delivery, DROPPED + Math.max(0, reason - 1), atNs);
    else if (kind === CONNECTED) {
      connection.established = true;
      connection.retried = reason === 1;
      connection.streamBytesMax = Math.min(records[at + 7] ?? 0, V1_TRANSACTION_BYTES_MAX);
    } else if (kind === ADMITTED) connection.admitted = true;
  }

  let lastNumber = 0;
  function nextNumber(): number {
    lastNumber = (lastNumber + 1) % DELIVERY_NUMBERS;
    return lastNumber;
  }

  /** After a stop: the counters at the time of the stop. */
  function losses(): Losses {
    if (handle !== 0) native.engineCounters(handle, engineCounters);
    const counter = (name: (typeof ENGINE_COUNTERS)[number]): number =>
      engineCounters[ENGINE_COUNTERS.indexOf(name)] ?? 0;
    return {
      recordsLost: counter("outcomesLost"),
      datagramsDropped: counter("inboxDrops"),
      datagramsRejected: counter("sendErrors"),
      panics: counter("panics"),
      deliveriesQueued: counter("deliveriesQueued"),
      deliveriesEvicted: counter("deliveriesEvicted"),
    };
  }

  /**
   * Takes the engine's events, and processes them once what was sent is recorded. Until then they
   * wait for the next call, because an event of an unknown delivery is lost.
   */
  function drain(): void {
    for (let full = true; full; ) {
      const isNew = held === 0;
      // Each call lets the engine wake this thread again.
      const taken = native.outcomesDrain(handle, isNew ? records : NO_ROOM);
      held += taken;
      counters.recordsDrained += taken;
      if (targetTable?.beforeEvents() === false) break;
      const count = held;
      held = 0;
      for (let index = 0; index < count; index += 1) {
        if (index % ENGINE_EVENTS_PER_SLICE === ENGINE_EVENTS_PER_SLICE - 1)
          targetTable?.yieldThread();
        processEvent(index * RECORD_NUMBERS);
      }
      full = !isNew || count === NATIVE_EVENTS_PER_DRAIN;
    }
    for (const end of pendingCloses) end();
    pendingCloses.length = 0;
    for (const connection of touched) connection.progress();
    touched.length = 0;
    targetTable?.afterEvents();
  }

  return {
    counters,
    losses,
    async start() {
      const answer = native.engineStart(
        {
          binds: [...options.binds],
          seed: identity.seed,
          queueMax: options.queuePerLeader,
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
    useLandedShares(changed) {
      const pairs = new Float64Array(2 * changed.size);
      let at = 0;
      for (const [account, share] of changed) {
        pairs[at] = accountNumber(account);
        pairs[at + 1] = share;
        at += 2;
      }
      if (handle !== 0) native.landedSharesSet(handle, pairs);
    },
    flushEvents() {
      if (handle === 0) targetTable?.beforeEvents();
      else drain();
    },
    useIdentity(next) {
      const code = handle === 0 ? OK : native.identitySet(handle, next.seed);
      if (code !== OK)
        throw new Error(
          START_FAULTS[code] ?? `the native engine rejected the identity: status ${code}`,
        );
      identity = next;
    },
    async stop() {
      if (handle === 0) return;
      const engine = handle;
      const lost = losses();
      handle = 0;
      held = 0;
      // A thread that sends at this moment is rejected by the engine.
      targetTable?.useEngine(0);
      native.engineStop(engine, STOP_TIMEOUT_MS);
      log.info({ ...counters, ...lost }, "native engine stopped");
    },
    recordSend(peer, packet, delivery, sentNs, waits) {
      connections.get(peer)?.sentElsewhere(packet, delivery, sentNs, waits);
    },
    connect(address, events) {
      const peer = native.peerOpen(handle, address);
      if (peer <= 0) {
        counters.connectErrors += 1;
        return null;
      }
      const engine = { native, handle, nextNumber };
      const connection = new NativeConnection(engine, peer, options.deliveryTtlMs, events);
      connections.set(peer, connection);
      return connection;
    },
  };
}
