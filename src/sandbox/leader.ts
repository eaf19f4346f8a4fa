/**
 * A leader on loopback: a real QUIC server that accepts transactions as Agave's does, with
 * configurable faults. For the sandbox and for tests.
 *
 * As Agave: ALPN, a required client certificate whose key is reported, one transaction per
 * unidirectional stream, 4096-byte streams, close code 5 for an empty or larger one, 128 streams,
 * no bidirectional ones, 30 s idle, 8 connections per address (the ninth is closed with 4). The
 * binding cannot start with no stream granted and grant streams later (its limit is set before the
 * handshake; never granting any is possible), nor do stake-weighted limits, the throttle of 20
 * streams in 100 ms, or eviction by last use. Those are tested against Agave's own server.
 */

import { createHmac, randomBytes } from "node:crypto";
import { formatAddress } from "../core/address.ts";
import { type Clock, NS_PER_MS } from "../core/clock.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../core/limits.ts";
import type { Identity } from "../send/identity.ts";
import { tlsIdentityOf } from "../send/portable/certificate.ts";
import {
  type DatagramCounters,
  type DatagramSocket,
  newDatagramCounters,
  openDatagramSocket,
} from "../send/portable/datagram.ts";
import {
  type QuicheConfig,
  type QuicheHeader,
  quiche,
  quicheConfig,
} from "../send/portable/quiche.ts";
import { createTimeoutScan, type TimeoutScan } from "../send/portable/timeout-scan.ts";
import { initialClose } from "./initial-close.ts";
import { LeaderConnection, type LeaderEvents } from "./leader-connection.ts";
import {
  LEADER_CONNECTIONS_MAX,
  LEADER_CONNECTIONS_PER_ADDRESS_MAX,
  LEADER_STREAMS_MAX,
} from "./limits.ts";

/** How a leader treats its clients. */
export interface LeaderBehaviour {
  /** `silent`: new connections get no response; `refuse`: CONNECTION_REFUSED. */
  readonly admission: "open" | "silent" | "refuse";
  /** Closes each new connection after its handshake with this code; null: does not. */
  readonly closeNew: CloseWith | null;
  /** `stalled`: streams stay unread, so no more are granted once the first are used up. */
  readonly reading: "all" | "stalled";
  /** New connections must first come back with a token, as Firedancer requires. */
  readonly retry: boolean;
  readonly connectionsPerAddressMax: number;
  /** Streams that a new connection may open immediately; 0: none is ever granted. */
  readonly streamsMax: number;
  /** Idle timeout of a new connection. */
  readonly idleTimeoutMs: number;
  /** Time after the handshake at which a new connection is closed with code 1; null: never. */
  readonly evictAfterMs: number | null;
  /** Number of lost datagrams per new address. */
  readonly dropFirst: number;
  /** A transaction whose end arrives later than this after its start is lost; null: never. */
  readonly fragmentMs: number | null;
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
  streamsMax: LEADER_STREAMS_MAX,
  idleTimeoutMs: 30_000,
  evictAfterMs: null,
  dropFirst: 0,
  fragmentMs: null,
};

export interface LeaderCounters extends DatagramCounters {
  connections: number;
  connectionsRefused: number;
  connectionsIgnored: number;
  connectionsTooMany: number;
  transactions: number;
  invalidStreams: number;
  retries: number;
  evictions: number;
  /** Transactions of which a part arrived too late. */
  fragmentsLate: number;
}

export interface SimulatedLeaderOptions {
  readonly clock: Clock;
  readonly identity: Identity;
  readonly host?: string;
  /** 0: any free port; a later `start` binds the same one again. */
  readonly port?: number;
  readonly behaviour?: Partial<LeaderBehaviour>;
}

export interface TransactionOrigin {
  /** The 32-byte key of the sender's certificate; null without a valid one. */
  readonly peerPubkey: Uint8Array | null;
  /** `Clock.nowNs` when the last byte was read. */
  readonly atNs: number;
  /** The number of its QUIC stream, which rises in the order in which the sender opened them. */
  readonly stream: number;
}

export type OnTransaction = (bytes: Uint8Array, origin: TransactionOrigin) => void;

const CONNECTION_ID_BYTES = 16;
const TOKEN_MAC_BYTES = 16;
/** RFC 9000 section 20.1. */
const CONNECTION_REFUSED = 0x02;
/** Agave's close codes: `streamer/src/nonblocking/quic.rs`, 4.3, 2026-11. */
const DROPPED: CloseWith = { code: 1, reason: "dropped" };
const TOO_MANY: CloseWith = { code: 4, reason: "too_many" };

