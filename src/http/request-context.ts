/**
 * One HTTP request and its response. A request is open until it has a response or its client
 * disconnects; every later call is ignored, so stages may respond late.
 *
 *   open ─▶ (body) ─▶ (waiting for a stage) ─▶ (streaming) ─▶ responded
 *     └────────┴───────────────┴───────────────────┴─▶ aborted by the client
 *
 * uWebSockets.js continues with the next request in the same TCP segment even after it was asked to
 * close the connection, and its response object has no flush. `rejectAndClose` works around that:
 * a response larger than the library's 16 KiB cork buffer is written to the socket immediately, and
 * then the socket is closed before the parser continues. The padding is blanks, which JSON ignores.
 *
 * The library also serves all requests of one connection before it turns to another one. So after
 * `RESPONSES_PER_SLICE_MAX` responses in one event loop turn, further ones are deferred to the next
 * turn, except those for accepted transactions; a client that pipelines meanwhile is disconnected.
 *
 * Hot path: `receive`, `respond` and `send` run once per request.
 */

import { INTERNAL_REJECTION, REJECTIONS, type Rejection } from "../core/errors.ts";
import type { SubmitResult } from "../core/flow.ts";
import type { Principal } from "../limits/access-control.ts";
import type { Framing } from "./framing.ts";
import type { PendingRequest, RequestTracker } from "./request-tracker.ts";
import {
  HEADERS_JSON,
  KEY_IN_QUERY_LINE,
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

/** The used part of uWebSockets.js's response. Any call after the end or an abort throws. */
export interface UwsResponse extends EndableResponse {
  onAborted(handler: () => void): unknown;
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): unknown;
  cork(act: () => void): unknown;
  writeStatus(status: string): unknown;
  writeHeader(key: string, value: string): unknown;
  /** Writes a part of the response; false when it stays buffered until the client reads. */
  write(chunk: string): boolean;
  end(body: string, closeConnection: boolean): unknown;
  endWithoutBody(): unknown;
  /** Stops reading from the connection. */
  pause(): unknown;
  getRemoteAddressAsText(): ArrayBuffer;
  close(): unknown;
}

export type ResponseFormat = "raw" | "rpc";

/** Handles a complete body; `bytes` is valid until `handle` returns. */
export interface BodyHandler {
  handle(context: RequestContext, bytes: Uint8Array): void;
}

/**
 * The largest response that closes a connection for an unseen `close`. The library holds what the
 * client has not read of it, without the bound of `response-end.ts`.
 */
const CLOSING_BYTES_MAX = 16_384;

/** The responses to the calls of a JSON-RPC batch. */
export interface BatchResponse {
  /** Rejects every call that has no response yet. */
  timeOut(rejection: Rejection): void;
}

export class RequestContext implements PendingRequest {
  /** Whether a response is still expected. */
  open = true;
  /** The authenticated caller; null when unknown. */
  principal: Principal | null = null;
  /**
   * The client's address as an ingress thread forwards it, "" where it could not, because the head
   * is at its size limit or was not parsed; null for a request that was not proxied.
   */
  forwardedAddress: string | null = null;
  /**
   * The request has `Connection: close`. Its response is deferred, so that the library closes the
   * connection if another request follows.
   */
  isLast = false;
  /** Whether the library overlooks that, so that the response must close the connection. */
  isCloseUnseen = false;
  /** Whether the key came in the query, of which every response warns. */
  isKeyInQuery = false;
  /** Whether the body is text, by its content type. */
  isText = false;
  /** The key as sent, kept only where the body decides whether one is needed. */
  token = "";
  /** The JSON-RPC id as JSON text. */
  id = "null";
  /** `Clock.nowNs` when the body was complete, 0 before. */
  receivedNs = 0;
  /** Called once when the client disconnects before the end of the response. */
  onDisconnect: (() => void) | null = null;
  /** Size of the body in bytes; 0 when it is not read. */
  bodyBytes = 0;
  /** The batch's responses; null for a single call. */
  batch: BatchResponse | null = null;
  previous: PendingRequest | null = null;
  next: PendingRequest | null = null;
  isQueued = false;
  readonly #response: UwsResponse;
  readonly #tracker: RequestTracker;
  readonly #format: ResponseFormat;
  #headOnly = false;
  /** Whether the complete body was passed to the handler. */
  #isBodyDelivered = false;
  /** Whether the response is deferred to the next event loop turn. */
  #isDeferred = false;
  /** Whether a callback of the library is running, which corks all writes automatically. */
  #isCorked = true;
  #assembled: Uint8Array | null = null;
  #filled = 0;

