/**
 * One request and its one answer. An exchange is open until it is answered or the client is gone;
 * whatever comes after that is ignored, so stages may answer late without a thought.
 *
 *   open ─▶ (body) ─▶ (waiting for a stage) ─▶ (in pieces) ─▶ answered
 *     └────────┴───────────────┴───────────────────┴─▶ aborted by the client
 *
 * uWebSockets.js goes on to the next request in the same TCP segment even after it was told to
 * close, and its response object cannot be told to flush. `cut` gets around that: an answer larger
 * than the library's 16 KiB cork buffer is written to the socket at once, and then the socket is
 * closed before the parser can go on. The surplus is blanks, which JSON ignores.
 *
 * The library also serves all requests of one connection before it looks at another one. So after
 * some answers in one turn a further one waits for the next, unless it is to an accepted
 * transaction: it comes a moment later, and a client that sends on meanwhile is closed.
 *
 * Hot path: `receive`, `settle` and `send` run once a request.
 */

import { REJECTIONS, type Rejection } from "../core/errors.ts";
import type { SubmitResult } from "../core/flow.ts";
import type { Principal } from "../limits/access-control.ts";
import type { ProxiedRequest } from "./proxied-request.ts";
import type { PendingRequest, RequestTracker } from "./request-tracker.ts";
import {
  HEADERS_JSON,
  NO_EXTRAS,
  PREFLIGHT_HEADERS,
  type RejectionHeaders,
  rawAccepted,
  rawRejected,
  rejectionHeaders,
  rejectionStatus,
  rpcRejected,
  rpcResult,
  STATUS_NO_CONTENT,
  STATUS_OK,
} from "./response.ts";
import { type EndableResponse, endResponse } from "./response-end.ts";

/** What is used of uWebSockets.js's response. Any call after the end or an abort throws. */
export interface UwsResponse extends EndableResponse {
  onAborted(handler: () => void): unknown;
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): unknown;
  cork(act: () => void): unknown;
  writeStatus(status: string): unknown;
  writeHeader(key: string, value: string): unknown;
  /** Writes a piece of the answer; false when it lies in memory until the client takes it in. */
  write(chunk: string): boolean;
  end(body: string, closeConnection: boolean): unknown;
  endWithoutBody(): unknown;
  /** Reads nothing more of the connection. */
  pause(): unknown;
  getRemoteAddressAsText(): ArrayBuffer;
  close(): unknown;
}

export type ResponseFormat = "raw" | "rpc";

/** Takes a whole body; it lends the bytes until it returns. */
export interface BodyHandler {
  handle(context: RequestContext, bytes: Uint8Array): void;
}

/** Several answers in one. */
export interface BatchResponse {
  /** Answers what has no answer yet with this refusal. */
  timeOut(rejection: Rejection): void;
}

export class RequestContext implements PendingRequest {
  /** Whether an answer is still wanted. */
  open = true;
  /** Whose key it is; null where that is not known. */
  principal: Principal | null = null;
  /** What the front says that relayed it; null where none did. */
  proxied: ProxiedRequest | null = null;
  /** Answered in the next turn: with this one open the library closes at a further request. */
  isLast = false;
  /** The key as it was sent, kept only where the body decides whether one was needed. */
  token = "";
  /** The JSON-RPC id as JSON text. */
  id = "null";
  /** `Clock.nowNs` when the body was complete, 0 before. */
  receivedNs = 0;
  /** Told once, when the client leaves before the end of its answer. */
  onDisconnect: (() => void) | null = null;
  /** Bytes of the body, as far as it was asked for. */
  bodyBytes = 0;
  /** A batch's answers, null for a single call. */
  batch: BatchResponse | null = null;
  previous: PendingRequest | null = null;
  next: PendingRequest | null = null;
  isQueued = false;
  readonly #response: UwsResponse;
  readonly #tracker: RequestTracker;
  readonly #format: ResponseFormat;
  #headOnly = false;
  /** Whether all of the body was handed on. */
  #isBodyDelivered = false;
  /** Whether its answer is given in the next turn. */
  #isDeferred = false;
  /** Whether one of the library's callbacks runs, which gathers what is written by itself. */
  #isCorked = true;
  #assembled: Uint8Array | null = null;
  #filled = 0;

