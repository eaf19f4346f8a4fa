/**
 * A leader on loopback: a real QUIC server that takes transactions as Agave's does, and misbehaves
 * when told to. For the sandbox and for tests.
 *
 * As Agave: ALPN, a client certificate demanded and its key told, one transaction for each
 * unidirectional stream, 4096-byte streams, close code 5 for an empty or larger one, 128 streams,
 * no bidirectional ones, 30 s idle, 8 connections for each address (the ninth is closed with 4).
 * What the binding cannot do: begin with no stream granted and grant them later (its limit is set
 * before the handshake), stake-weighted limits, the throttle of 20 streams in 100 ms, eviction by
 * last use. Those are tested against Agave's own server.
 */

import { createHmac, randomBytes } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import {
  LEADER_CONNECTIONS_MAX,
  LEADER_CONNECTIONS_PER_ADDRESS_MAX,
  LEADER_STREAMS_MAX,
  V1_TRANSACTION_BYTES_MAX,
} from "../core/limits.ts";
import { formatAddress } from "../send/address.ts";
import { tlsIdentityOf } from "../send/certificate.ts";
import {
  type DatagramCounters,
  type DatagramSocket,
  newDatagramCounters,
  openDatagramSocket,
} from "../send/datagram.ts";
import type { Identity } from "../send/identity.ts";
import { type QuicheConfig, type QuicheHeader, quiche, quicheConfig } from "../send/quiche.ts";
import { createSweeper, type Sweeper } from "../send/sweep.ts";
import { LeaderConnection, type LeaderEvents } from "./leader-connection.ts";

/** How a leader treats its peers. */
export interface LeaderBehaviour {
  /** `silent`: new connections get no answer; `refuse`: CONNECTION_REFUSED. */
  readonly admission: "open" | "silent" | "refuse";
  /** After its handshake each new connection is closed with this; null: it is not. */
  readonly closeNew: CloseWith | null;
  /** `stalled`: streams are not read, so no more are granted once the first are used up. */
  readonly reading: "all" | "stalled";
  /** New connections must come back with a token first, as Firedancer wants it. */
  readonly retry: boolean;
  readonly connectionsPerAddressMax: number;
}

export interface CloseWith {
  readonly code: number;
  readonly reason: string;
}

export const LEADER_BEHAVIOUR: LeaderBehaviour = {
  admission: "open",
  closeNew: null,
  reading: "all",
  retry: false,
  connectionsPerAddressMax: LEADER_CONNECTIONS_PER_ADDRESS_MAX,
};

export interface LeaderCounters extends DatagramCounters {
  connections: number;
  connectionsRefused: number;
  connectionsIgnored: number;
  connectionsTooMany: number;
  transactions: number;
  invalidStreams: number;
  retries: number;
}

export interface SimulatedLeaderOptions {
  readonly clock: Clock;
  readonly identity: Identity;
  readonly host?: string;
  /** 0: any free port; the same one is bound again by a later `start`. */
  readonly port?: number;
  readonly behaviour?: Partial<LeaderBehaviour>;
}

export interface TransactionOrigin {
  /** The 32-byte key of the sender's certificate; null when it shows none that counts. */
  readonly peerPubkey: Uint8Array | null;
  /** `Clock.nowNs` when the last byte was read. */
  readonly atNs: number;
}

export type OnTransaction = (bytes: Uint8Array, origin: TransactionOrigin) => void;

export interface SimulatedLeader {
  /** @throws Error when the address cannot be bound */
  start(): Promise<{ readonly address: string }>;
  /** Closes every connection with code 1, as Agave does when it goes down. */
  stop(): Promise<void>;
  onTransaction(callback: OnTransaction): void;
  closeAll(code: number, reason: string): void;
  setBehaviour(behaviour: Partial<LeaderBehaviour>): void;
  readonly connectionCount: number;
  readonly counters: Readonly<LeaderCounters>;
}

const CONNECTION_ID_BYTES = 16;
const TOKEN_MAC_BYTES = 16;
/** Agave's close codes: `streamer/src/nonblocking/quic.rs`, 4.3, 2026-11. */
const DROPPED: CloseWith = { code: 1, reason: "dropped" };
const TOO_MANY: CloseWith = { code: 4, reason: "too_many" };

