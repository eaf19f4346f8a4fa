import type { Accepted } from "../../src/core/flow.ts";

/** What decoding found in a transaction of 165 bytes with one signature. */
export const ACCEPTED: Accepted = {
  kind: "accepted",
  version: 0,
  signatureOffset: 1,
  signatureCount: 1,
  messageOffset: 65,
  messageSize: 100,
  keysOffset: 69,
  blockhashOffset: 120,
  durableNonce: false,
  tipLamports: 1_000_000,
  priorityFeeLamports: 2_500,
};
