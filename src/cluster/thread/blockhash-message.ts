/** Requests and responses about blockhashes as messages: arrays, as those of statuses. */

import type { BlockhashCheck } from "../ports.ts";
import type { BlockhashChecksMessage } from "./messages.ts";

const HASH_BYTES = 32;

/** Blockhashes of 32 bytes each as one array. */
export function joinedBlockhashes(blockhashes: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(blockhashes.length * HASH_BYTES);
  for (const [index, blockhash] of blockhashes.entries()) joined.set(blockhash, index * HASH_BYTES);
  return joined;
}

/** The blockhashes of such an array. */
export function blockhashesOf(joined: Uint8Array): readonly Uint8Array[] {
  return Array.from({ length: Math.floor(joined.length / HASH_BYTES) }, (_, index) =>
    joined.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES),
  );
}

export function blockhashChecksMessage(
  id: number,
  checks: readonly (BlockhashCheck | null)[],
): BlockhashChecksMessage {
  return {
    kind: "blockhashChecks",
    id,
    slots: Float64Array.from(checks, (check) => check?.slot ?? -1),
    valid: Uint8Array.from(checks, (check) => (check?.isValid === true ? 1 : 0)),
  };
}

export function readBlockhashChecksMessage({
  slots,
  valid,
}: BlockhashChecksMessage): readonly (BlockhashCheck | null)[] {
  return Array.from(slots, (slot, index) =>
    slot < 0 ? null : { slot, isValid: valid[index] === 1 },
  );
}
