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

import { REFUSALS, type Refusal } from "../core/errors.ts";
import type { Answer } from "../core/flow.ts";
import type { KeyOwner } from "../limits/gate.ts";
import type { Relayed } from "./proxied-request.ts";
import type { Desk, Waiter } from "./request-tracker.ts";
import {
  HEADERS_JSON,
  NO_EXTRAS,
  PREFLIGHT_HEADERS,
  type RefusalHeaders,
  rawAccepted,
  rawRefused,
  refusalHeaders,
  refusalStatus,
  rpcRefused,
  rpcResult,
  STATUS_NO_CONTENT,
  STATUS_OK,
} from "./response.ts";
import { type EndingWire, endWhole } from "./response-end.ts";

/** What is used of uWebSockets.js's response. Any call after the end or an abort throws. */
export interface Wire extends EndingWire {
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

export type Shape = "raw" | "rpc";

/** Takes a whole body; it lends the bytes until it returns. */
export interface BodyTaker {
  take(exchange: Exchange, bytes: Uint8Array): void;
}

/** Several answers in one. */
export interface Gathering {
  /** Answers what has no answer yet with this refusal. */
  giveUp(refusal: Refusal): void;
}

export class Exchange implements Waiter {
  /** Whether an answer is still wanted. */
  open = true;
  /** Whose key it is; null where that is not known. */
  owner: KeyOwner | null = null;
  /** What the front says that relayed it; null where none did. */
  relayed: Relayed | null = null;
  /** Answered in the next turn: with this one open the library closes at a further request. */
  isLast = false;
  /** The key as it was sent, kept only where the body decides whether one was needed. */
  token = "";
  /** The JSON-RPC id as JSON text. */
  id = "null";
  /** `Clock.nowNs` when the body was complete, 0 before. */
  receivedNs = 0;
  /** Told once, when the client leaves before the end of its answer. */
  onGone: (() => void) | null = null;
  /** Bytes of the body, as far as it was asked for. */
  bodyBytes = 0;
  /** A batch's answers, null for a single call. */
  gathering: Gathering | null = null;
  previous: Waiter | null = null;
  next: Waiter | null = null;
  waiting = false;
  readonly #wire: Wire;
  readonly #desk: Desk;
  readonly #shape: Shape;
  #headOnly = false;
  /** Whether all of the body was handed on. */
  #isTaken = false;
  /** Whether its answer is given in the next turn. */
  #isHeld = false;
  /** Whether one of the library's callbacks runs, which gathers what is written by itself. */
  #gathered = true;
  #assembled: Uint8Array | null = null;
  #filled = 0;

