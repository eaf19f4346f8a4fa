/**
 * One signature, by whether its signer's key is cached. "Ever new" is the worst case, which an
 * attacker would send to make the cache cost something: it should match "no cache".
 */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import type { Accepted } from "../../../src/core/flow.ts";
import { createDecoder } from "../../../src/decode/decoder.ts";
import { createKeyCache } from "../../../src/decode/key-cache.ts";
import { createVerifier } from "../../../src/decode/verify.ts";
import { buildTransaction, newKeypair } from "../../../test/support/transactions.ts";

const SENDERS = 2048;

interface Sample {
  readonly bytes: Uint8Array;
  readonly accepted: Accepted;
}

function newSample(seed: number): Sample {
  const tip = newKeypair(1);
  const { bytes } = buildTransaction({
    payer: newKeypair(1000 + seed),
    tips: [{ to: tip.publicKey, lamports: 1000 }],
  });
  const tipAccounts = [tip.publicKey];
  const decoder = createDecoder({ tipAccounts, lamportsMin: 1, verify: true, keyCacheSize: 0 });
  const validation = decoder.decode(bytes);
  assert.equal(validation.kind, "accepted");
  return { bytes, accepted: validation };
}

export async function build(): Promise<Bench> {
  const bench = new Bench({ name: "decode/verify", time: 500, warmupTime: 100 });
  const samples = Array.from({ length: SENDERS }, (_, seed) => newSample(seed));
  const add = (name: string, keyCacheSize: number, senders: number): void => {
    const verifier = createVerifier({ keyCacheSize });
    let next = 0;
    const run = (): number => {
      const { bytes, accepted } = samples[next % senders] as Sample; // `next % senders` is in range
      next += 1;
      return verifier.verify(bytes, accepted);
    };
    for (let i = 0; i < 2 * senders; i += 1) assert.equal(run(), -1);
    bench.add(name, run);
  };
  add("a signer that is kept", 4096, 16);
  add("2048 signers in turn, all kept", 4096, SENDERS);
  add("no cache", 0, SENDERS);
  add("2048 signers in turn, room for 64", 64, SENDERS);

  const key = newKeypair(3).publicKey.slice();
  const cache = createKeyCache(4096);
  assert.equal(cache.keyAt(key, 0).asymmetricKeyType, "ed25519");
  let serial = 0;
  bench.add("key look-up, always new", () => {
    serial += 1;
    new DataView(key.buffer).setUint32(4, serial);
    cache.keyAt(key, 0);
  });
  const known = newKeypair(4).publicKey;
  for (let i = 0; i < 3; i += 1) cache.keyAt(known, 0);
  assert.equal(cache.counters.keysFound, 1);
  bench.add("key look-up, cached", () => cache.keyAt(known, 0));
  return bench;
}