function serverConfig(identity: Identity): QuicheConfig {
  const config = quicheConfig(tlsIdentityOf(identity), true);
  config.setMaxIdleTimeout(30_000);
  config.setMaxRecvUdpPayloadSize(1472);
  config.setMaxSendUdpPayloadSize(1200);
  config.setInitialMaxData(8 * 1024 * 1024);
  config.setInitialMaxStreamDataUni(V1_TRANSACTION_BYTES_MAX);
  config.setMaxStreamWindow(V1_TRANSACTION_BYTES_MAX);
  config.setInitialMaxStreamsBidi(0);
  config.setInitialMaxStreamsUni(LEADER_STREAMS_MAX);
  return config;
}

export function createSimulatedLeader(options: SimulatedLeaderOptions): SimulatedLeader {
  return new QuicLeader(options);
}

class QuicLeader implements SimulatedLeader {
  readonly counters: LeaderCounters = {
    ...newDatagramCounters(),
    connections: 0,
    connectionsRefused: 0,
    connectionsIgnored: 0,
    connectionsTooMany: 0,
    transactions: 0,
    invalidStreams: 0,
    retries: 0,
  };
  readonly #clock: Clock;
  readonly #host: string;
  readonly #config: QuicheConfig;
  readonly #tokenKey = randomBytes(32);
  /** By connection id, as latin1 text; for the first datagrams also by the id the client chose. */
  readonly #connections = new Map<string, LeaderConnection>();
  readonly #events: LeaderEvents;
  #behaviour: LeaderBehaviour;
  #port: number;
  #socket: DatagramSocket | null = null;
  #sweeper: Sweeper | null = null;
  #callback: OnTransaction = () => {};

