/**
 * Packets of tipped, signed transactions for the stages after ingress, and what they need.
 */

import type { Packet } from "../../src/core/flow.ts";
import type { DecoderOptions } from "../../src/decode/decoder.ts";
import type { Sender } from "../../src/send/sender.ts";
import { buildTransaction, memo, newKeypair } from "./transactions.ts";

const TIP = newKeypair(11);

/** Decoder options that accept `newPacket`'s transactions. */
export const DECODER: DecoderOptions = {
  tipAccounts: [TIP.publicKey],
  lamportsMin: 1000,
  verify: true,
  keyCacheSize: 64,
};

/** The packet with this id; its transaction differs from every other id's. */
export function newPacket(id: number, lamports = 1000): Packet {
  const { bytes } = buildTransaction({
    payer: newKeypair(20 + (id % 4)),
    tips: [{ to: TIP.publicKey, lamports }],
    extraInstructions: [memo(`transaction ${id}`)],
  });
  return packetOf(id, bytes);
}

/** The packet with this id and these bytes. */
export function packetOf(id: number, bytes: Uint8Array): Packet {
  return {
    id,
    bytes,
    account: "acme",
    receivedNs: 1000 + id,
    maxRetries: null,
    offeredLamports: 0,
  };
}

/** Sends a packet as the pipeline does; returns as `Sender.accept`. */
export function acceptAndReport(sender: Pick<Sender, "accept" | "report">, packet: Packet): number {
  const taken = sender.accept(packet);
  if (taken > 0) sender.report(packet);
  return taken;
}