  /** Attaches the abort handler before anything else can fail. */
  constructor(response: UwsResponse, tracker: RequestTracker, format: ResponseFormat) {
    response.onAborted(() => this.#onClientAborted());
    this.#response = response;
    this.#tracker = tracker;
    this.#format = format;
    tracker.opened();
  }

  /** The client's address in text form. */
  remoteAddress(): string {
    if (this.forwardedAddress !== null) return this.forwardedAddress;
    return Buffer.from(this.#response.getRemoteAddressAsText()).toString("latin1");
  }

  /** Takes over what the headers say of the body and of the response. */
  useFraming({ isLast, isCloseUnseen, isKeyInQuery, isText }: Readonly<Framing>): void {
    this.isLast = isLast;
    this.isCloseUnseen = isCloseUnseen;
    this.isKeyInQuery = isKeyInQuery;
    this.isText = isText;
  }

  /** Responds to a HEAD request: the same headers, no body. */
  withoutBody(): void {
    this.#headOnly = true;
  }

  /**
   * Collects the body of `size` bytes for `handler`. A body that arrives in one chunk is passed on
   * as a view of the network buffer; chunks of a longer one are copied together, because a chunk is
   * invalid after its callback returns.
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

  /** The library does not report an empty body whose headers arrived in several chunks. */
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

  /** The library's callback that created this context is about to return. */
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

  /** Responds to a submission. */
  respond(result: SubmitResult): void {
    if (!this.open || this.#isDeferred) return;
    this.#tracker.recordLatency(this.receivedNs);
    if (result.kind === "rejected") {
      this.reject(result.rejection);
      return;
    }
    this.#tracker.accepted(this.principal, this.bodyBytes);
    const name = result.signature;
    const body = this.#format === "raw" ? rawAccepted(name) : rpcResult(this.id, name);
    // Not deferred: its latency matters, and the account's limit bounds the number of these.
    if (this.isLast) this.send(STATUS_OK, HEADERS_JSON, body);
    else this.#send(STATUS_OK, HEADERS_JSON, body);
  }

  /** The deadline has passed. */
  timeOut(rejection: Rejection): void {
    if (this.batch !== null) this.batch.timeOut(rejection);
    else this.reject(rejection);
  }

  /** Rejects the request and keeps the connection. */
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

  /** Rejects the request and closes the connection; nothing after it is read. */
  rejectAndClose(rejection: Rejection, extras: RejectionHeaders = NO_EXTRAS): void {
    if (!this.open) return;
    this.#finish();
    this.#tracker.rejected(this.principal, rejection, this.bodyBytes);
    this.#tracker.counters.closed += 1;
    const body = this.#rejectionBody(rejection) + CORK_OVERFLOW;
    // The line break that ends the last header becomes the body's end: two more bytes.
    const size = Buffer.byteLength(body) + 2;
    const headers = rejectionHeaders(rejection, extras) + this.#warning();
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

  #warning(): string {
    return this.isKeyInQuery ? KEY_IN_QUERY_LINE : "";
  }

  /** Responds with `body`. `headers` starts with the value of content-type, see response.ts. */
  send(status: string, headers: string, body: string): void {
    if (!this.open || this.#isDeferred) return;
    if (this.#mayRespond()) this.#send(status, headers, body);
    else this.#defer(() => this.#send(status, headers, body));
  }

  /** As `send`, for a large body: `make` runs only when the response is written. */
  sendLazy(status: string, headers: string, make: () => string, isDeferred = false): void {
    if (!this.open || this.#isDeferred) return;
    if (this.#mayRespond(isDeferred)) this.#send(status, headers, make());
    else this.#defer(() => this.sendLazy(status, headers, make, true));
  }

  /** Whether the response may be sent in this turn and no request can follow it. */
  #mayRespond(isDeferred = false): boolean {
    const { isLast } = this;
    this.isLast = false;
    return !isLast && this.#tracker.allowResponse(isDeferred);
  }

  /** Defers the response to the next turn; other responses until then are ignored. */
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
    // The library writes "200 OK" by default.
    if (status !== STATUS_OK) response.writeStatus(status);
    const lines = headers + this.#tracker.keepAliveLine + this.#warning();
    response.writeHeader("content-type", lines);
    if (this.#headOnly) {
      response.writeHeader("content-length", String(Buffer.byteLength(body)));
      this.#endWithoutBody();
    } else if (this.#closes || this.#closesUnseen(body)) {
      response.pause();
      response.end(body, true);
    } else endResponse(response, this.#tracker, body);
  }

  #closesUnseen(body: string): boolean {
    return this.isCloseUnseen && Buffer.byteLength(body) <= CLOSING_BYTES_MAX;
  }

  /** Whether the connection is closed after this response. */
  get #closes(): boolean {
    return this.#tracker.draining || !this.#tracker.keepAlive;
  }

  /**
   * A response without a body cannot wait for the client to read, so one above the limit closes the
   * connection. Pausing does not work, because a failed write resumes reading.
   */
  #endWithoutBody(): void {
    const response = this.#response;
    if (this.#tracker.allowEmptyBody()) {
      // The client closes: this method of the library cannot. Its second parameter only announces
      // it, and makes it write a wrong length.
      if (this.#closes || this.isCloseUnseen) response.writeHeader("connection", "close");
      response.endWithoutBody();
      return;
    }
    response.writeHeader("connection", `close\r\n\r\n${LINES_OVERFLOW}`);
    response.close();
  }

  /** Responds to a CORS preflight. */
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
   * Starts a streamed response: then `push`, and finally `endStream`. `onDrained` is called when
   * the client has read what `push` reported as backlogged.
   */
  startStream(headers: string, onDrained: () => void): void {
    if (!this.open) return;
    const response = this.#response;
    // Whether the library's buffer is empty by then depends on its version; a comment line tells.
    response.onWritable(() => {
      if (this.push(NOTHING)) onDrained();
      return true;
    });
    response.cork(() => {
      response.writeStatus(STATUS_OK);
      response.writeHeader("content-type", headers + this.#warning());
    });
  }

  /** Writes one part; false when the client reads more slowly than parts are pushed. */
  push(text: string): boolean {
    if (!this.open) return true;
    let isWritten = true;
    this.#response.cork(() => {
      isWritten = this.#response.write(text);
    });
    return isWritten;
  }

  /**
   * Ends a streamed response. The library must not be asked to close the connection here: it would
   * write that header into the middle of the body. The response's own headers announce the close.
   */
  endStream(): void {
    if (!this.open) return;
    this.#finish();
    const response = this.#response;
    response.cork(() => void response.end("", false));
  }

  /** Closes the connection immediately, even if part of the response is unsent. */
  abort(): void {
    if (!this.open) return;
    this.#finish();
    this.#response.close();
  }

  /** A handler threw: the client gets a generic 500, the log gets the error. */
  respond500(error: unknown): void {
    this.#tracker.handlerFailed(error);
    try {
      this.reject(INTERNAL_REJECTION);
    } catch (second) {
      // The response cannot be written; the client sees the connection end.
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

/** A comment in an event stream. */
export const NOTHING = ":\n\n";
/** The size of the cork buffer. uWebSockets `LoopData::CORK_BUFFER_SIZE`, 2026-11. */
const CORK_OVERFLOW = " ".repeat(16 * 1024);
/** The same size in empty lines, which clients skip after the last response of a connection. */
const LINES_OVERFLOW = "\r\n".repeat(8 * 1024);