  constructor(options: SimulatedLeaderOptions) {
    this.#clock = options.clock;
    this.#host = options.host ?? "127.0.0.1";
    this.#port = options.port ?? 0;
    this.#config = serverConfig(options.identity);
    this.#behaviour = { ...LEADER_BEHAVIOUR, ...options.behaviour };
    this.#events = {
      established: (connection) => this.#established(connection),
      transaction: (bytes, peerPubkey) => {
        this.counters.transactions += 1;
        this.#callback(bytes, { peerPubkey, atNs: this.#clock.nowNs() });
      },
      invalidStream: () => {
        this.counters.invalidStreams += 1;
      },
      stalled: () => this.#behaviour.reading === "stalled",
    };
  }

  get connectionCount(): number {
    return new Set(this.#connections.values()).size;
  }

  async start(): Promise<{ readonly address: string }> {
    const receive = (bytes: Uint8Array, host: string, port: number): void =>
      this.#receive(bytes, host, port);
    this.#socket = await openDatagramSocket(this.#host, this.#port, receive, this.counters);
    this.#port = this.#socket.port;
    this.#sweeper = createSweeper(this.#clock, () => this.#sweep());
    return { address: formatAddress(this.#host, this.#port) };
  }

  async stop(): Promise<void> {
    this.closeAll(DROPPED.code, DROPPED.reason);
    this.#sweeper?.stop();
    this.#socket?.close();
    this.#socket = null;
  }

  onTransaction(callback: OnTransaction): void {
    this.#callback = callback;
  }

  closeAll(code: number, reason: string): void {
    for (const connection of new Set(this.#connections.values())) connection.close(code, reason);
    this.#connections.clear();
  }

  setBehaviour(behaviour: Partial<LeaderBehaviour>): void {
    this.#behaviour = { ...this.#behaviour, ...behaviour };
    for (const connection of new Set(this.#connections.values())) connection.read();
  }

  #receive(bytes: Uint8Array, host: string, port: number): void {
    let header: QuicheHeader;
    try {
      header = quiche.Header.fromSlice(bytes, CONNECTION_ID_BYTES);
    } catch {
      // Not QUIC at all.
      return;
    }
    const connection =
      this.#connections.get(keyOf(header.dcid)) ?? this.#welcome(header, host, port);
    if (connection === null) return;
    connection.receive(bytes);
    this.#forgetIfOver(connection);
    this.#sweeper?.touch();
  }

  /** A datagram of no known connection: the beginning of one, or nothing. */
  #welcome(header: QuicheHeader, host: string, port: number): LeaderConnection | null {
    if (header.ty !== quiche.Type.Initial || this.#socket === null) return null;
    if (this.#behaviour.admission === "silent" || this.#isFull()) {
      this.counters.connectionsIgnored += 1;
      return null;
    }
    const token = header.token ?? new Uint8Array(0);
    if (this.#behaviour.retry && token.length === 0) {
      this.#demandToken(this.#socket, header, host, port);
      return null;
    }
    const originalId = token.length === 0 ? null : this.#tokenId(token, host, port);
    if (token.length > 0 && originalId === null) return null;
    return this.#accept(this.#socket, header, originalId, host, port);
  }

  #accept(
    socket: DatagramSocket,
    header: QuicheHeader,
    originalId: Uint8Array | null,
    host: string,
    port: number,
  ): LeaderConnection | null {
    // After a retry the client uses the id that the retry named, and it has to stay.
    const id = originalId === null ? randomBytes(CONNECTION_ID_BYTES) : header.dcid;
    const local = { host: socket.host, port: socket.port };
    let connection: LeaderConnection;
    try {
      const raw = quiche.Connection.accept(id, originalId, local, { host, port }, this.#config);
      connection = new LeaderConnection(raw, { host, port }, socket, this.#events);
    } catch {
      // The binding refuses the ids: not a client of ours.
      return null;
    }
    if (this.#behaviour.admission === "refuse") {
      this.counters.connectionsRefused += 1;
      connection.refuseAfterFirst();
    }
    this.counters.connections += 1;
    connection.keys.push(keyOf(id), keyOf(header.dcid));
    for (const key of connection.keys) this.#connections.set(key, connection);
    return connection;
  }

  #established(connection: LeaderConnection): void {
    const { closeNew, connectionsPerAddressMax } = this.#behaviour;
    if (closeNew !== null) {
      connection.close(closeNew.code, closeNew.reason);
      return;
    }
    let fromHost = 0;
    for (const other of new Set(this.#connections.values())) {
      if (other.established && other.remote.host === connection.remote.host) fromHost += 1;
    }
    if (fromHost <= connectionsPerAddressMax) return;
    this.counters.connectionsTooMany += 1;
    connection.close(TOO_MANY.code, TOO_MANY.reason);
  }

  #isFull(): boolean {
    // Each connection has two keys at most.
    return this.#connections.size >= 2 * LEADER_CONNECTIONS_MAX;
  }

  #forgetIfOver(connection: LeaderConnection): void {
    if (!connection.over) return;
    for (const key of connection.keys) this.#connections.delete(key);
  }

  #sweep(): number {
    let nextMs = -1;
    for (const connection of new Set(this.#connections.values())) {
      const dueMs = connection.sweep();
      this.#forgetIfOver(connection);
      if (dueMs >= 0 && (nextMs < 0 || dueMs < nextMs)) nextMs = dueMs;
    }
    return nextMs;
  }

  #demandToken(socket: DatagramSocket, header: QuicheHeader, host: string, port: number): void {
    this.counters.retries += 1;
    const token = Buffer.concat([this.#mac(header.dcid, host, port), header.dcid]);
    const id = randomBytes(CONNECTION_ID_BYTES);
    try {
      const { scid, dcid, version } = header;
      const size = quiche.retry(scid, dcid, id, token, version, socket.scratch);
      socket.flush(size, host, port);
    } catch {
      // The client's ids make no retry packet: it gets none.
    }
  }

  /** The connection id in a token of ours, or null when the token is not. */
  #tokenId(token: Uint8Array, host: string, port: number): Uint8Array | null {
    const id = token.slice(TOKEN_MAC_BYTES);
    const mac = this.#mac(id, host, port);
    return mac.equals(token.subarray(0, TOKEN_MAC_BYTES)) ? id : null;
  }

  #mac(id: Uint8Array, host: string, port: number): Buffer {
    const text = `${host} ${port} ${keyOf(id)}`;
    return createHmac("sha256", this.#tokenKey).update(text, "latin1").digest().subarray(0, 16);
  }
}

function keyOf(id: Uint8Array): string {
  return Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString("latin1");
}
