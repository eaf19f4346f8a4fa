/**
 * The response of a request that a front moved here: what is done to it goes to the front at the
 * end of the turn. Pieces of an answer are taken for granted until too much of them is on the way,
 * or the front says that the client does not take them in.
 */

import { REMOTE_CHARS_ON_THE_WAY_MAX } from "../core/limits.ts";
import type { Outbox } from "../core/port.ts";
import type { Wire } from "./exchange.ts";
import type { MovedRequest, ToFront, WireAct } from "./moved.ts";

export class RemoteWire implements Wire {
  readonly #number: number;
  readonly #remoteAddress: string;
  readonly #outbox: Outbox<ToFront>;
  /** Told once, when the answer is complete. */
  readonly #onEnd: () => void;
  #body: ArrayBuffer | null;
  #onAborted: (() => void) | null = null;
  #onData: ((chunk: ArrayBuffer, isLast: boolean) => void) | null = null;
  #onWritable: ((offset: number) => boolean) | null = null;
  #isOver = false;
  /** What was done in the turn of that number. */
  #acts: WireAct[] = [];
  #turn = -1;
  /** Characters of pieces that the front has not told to be taken. */
  #chars = 0;
  /** Whether the client takes nothing in, and whether a writer was told to wait. */
  #isStalled = false;
  #isAwaited = false;

  constructor(request: MovedRequest, outbox: Outbox<ToFront>, onEnd: () => void) {
    this.#number = request.number;
    this.#remoteAddress = request.remoteAddress;
    this.#body = request.body;
    this.#outbox = outbox;
    this.#onEnd = onEnd;
  }

  /** The request was looked at: gives its body to who wants it, or asks for it. */
  begin(): void {
    if (this.#onData === null || this.#isOver) return;
    if (this.#body === null) this.#do(["receive"]);
    else this.deliver(this.#body);
  }

  /** The whole body is here. */
  deliver(body: ArrayBuffer): void {
    this.#body = null;
    if (!this.#isOver) this.#onData?.(body, true);
  }

  /** The client left, or its front did. */
  abort(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onAborted?.();
  }

  /** The client takes nothing in for now. */
  stall(): void {
    this.#isStalled = true;
  }

  /** So many characters are with the client, and it takes in what follows. */
  taken(chars: number): void {
    this.#isStalled = false;
    this.#chars -= chars;
    if (this.#isOver || !this.#isAwaited || this.#chars > REMOTE_CHARS_ON_THE_WAY_MAX) return;
    this.#isAwaited = false;
    this.#onWritable?.(0);
  }

  onAborted(handler: () => void): void {
    this.#onAborted = handler;
  }

  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    this.#onData = handler;
  }

  /** All of a turn goes as one anyway. */
  cork(act: () => void): void {
    act();
  }

  writeStatus(status: string): void {
    this.#do(["status", status]);
  }

  writeHeader(key: string, value: string): void {
    this.#do(["header", key, value]);
  }

  write(chunk: string): boolean {
    this.#do(["write", chunk]);
    this.#chars += chunk.length;
    if (!this.#isStalled && this.#chars <= REMOTE_CHARS_ON_THE_WAY_MAX) return true;
    this.#isAwaited = true;
    return false;
  }

  onWritable(handler: (offset: number) => boolean): void {
    this.#onWritable = handler;
  }

  end(body: string, closeConnection: boolean): void {
    this.#finish(["end", body, closeConnection]);
  }

  /** Waiting for a client that reads nothing is the front's to do. */
  tryEnd(body: string | Uint8Array): readonly [boolean, boolean] {
    this.#finish(["tryEnd", typeof body === "string" ? body : Buffer.from(body).toString()]);
    return [true, true];
  }

  endWithoutBody(): void {
    this.#finish(["endWithoutBody"]);
  }

  pause(): void {
    this.#do(["pause"]);
  }

  close(): void {
    this.#finish(["close"]);
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return new TextEncoder().encode(this.#remoteAddress).buffer;
  }

  #do(act: WireAct): void {
    if (this.#isOver) return;
    const { turn } = this.#outbox;
    if (this.#turn !== turn) {
      this.#turn = turn;
      this.#acts = [];
      this.#outbox.put({ number: this.#number, acts: this.#acts });
    }
    this.#acts.push(act);
  }

  #finish(act: WireAct): void {
    if (this.#isOver) return;
    this.#do(act);
    this.#isOver = true;
    this.#onEnd();
  }
}
