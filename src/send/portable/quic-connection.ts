/**
 * One QUIC connection to a leader, on the quiche binding. Hot path: `send`, `receive`, `#flush`.
 *
 * A transaction is written only when all of it fits into the leader's credit and the congestion
 * window, and is sent immediately, so it never shares a datagram with another and is never half
 * written. quiche opens a stream when its priority is set, which makes its capacity known before
 * the first byte; such a stream appears on the wire only with its bytes, so no empty stream is ever
 * sent. When the binding throws, the connection ends.
 */

import type { SocketAddress } from "../../core/address.ts";
import { NS_PER_MS } from "../../core/clock.ts";
import { FLUSH_DATAGRAMS_MAX } from "../../core/limits.ts";
import { DELIVERIES_IN_FLIGHT_MAX, LEADER_SAYS_BYTES_MAX } from "../limits.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  type CloseCause,
  type ConnectionEvents,
  type EngineConnection,
  STOPPED,
  TOO_LARGE,
} from "../transport.ts";
import type { DatagramSocket } from "./datagram.ts";
import type { QuicheConnection, QuicheRecvInfo } from "./quiche.ts";
import { RoundTrip } from "./round-trip.ts";

/** The first unidirectional stream of a client, and the step to the next. RFC 9000 section 2.1. */
const FIRST_STREAM = 2;
const STREAM_STEP = 4;
/** quiche's default urgency; all streams share it, so that they are sent in order. */
const URGENCY = 127;
/** Maximum headers and tag of a datagram with one stream frame: 1+20+4 + 1+8+2 + 16 bytes. */
const DATAGRAM_OVERHEAD_BYTES = 52;
const NO_REASON = new Uint8Array(0);
/** RFC 9000 section 20.1: sent to the leader after a local error. */
const INTERNAL_ERROR = 0x01;
const LOCAL_FAULT: CloseCause = { kind: "local", code: 0 };
const SILENCE: CloseCause = { kind: "silence", code: 0 };

export interface QuicConnectionHooks {
  /** `Clock.nowNs`. */
  nowNs(): number;
  /** The connection's timers may have moved. */
  touched(): void;
  /** The connection ended: remove it. */
  gone(connection: QuicConnection): void;
}

export class QuicConnection implements EngineConnection {
  /** Other threads cannot send over it. */
  readonly peer = 0;
  /** Nothing waits here. */
  readonly waits = false;
  established = false;
  admitted = false;
  retried = false;
  readonly keepsAlive = false;
  datagramsReceived = 0;
  /** The first four bytes of the local connection id, which route datagrams to the connection. */
  readonly id: number;
  readonly address: SocketAddress;
  readonly #quiche: QuicheConnection;
  readonly #socket: DatagramSocket;
  readonly #events: ConnectionEvents;
  readonly #hooks: QuicConnectionHooks;
  readonly #receiveInfo: QuicheRecvInfo;
  /** Streams without a result, in the order in which they were opened. */
  readonly #open = new Set<number>();
  readonly #stopped = new Set<number>();
  readonly #trip: RoundTrip;
  readonly #silenceNs: number;
  /** When the handshake completed; 0: not yet. */
  #establishedNs = 0;
  #nextStream = FIRST_STREAM;
  #nextStreamOpen = false;
  streamBytesMax = 0;
  idleTimeoutMs = Number.POSITIVE_INFINITY;
  /** Overhead sent since quiche last counted the congestion window. */
  #overheadBytes = 0;
  /** Bytes that the leader may still send. */
  #quotaBytes = LEADER_SAYS_BYTES_MAX;
  /** Whether the leader closed the connection. */
  #isClosing = false;
  #over = false;
  /** Whether quiche must not be called any more. */
  #isBroken = false;

