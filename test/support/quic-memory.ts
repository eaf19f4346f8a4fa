/**
 * QUIC without a network: bare connections of the binding, and a datagram socket that keeps its
 * datagrams, so that a test transfers each one and no time passes.
 */

import { randomBytes } from "node:crypto";
import { V1_TRANSACTION_BYTES_MAX } from "../../src/core/limits.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { tlsIdentityOf } from "../../src/send/portable/certificate.ts";
import type { DatagramSocket } from "../../src/send/portable/datagram.ts";
import {
  type QuicheConfig,
  type QuicheConnection,
  quiche,
  quicheConfig,
} from "../../src/send/portable/quiche.ts";
import { stub } from "./stub.ts";

export const CLIENT = { host: "127.0.0.1", port: 1 };
export const LEADER = { host: "127.0.0.1", port: 2 };

const ID_BYTES = 16;
/** Rounds of an exchange before it counts as endless. */
const TURNS_MAX = 10_000;

/** One end of the wire: its pending datagrams, and its handler for received ones. */
export interface End {
  take(): Uint8Array[];
  receive(datagram: Uint8Array): void;
}

/** A socket for code under test, and what it sent since the last call. */
export function memorySocket({ host, port } = LEADER) {
  let sent: Uint8Array[] = [];
  const scratch = new Uint8Array(1500);
  const socket = stub<DatagramSocket>({
    host,
    port,
    scratch,
    flush: (size) => void sent.push(scratch.slice(0, size)),
  });
  const take = (): Uint8Array[] => {
    const taken = sent;
    sent = [];
    return taken;
  };
  return { socket, take };
}

/** A bare connection as an end of the wire. */
export function endOf(connection: QuicheConnection, local: typeof LEADER): End {
  const info = { from: local === LEADER ? CLIENT : LEADER, to: local };
  const buffer = new Uint8Array(1500);
  return {
    take() {
      const datagrams: Uint8Array[] = [];
      for (let out = connection.send(buffer); out !== null; out = connection.send(buffer)) {
        datagrams.push(buffer.slice(0, out[0]));
      }
      return datagrams;
    },
    receive(datagram) {
      try {
        connection.recv(datagram, info);
      } catch {
        // The other side's address is read from the connection.
      }
    },
  };
}

/** Transfers datagrams both ways until neither end has any. */
export function exchange(left: End, right: End): void {
  for (let turn = 0; turn < TURNS_MAX; turn += 1) {
    const [fromLeft, fromRight] = [left.take(), right.take()];
    if (fromLeft.length + fromRight.length === 0) return;
    for (const datagram of fromLeft) right.receive(datagram);
    for (const datagram of fromRight) left.receive(datagram);
  }
  throw new Error("the two ends kept exchanging datagrams");
}

/** A client's bare connection; with a configuration of its own when given. */
export function newClient(config: QuicheConfig = clientConfig()): QuicheConnection {
  return quiche.Connection.connect("leader", randomBytes(ID_BYTES), CLIENT, LEADER, config);
}

/** A leader's bare connection, which grants `streamCount` streams. */
export function newServer(
  streamCount = 128,
  streamBytes = V1_TRANSACTION_BYTES_MAX,
  resetToken = 1n,
) {
  const config = quicheConfig(tlsIdentityOf(freshIdentity()), true);
  config.setMaxIdleTimeout(30_000);
  config.setInitialMaxData(8 * 1024 * 1024);
  config.setInitialMaxStreamDataUni(streamBytes);
  config.setMaxStreamWindow(streamBytes);
  config.setInitialMaxStreamsUni(streamCount);
  config.setStatelessResetToken(resetToken);
  return quiche.Connection.accept(randomBytes(ID_BYTES), null, LEADER, CLIENT, config);
}

/** As the sender's: no stream of the leader is allowed. */
export function clientConfig(identity: Identity = freshIdentity()): QuicheConfig {
  const config = quicheConfig(tlsIdentityOf(identity), false);
  config.setInitialMaxData(0);
  return config;
}

/** A client without a certificate. */
export function anonymousConfig(alpn = "solana-tpu"): QuicheConfig {
  const config = quiche.Config.withBoringSslCtx(false, false, null, null, null, "ed25519");
  config.setApplicationProtos([alpn]);
  return config;
}