function serverConfig(identity: Identity, behaviour: LeaderBehaviour): QuicheConfig {
  const config = quicheConfig(tlsIdentityOf(identity), true);
  config.setMaxIdleTimeout(behaviour.idleTimeoutMs);
  config.setMaxRecvUdpPayloadSize(1472);
  config.setMaxSendUdpPayloadSize(1200);
  config.setInitialMaxData(8 * 1024 * 1024);
  config.setInitialMaxStreamDataUni(V1_TRANSACTION_BYTES_MAX);
  config.setMaxStreamWindow(V1_TRANSACTION_BYTES_MAX);
  config.setInitialMaxStreamsBidi(0);
  config.setInitialMaxStreamsUni(behaviour.streamsMax);
  return config;
}

export function createSimulatedLeader(options: SimulatedLeaderOptions): SimulatedLeader {
  return new SimulatedLeader(options);
}

export class SimulatedLeader {
  readonly counters: LeaderCounters = {
    ...newDatagramCounters(),
    connections: 0,
    connectionsRefused: 0,
    connectionsIgnored: 0,
    connectionsTooMany: 0,
    transactions: 0,
    invalidStreams: 0,
    retries: 0,
    evictions: 0,
    fragmentsLate: 0,
  };
  readonly #clock: Clock;
  readonly #host: string;
  readonly #identity: Identity;
  /** For new connections; each connection keeps its stream limits and idle timeout. */
  #config: QuicheConfig;
  readonly #tokenKey = randomBytes(32);
  /** By connection id, as latin1 text; for the first datagrams also by the id the client chose. */
  readonly #connections = new Map<string, LeaderConnection>();
  readonly #events: LeaderEvents;
  /** Datagram counts by address, while the first ones are lost. */
  readonly #seen = new Map<string, number>();
  #behaviour: LeaderBehaviour;
  #port: number;
  #socket: DatagramSocket | null = null;
  #timeoutScan: TimeoutScan | null = null;
  #callback: OnTransaction = () => {};

