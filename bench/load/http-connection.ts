/**
 * One keep-alive HTTP connection with one request in flight, on a raw socket. It uses a fraction of
 * the CPU of an HTTP client, on a machine that the generator shares with the measured edge.
 *
 * It parses only what an edge sends: a status line, headers with Content-Length, a body. When the
 * connection is lost, it reports that for the request in flight and reopens.
 */

import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface HttpResponse {
  /** 0 when the connection was lost before the response. */
  readonly status: number;
  readonly body: Buffer;
  /** Whether the connection ends with it; then it reopens. */
  readonly closes: boolean;
}

export interface HttpConnection {
  readonly idle: boolean;
  /** Sends one complete request; the connection must be idle. */
  send(request: Buffer): void;
  close(): void;
}

const HEAD_END = "\r\n\r\n";
const LENGTH = /\r\ncontent-length: *(\d+)/i;
const CLOSE = /\r\nconnection: *close/i;
const EMPTY = Buffer.alloc(0);
/** The maximum size of a response: an edge's responses are shorter. */
const RESPONSE_BYTES_MAX = 1024 * 1024;

/**
 * Calls `answered` once per request, and `opened` whenever the connection is ready again without a
 * response. `certificate` is that of the authority to trust, as PEM; null: without TLS.
 */
export function openConnection(
  host: string,
  port: number,
  answered: (response: HttpResponse) => void,
  opened: () => void,
  certificate: string | null,
): HttpConnection {
  let socket: Socket;
  let state: "opening" | "idle" | "busy" | "closed" = "opening";
  let held: Buffer = EMPTY;

  function open(): void {
    state = "opening";
    held = EMPTY;
    const isOpen = (): void => {
      state = "idle";
      opened();
    };
    socket =
      certificate === null
        ? connect(port, host, isOpen)
        : connectTls({ port, host, ca: certificate }, isOpen);
    socket.setNoDelay(true);
    socket.on("data", receive);
    // The error itself does not matter: "close" follows, and the request counts as lost.
    socket.on("error", () => undefined);
    socket.on("close", lost);
  }

  function lost(): void {
    if (state === "closed") return;
    const wasBusy = state === "busy";
    const wasOpening = state === "opening";
    state = "opening";
    if (wasBusy) answered({ status: 0, body: EMPTY, closes: true });
    // Waits after a refused attempt, so that a dead edge gets few of them.
    setTimeout(() => state !== "closed" && open(), wasOpening ? 100 : 0);
  }

  function receive(chunk: Buffer): void {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const headEnd = held.indexOf(HEAD_END, 0, "latin1");
    if (headEnd < 0 || state !== "busy") {
      if (held.length > RESPONSE_BYTES_MAX) socket.destroy();
      return;
    }
    const head = held.toString("latin1", 0, headEnd);
    const size = Number(LENGTH.exec(head)?.[1] ?? 0);
    const start = headEnd + HEAD_END.length;
    if (size > RESPONSE_BYTES_MAX) socket.destroy();
    if (held.length < start + size) return;
    const body = held.subarray(start, start + size);
    held = EMPTY;
    const closes = CLOSE.test(head);
    state = closes ? "opening" : "idle";
    answered({ status: Number(head.slice(9, 12)), body, closes });
    if (closes) socket.end();
  }

  open();
  return {
    get idle() {
      return state === "idle";
    },
    send(request) {
      state = "busy";
      socket.write(request);
    },
    close() {
      state = "closed";
      socket.destroy();
    },
  };
}
