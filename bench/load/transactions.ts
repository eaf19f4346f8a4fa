/**
 * The transactions of a run: small transfers with a tip, all different, signed before the clock
 * starts. The last eight bytes of each are its number, after the fields of the transfer where the
 * network ignores them, so that a receiver can identify it.
 */

import { buildTransaction, newKeypair, u64 } from "../../test/support/transactions.ts";

const SIGNATURE_OFFSET = 1;
const SIGNATURE_BYTES = 64;
const MESSAGE_OFFSET = SIGNATURE_OFFSET + SIGNATURE_BYTES;
const NUMBER_BYTES = 8;

/** `count` transactions numbered from 0, by `payers` signers in turn. */
export function signTransactions(
  count: number,
  payers: number,
  tipAccount: string,
  tipLamports: number,
): readonly Buffer[] {
  const templates = Array.from({ length: Math.min(payers, count) }, () => {
    const payer = newKeypair();
    const tips = [{ to: tipAccount, lamports: tipLamports, trailing: u64(0) }];
    return { payer, bytes: buildTransaction({ payer, tips }).bytes };
  });
  return Array.from({ length: count }, (_, number) => {
    const template = templates[number % templates.length];
    if (template === undefined) throw new RangeError("no payer");
    const bytes = Buffer.from(template.bytes);
    bytes.writeBigUInt64LE(BigInt(number), bytes.length - NUMBER_BYTES);
    bytes.set(template.payer.sign(bytes.subarray(MESSAGE_OFFSET)), SIGNATURE_OFFSET);
    return bytes;
  });
}

/** The number that a transaction of `signTransactions` carries. */
export function numberOf(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Number(view.getBigUint64(bytes.length - NUMBER_BYTES, true));
}

/** The complete HTTP request that submits a transaction, head and body in one piece. */
export function requestOf(
  transaction: Buffer,
  endpoint: "raw" | "json",
  host: string,
  key: string,
  id: number,
): Buffer {
  const body =
    endpoint === "raw"
      ? transaction
      : Buffer.from(
          JSON.stringify({
            jsonrpc: "2.0",
            id,
            method: "sendTransaction",
            params: [transaction.toString("base64"), { encoding: "base64" }],
          }),
        );
  const path = endpoint === "raw" ? "/api/v1/sendRawTransaction" : "/api/v1/sendTransaction";
  const type = endpoint === "raw" ? "application/octet-stream" : "application/json";
  const head =
    `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${type}\r\n` +
    `api-x-token: ${key}\r\nContent-Length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}