  constructor(
    id: number,
    quiche: QuicheConnection,
    address: SocketAddress,
    socket: DatagramSocket,
    events: ConnectionEvents,
    hooks: QuicConnectionHooks,
    silenceNs: number,
  ) {
    this.id = id;
    this.address = address;
    this.#quiche = quiche;
    this.#socket = socket;
    this.#events = events;
    this.#hooks = hooks;
    this.#silenceNs = silenceNs;
    this.#trip = new RoundTrip(silenceNs);
    this.#receiveInfo = {
      from: { host: address.host, port: address.port },
      to: { host: socket.host, port: socket.port },
    };
  }

  get streamsLeft(): number {
    return this.#over || !this.established ? 0 : this.#quiche.peerStreamsLeftUni();
  }

  get rttUs(): number {
    return this.#trip.us;
  }

  get isDegraded(): boolean {
    return this.#trip.misjudged;
  }

  /** Sends the first datagram of the handshake. */
  open(): void {
    this.#flush();
  }

  send(bytes: Uint8Array): number {
    if (this.#over || this.#isClosing || !this.established) return CLOSED;
    const size = bytes.length;
    if (size > this.streamBytesMax) return TOO_LARGE;
    const nowNs = this.#hooks.nowNs();
    if (this.#isTimedOut(nowNs)) return CLOSED;
    const quiche = this.#quiche;
    const stream = this.#nextStream;
    try {
      if (!this.#nextStreamOpen) {
        if (quiche.peerStreamsLeftUni() <= 0) return BLOCKED;
        quiche.streamPriority(stream, URGENCY, false);
        this.#nextStreamOpen = true;
      }
      // `streamCapacity` ignores the overhead: it is bounded by the stream's own window only.
      const needed = size + this.#overheadBytes + DATAGRAM_OVERHEAD_BYTES;
      const room = quiche.streamCapacity(stream);
      if (room < needed && room < this.streamBytesMax) return BLOCKED;
      if (quiche.streamSend(stream, bytes, true) !== size) {
        this.#end(LOCAL_FAULT);
        return CLOSED;
      }
    } catch {
      // The binding reports no error code; the connection cannot continue after any error.
      this.#end(LOCAL_FAULT);
      return CLOSED;
    }
    this.#nextStream = stream + STREAM_STEP;
    this.#nextStreamOpen = false;
    this.#overheadBytes += DATAGRAM_OVERHEAD_BYTES;
    // Its acknowledgements are smaller than half of it.
    this.#quotaBytes = Math.min(LEADER_SAYS_BYTES_MAX, this.#quotaBytes + size / 2);
    this.#trip.sent(stream, nowNs);
    this.#flush();
    if (this.#over) return CLOSED;
    this.#track(stream);
    return stream;
  }

  /** The sender gives up on the oldest at the same bound. */
  #track(stream: number): void {
    this.#open.add(stream);
    if (this.#open.size <= DELIVERIES_IN_FLIGHT_MAX) return;
    for (const oldest of this.#open) {
      this.#open.delete(oldest);
      return;
    }
  }

  /**
   * Reports the results that are known: up to the first stream without one, because streams are
   * sent and acknowledged in order; of all streams at the end, so that what was acknowledged before
   * stays acknowledged.
   */
  #reportResults(isEnd: boolean): void {
    for (const stream of this.#open) {
      const result = this.#resultOf(stream);
      if (result !== null) {
        this.#open.delete(stream);
        this.#events.result(stream, result, this.#hooks.nowNs());
      } else if (!isEnd) return;
    }
  }

  #resultOf(stream: number): typeof STOPPED | typeof ACKED | null {
    if (this.#stopped.delete(stream)) return STOPPED;
    return !this.#isBroken && this.#quiche.streamFinished(stream) ? ACKED : null;
  }

  #reportProgress(): void {
    this.#reportResults(false);
    this.#events.progress();
  }

  ping(): void {
    if (this.#over) return;
    const nowNs = this.#hooks.nowNs();
    if (this.#isTimedOut(nowNs)) return;
    try {
      this.#quiche.sendAckEliciting();
    } catch {
      // No path is left.
      this.#end(LOCAL_FAULT);
      return;
    }
    this.#trip.pinged(nowNs);
    this.#flush();
  }

  close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#sendClose(true, 0);
    this.#hooks.gone(this);
    this.#reportResults(true);
  }

  /** Processes one datagram of this connection; its bytes are decrypted in place. */
  receive(bytes: Uint8Array): void {
    if (this.#over) return;
    this.#quotaBytes -= bytes.length;
    let cause: CloseCause | null = null;
    try {
      // quiche does not bound much of the state that a flood makes it keep.
      cause = this.#quotaBytes < 0 ? LOCAL_FAULT : this.#processDatagram(bytes);
    } catch {
      // The leader broke the protocol; quiche has its close packet ready, which `#sendClose` sends.
      cause = LOCAL_FAULT;
    }
    if (cause !== null) {
      if (cause.kind !== "local") this.#reportLast();
      this.#end(cause);
      return;
    }
    this.#flush();
    if (!this.#over) this.#reportProgress();
  }

  /** With its close, a leader also acknowledges what it received since its last acknowledgement. */
  #reportLast(): void {
    this.#isClosing = true;
    this.#reportProgress();
  }

  /** Fires the timers that are due; returns in how many milliseconds the next one is due. */
  scanTimeouts(): number {
    if (this.#over) return -1;
    const nowNs = this.#hooks.nowNs();
    // quiche waits at least three of its longest round trips, and may misestimate those.
    if (this.#isTimedOut(nowNs)) return -1;
    const owedNs = this.#streamOwedNs || this.#trip.owedNs;
    const leftMs = (owedNs + this.#silenceNs - nowNs) / NS_PER_MS;
    const dueMs = this.#fireDue();
    return owedNs === 0 || dueMs < 0 ? dueMs : Math.min(dueMs, Math.ceil(leftMs));
  }

  /** Since when the leader owes its first stream; 0: it does not. */
  get #streamOwedNs(): number {
    return this.admitted ? 0 : this.#establishedNs;
  }

  /**
   * Ends the connection after the idle time, and after as long without a first stream, even where
   * the leader responds: nothing else would end such a connection. Also checked before anything is
   * sent: if this process was suspended for longer, its timers fire later, and quiche would treat
   * the connection as alive.
   */
  #isTimedOut(nowNs: number): boolean {
    const owedNs = this.#streamOwedNs;
    const isUnadmitted = owedNs !== 0 && nowNs - owedNs >= this.#silenceNs;
    if (!isUnadmitted && !this.#trip.isOver(nowNs)) return false;
    this.close();
    this.#events.ended(SILENCE);
    return true;
  }

  #fireDue(): number {
    const dueMs = this.#quiche.timeout() ?? -1;
    if (dueMs !== 0) {
      if (this.#recordStopped()) this.#reportProgress();
      return dueMs;
    }
    this.#quiche.onTimeout();
    if (this.#quiche.isClosed()) {
      this.#end(SILENCE);
      return -1;
    }
    this.#flush();
    return this.#over ? -1 : (this.#quiche.timeout() ?? -1);
  }

  #processDatagram(bytes: Uint8Array): CloseCause | null {
    const quiche = this.#quiche;
    // quiche decrypts in place, so the header is read first.
    if (!this.established && isRetry(bytes)) this.retried = true;
    quiche.recv(bytes, this.#receiveInfo);
    this.datagramsReceived += 1;
    this.#overheadBytes = 0;
    this.#recordResponse();
    if (quiche.isDraining()) return this.#closeCauseOfPeer();
    // Closed without a close frame: a stateless reset, so the leader has no state of the
    // connection.
    if (quiche.isClosed()) return SILENCE;
    if (!this.established && quiche.isEstablished()) this.#establish();
    if (this.established && !this.admitted) this.admitted = quiche.peerStreamsLeftUni() > 0;
    return null;
  }

  #establish(): void {
    this.established = true;
    this.#establishedNs = this.#hooks.nowNs();
    const { peerInitialMaxStreamDataUni, peerMaxIdleTimeout } = this.#quiche.stats();
    this.streamBytesMax = peerInitialMaxStreamDataUni;
    if (peerMaxIdleTimeout > 0) this.idleTimeoutMs = peerMaxIdleTimeout;
    this.#trip.us = this.#believedUs();
  }

  #recordResponse(): void {
    const trip = this.#trip;
    const isAcked = trip.stream >= 0 && this.#quiche.streamFinished(trip.stream);
    if (trip.heard(isAcked, this.#hooks.nowNs())) trip.compare(this.#believedUs());
  }

  /** quiche's round-trip estimate; the binding reports it in whole milliseconds only. */
  #believedUs(): number {
    const [path] = this.#quiche.pathStats();
    return (path?.rtt ?? 0) * 1000;
  }

  /** A stream that the leader stopped is reported as writable although it was finished. */
  #recordStopped(): boolean {
    if (this.#over || !this.established) return false;
    let found = false;
    for (const stream of this.#quiche.writable()) {
      if (stream >= this.#nextStream || this.#stopped.size >= DELIVERIES_IN_FLIGHT_MAX) continue;
      this.#stopped.add(stream);
      found = true;
    }
    return found;
  }

  #flush(): void {
    try {
      this.#writeAll();
    } catch {
      // quiche could not create a packet: its state is not reliable any more.
      this.#end(LOCAL_FAULT);
      return;
    }
    this.#hooks.touched();
  }

  #writeAll(): void {
    const socket = this.#socket;
    const { host, port } = this.address;
    for (let count = 0; count < FLUSH_DATAGRAMS_MAX; count += 1) {
      const written = this.#quiche.send(socket.scratch);
      if (written === null) return;
      socket.flush(written[0], host, port);
    }
  }

  #sendClose(app: boolean, code: number): void {
    try {
      this.#quiche.close(app, code, NO_REASON);
    } catch {
      // It was already closing, with a code of quiche's own.
    }
    try {
      this.#writeAll();
    } catch {
      // The leader notices through its idle timeout.
    }
  }

  #closeCauseOfPeer(): CloseCause {
    const error = this.#quiche.peerError();
    if (error === null) return SILENCE;
    return { kind: error.isApp ? "app" : "transport", code: error.errorCode };
  }

  #end(cause: CloseCause): void {
    if (this.#over) return;
    this.#over = true;
    this.#isBroken = cause.kind === "local";
    if (this.#isBroken) this.#sendClose(false, INTERNAL_ERROR);
    this.#hooks.gone(this);
    this.#reportResults(true);
    this.#events.ended(cause);
  }
}

/** A long header of version 1 with the type of a Retry packet. RFC 9000 section 17.2.5. */
function isRetry(bytes: Uint8Array): boolean {
  return ((bytes[0] ?? 0) & 0xf0) === 0xf0;
}
