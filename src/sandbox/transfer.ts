/**
 * Builds a signed System Program Transfer as a legacy transaction, byte by byte, for the sandbox's
 * example command. Layout: solana-sdk `message/src/legacy.rs`, checked 2026-11.
 */

import { sign } from "node:crypto";
import { type Identity, privateKeyOf } from "../send/identity.ts";

export interface Transfer {
  readonly payer: Identity;
  /** 32 bytes. */
  readonly to: Uint8Array;
  readonly lamports: bigint;
  /** 32 bytes. */
  readonly blockhash: Uint8Array;
}

/** One signer; one read-only account that does not sign, the System Program. */
const HEADER = [1, 0, 1];
const SYSTEM_PROGRAM = new Uint8Array(32);
const TRANSFER = 2;

/** The serialized transaction, 215 bytes. */
export function signedTransfer({ payer, to, lamports, blockhash }: Transfer): Uint8Array {
  const data = Buffer.alloc(12);
  data.writeUInt32LE(TRANSFER, 0);
  data.writeBigUInt64LE(lamports, 4);
  const message = Buffer.concat([
    Buffer.from([...HEADER, 3]),
    payer.publicKey,
    to,
    SYSTEM_PROGRAM,
    blockhash,
    // One instruction: program 2, accounts 0 and 1.
    Buffer.from([1, 2, 2, 0, 1, data.length]),
    data,
  ]);
  const signature = sign(null, message, privateKeyOf(payer.seed));
  return Buffer.concat([Buffer.from([1]), signature, message]);
}
