/**
 * A front's end of its line to the main thread: requests that the front is not certain of go there,
 * and what the main thread does to their responses is done here to the real ones.
 *
 *   (body) ─▶ moved ─▶ (its body is asked for) ─▶ (in pieces) ─▶ answered
 *               └──────────────┴──────────────────────┴─▶ the client left: the main thread is told
 *
 * A further request on a connection whose last one is moved closes the connection, as whatever
 * waits does (http.ts).
 */

import type { Refusal } from "../core/errors.ts";
import {
  MOVED_REQUESTS_MAX,
  MOVED_UNASKED_BYTES_MAX,
  RAW_BODY_BYTES_MAX,
  REMOTE_CHARS_TOLD,
  RPC_BODY_BYTES_MAX,
  UNREAD_BODY_BYTES_MAX,
} from "../core/limits.ts";
import { Outbox } from "../core/port.ts";
import type { Desk } from "./desk.ts";
import { type Exchange, NOTHING, type Wire } from "./exchange.ts";
import type { FrontPort, MovedHead, MovedRequest, ToMain, WireAct } from "./moved.ts";
import { endWhole } from "./whole-answer.ts";

export interface Elsewhere {
  /**
   * Moves a request. Its desk has it open until its answer is written, but leaves the counting to
   * the main thread's. `body` is null while it is not here: what of it comes in this turn goes
   * along, and what comes later is given when it is asked for.
   */
  move(desk: Desk, exchange: Exchange, head: MovedHead, body: Uint8Array | null): void;
  readonly counters: Readonly<ElsewhereCounters>;
}

export interface ElsewhereCounters {
  /** Requests moved, and those of them that have no answer yet. */
  moved: number;
  open: number;
  /** Refused, because too many are open. */
  refused: number;
}

/** A request that is about to go, and may yet get its body. */
interface Request extends MovedRequest {
  body: ArrayBuffer | null;
}

/** What moved requests have in common. */
interface Line {
  readonly outbox: Outbox<ToMain>;
  readonly open: Map<number, Moved>;
  readonly counters: ElsewhereCounters;
  /** Bytes of bodies that may come although nobody has asked for them yet. */
  unaskedBytes: number;
}

/**
 * `onWork` is called before each request is moved and before its response is written, and with
 * true before all of a turn is posted, which takes milliseconds where it is much.
 */
export function createElsewhere(
  port: FrontPort,
  onWork: (isLong: boolean) => void = () => {},
): Elsewhere {
  const counters: ElsewhereCounters = { moved: 0, open: 0, refused: 0 };
  const open = new Map<number, Moved>();
  const outbox = new Outbox<ToMain>({
    post(all) {
      onWork(true);
      port.post(all);
    },
  });
  const line: Line = { outbox, open, counters, unaskedBytes: 0 };

  port.onMessage((all) => {
    for (const { number, acts } of all) {
      onWork(false);
      open.get(number)?.apply(acts);
    }
  });

  return {
    counters,
    move(desk, exchange, head, body) {
      onWork(false);
      const unasked = body === null ? bodyMaybeWanted(head) : 0;
      const fits = line.unaskedBytes + unasked <= MOVED_UNASKED_BYTES_MAX;
      if (!fits || open.size >= MOVED_REQUESTS_MAX) {
        counters.refused += 1;
        if (head.bodySize > UNREAD_BODY_BYTES_MAX) exchange.cut(NO_ROOM);
        else exchange.refuse(NO_ROOM);
        return;
      }
      counters.moved += 1;
      const number = counters.moved;
      const remoteAddress = exchange.remoteAddress();
      const here = head.bodySize === 0 ? NOTHING_MORE : body;
      const copy = here === null ? null : here.slice().buffer;
      const request: Request = { kind: "request", number, remoteAddress, body: copy, ...head };
      const moved = new Moved(exchange.handOver(), desk, request, line);
      open.set(number, moved);
      counters.open = open.size;
      line.outbox.put(request);
      if (unasked > 0) moved.collect(unasked);
    },
  };
}

/** The size of the body that may be asked for, 0 for none: one beyond its path's bound is not. */
function bodyMaybeWanted({ door, bodySize }: MovedHead): number {
  if (door !== "raw" && door !== "rpc") return 0;
  return bodySize > (door === "raw" ? RAW_BODY_BYTES_MAX : RPC_BODY_BYTES_MAX) ? 0 : bodySize;
}

class Moved {
  readonly #wire: Wire;
  readonly #desk: Desk;
  readonly #number: number;
  readonly #line: Line;
  /** Goes at the end of that turn; null once it is gone. */
  #request: Request | null;
  readonly #turn: number;
  /** The body while it comes, and how much of it is here. */
  #body: Uint8Array<ArrayBuffer> | null = null;
  #filled = 0;
  #isWhole = false;
  #isAsked = false;
  /** What counts of it among all that nobody has asked for. */
  #unasked = 0;
  #isInPieces = false;
  /** Characters of pieces that the main thread has not been told of. */
  #chars = 0;
  #isStalled = false;

