/**
 * The portable engine: QUIC to leaders on the quiche binding, over one UDP socket per address
 * family. Datagrams find their connection by the first bytes of the locally chosen connection id.
 *
 * A transaction fits into one datagram up to `datagramBytesMax` less about 40 bytes. quiche 0.18
 * does not probe the path MTU, so the size is fixed for all leaders: 1350 passes every ordinary
 * path (Ethernet leaves 1472, Agave accepts 1472, Firedancer 1472) and holds the largest legacy
 * transaction of 1232 bytes. Where a tunnel leaves less and the kernel learns of it, it fragments;
 * where the kernel does not learn of it, large transactions are lost repeatedly and occupy most of
 * the congestion window. A v1 transaction of up to 4096 bytes takes four datagrams, one after the
 * other.
 *
 * The binding cannot limit the key exchange to X25519 (BoringSSL offers that share first, so
 * leaders never send a HelloRetryRequest) or the ciphers to AES-128 (leaders choose), increase the
 * initial congestion window of 10 datagrams, batch datagrams into one system call, or resume with
 * 0-RTT.
 */

import { randomBytes } from "node:crypto";
import { parseAddress, type SocketAddress, serverNameOf } from "../../core/address.ts";
import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import type { Identity } from "../identity.ts";
import { INITIAL_DATAGRAM_BYTES } from "../limits.ts";
import {
  type ConnectionEvents,
  type EngineConnection,
  NO_LOSSES,
  type Transport,
} from "../transport.ts";
import { tlsIdentityOf } from "./certificate.ts";
import {
  type DatagramCounters,
  type DatagramSocket,
  newDatagramCounters,
  openDatagramSocket,
} from "./datagram.ts";
import { QuicConnection, type QuicConnectionHooks } from "./quic-connection.ts";
import { type QuicheConfig, quiche, quicheConfig } from "./quiche.ts";
import { createTimeoutScan } from "./timeout-scan.ts";
import { ANY_IPV6, type QuicTransportOptions } from "./transport-quic-options.ts";

export interface QuicTransportDeps {
  readonly clock: Clock;
  readonly identity: Identity;
}

export interface QuicTransportCounters extends DatagramCounters {
  /** Datagrams of no known connection: late, forged, or not QUIC. */
  datagramsUnmatched: number;
  /** The binding threw when a connection was opened. */
  connectErrors: number;
}

/** Length of local connection ids; the first four bytes are the key of the connection. */
const CONNECTION_ID_BYTES = 16;
const LONG_HEADER_BIT = 0x80;
/** Where the destination id starts: RFC 9000 sections 17.2 and 17.3. */
const LONG_HEADER_ID_OFFSET = 6;
const SHORT_HEADER_ID_OFFSET = 1;

/** The key of a datagram's connection; -1 when it is too short to have one. */
export function connectionKeyOf(bytes: Uint8Array): number {
  const isLong = ((bytes[0] ?? 0) & LONG_HEADER_BIT) !== 0;
  const at = isLong ? LONG_HEADER_ID_OFFSET : SHORT_HEADER_ID_OFFSET;
  if (bytes.length < at + 4) return -1;
  return keyAt(bytes, at);
}

function keyAt(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
  const low = ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0);
  return high * 0x10000 + low;
}

function clientConfig(identity: Identity, options: QuicTransportOptions): QuicheConfig {
  const config = quicheConfig(tlsIdentityOf(identity), false);
  config.setMaxIdleTimeout(options.idleTimeoutMs);
  config.setMaxSendUdpPayloadSize(options.datagramBytesMax);
  config.setMaxRecvUdpPayloadSize(1472);
  // Leaders send only acknowledgements: no stream of theirs is allowed.
  config.setInitialMaxData(0);
  config.setInitialMaxStreamsBidi(0);
  config.setInitialMaxStreamsUni(0);
  return config;
}

