/**
 * The decoder alone: parse, sanitize and tip, without signatures. Each task is checked once before
 * it is timed. `@solana/web3.js` reads one transaction too, as the reference that senders know.
 */

import assert from "node:assert/strict";
import { VersionedTransaction } from "@solana/web3.js";
import { Bench } from "tinybench";
import { DECODE_ERROR } from "../../../src/core/decode-errors.ts";
import { createTransactionDecoder, peekSignatureOffset } from "../../../src/decode/transaction.ts";
import {
  type BuiltTransaction,
  buildTransaction,
  computeUnitLimit,
  computeUnitPrice,
  newKeypair,
  type TransactionSpec,
} from "../../../test/support/transactions.ts";

const LAMPORTS_MIN = 1_000_000;
const TIP_ACCOUNTS = Array.from({ length: 8 }, (_, i) => newKeypair(100 + i).publicKey);

function tipped(spec: TransactionSpec): BuiltTransaction {
  const to = TIP_ACCOUNTS[7];
  assert(to !== undefined);
  return buildTransaction({ tips: [{ to, lamports: LAMPORTS_MIN }], ...spec });
}

/** A swap's size: compute budget, one call with many accounts, the tip. */
function busy(version: 0 | 1, accountCount: number, dataSize: number): BuiltTransaction {
  const accounts = Array.from({ length: accountCount }, (_, i) => {
    return { key: newKeypair(6000 + i).publicKey, signer: false, writable: i % 2 === 0 };
  });
  const call = { program: newKeypair(5000).publicKey, accounts, data: new Uint8Array(dataSize) };
  const instructions = [computeUnitLimit(200_000), computeUnitPrice(5_000), call];
  return tipped({ version, instructions });
}

export async function build(): Promise<Bench> {
  const decoder = createTransactionDecoder({
    tipAccounts: TIP_ACCOUNTS,
    lamportsMin: LAMPORTS_MIN,
  });
  const bench = new Bench({ name: "decode/transaction", time: 500, warmupTime: 100 });

  const sound: readonly (readonly [string, BuiltTransaction])[] = [
    ["legacy", tipped({ version: -1 })],
    ["v0", tipped({ version: 0 })],
    ["v1", tipped({ version: 1 })],
    ["v0 busy", busy(0, 14, 120)],
    ["v1 busy", busy(1, 58, 900)],
  ];
  for (const [name, { bytes, payer }] of sound) {
    const validation = decoder.decode(bytes);
    assert(validation.kind === "accepted" && validation.tipLamports === LAMPORTS_MIN);
    const key = bytes.subarray(validation.keysOffset, validation.keysOffset + 32);
    assert.deepEqual(key, payer.publicKey);
    assert.equal(peekSignatureOffset(bytes), validation.signatureOffset);
    bench.add(`${name}, ${bytes.length} bytes`, () => decoder.decode(bytes));
  }

  const text = Buffer.from(tipped({ version: 0 }).base64);
  const refused = decoder.decode(text);
  assert(refused.kind === "rejected" && refused.errorCode === DECODE_ERROR.text_base64);
  bench.add("refused: base64 text", () => decoder.decode(text));

  const { bytes: swap } = busy(0, 14, 120);
  assert.equal(VersionedTransaction.deserialize(swap).message.staticAccountKeys.length, 19);
  bench.add(`@solana/web3.js, v0 busy, ${swap.length} bytes`, () => {
    VersionedTransaction.deserialize(swap);
  });
  return bench;
}
