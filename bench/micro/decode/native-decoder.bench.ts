/**
 * The same transactions through both decoders, from bytes to a validation result: the cost of
 * calling the addon, of parsing, and of a signature by whether its signer's key is cached. Without
 * a built addon only the portable decoder is measured.
 */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Bench } from "tinybench";
import { createDecoder, type Decoder, type DecoderOptions } from "../../../src/decode/decoder.ts";
import { createNativeDecoder } from "../../../src/decode/native-decoder.ts";
import {
  type NativeDecoding,
  NO_DECODER,
  VALIDATION_NUMBERS,
} from "../../../src/native/contract.ts";
import { loadNative } from "../../../src/native/load.ts";
import { buildTransaction, newKeypair } from "../../../test/support/transactions.ts";

const SENDERS = 512;

const tip = newKeypair(1);
const options: DecoderOptions = {
  tipAccounts: [tip.publicKey],
  lamportsMin: 1,
  verify: true,
  keyCacheSize: 1024,
};
const signer = newKeypair(2);
const tips = [{ to: tip.publicKey, lamports: 1000 }];

export async function build(): Promise<Bench> {
  const bench = new Bench({ name: "decode/native-decoder", time: 500, warmupTime: 100 });
  const samples = Array.from({ length: SENDERS }, (_, seed) => {
    return buildTransaction({ payer: newKeypair(1000 + seed), tips }).bytes;
  });
  const second = { to: tip.publicKey, lamports: 1, from: signer };
  const two = buildTransaction({ tips: [...tips, second] }).bytes;

  function add(engine: string, make: (options: DecoderOptions) => Decoder): Decoder {
    const known = make(options);
    const parsing = make({ ...options, verify: false });
    const uncached = make({ ...options, keyCacheSize: 0 });
    for (const bytes of [...samples, two, ...samples, two]) {
      assert.equal(known.decode(bytes).kind, "accepted");
    }
    const task = (name: string, decoder: Decoder, senders: number): void => {
      let next = 0;
      bench.add(`${engine}: ${name}`, () => {
        next = (next + 1) % senders;
        decoder.decode(samples[next] ?? two);
      });
    };
    task("parse only", parsing, 1);
    task("known signer", known, 1);
    task(`${SENDERS} known signers in turn`, known, SENDERS);
    task("no cache", uncached, 1);
    bench.add(`${engine}: two signatures, known signers`, () => known.decode(two));
    return known;
  }

  add("portable", createDecoder);
  const found = loadNative();
  if (found.kind !== "loaded") return bench;
  const known = add("native", (given) => createNativeDecoder(found.native, given));
  // A few hundred tables are built per second; a key that finds the queue full is retried.
  for (let round = 0; round < 100 && known.counters.keysMade < SENDERS / 2; round += 1) {
    for (const bytes of [...samples, two]) known.decode(bytes);
    await sleep(50);
  }
  addCalls(bench, found.native, samples);
  return bench;
}

/** The bare calls. */
function addCalls(bench: Bench, native: NativeDecoding, samples: readonly Uint8Array[]): void {
  const accounts = new Uint8Array(tip.publicKey);
  const parsing = native.decoderCreate(accounts, 1, false, 0);
  const out = new Float64Array(VALIDATION_NUMBERS);
  const bytes = samples[0] ?? new Uint8Array(0);
  assert.equal(native.decode(0, bytes, out, 0), NO_DECODER);
  assert.equal(native.decode(parsing, bytes, out, 0), 1);
  bench.add("native: an empty call", () => native.decode(0, bytes, out, 0));
  bench.add("native: parse only, numbers out", () => native.decode(parsing, bytes, out, 0));
}