  /** The response's abort handler is attached before anything else can fail. */
  constructor(response: UwsResponse, tracker: RequestTracker, format: ResponseFormat) {
    response.onAborted(() => this.#onClientAborted());
    this.#response = response;
    this.#tracker = tracker;
    this.#format = format;
    tracker.opened();
  }

  /** The address of the connection's other end in text form. */
  remoteAddress(): string {
    if (this.proxied !== null) return this.proxied.remoteAddress;
    return Buffer.from(this.#response.getRemoteAddressAsText()).toString("latin1");
  }

  /** Answers a HEAD request: the same headers, no body. */
  withoutBody(): void {
    this.#headOnly = true;
  }

  /**
   * Collects the body of `size` bytes for `taker`. A body that comes in one piece is handed on as
   * a view of the network buffer; one in several pieces is copied together first, because each
   * piece is gone when its callback returns.
   */
  receive(size: number, handler: BodyHandler): void {
    this.bodyBytes = size;
    this.#response.onData((chunk, isLast) => {
      if (!this.open) return;
      this.#isCorked = true;
      try {
        this.#handleChunk(chunk, isLast, size, handler);
      } catch (error) {
        this.respond500(error);
      }
      this.#isCorked = false;
    });
    if (size === 0) this.#handleEmptyBody(handler);
  }

  /** The library tells nothing of an empty body whose headers came in several pieces. */
  #handleEmptyBody(handler: BodyHandler): void {
    setImmediate(() => {
      if (!this.open || this.#isBodyDelivered) return;
      try {
        handler.handle(this, new Uint8Array());
      } catch (error) {
        this.respond500(error);
      }
    });
  }

  /** The library's callback that began this exchange is about to return. */
  handlerReturned(): void {
    this.#isCorked = false;
  }

  #handleChunk(chunk: ArrayBuffer, isLast: boolean, size: number, handler: BodyHandler): void {
    this.#isBodyDelivered ||= isLast;
    if (isLast && this.#assembled === null) {
      handler.handle(this, new Uint8Array(chunk));
      return;
    }
    this.#assembled ??= new Uint8Array(size);
    this.#assembled.set(new Uint8Array(chunk), this.#filled);
    this.#filled += chunk.byteLength;
    if (isLast) handler.handle(this, this.#assembled.subarray(0, this.#filled));
  }

