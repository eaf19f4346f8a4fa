/**
 * One UDP socket for many QUIC connections. Hot path: `flush` passes a datagram to the kernel
 * before it returns.
 *
 * node:dgram would look up every address and defer the send to a later tick; with a custom lookup
 * that returns immediately, libuv tries the send synchronously. Only when the kernel's buffer is
 * full does libuv queue the datagram, and then its bytes must not be overwritten: the socket owns
 * the write buffer and replaces it in that case.
 */

import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { SOCKET_BUFFER_BYTES, SOCKET_QUEUE_BYTES_MAX } from "../limits.ts";

/** Size of the largest datagram that is ever written. */
const SCRATCH_BYTES = 1500;

export interface DatagramCounters {
  datagramsOut: number;
  datagramsIn: number;
  bytesOut: number;
  bytesIn: number;
  /** The kernel's buffer was full and libuv queued the datagram. */
  datagramsDelayed: number;
  /** libuv's queue was full as well: dropped, as a network may; QUIC retransmits. */
  datagramsDropped: number;
  /** The system rejected the datagram or reported a socket error. */
  socketErrors: number;
}

export function newDatagramCounters(): DatagramCounters {
  return {
    datagramsOut: 0,
    datagramsIn: 0,
    bytesOut: 0,
    bytesIn: 0,
    datagramsDelayed: 0,
    datagramsDropped: 0,
    socketErrors: 0,
  };
}

export type OnDatagram = (bytes: Uint8Array, host: string, port: number) => void;

type LookupCallback = (error: Error | null, address: string, family: number) => void;

export class DatagramSocket {
  /** The local address, which the QUIC library needs with received packets. */
  readonly host: string;
  readonly port: number;
  /** Write the next datagram here, then `flush` it. Changes between datagrams: never keep it. */
  scratch: Uint8Array = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  readonly #socket: Socket;
  readonly #counters: DatagramCounters;
  #open = true;

  constructor(socket: Socket, onDatagram: OnDatagram, counters: DatagramCounters) {
    this.#socket = socket;
    this.#counters = counters;
    const bound = socket.address();
    this.host = bound.address;
    this.port = bound.port;
    socket.on("message", (bytes: Buffer, from: RemoteInfo) => {
      counters.datagramsIn += 1;
      counters.bytesIn += bytes.length;
      onDatagram(bytes, from.address, from.port);
    });
    socket.on("error", () => {
      counters.socketErrors += 1;
    });
  }

  /** Sends the first `size` bytes of `scratch`. Never throws. */
  flush(size: number, host: string, port: number): void {
    if (!this.#open) return;
    const counters = this.#counters;
    try {
      if (this.#socket.getSendQueueSize() > SOCKET_QUEUE_BYTES_MAX) {
        counters.datagramsDropped += 1;
        return;
      }
      this.#socket.send(this.scratch, 0, size, port, host);
      counters.datagramsOut += 1;
      counters.bytesOut += size;
      if (this.#socket.getSendQueueCount() !== 0) {
        counters.datagramsDelayed += 1;
        this.scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
      }
    } catch {
      // A datagram that cannot be sent is lost like any other: QUIC notices.
      counters.socketErrors += 1;
    }
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#socket.close();
  }
}

/**
 * Binds a socket.
 *
 * @throws Error with the system's code when the address cannot be bound
 */
export async function openDatagramSocket(
  host: string,
  port: number,
  onDatagram: OnDatagram,
  counters: DatagramCounters,
): Promise<DatagramSocket> {
  const family = host.includes(":") ? 6 : 4;
  const lookup = (address: string, _options: unknown, done: LookupCallback): void => {
    done(null, address, family);
  };
  const socket = createSocket(
    family === 6 ? { type: "udp6", ipv6Only: true, lookup } : { type: "udp4", lookup },
  );
  await new Promise<void>((resolve, reject) => {
    const fail = (error: Error): void => {
      socket.close();
      reject(error);
    };
    socket.once("error", fail);
    socket.bind({ address: host, port, exclusive: true }, () => {
      socket.off("error", fail);
      resolve();
    });
  });
  for (const widen of ["setRecvBufferSize", "setSendBufferSize"] as const) {
    try {
      socket[widen](SOCKET_BUFFER_BYTES);
    } catch {
      // The kernel's limit is lower and the request is not clamped here: the default size stays.
      counters.socketErrors += 1;
    }
  }
  return new DatagramSocket(socket, onDatagram, counters);
}
