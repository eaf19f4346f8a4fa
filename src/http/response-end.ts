// Hot path: once an answer; nothing is allocated for one that is taken at once.
/**
 * The end of an answer whose body is known. The library keeps in memory whatever a client does not
 * take in, so one that sends requests and reads no answers could fill it. This answer waits for the
 * earlier ones instead, and while it waits, a further request closes the connection. The bytes of
 * all answers that wait have one bound: at the bound the connection closes that took in nothing for
 * the longest, so clients that read keep theirs.
 */

// By name, because the global one is got through a getter at each use.
import { Buffer } from "node:buffer";
import { UNREAD_BYTES_MAX } from "./limits.ts";

/** The part of a response that ends a known body. */
export interface EndableResponse {
  /** Ends, unless earlier answers lie in memory; else goes on in `onWritable`. [taken, ended]. */
  tryEnd(body: string | Uint8Array, size: number): readonly [boolean, boolean];
  /** `offset` is how much of the body was written. */
  onWritable(handler: (offset: number) => boolean): unknown;
  /** Calls `handler`, and none from before, when the connection closes before the end. */
  onAborted(handler: () => void): unknown;
  close(): unknown;
}

export interface UnreadCounters {
  /** Bytes of the answers that wait now. */
  bytes: number;
  /** Connections closed because all that waited was more than the bound. */
  closed: number;
}

interface Waiting {
  readonly response: EndableResponse;
  readonly size: number;
}

/** The answers that wait for their clients to read. */
export class Unread {
  readonly counters: UnreadCounters = { bytes: 0, closed: 0 };
  readonly #bytesMax: number;
  /** Who took in nothing for the longest comes first. */
  readonly #waiting = new Set<Waiting>();

  constructor(bytesMax = UNREAD_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Keeps an answer of which `tryEnd` could not write everything. */
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