  /** Answers a submission. */
  respond(result: SubmitResult): void {
    if (!this.open || this.#isDeferred) return;
    this.#tracker.recordLatency(this.receivedNs);
    if (result.kind === "refused") {
      this.reject(result.rejection);
      return;
    }
    this.#tracker.accepted(this.principal, this.bodyBytes);
    const name = result.signature;
    const body = this.#format === "raw" ? rawAccepted(name) : rpcResult(this.id, name);
    // It is what counts in microseconds, and the limit of its account bounds how many there are.
    if (this.isLast) this.send(STATUS_OK, HEADERS_JSON, body);
    else this.#send(STATUS_OK, HEADERS_JSON, body);
  }

  /** The deadline has passed. */
  timeOut(rejection: Rejection): void {
    if (this.batch !== null) this.batch.timeOut(rejection);
    else this.reject(rejection);
  }

  /** Answers with a refusal and keeps the connection. */
  reject(rejection: Rejection, extras: RejectionHeaders = NO_EXTRAS): void {
    if (!this.open || this.#isDeferred) return;
    this.#tracker.rejected(this.principal, rejection, this.bodyBytes);
    const row = REJECTIONS[rejection.reason];
    const status = this.#format === "raw" ? row.status : row.rpcStatus;
    const statusLine = status === 200 ? STATUS_OK : rejectionStatus(status, rejection);
    this.send(statusLine, rejectionHeaders(rejection, extras), this.#rejectionBody(rejection));
  }

  #rejectionBody(rejection: Rejection): string {
    return this.#format === "raw" ? rawRejected(rejection) : rpcRejected(this.id, rejection);
  }

  /** Answers with a refusal and closes the connection; nothing behind it is read any more. */
  rejectAndClose(rejection: Rejection, extras: RejectionHeaders = NO_EXTRAS): void {
    if (!this.open) return;
    this.#finish();
    this.#tracker.rejected(this.principal, rejection, this.bodyBytes);
    this.#tracker.counters.closed += 1;
    const body = this.#rejectionBody(rejection) + CORK_OVERFLOW;
    // The line break that ends the last header becomes the body's end: two more bytes.
    const size = Buffer.byteLength(body) + 2;
    const headers = rejectionHeaders(rejection, extras);
    const status = rejectionStatus(REJECTIONS[rejection.reason].status, rejection);
    const response = this.#response;
    response.cork(() => {
      response.writeStatus(status);
      response.writeHeader(
        "content-type",
        `${headers}\r\nconnection: close\r\ncontent-length: ${size}\r\n\r\n${body}`,
      );
    });
    response.close();
  }

  /** Answers with `body`. `headers` begins with the value of content-type, see reply.ts. */
  send(status: string, headers: string, body: string): void {
    if (!this.open || this.#isDeferred) return;
    if (this.#mayRespond()) this.#send(status, headers, body);
    else this.#defer(() => this.#send(status, headers, body));
  }

  /** The same with a body that may be large: it is made when it is its turn, however late. */
  sendLazy(status: string, headers: string, make: () => string, isDeferred = false): void {
    if (!this.open || this.#isDeferred) return;
    if (this.#mayRespond(isDeferred)) this.#send(status, headers, make());
    else this.#defer(() => this.sendLazy(status, headers, make, true));
  }

  /** Whether there is time in this turn, and nothing that may follow the last request in it. */
  #mayRespond(isDeferred = false): boolean {
    const { isLast } = this;
    this.isLast = false;
    return !isLast && this.#tracker.allowResponse(isDeferred);
  }

  /** Answers in the next turn; what else comes until then is too late. */
  #defer(act: () => void): void {
    this.#isDeferred = true;
    setImmediate(() => {
      this.#isDeferred = false;
      try {
        act();
      } catch (error) {
        this.respond500(error);
      }
    });
  }

  #send(status: string, headers: string, body: string): void {
    if (!this.open) return;
    this.#finish();
    if (this.#isCorked) this.#write(status, headers, body);
    else this.#response.cork(() => this.#write(status, headers, body));
  }

  #write(status: string, headers: string, body: string): void {
    const response = this.#response;
    // It is what the library writes by itself.
    if (status !== STATUS_OK) response.writeStatus(status);
    response.writeHeader("content-type", headers);
    if (this.#headOnly) {
      response.writeHeader("content-length", String(Buffer.byteLength(body)));
      this.#endWithoutBody();
    } else if (this.#tracker.draining) {
      response.pause();
      response.end(body, true);
    } else endResponse(response, this.#tracker, body);
  }

  /**
   * Without a body there is nothing that could wait: one too many is its connection's last. Pausing
   * would not do, because a write that fails begins to read again.
   */
  #endWithoutBody(): void {
    const response = this.#response;
    if (this.#tracker.allowEmptyBody()) {
      response.endWithoutBody();
      return;
    }
    response.writeHeader("connection", `close\r\n\r\n${LINES_OVERFLOW}`);
    response.close();
  }

  /** Answers a preflight. */
  respondPreflight(): void {
    if (!this.open) return;
    if (this.#mayRespond()) this.#respondPreflight();
    else this.#defer(() => this.#respondPreflight());
  }

  #respondPreflight(): void {
    if (!this.open) return;
    this.#finish();
    const response = this.#response;
    response.cork(() => {
      response.writeStatus(STATUS_NO_CONTENT);
      for (const [key, value] of PREFLIGHT_HEADERS) response.writeHeader(key, value);
      this.#endWithoutBody();
    });
  }

  /**
   * Begins an answer in pieces: `push` and at last `endPieces`. `onDrained` is told when the client
   * has taken in what `push` said was too much.
   */
  startStream(headers: string, onDrained: () => void): void {
    if (!this.open) return;
    const response = this.#response;
    // Whether the library has drained its buffer by then depends on its version; a comment asks.
    response.onWritable(() => {
      if (this.push(NOTHING)) onDrained();
      return true;
    });
    response.cork(() => {
      response.writeStatus(STATUS_OK);
      response.writeHeader("content-type", headers);
    });
  }

  /** Writes one piece; false when the client takes in more slowly than it is given. */
  push(text: string): boolean {
    if (!this.open) return true;
    let isWritten = true;
    this.#response.cork(() => {
      isWritten = this.#response.write(text);
    });
    return isWritten;
  }

  /**
   * Ends an answer in pieces. The library must not be told to close the connection here: it would
   * write that header into the middle of the body, so the answer's own headers say it.
   */
  endStream(): void {
    if (!this.open) return;
    this.#finish();
    const response = this.#response;
    response.cork(() => void response.end("", false));
  }

  /** Ends the connection at once, whatever of the answer is still to be taken in. */
  abort(): void {
    if (!this.open) return;
    this.#finish();
    this.#response.close();
  }

  /** Something of ours threw: the client learns that, the log learns what. */
  respond500(error: unknown): void {
    this.#tracker.handlerFailed(error);
    try {
      this.reject(INTERNAL);
    } catch (second) {
      // The answer itself cannot be written; the client sees the connection end.
      this.#tracker.handlerFailed(second);
    }
  }

  #onClientAborted(): void {
    if (!this.open) return;
    this.#tracker.counters.aborted += 1;
    const { onDisconnect } = this;
    this.#finish();
    onDisconnect?.();
  }

  #finish(): void {
    this.open = false;
    this.onDisconnect = null;
    this.token = "";
    this.#assembled = null;
    this.#tracker.finished(this);
  }
}

export const INTERNAL: Rejection = {
  reason: "internal",
  message: "internal error; the request may be retried",
  data: {},
};

/** A comment in a stream of events. */
export const NOTHING = ":\n\n";
/** The size of the cork buffer. uWebSockets `LoopData::CORK_BUFFER_SIZE`, 2026-11. */
const CORK_OVERFLOW = " ".repeat(16 * 1024);
/** As much in empty lines, which clients pass over behind the last answer of a connection. */
const LINES_OVERFLOW = "\r\n".repeat(8 * 1024);
