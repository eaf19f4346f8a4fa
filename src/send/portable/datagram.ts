/**
 * One UDP socket for many QUIC connections. Hot path: `flush` hands a datagram to the kernel
 * before it returns.
 *
 * node:dgram would look every address up and put the send off to a later tick; with a lookup of
 * our own that answers at once, libuv tries the send on the spot. Only when the kernel's buffer is
 * full does libuv keep the datagram, and then its bytes must not be written over: the socket owns
 * the buffer that datagrams are written into and changes it for a fresh one in that case.
 */

import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { SOCKET_BUFFER_BYTES, SOCKET_QUEUE_BYTES_MAX } from "../limits.ts";

/** Room for the largest datagram that is ever written. */
const SCRATCH_BYTES = 1500;

export interface DatagramCounters {
  datagramsOut: number;
  datagramsIn: number;
  bytesOut: number;
  bytesIn: number;
  /** The kernel's buffer was full and libuv kept the datagram. */
  datagramsDelayed: number;
  /** libuv's queue was full as well: dropped, as the network would; QUIC sends it again. */
  datagramsDropped: number;
  /** The system refused the datagram or the socket. */
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
  /** Where this socket is bound, as the peer's packets will be told to the QUIC library. */
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
      // The kernel's limit is lower and not clamped here: the default size stays.
      counters.socketErrors += 1;
    }
  }
  return new DatagramSocket(socket, onDatagram, counters);
}
