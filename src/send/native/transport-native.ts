/**
 * The native engine as a transport: Rust sends on the calling thread, its own I/O thread receives,
 * and what happened comes back in batches of events, one wake-up per batch.
 *
 * The events are in one order: the submission of a transaction, which some thread sent on the path
 * of `native/src/submit`, comes before what became of it. Through this file go resends, and
 * deliveries that waited for a connection.
 *
 * Accounting can wait and an ingress thread cannot: where both share one processor, the system
 * would let accounting run for as long as an ingress thread needs for ten transactions. So
 * accounting yields after every few events (p99 at 5,000 tx/s on two processors: 0.6 to 0.8 times).
 *
 * Hot path: `processEvent`.
 */

import { getSystemErrorName } from "node:util";
import { V1_TRANSACTION_BYTES_MAX } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import {
  ENGINE_COUNTERS,
  EVENT_KIND,
  EVENT_NUMBERS,
  type NativeSending,
  OK,
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
  EVENT_UNITS_PER_DRAIN,
  NATIVE_DELIVERIES_IN_FLIGHT_MAX,
  UNREAD_UNITS_MAX,
  WORK_OF_SUBMISSION,
  WORK_PER_SLICE,
} from "../limits.ts";
import { ACKED, DROPPED, type Losses, ON_WIRE, STOPPED, type Transport } from "../transport.ts";
import { accountNumber } from "./account-number.ts";
import { NativeConnection } from "./native-connection.ts";
import type { TargetTable } from "./target-table.ts";

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
  /** Missing: no other thread sends. */
  readonly shared?: NativeShared | null;
}

export interface NativeShared {
  /** Through which the path of a transaction knows the connections. */
  readonly targetTable: TargetTable;
  readonly submissions: SubmissionSink;
}

/** What reports the submissions among the events. It must not throw, and read no events. */
export interface SubmissionSink {
  /** Where the events are read to: EVENT_UNITS_PER_DRAIN units. */
  readonly batch: Float64Array;
  /** Reports the submission that starts with number `at`; returns how many numbers it has. */
  take(at: number): number;
  /** So many units wait now, of which reading begins. */
  noteUnread(units: number): void;
  /** Yields the processor to waiting ingress threads. */
  yieldThread(): void;
}

/** The kind of an event, its first number. Those below are submissions. */
const SENT = EVENT_KIND.sent;
const DELIVERY_ACKED = EVENT_KIND.acked;
const DELIVERY_FAILED = EVENT_KIND.failed;
const DELIVERY_DROPPED = EVENT_KIND.dropped;
const CONNECTED = EVENT_KIND.connected;
const ADMITTED = EVENT_KIND.admitted;
const CLOSED_EVENT = EVENT_KIND.closed;

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

/** The size of a batch, in numbers. */
export const BATCH_NUMBERS = EVENT_UNITS_PER_DRAIN * EVENT_NUMBERS;
/** How long the engine waits for acknowledgements when it stops. */
const STOP_TIMEOUT_MS = 100;

/** @throws Error from `start` when the engine rejects its options or no socket can be bound */
export function createNativeTransport(
  deps: NativeTransportDeps,
  options: NativeTransportOptions,
): Transport {
  const { native, log } = deps;
  const { targetTable = null, submissions = null } = deps.shared ?? {};
  let { identity } = deps;
  const counters = { eventUnitsDrained: 0, wakes: 0, connectErrors: 0 };
  const connections = new Map<number, NativeConnection>();
  const records = submissions?.batch ?? new Float64Array(BATCH_NUMBERS);
  const engineCounters = new Float64Array(ENGINE_COUNTERS.length);
  const touched: NativeConnection[] = [];
  /** 0: not running. */
  let handle = 0;
  /** The engine that runs, or that ran last: threads may have sent until it stopped. */
  let source = 0;
  let isDraining = false;

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
    if (kind === CLOSED_EVENT) {
      connections.delete(peer);
      connection.end(reason, records[at + 7] ?? 0);
      return;
    }
    if (!connection.touched) touched.push(connection);
    connection.touched = true;
    if (kind === SENT) connection.result(delivery, ON_WIRE, atNs);
    else if (kind === DELIVERY_ACKED) connection.result(delivery, ACKED, atNs);
    // Any other failure belongs to the end of the connection, whose event follows.
    else if (kind === DELIVERY_FAILED && reason === STREAM_STOPPED)
      connection.result(delivery, STOPPED, atNs);
    else if (kind === DELIVERY_DROPPED)
      connection.result(delivery, DROPPED + Math.max(0, reason - 1), atNs);
    else if (kind === CONNECTED) {
      connection.established = true;
      connection.retried = reason === 1;
      if (delivery > 0) connection.idleTimeoutMs = delivery;
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
      recordsLost: counter("eventsLost"),
      datagramsDropped: counter("inboxDrops"),
      datagramsRejected: counter("sendErrors"),
      panics: counter("panics"),
      deliveriesQueued: counter("deliveriesQueued"),
      deliveriesEvicted: counter("deliveriesEvicted"),
    };
  }

  /** Reads the events that are there at the start; for later ones the engine wakes again. */
  function drain(): void {
    if (isDraining || source === 0) return;
    isDraining = true;
    try {
      let left = native.eventsUnread(source);
      submissions?.noteUnread(left);
      let units = 0;
      do {
        // Each call lets the engine wake this thread again.
        units = native.eventsDrain(source, records);
        left -= units;
        processEvents(units * EVENT_NUMBERS, left);
        counters.eventUnitsDrained += units;
      } while (units > 0 && left > 0);
    } finally {
      isDraining = false;
    }
    for (const connection of touched) connection.progress();
    touched.length = 0;
    targetTable?.afterEvents();
  }

  /** The events of a batch; `left`: units that wait behind it. */
  function processEvents(end: number, left: number): void {
    let work = 0;
    for (let at = 0; at < end; ) {
      if ((records[at] ?? 0) < SENT && submissions !== null) {
        at += submissions.take(at);
        work += WORK_OF_SUBMISSION;
      } else {
        processEvent(at);
        at += EVENT_NUMBERS;
        work += 1;
      }
      if (work < WORK_PER_SLICE) continue;
      work = 0;
      if (left < UNREAD_UNITS_MAX) submissions?.yieldThread();
    }
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
          admissionTimeoutMs: options.admissionTimeoutMs,
          idleTimeoutMs: options.idleTimeoutMs,
          keepAliveMs: options.keepAliveMs,
          busyPollUs: options.busyPollUs,
        },
        () => {
          counters.wakes += 1;
          drain();
        },
      );
      if (answer <= 0) throw new Error(startFault(answer));
      handle = answer;
      source = answer;
      if (targetTable !== null) targetTable.engine = handle;
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
      drain();
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
      // A thread that sends at this moment is rejected by the engine.
      if (targetTable !== null) targetTable.engine = 0;
      native.engineStop(engine, STOP_TIMEOUT_MS);
      // The sender has ended them.
      connections.clear();
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
