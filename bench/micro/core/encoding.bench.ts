/** Text and bytes: each conversion that a request requires, checked once before it is timed. */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { Bench } from "tinybench";
import {
  decodeBase58,
  decodeBase64,
  encodeBase58,
  encodeBase64,
  encodeKey,
  encodeSignature,
} from "../../../src/core/encoding.ts";

export async function build(): Promise<Bench> {
  const bench = new Bench({ name: "core/encoding", time: 500, warmupTime: 100 });

  const signature = randomBytes(64);
  assert.equal(encodeSignature(signature), encodeBase58(signature));
  bench.add("encodeSignature", () => encodeSignature(signature));
  const key = randomBytes(32);
  assert.equal(encodeKey(key), encodeBase58(key));
  bench.add("encodeKey", () => encodeKey(key));

  for (const size of [300, 1232, 4096]) {
    const bytes = randomBytes(size);
    const base64 = encodeBase64(bytes);
    assert(bytes.equals(decodeBase64(base64) ?? Buffer.alloc(0)));
    bench.add(`decodeBase64, ${size} bytes`, () => decodeBase64(base64));
    const base58 = encodeBase58(bytes);
    assert(bytes.equals(decodeBase58(base58, 4096) ?? Buffer.alloc(0)));
    bench.add(`decodeBase58, ${size} bytes`, () => decodeBase58(base58, 4096));
  }
  return bench;
}
