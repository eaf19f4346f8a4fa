// Hot path: once per response; nothing is allocated for a response that is written immediately.
/**
 * Ends a response whose body is known. The library buffers whatever a client does not read, so a
 * client that sends requests and reads no responses could fill memory. Here a response waits until
 * the client has read the earlier ones, and while it waits, a further request closes the
 * connection. The bytes of all waiting responses have one bound: at the bound, the connection that
 * has read nothing for the longest time is closed, so clients that read keep theirs.
 */

// Imported by name, because the global `Buffer` goes through a getter at each use.
import { Buffer } from "node:buffer";
import { UNREAD_BYTES_MAX } from "./limits.ts";

/** The part of a response that ends a known body. */
export interface EndableResponse {
  /** Ends, unless earlier responses are buffered; else continues in `onWritable`. [ok, ended]. */
  tryEnd(body: string | Uint8Array, size: number): readonly [boolean, boolean];
  /** `offset` is the number of bytes of the body written so far. */
  onWritable(handler: (offset: number) => boolean): unknown;
  /** Replaces the handler that is called when the connection closes before the end. */
  onAborted(handler: () => void): unknown;
  close(): unknown;
}

export interface UnreadCounters {
  /** Bytes of the responses that wait now. */
  bytes: number;
  /** Connections closed because the waiting responses together exceeded the bound. */
  closed: number;
}

interface Waiting {
  readonly response: EndableResponse;
  readonly size: number;
}

/** The responses that wait for their clients to read. */
export class Unread {
  readonly counters: UnreadCounters = { bytes: 0, closed: 0 };
  readonly #bytesMax: number;
  /** Ordered by time since the client last read, longest first. */
  readonly #waiting = new Set<Waiting>();

  constructor(bytesMax = UNREAD_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Keeps a response that `tryEnd` could not write completely. */
  keep(response: EndableResponse, body: string, size: number): void {
    for (const { response: longest } of this.#waiting) {
      if (this.counters.bytes + size <= this.#bytesMax) break;
      this.counters.closed += 1;
      longest.close();
    }
    const entry = { response, size };
    this.#waiting.add(entry);
    this.counters.bytes += size;
    const bytes = Buffer.from(body);
    response.onAborted(() => this.#forget(entry));
    response.onWritable((offset) => {
      const [isWritten, hasEnded] = response.tryEnd(bytes.subarray(offset), size);
      if (this.#forget(entry) && !hasEnded) {
        this.#waiting.add(entry);
        this.counters.bytes += size;
      }
      return isWritten;
    });
  }

  #forget(entry: Waiting): boolean {
    if (!this.#waiting.delete(entry)) return false;
    this.counters.bytes -= entry.size;
    return true;
  }
}

export function endResponse(
  response: EndableResponse,
  tracker: { readonly counters: { responsesUnread: number }; readonly unread: Unread },
  body: string,
): void {
  const size = Buffer.byteLength(body);
  const [, hasEnded] = response.tryEnd(body, size);
  if (hasEnded) return;
  tracker.counters.responsesUnread += 1;
  tracker.unread.keep(response, body, size);
}
