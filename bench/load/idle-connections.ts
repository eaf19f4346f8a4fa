/**
 * Keep-alive connections that made one request and are silent from then on, as bots and health
 * checks hold them.
 */

import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface IdleConnections {
  /** Those that the edge has not closed. */
  readonly open: number;
  close(): void;
}

/** Connections opened at the same time. */
const PARALLEL = 64;
const PING = "GET /ping HTTP/1.1\r\nHost: load\r\n\r\n";

/** Opens `count` connections; resolves when each has its response, or was closed. */
export async function openIdle(
  host: string,
  port: number,
  count: number,
): Promise<IdleConnections> {
  const sockets = new Set<Socket>();
  let started = 0;
  const openNext = async (): Promise<void> => {
    while (started < count) {
      started += 1;
      const socket = connect(port, host);
      socket.once("close", () => sockets.delete(socket));
      await once(socket, "connect");
      socket.write(PING);
      // The edge may have no open file left for it, and closes one.
      await Promise.race([once(socket, "data"), once(socket, "close")]);
      if (socket.destroyed) continue;
      // Only its end is of interest now.
      socket.on("error", () => undefined).resume();
      sockets.add(socket);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, openNext));
  return {
    get open() {
      return sockets.size;
    },
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}