  /** The response's abort handler is attached before anything else can fail. */
  constructor(wire: Wire, desk: Desk, shape: Shape) {
    wire.onAborted(() => this.#abort());
    this.#wire = wire;
    this.#desk = desk;
    this.#shape = shape;
    desk.opened();
  }

  /** The address of the connection's other end in text form. */
  remoteAddress(): string {
    if (this.relayed !== null) return this.relayed.remoteAddress;
    return Buffer.from(this.#wire.getRemoteAddressAsText()).toString("latin1");
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
  receive(size: number, taker: BodyTaker): void {
    this.bodyBytes = size;
    this.#wire.onData((chunk, isLast) => {
      if (!this.open) return;
      this.#gathered = true;
      try {
        this.#takeChunk(chunk, isLast, size, taker);
      } catch (error) {
        this.fail(error);
      }
      this.#gathered = false;
    });
    if (size === 0) this.#takeNothing(taker);
  }

  /** The library tells nothing of an empty body whose headers came in several pieces. */
  #takeNothing(taker: BodyTaker): void {
    setImmediate(() => {
      if (!this.open || this.#isTaken) return;
      try {
        taker.take(this, new Uint8Array());
      } catch (error) {
        this.fail(error);
      }
    });
  }

  /** The library's callback that began this exchange is about to return. */
  handled(): void {
    this.#gathered = false;
  }

  #takeChunk(chunk: ArrayBuffer, isLast: boolean, size: number, taker: BodyTaker): void {
    this.#isTaken ||= isLast;
    if (isLast && this.#assembled === null) {
      taker.take(this, new Uint8Array(chunk));
      return;
    }
    this.#assembled ??= new Uint8Array(size);
    this.#assembled.set(new Uint8Array(chunk), this.#filled);
    this.#filled += chunk.byteLength;
    if (isLast) taker.take(this, this.#assembled.subarray(0, this.#filled));
  }

  /** Answers a submission. */
  settle(answer: Answer): void {
    if (!this.open || this.#isHeld) return;
    this.#desk.settled(this.receivedNs);
    if (answer.kind === "refused") {
      this.refuse(answer.refusal);
      return;
    }
    this.#desk.accepted(this.owner, this.bodyBytes);
    const name = answer.signature;
    const body = this.#shape === "raw" ? rawAccepted(name) : rpcResult(this.id, name);
    // It is what counts in microseconds, and the limit of its account bounds how many there are.
    if (this.isLast) this.send(STATUS_OK, HEADERS_JSON, body);
    else this.#send(STATUS_OK, HEADERS_JSON, body);
  }

  /** The deadline has passed. */
  giveUp(refusal: Refusal): void {
    if (this.gathering !== null) this.gathering.giveUp(refusal);
    else this.refuse(refusal);
  }

  /** Answers with a refusal and keeps the connection. */
  refuse(refusal: Refusal, extras: RefusalHeaders = NO_EXTRAS): void {
    if (!this.open || this.#isHeld) return;
    this.#desk.refused(this.owner, refusal, this.bodyBytes);
    const row = REFUSALS[refusal.reason];
    const status = this.#shape === "raw" ? row.status : row.rpcStatus;
    const statusLine = status === 200 ? STATUS_OK : refusalStatus(status, refusal);
    this.send(statusLine, refusalHeaders(refusal, extras), this.#refusalBody(refusal));
  }

  #refusalBody(refusal: Refusal): string {
    return this.#shape === "raw" ? rawRefused(refusal) : rpcRefused(this.id, refusal);
  }

  /** Answers with a refusal and closes the connection; nothing behind it is read any more. */
  cut(refusal: Refusal, extras: RefusalHeaders = NO_EXTRAS): void {
    if (!this.open) return;
    this.#finish();
    this.#desk.refused(this.owner, refusal, this.bodyBytes);
    this.#desk.counters.cut += 1;
    const body = this.#refusalBody(refusal) + CORK_OVERFLOW;
    // The line break that ends the last header becomes the body's end: two more bytes.
    const size = Buffer.byteLength(body) + 2;
    const headers = refusalHeaders(refusal, extras);
    const status = refusalStatus(REFUSALS[refusal.reason].status, refusal);
    const wire = this.#wire;
    wire.cork(() => {
      wire.writeStatus(status);
      wire.writeHeader(
        "content-type",
        `${headers}\r\nconnection: close\r\ncontent-length: ${size}\r\n\r\n${body}`,
      );
    });
    wire.close();
  }

  /** Answers with `body`. `headers` begins with the value of content-type, see reply.ts. */
  send(status: string, headers: string, body: string): void {
    if (!this.open || this.#isHeld) return;
    if (this.#mayAnswer()) this.#send(status, headers, body);
    else this.#hold(() => this.#send(status, headers, body));
  }

  /** The same with a body that may be large: it is made when it is its turn, however late. */
  sendMade(status: string, headers: string, make: () => string, isHeld = false): void {
    if (!this.open || this.#isHeld) return;
    if (this.#mayAnswer(isHeld)) this.#send(status, headers, make());
    else this.#hold(() => this.sendMade(status, headers, make, true));
  }

  /** Whether there is time in this turn, and nothing that may follow the last request in it. */
  #mayAnswer(isHeld = false): boolean {
    const { isLast } = this;
    this.isLast = false;
    return !isLast && this.#desk.allowAnswer(isHeld);
  }

  /** Answers in the next turn; what else comes until then is too late. */
  #hold(act: () => void): void {
    this.#isHeld = true;
    setImmediate(() => {
      this.#isHeld = false;
      try {
        act();
      } catch (error) {
        this.fail(error);
      }
    });
  }

  #send(status: string, headers: string, body: string): void {
    if (!this.open) return;
    this.#finish();
    if (this.#gathered) this.#write(status, headers, body);
    else this.#wire.cork(() => this.#write(status, headers, body));
  }

  #write(status: string, headers: string, body: string): void {
    const wire = this.#wire;
    // It is what the library writes by itself.
    if (status !== STATUS_OK) wire.writeStatus(status);
    wire.writeHeader("content-type", headers);
    if (this.#headOnly) {
      wire.writeHeader("content-length", String(Buffer.byteLength(body)));
      this.#endWithoutBody();
    } else if (this.#desk.draining) {
      wire.pause();
      wire.end(body, true);
    } else endWhole(wire, this.#desk, body);
  }

  /**
   * Without a body there is nothing that could wait: one too many is its connection's last. Pausing
   * would not do, because a write that fails begins to read again.
   */
  #endWithoutBody(): void {
    const wire = this.#wire;
    if (this.#desk.allowBodiless()) {
      wire.endWithoutBody();
      return;
    }
    wire.writeHeader("connection", `close\r\n\r\n${LINES_OVERFLOW}`);
    wire.close();
  }

  /** Answers a preflight. */
  permit(): void {
    if (!this.open) return;
    if (this.#mayAnswer()) this.#permit();
    else this.#hold(() => this.#permit());
  }

  #permit(): void {
    if (!this.open) return;
    this.#finish();
    const wire = this.#wire;
    wire.cork(() => {
      wire.writeStatus(STATUS_NO_CONTENT);
      for (const [key, value] of PREFLIGHT_HEADERS) wire.writeHeader(key, value);
      this.#endWithoutBody();
    });
  }

  /**
   * Begins an answer in pieces: `push` and at last `endPieces`. `onDrained` is told when the client
   * has taken in what `push` said was too much.
   */
  beginPieces(headers: string, onDrained: () => void): void {
    if (!this.open) return;
    const wire = this.#wire;
    // Whether the library has drained its buffer by then depends on its version; a comment asks.
    wire.onWritable(() => {
      if (this.push(NOTHING)) onDrained();
      return true;
    });
    wire.cork(() => {
      wire.writeStatus(STATUS_OK);
      wire.writeHeader("content-type", headers);
    });
  }

  /** Writes one piece; false when the client takes in more slowly than it is given. */
  push(text: string): boolean {
    if (!this.open) return true;
    let taken = true;
    this.#wire.cork(() => {
      taken = this.#wire.write(text);
    });
    return taken;
  }

  /**
   * Ends an answer in pieces. The library must not be told to close the connection here: it would
   * write that header into the middle of the body, so the answer's own headers say it.
   */
  endPieces(): void {
    if (!this.open) return;
    this.#finish();
    const wire = this.#wire;
    wire.cork(() => void wire.end("", false));
  }

  /** Ends the connection at once, whatever of the answer is still to be taken in. */
  drop(): void {
    if (!this.open) return;
    this.#finish();
    this.#wire.close();
  }

  /** Something of ours threw: the client learns that, the log learns what. */
  fail(error: unknown): void {
    this.#desk.failed(error);
    try {
      this.refuse(INTERNAL);
    } catch (second) {
      // The answer itself cannot be written; the client sees the connection end.
      this.#desk.failed(second);
    }
  }

  #abort(): void {
    if (!this.open) return;
    this.#desk.counters.aborted += 1;
    const { onGone } = this;
    this.#finish();
    onGone?.();
  }

  #finish(): void {
    this.open = false;
    this.onGone = null;
    this.token = "";
    this.#assembled = null;
    this.#desk.finished(this);
  }
}

export const INTERNAL: Refusal = {
  reason: "internal",
  sentence: "internal error; the request may be retried",
  data: {},
};

/** A comment in a stream of events. */
export const NOTHING = ":\n\n";
/** The size of the cork buffer. uWebSockets `LoopData::CORK_BUFFER_SIZE`, 2026-11. */
const CORK_OVERFLOW = " ".repeat(16 * 1024);
/** As much in empty lines, which clients pass over behind the last answer of a connection. */
const LINES_OVERFLOW = "\r\n".repeat(8 * 1024);
