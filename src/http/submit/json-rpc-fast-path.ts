// Hot path: one call into the engine; a record and an id are allocated.
/**
 * Reads JSON-RPC calls in the form that nearly all clients write, with the native engine: no text,
 * no tree of values and no second base64 pass for a transaction, which saves 5 kB of garbage per
 * call. Everything else goes to the parser (json-rpc.ts), valid or not; a call read here has the
 * same meaning there.
 */

import { V1_TRANSACTION_BYTES_MAX } from "../../core/limits.ts";
import { CALL_NUMBERS, type NativeReading } from "../../native/contract.ts";
import { type RpcCall, startsWell } from "./json-rpc-parse.ts";

export type SendCall = Extract<RpcCall, { readonly kind: "send" }>;

export interface CallReader {
  /** The call; null when it has another form. Its bytes are valid until the next call of `read`. */
  read(body: Uint8Array): SendCall | null;
}

/** Without a native engine, a reader that reads nothing. */
export function callReaderOf(native: NativeReading | null): CallReader {
  if (native === null) return { read: () => null };
  const transaction = new Uint8Array(V1_TRANSACTION_BYTES_MAX);
  const numbers = new Float64Array(CALL_NUMBERS);
  /** By size: creating a view takes longer than what is read through it. */
  const views: (Uint8Array | null)[] = new Array(V1_TRANSACTION_BYTES_MAX + 1).fill(null);

  function bytesOf(size: number): Uint8Array {
    const known = views[size];
    if (known) return known;
    const view = transaction.subarray(0, size);
    views[size] = view;
    return view;
  }

  function idOf(body: Uint8Array): string {
    const count = numbers[2] ?? -1;
    if (count >= 0) return countText(count);
    const [start = 0, end = 0] = numbers.subarray(3);
    return Buffer.from(body.buffer, body.byteOffset + start, end - start).toString("latin1");
  }

  return {
    read(body) {
      if (native.callRead(body, transaction, numbers) !== 1) return null;
      const bytes = bytesOf(numbers[0] ?? 0);
      // It may be base58, which the parser can detect.
      if (!startsWell(bytes)) return null;
      const retries = numbers[1] ?? -1;
      return {
        kind: "send",
        id: idOf(body),
        bytes,
        maxRetries: retries < 0 ? null : retries,
      };
    },
  };
}

/** Three digits each: unpadded as at the start of a number, and padded as within it. */
const LEADING = Array.from({ length: 1000 }, (_, number) => String(number));
const FOLLOWING = LEADING.map((text) => text.padStart(3, "0"));

/**
 * A whole number as text. `String` caches results in a table of V8, where each of a sequence of
 * ids outlives two scavenges; concatenated parts are collected with their request.
 */
export function countText(count: number): string {
  if (count < 1e3) return LEADING[count] ?? String(count);
  if (count >= 1e9) return String(count);
  const thousands = Math.floor(count / 1e3);
  return countText(thousands) + (FOLLOWING[count - thousands * 1e3] ?? "");
}
