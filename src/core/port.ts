/**
 * One end of a line between two threads. What waits or tests takes a `Port`, so that both ends can
 * live in one thread as well. A message costs 35 to 70 us: what comes in one turn goes in one.
 */

import type { MessagePort } from "node:worker_threads";

/** Sends `Out` and takes `In`; both are plain data. */
export interface Port<Out, In> {
  post(message: Out): void;
  /** Calls `handler` for each message, in the order in which they were posted. */
  onMessage(handler: (message: In) => void): void;
}

/** A port of Node's; it keeps its thread alive from `onMessage` on, until it is closed. */
export function portOf<Out, In>(port: MessagePort): Port<Out, In> {
  return {
    post: (message) => port.postMessage(message),
    onMessage: (handler) => void port.on("message", handler),
  };
}

/**
 * Gathers what one turn of the event loop has to tell and posts it at the turn's end. What is put
 * may still be added to until then: `turn` says whether it is the same one.
 */
export class Outbox<Item> {
  /** Rises with each post. */
  turn = 0;
  readonly #port: Pick<Port<readonly Item[], never>, "post">;
  #items: Item[] = [];
  readonly #post = (): void => {
    const items = this.#items;
    this.#items = [];
    this.turn += 1;
    this.#port.post(items);
  };

  constructor(port: Pick<Port<readonly Item[], never>, "post">) {
    this.#port = port;
  }

  put(item: Item): void {
    if (this.#items.length === 0) setImmediate(this.#post);
    this.#items.push(item);
  }
}
