/**
 * WebSocket connections, through ws; the only file that knows that library.
 *
 * A client's connection says what it hears and ends once; it does not come back by itself. Messages
 * are text of a bounded size and without compression, which would cost more than they do.
 */

import type { Server } from "node:http";
import { WebSocket, WebSocketServer } from "ws";
import { WEBSOCKET_MESSAGE_BYTES_MAX } from "../limits.ts";
import { USER_AGENT } from "../rpc/http-client.ts";

export interface SocketEvents {
  opened(): void;
  message(text: string): void;
  /** Once, whether it was ever open or not; not after `end`. */
  closed(): void;
}

export interface ClientSocket {
  /** Nothing happens where it is not open. */
  send(text: string): void;
  end(): void;
}

/** Connects; nothing is thrown, what fails is told by `closed`. */
export function openWebSocket(url: string, timeoutMs: number, events: SocketEvents): ClientSocket {
  let ended = false;
  const address = new URL(url);
  // The library throws for one, which is sent to no server anyway.
  address.hash = "";
  const socket = new WebSocket(address, {
    perMessageDeflate: false,
    followRedirects: false,
    handshakeTimeout: timeoutMs,
    maxPayload: WEBSOCKET_MESSAGE_BYTES_MAX,
    headers: { "user-agent": USER_AGENT },
  });

  function end(): void {
    ended = true;
    // A polite close waits half a minute for a peer that is gone, and keeps the process alive.
    socket.terminate();
  }
  function close(): void {
    if (ended) return;
    end();
    events.closed();
  }

  socket.on("open", () => {
    if (!ended) events.opened();
  });
  socket.on("message", (data, isBinary) => {
    if (!ended && !isBinary) events.message(String(data));
  });
  // A connection that could not be opened tells of its error as well, and one that is ended too.
  socket.on("error", close);
  socket.on("close", close);

  return {
    send(text) {
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    end,
  };
}

/** A connection as its server has it. */
export type ServerSocket = WebSocket;

/** Takes connections on an HTTP server; for whoever stands in for a node. */
export function createSocketServer(server: Server, messageBytesMax: number): WebSocketServer {
  return new WebSocketServer({ server, maxPayload: messageBytesMax });
}
