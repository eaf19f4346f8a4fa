/**
 * Transactions with only the parts that an edge's later stages read: a signature, a blockhash, a
 * size. Nothing decodes them; the signature contains the transaction's number, and the blockhash
 * its height.
 */

import type { Accepted, Packet } from "../../src/core/flow.ts";
import type { Rng } from "../../test/support/rng.ts";

const SIZE = 240;
const SIGNATURE_AT = 1;
const BLOCKHASH_AT = 165;
const TIP_LAMPORTS_MIN = 1_000_000;
const PRIORITY_LAMPORTS_MAX = 5_000_000;

export interface Drawn {
  readonly packet: Packet;
  readonly accepted: Accepted;
}

/** The offsets that later stages read. */
const FORM = {
  kind: "accepted",
  version: 0,
  signatureOffset: SIGNATURE_AT,
  signatureCount: 1,
  messageOffset: 65,
  messageSize: SIZE - 65,
  keysOffset: 69,
  blockhashOffset: BLOCKHASH_AT,
  durableNonce: false,
  tipLamports: TIP_LAMPORTS_MIN,
} as const;

/** Transaction number `sequence`, with the blockhash of a block of that height. */
export function drawTransaction(
  sequence: number,
  height: number,
  receivedNs: number,
  rng: Rng,
): Drawn {
  const bytes = rng.bytes(SIZE);
  const view = viewOf(bytes);
  view.setUint32(SIGNATURE_AT, sequence);
  view.setUint32(BLOCKHASH_AT, height);
  const priorityFeeLamports = rng.below(PRIORITY_LAMPORTS_MAX);
  return {
    accepted: { ...FORM, priorityFeeLamports },
    packet: {
      id: sequence + 1,
      bytes,
      account: "simulation",
      receivedNs,
      maxRetries: null,
      offeredLamports: TIP_LAMPORTS_MIN + priorityFeeLamports,
    },
  };
}

export function sequenceOf(bytes: Uint8Array): number {
  return viewOf(bytes).getUint32(SIGNATURE_AT);
}

/** The height of the blockhash at an offset: in a transaction, or alone at 0. */
export function readHeight(bytes: Uint8Array, offset = BLOCKHASH_AT): number {
  return viewOf(bytes).getUint32(offset);
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
