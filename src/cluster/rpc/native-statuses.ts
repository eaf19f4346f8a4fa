/**
 * Decodes statuses from the native engine's column layout, described with `RPC_RESPONSE` in
 * `native/contract.ts`.
 */

import type { StatusResponse, TxStatus } from "../ports.ts";

/**
 * Reads the statuses of `count` signatures. `bytes` must start at offset 0 of its buffer.
 * Transactions of one request are often in one block and then share one record.
 */
export function readStatusColumns(bytes: Uint8Array, count: number): StatusResponse {
  const numbers = new Float64Array(bytes.buffer, 0, count + 1);
  const flags = numbers.byteLength;
  const errors = errorsOf(Buffer.from(bytes.buffer, flags + count));
  const statuses: (TxStatus | null)[] = [];
  let last: TxStatus | null = null;
  for (let index = 0; index < count; index += 1) {
    const slot = numbers[index + 1] ?? -1;
    const confirmed = bytes[flags + index] === 1;
    const error = errors?.get(index) ?? null;
    if (slot < 0) {
      statuses.push(null);
      continue;
    }
    if (last === null || last.slot !== slot || last.confirmed !== confirmed || last.error !== error)
      last = { slot, confirmed, error };
    statuses.push(last);
  }
  return { slot: numbers[0] ?? 0, statuses };
}

/** Errors by index; null if there are none. */
function errorsOf(bytes: Buffer): ReadonlyMap<number, string> | null {
  if (bytes.length === 0) return null;
  const errors = new Map<number, string>();
  for (let at = 0; at < bytes.length; ) {
    const index = bytes.readDoubleLE(at);
    const start = at + HEAD_BYTES;
    at = start + bytes.readDoubleLE(at + 8);
    // Normalizes the node's whitespace, as everywhere.
    errors.set(index, JSON.stringify(JSON.parse(bytes.toString("utf8", start, at))));
  }
  return errors;
}

/** Index and size. */
const HEAD_BYTES = 16;
