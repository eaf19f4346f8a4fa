/**
 * `COPY … TO STDOUT` over a connection of `pg`: what comes is handed on as bytes, without a record
 * or a text for each row, and no faster than the event loop has turns for it.
 *
 * It is what `pg` calls a submittable: the client calls the methods below as the answer comes, many
 * times in one turn. So pieces wait here for turns of their own, and the socket is not read
 * meanwhile: a fast server holds up nobody, and what waits is what one read of the socket gave.
 */

import { DatabaseError } from "../database/database-error.ts";
import { DATABASE_SNAPSHOT_BYTES_PER_SLICE } from "../limits.ts";

/** What is used of the client's connection. */
export interface SnapshotConnection {
  query(text: string): void;
  readonly stream: { pause(): unknown; resume(): unknown; destroy(): unknown };
}

export class SnapshotQuery {
  /** The client puts its own around it, to end its timer. */
  callback: (error: Error | null) => void;
  /** The client's name for it; in milliseconds, for the whole answer. */
  readonly query_timeout: number;
  readonly #text: string;
  readonly #take: (chunk: Buffer) => void;
  #connection: SnapshotConnection | null = null;
  #fault: Error | null = null;
  #waiting: Buffer[] = [];
  /** How many of those that wait are taken. */
  #taken = 0;
  /** The server has said all. */
  #isAnswered = false;
  #isDone = false;
  #hasMoved = true;

  /**
   * `take` has the bytes until it returns; they are cut anywhere. When it throws, the connection is
   * given up and `done` has what was thrown. `done` is called once.
   */
  constructor(
    text: string,
    msMax: number,
    take: (chunk: Buffer) => void,
    done: (error: Error | null) => void,
  ) {
    this.#text = text;
    this.query_timeout = msMax;
    this.#take = take;
    this.callback = done;
  }

  submit(connection: SnapshotConnection): void {
    this.#connection = connection;
    connection.query(this.#text);
  }

  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    if (this.#fault !== null) return;
    this.#hasMoved = true;
    this.#waiting.push(chunk);
    if (this.#waiting.length > 1) return;
    this.#connection?.stream.pause();
    setImmediate(this.#turn);
  }

  /** Called now and then: gives it up when nothing has come since the last time. */
  check(): void {
    if (!this.#hasMoved)
      this.#giveUp(new DatabaseError("timeout", "a copy stands still", null, null));
    this.#hasMoved = false;
  }

  handleRowDescription(): void {
    this.#giveUp(new TypeError("the statement answers with rows, a COPY is needed"));
  }

  handleDataRow(): void {}

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#isAnswered = true;
    if (this.#waiting.length === 0) this.#end();
  }

  /** The server's, or that the connection is gone, which may be our own doing. */
  handleError(error: Error): void {
    this.#fault ??= error;
    this.#end();
  }

  /** Takes what waits until it was enough for one turn; reads on when nothing waits. */
  readonly #turn = (): void => {
    this.#hasMoved = true;
    for (let bytes = 0; bytes < DATABASE_SNAPSHOT_BYTES_PER_SLICE && this.#fault === null; ) {
      const chunk = this.#waiting[this.#taken];
      if (chunk === undefined) break;
      this.#taken += 1;
      bytes += chunk.length;
      try {
        this.#take(chunk);
      } catch (error) {
        this.#giveUp(error instanceof Error ? error : new Error(String(error)));
      }
    }
    if (this.#fault === null && this.#taken < this.#waiting.length) {
      setImmediate(this.#turn);
      return;
    }
    this.#waiting = [];
    this.#taken = 0;
    this.#connection?.stream.resume();
    if (this.#isAnswered) this.#end();
  };

  #end(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.callback(this.#fault);
  }

  /** Nothing else ends what the server still sends. */
  #giveUp(fault: Error): void {
    this.#fault ??= fault;
    this.#connection?.stream.destroy();
  }
}
