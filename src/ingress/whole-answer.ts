// Hot path: once an answer; nothing is allocated for one that is taken at once.
/**
 * The end of an answer whose body is known. The library keeps in memory whatever a client does not
 * take in, so one that sends requests and reads no answers could fill it. This answer waits for the
 * earlier ones instead, and while it waits, a further request closes the connection.
 */

// By name, because the global one is got through a getter at each use.
import { Buffer } from "node:buffer";
import type { DeskCounters } from "./desk.ts";

/** The part of a response that ends a known body. */
export interface EndingWire {
  /** Ends, unless earlier answers lie in memory; else goes on in `onWritable`. [taken, ended]. */
  tryEnd(body: string | Uint8Array, size: number): readonly [boolean, boolean];
  /** `offset` is how much of the body was written. */
  onWritable(handler: (offset: number) => boolean): unknown;
}

export function endWhole(
  wire: EndingWire,
  counters: Pick<DeskCounters, "answersUnread">,
  body: string,
): void {
  const size = Buffer.byteLength(body);
  const [, hasEnded] = wire.tryEnd(body, size);
  if (hasEnded) return;
  counters.answersUnread += 1;
  const bytes = Buffer.from(body);
  wire.onWritable((offset) => wire.tryEnd(bytes.subarray(offset), size)[0]);
}