  constructor(wire: Wire, desk: Desk, request: Request, line: Line) {
    const { number } = request;
    this.#wire = wire;
    this.#desk = desk;
    this.#number = number;
    this.#request = request;
    this.#turn = line.outbox.turn;
    this.#line = line;
    desk.movedOn();
    wire.onAborted(() => {
      if (this.#end()) line.outbox.put({ kind: "gone", number });
    });
  }

  /** Keeps the body of `size` bytes until it is asked for. */
  collect(size: number): void {
    this.#unasked = size;
    this.#line.unaskedBytes += size;
    this.#wire.onData((chunk, isLast) => {
      if (!this.#line.open.has(this.#number)) return;
      this.#body ??= new Uint8Array(size);
      this.#body.set(new Uint8Array(chunk), this.#filled);
      this.#filled += chunk.byteLength;
      this.#isWhole = isLast;
      if (isLast) this.#giveBody();
    });
  }

  /** Gives the body if it is whole: along with the request, or because it was asked for. */
  #giveBody(): void {
    if (!this.#isWhole || this.#body === null) return;
    const body = this.#body.buffer;
    if (this.#isAsked) this.#line.outbox.put({ kind: "body", number: this.#number, body });
    else if (this.#request !== null && this.#turn === this.#line.outbox.turn) {
      this.#request.body = body;
      this.#forgetUnasked();
    } else return;
    this.#body = null;
    this.#request = null;
  }

  /** Does what the main thread did. */
  apply(acts: readonly WireAct[]): void {
    try {
      this.#wire.cork(() => {
        for (const act of acts) this.#do(act);
      });
      // Behind the cork, so that all of the answer is on its way.
      if (acts.at(-1)?.[0] === "close" && this.#end()) this.#wire.close();
    } catch (error) {
      this.#desk.failed(error);
      if (this.#end()) this.#wire.close();
    }
  }

  #do(act: WireAct): void {
    const wire = this.#wire;
    if (act[0] === "status") wire.writeStatus(act[1]);
    else if (act[0] === "header") wire.writeHeader(act[1], act[2]);
    else if (act[0] === "write") this.#write(act[1]);
    else if (act[0] === "pause") wire.pause();
    else if (act[0] === "receive") this.#ask();
    else if (act[0] !== "close" && this.#end()) {
      if (act[0] === "tryEnd") this.#endWhole(act[1]);
      else if (act[0] === "end") wire.end(act[1], act[2]);
      else wire.endWithoutBody();
    }
  }

  #endWhole(body: string): void {
    if (this.#desk.draining) {
      this.#wire.pause();
      this.#wire.end(body, true);
    } else endWhole(this.#wire, this.#desk.counters, body);
  }

  #ask(): void {
    this.#isAsked = true;
    this.#forgetUnasked();
    this.#giveBody();
  }

  #forgetUnasked(): void {
    this.#line.unaskedBytes -= this.#unasked;
    this.#unasked = 0;
  }

  #write(text: string): void {
    if (!this.#isInPieces) {
      this.#isInPieces = true;
      this.#wire.onWritable(() => this.#goOn());
    }
    this.#chars += text.length;
    const taken = this.#wire.write(text);
    if (taken && !this.#isStalled) this.#tellTaken(REMOTE_CHARS_TOLD);
    else if (!this.#isStalled) {
      this.#isStalled = true;
      this.#line.outbox.put({ kind: "stalled", number: this.#number });
    }
  }

  /** The client takes something in again; whether all of it, a comment tells. */
  #goOn(): boolean {
    let taken = true;
    this.#wire.cork(() => {
      taken = this.#wire.write(NOTHING);
    });
    if (!taken || !this.#isStalled) return true;
    this.#isStalled = false;
    this.#tellTaken(0);
    return true;
  }

  /** Tells the main thread of what was taken in, if it is so much. */
  #tellTaken(charsMin: number): void {
    if (this.#chars < charsMin) return;
    this.#line.outbox.put({ kind: "taken", number: this.#number, chars: this.#chars });
    this.#chars = 0;
  }

  /** Whether it was open until now. */
  #end(): boolean {
    const { open, counters } = this.#line;
    if (!open.delete(this.#number)) return false;
    counters.open = open.size;
    this.#body = null;
    this.#request = null;
    this.#forgetUnasked();
    this.#desk.movedEnded();
    return true;
  }
}

const NOTHING_MORE = new Uint8Array();
export const NO_ROOM: Refusal = {
  reason: "overloaded",
  sentence: "this edge has more requests in hand than it takes; try again a little later",
  data: {},
};
