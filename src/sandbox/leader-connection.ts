/**
 * One client's connection at a simulated leader: reads streams, reports complete transactions, and
 * closes on a stream that Agave would not accept. An error of the binding ends the connection.
 */

import { FLUSH_DATAGRAMS_MAX, V1_TRANSACTION_BYTES_MAX } from "../core/limits.ts";
import { peerKeyOf } from "../send/portable/certificate.ts";
import type { DatagramSocket } from "../send/portable/datagram.ts";
import type { QuicheConnection, QuicheHost, QuicheRecvInfo } from "../send/portable/quiche.ts";

export interface LeaderEvents {
  established(connection: LeaderConnection): void;
  transaction(bytes: Uint8Array, peerPubkey: Uint8Array | null, stream: number): void;
  invalidStream(): void;
  /** Whether streams currently stay unread. */
  stalled(): boolean;
  nowNs(): number;
  /** Whether to discard a transaction that began at `sinceNs` and is still incomplete. */
  tooLate(sinceNs: number): boolean;
}

/** The received part of a stream. */
interface Piece {
  readonly bytes: Buffer;
  readonly sinceNs: number;
}

const INVALID_STREAM = 5;

export class LeaderConnection {
  established = false;
  over = false;
  readonly remote: QuicheHost;
  /** The keys of this connection in the leader's map. */
  readonly keys: string[] = [];
  readonly #quiche: QuicheConnection;
  readonly #socket: DatagramSocket;
  readonly #events: LeaderEvents;
  readonly #receiveInfo: QuicheRecvInfo;
  /** The received parts of streams that have not ended. */
  readonly #partial = new Map<number, Piece>();
  readonly #chunk = Buffer.allocUnsafeSlow(V1_TRANSACTION_BYTES_MAX + 1);
  #peerPubkey: Uint8Array | null = null;

  constructor(
    quiche: QuicheConnection,
    remote: QuicheHost,
    socket: DatagramSocket,
    events: LeaderEvents,
  ) {
    this.#quiche = quiche;
    this.remote = remote;
    this.#socket = socket;
    this.#events = events;
    this.#receiveInfo = { from: remote, to: { host: socket.host, port: socket.port } };
  }

  /** Receives one datagram of this connection; its bytes are decrypted in place. */
  receive(bytes: Uint8Array): void {
    if (this.over) return;
    try {
      this.#quiche.recv(bytes, this.#receiveInfo);
    } catch {
      // The client broke the protocol or sent no certificate; quiche has its response ready.
      this.#flush();
      this.over = true;
      return;
    }
    if (this.#quiche.isDraining() || this.#quiche.isClosed()) {
      this.over = true;
      return;
    }
    if (!this.established && this.#quiche.isEstablished()) {
      this.established = true;
      this.#peerPubkey = peerKeyOf(this.#quiche.peerCertChain());
      this.#events.established(this);
    }
    this.read();
  }

  /** Reads every readable stream, unless the leader is stalled. */
  read(): void {
    if (this.over) return;
    try {
      if (this.established && !this.#events.stalled()) {
        for (const stream of this.#quiche.readable()) this.#readStream(stream);
      }
    } catch {
      // The binding reports an error on the stream: the connection is unusable.
      this.over = true;
    }
    this.#flush();
  }

  close(code: number, reason: string): void {
    if (this.over) return;
    this.over = true;
    try {
      this.#quiche.close(true, code, Buffer.from(reason));
    } catch {
      // Already closing.
    }
    this.#flush();
  }

  /** Fires due timers; returns the milliseconds until the next one, -1 for none. */
  scanTimeouts(): number {
    if (this.over) return -1;
    const dueMs = this.#quiche.timeout() ?? -1;
    if (dueMs !== 0) return dueMs;
    this.#quiche.onTimeout();
    if (this.#quiche.isClosed()) {
      this.over = true;
      return -1;
    }
    this.#flush();
    return this.#quiche.timeout() ?? -1;
  }

  #readStream(stream: number): void {
    while (!this.over) {
      const read = this.#quiche.streamRecv(stream, this.#chunk);
      if (read === null) return;
      const [size, ended] = read;
      const piece = this.#chunk.subarray(0, size);
      const before = this.#partial.get(stream);
      const whole = Buffer.concat([before?.bytes ?? Buffer.alloc(0), piece]);
      const sinceNs = before?.sinceNs ?? this.#events.nowNs();
      if (whole.length > V1_TRANSACTION_BYTES_MAX || (ended && whole.length === 0)) {
        this.#events.invalidStream();
        this.close(INVALID_STREAM, "invalid_stream");
        return;
      }
      if (ended) {
        this.#partial.delete(stream);
        const isLost = before !== undefined && this.#events.tooLate(sinceNs);
        if (!isLost) this.#events.transaction(whole, this.#peerPubkey, stream);
        return;
      }
      this.#partial.set(stream, { bytes: whole, sinceNs });
    }
  }

  #flush(): void {
    const socket = this.#socket;
    try {
      for (let count = 0; count < FLUSH_DATAGRAMS_MAX; count += 1) {
        const written = this.#quiche.send(socket.scratch);
        if (written === null) return;
        socket.flush(written[0], this.remote.host, this.remote.port);
      }
    } catch {
      // No further packet can be built; the client notices through its idle timeout.
      this.over = true;
    }
  }
}