  constructor(options: SimulatedLeaderOptions) {
    this.#clock = options.clock;
    this.#host = options.host ?? "127.0.0.1";
    this.#port = options.port ?? 0;
    this.#identity = options.identity;
    this.#behaviour = { ...LEADER_BEHAVIOUR, ...options.behaviour };
    this.#config = serverConfig(options.identity, this.#behaviour);
    this.#events = {
      established: (connection) => this.#established(connection),
      transaction: (bytes, peerPubkey, stream) => {
        this.counters.transactions += 1;
        this.#callback(bytes, { peerPubkey, atNs: this.#clock.nowNs(), stream });
      },
      invalidStream: () => {
        this.counters.invalidStreams += 1;
      },
      stalled: () => this.#behaviour.reading === "stalled",
      nowNs: () => this.#clock.nowNs(),
      tooLate: (sinceNs) => this.#isTooLate(sinceNs),
    };
  }

  /** "ip:port", valid after the first start. */
  get address(): string {
    return formatAddress(this.#host, this.#port);
  }

  get connectionCount(): number {
    return new Set(this.#connections.values()).size;
  }

  /** @throws Error when the address cannot be bound */
  async start(): Promise<{ readonly address: string }> {
    const receive = (bytes: Uint8Array, host: string, port: number): void =>
      this.#receive(bytes, host, port);
    this.#socket = await openDatagramSocket(this.#host, this.#port, receive, this.counters);
    this.#port = this.#socket.port;
    this.#timeoutScan = createTimeoutScan(this.#clock, () => this.#scanTimeouts());
    return { address: this.address };
  }

  /** Closes every connection with code 1, as Agave does at shutdown. */
  async stop(): Promise<void> {
    this.closeAll(DROPPED.code, DROPPED.reason);
    this.#timeoutScan?.stop();
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
    this.#config = serverConfig(this.#identity, this.#behaviour);
    for (const connection of new Set(this.#connections.values())) connection.read();
  }

  #receive(bytes: Uint8Array, host: string, port: number): void {
    let header: QuicheHeader;
    try {
      header = quiche.Header.fromSlice(bytes, CONNECTION_ID_BYTES);
    } catch {
      // Not QUIC.
      return;
    }
    const connection =
      this.#connections.get(keyOf(header.dcid)) ?? this.#openConnection(header, host, port);
    if (connection === null) return;
    connection.receive(bytes);
    this.#forgetIfOver(connection);
    this.#timeoutScan?.touch();
  }

  #isTooLate(sinceNs: number): boolean {
    const { fragmentMs } = this.#behaviour;
    if (fragmentMs === null) return false;
    const isLate = this.#clock.nowNs() - sinceNs > fragmentMs * NS_PER_MS;
    if (isLate) this.counters.fragmentsLate += 1;
    return isLate;
  }

  /** Whether the datagram is one of the first from its address and must be lost. */
  #isDropped(host: string, port: number): boolean {
    const { dropFirst } = this.#behaviour;
    if (dropFirst === 0) return false;
    const from = `${host} ${port}`;
    const seen = this.#seen.get(from) ?? 0;
    if (seen >= dropFirst) return false;
    // Clear a full table: losing a few datagrams too many is acceptable.
    if (this.#seen.size >= LEADER_CONNECTIONS_MAX) this.#seen.clear();
    this.#seen.set(from, seen + 1);
    return true;
  }

  /** Handles a datagram of no known connection: opens one, or returns null. */
  #openConnection(header: QuicheHeader, host: string, port: number): LeaderConnection | null {
    if (header.ty !== quiche.Type.Initial || this.#socket === null) return null;
    const isIgnored = this.#behaviour.admission === "silent" || this.#isFull();
    if (isIgnored || this.#isDropped(host, port)) {
      this.counters.connectionsIgnored += 1;
      return null;
    }
    if (this.#behaviour.admission === "refuse") {
      this.#refuse(this.#socket, header, host, port);
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
    // After a retry the client uses the id that the retry named, and it must stay.
    const id = originalId === null ? randomBytes(CONNECTION_ID_BYTES) : header.dcid;
    const local = { host: socket.host, port: socket.port };
    let connection: LeaderConnection;
    try {
      const raw = quiche.Connection.accept(id, originalId, local, { host, port }, this.#config);
      connection = new LeaderConnection(raw, { host, port }, socket, this.#events);
    } catch {
      // The binding rejects the ids: not a valid client.
      return null;
    }
    this.counters.connections += 1;
    connection.keys.push(keyOf(id), keyOf(header.dcid));
    for (const key of connection.keys) this.#connections.set(key, connection);
    return connection;
  }

  #established(connection: LeaderConnection): void {
    const { closeNew, connectionsPerAddressMax, evictAfterMs } = this.#behaviour;
    if (closeNew !== null) {
      connection.close(closeNew.code, closeNew.reason);
      return;
    }
    if (evictAfterMs !== null) this.#clock.after(evictAfterMs, () => this.#evict(connection));
    let fromHost = 0;
    for (const other of new Set(this.#connections.values())) {
      if (other.established && other.remote.host === connection.remote.host) fromHost += 1;
    }
    if (fromHost <= connectionsPerAddressMax) return;
    this.counters.connectionsTooMany += 1;
    connection.close(TOO_MANY.code, TOO_MANY.reason);
  }

  #evict(connection: LeaderConnection): void {
    if (connection.over) return;
    this.counters.evictions += 1;
    connection.close(DROPPED.code, DROPPED.reason);
    this.#forgetIfOver(connection);
  }

  #isFull(): boolean {
    // Each connection has at most two keys.
    return this.#connections.size >= 2 * LEADER_CONNECTIONS_MAX;
  }

  #forgetIfOver(connection: LeaderConnection): void {
    if (!connection.over) return;
    for (const key of connection.keys) this.#connections.delete(key);
  }

  #scanTimeouts(): number {
    let nextMs = -1;
    for (const connection of new Set(this.#connections.values())) {
      const dueMs = connection.scanTimeouts();
      this.#forgetIfOver(connection);
      if (dueMs >= 0 && (nextMs < 0 || dueMs < nextMs)) nextMs = dueMs;
    }
    return nextMs;
  }

  #refuse(socket: DatagramSocket, header: QuicheHeader, host: string, port: number): void {
    this.counters.connectionsRefused += 1;
    const packet = initialClose(header, CONNECTION_REFUSED);
    socket.scratch.set(packet);
    socket.flush(packet.length, host, port);
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
      // No retry packet can be built from the client's ids: it gets none.
    }
  }

  /** The connection id in a token of this leader; null for any other token. */
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