/** @throws Error when the identity makes no certificate, or the sizes are out of range */
export function createQuicTransport(
  deps: QuicTransportDeps,
  options: QuicTransportOptions,
): Transport & { readonly counters: Readonly<QuicTransportCounters> } {
  if (options.datagramBytesMax < INITIAL_DATAGRAM_BYTES || options.datagramBytesMax > 1452) {
    throw new RangeError("datagramBytesMax is not from 1200 to 1452");
  }
  const counters: QuicTransportCounters & Record<string, number> = {
    ...newDatagramCounters(),
    datagramsUnmatched: 0,
    connectErrors: 0,
  };
  let config = clientConfig(deps.identity, options);
  const connections = new Map<number, QuicConnection>();
  const sockets: { 4: DatagramSocket | null; 6: DatagramSocket | null } = { 4: null, 6: null };
  const timeoutScan = createTimeoutScan(deps.clock, scanTimeouts);
  const silenceNs = options.idleTimeoutMs * NS_PER_MS;
  const hooks: QuicConnectionHooks = {
    nowNs: () => deps.clock.nowNs(),
    touched: () => timeoutScan.touch(),
    gone: (connection) => void connections.delete(connection.id),
  };

  function scanTimeouts(): number {
    let nextMs = -1;
    for (const connection of connections.values()) {
      const dueMs = connection.scanTimeouts();
      if (dueMs >= 0 && (nextMs < 0 || dueMs < nextMs)) nextMs = dueMs;
    }
    return nextMs;
  }

  function receive(bytes: Uint8Array, host: string, port: number): void {
    const connection = connections.get(connectionKeyOf(bytes));
    const from = connection?.address;
    if (connection === undefined || from?.port !== port || from.host !== host) {
      counters.datagramsUnmatched += 1;
      return;
    }
    connection.receive(bytes);
  }

  function startConnection(
    address: SocketAddress,
    socket: DatagramSocket,
    events: ConnectionEvents,
  ) {
    let id: Uint8Array;
    do id = randomBytes(CONNECTION_ID_BYTES);
    while (connections.has(keyAt(id, 0)));
    const { host, port } = address;
    const local = { host: socket.host, port: socket.port };
    const name = serverNameOf(address);
    const raw = quiche.Connection.connect(name, id, local, { host, port }, config);
    const key = keyAt(id, 0);
    const connection = new QuicConnection(key, raw, address, socket, events, hooks, silenceNs);
    connections.set(connection.id, connection);
    connection.open();
    return connection;
  }

  return {
    counters,
    losses: () => ({ ...NO_LOSSES, datagramsDropped: counters.datagramsDropped }),
    async start() {
      const { bindIpv4, bindIpv6, portIpv4, portIpv6 } = options;
      if (bindIpv4 !== null) {
        sockets[4] = await openDatagramSocket(bindIpv4, portIpv4, receive, counters);
      }
      if (bindIpv6 === null) return;
      try {
        sockets[6] = await openDatagramSocket(bindIpv6, portIpv6, receive, counters);
      } catch (error) {
        // Many hosts have no IPv6; then only IPv6 leaders are unreachable. An explicitly configured
        // address must work.
        if (sockets[4] !== null && bindIpv6 === ANY_IPV6 && portIpv6 === 0) return;
        sockets[4]?.close();
        sockets[4] = null;
        throw error;
      }
    },
    useIdentity(identity) {
      config = clientConfig(identity, options);
    },
    async stop() {
      for (const connection of [...connections.values()]) connection.close();
      timeoutScan.stop();
      sockets[4]?.close();
      sockets[6]?.close();
      sockets[4] = null;
      sockets[6] = null;
    },
    connect(text: string, events: ConnectionEvents): EngineConnection | null {
      const address = parseAddress(text);
      const socket = address === null ? null : sockets[address.family];
      if (address === null || socket === null) return null;
      try {
        return startConnection(address, socket, events);
      } catch {
        // The binding rejected the name or the address: no attempt was made.
        counters.connectErrors += 1;
        return null;
      }
    },
  };
}
