/**
 * WebSocket connections through ws; the only file that uses that library.
 *
 * A client connection reports what it receives and ends once; it does not reconnect. Messages are
 * text of bounded size without compression, which would cost more than it saves.
 */

import type { Server } from "node:http";
import { WebSocket, WebSocketServer } from "ws";
import { WEBSOCKET_MESSAGE_BYTES_MAX } from "../limits.ts";
import { USER_AGENT } from "../rpc/http-client.ts";

export interface SocketEvents {
  opened(): void;
  message(text: string): void;
  /** Called once, whether or not it was ever open; not after `end`. */
  closed(): void;
}

export interface ClientSocket {
  /** Does nothing unless open. */
  send(text: string): void;
  end(): void;
}

/** Connects. Does not throw; failures are reported through `closed`. */
export function openWebSocket(url: string, timeoutMs: number, events: SocketEvents): ClientSocket {
  let ended = false;
  const address = new URL(url);
  // The library throws for a fragment, which is not sent to servers anyway.
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
    // A clean close waits 30 s for an unreachable server and keeps the process alive.
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
  // A failed or terminated connection emits an error as well.
  socket.on("error", close);
  socket.on("close", close);

  return {
    send(text) {
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    end,
  };
}

/** A connection on the server side. */
export type ServerSocket = WebSocket;

/** Accepts connections on an HTTP server; for stand-ins for a node. */
export function createSocketServer(server: Server, messageBytesMax: number): WebSocketServer {
  return new WebSocketServer({ server, maxPayload: messageBytesMax });
}
