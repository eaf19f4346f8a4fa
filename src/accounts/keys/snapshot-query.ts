/**
 * `COPY … TO STDOUT` over a `pg` connection: passes on raw bytes, without a record or a string per
 * row, and paced by the event loop.
 *
 * It implements the `pg` submittable interface: the client calls the methods below as data arrives,
 * many times in one turn. Chunks are therefore queued for later turns, and the socket is not read
 * meanwhile: a fast server blocks no other work, and the queue holds only one socket read.
 */

import { DatabaseError } from "../database/database-error.ts";
import { DATABASE_SNAPSHOT_BYTES_PER_SLICE } from "../limits.ts";

/** The part of the client's connection used here. */
export interface SnapshotConnection {
  query(text: string): void;
  readonly stream: { pause(): unknown; resume(): unknown; destroy(): unknown };
}

export class SnapshotQuery {
  /** The client wraps it to stop its timer. */
  callback: (error: Error | null) => void;
  /** The client's option name; milliseconds for the complete response. */
  readonly query_timeout: number;
  readonly #text: string;
  readonly #take: (chunk: Buffer) => void;
  #connection: SnapshotConnection | null = null;
  #fault: Error | null = null;
  #waiting: Buffer[] = [];
  /** Number of queued chunks already processed. */
  #taken = 0;
  /** The server has sent its complete response. */
  #isAnswered = false;
  #isDone = false;
  #hasMoved = true;

  /**
   * `take` may use the bytes until it returns; they are cut anywhere. If it throws, the connection
   * is abandoned and `done` receives the error. `done` is called once.
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

  /** Called periodically: aborts when nothing has arrived since the last call. */
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

  /** An error of the server, or a lost connection, possibly closed here. */
  handleError(error: Error): void {
    this.#fault ??= error;
    this.#end();
  }

  /** Processes queued chunks up to the limit per turn; resumes reading when the queue is empty. */
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

  /** Closing the connection is the only way to stop the server's output. */
  #giveUp(fault: Error): void {
    this.#fault ??= fault;
    this.#connection?.stream.destroy();
  }
}
