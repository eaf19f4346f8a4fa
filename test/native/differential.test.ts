import { readdirSync, readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { DECODE_ERROR_COUNT } from "../../src/core/decode-errors.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../../src/core/limits.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { createNativeDecoder } from "../../src/decode/native-decoder.ts";
import { generated, mutated } from "../support/generated.ts";
import { createRng } from "../support/rng.ts";
import { LAMPORTS_MIN, otherTipAccount, tipAccount } from "../support/validations.ts";
import { native } from "./addon.ts";

const tipAccounts = [tipAccount.publicKey, otherTipAccount.publicKey];
const options = { tipAccounts, lamportsMin: LAMPORTS_MIN, verify: true, keyCacheSize: 64 };

describe.skipIf(native === null)("both decoders return the same results", () => {
  const addon = native;
  if (addon === null) return;
  const portable = createDecoder(options);
  const cached = createNativeDecoder(addon, options);
  const uncached = createNativeDecoder(addon, { ...options, keyCacheSize: 0 });
  const outcomes = new Set<string>();

  afterAll(() => {
    cached.close();
    uncached.close();
  });

  function compare(bytes: Uint8Array): void {
    const expected = portable.decode(bytes);
    const wanted = Object.values(expected).join();
    outcomes.add(expected.kind === "accepted" ? "accepted" : String(expected.errorCode));
    for (const decoder of [cached, uncached]) {
      if (Object.values(decoder.decode(bytes)).join() === wanted) continue;
      const hex = Buffer.from(bytes).toString("hex");
      expect(decoder.decode(bytes), hex).toEqual(expected);
    }
  }

  it("for the decoder's corpus", () => {
    const folder = new URL("../../native/fuzz/corpus/decode/", import.meta.url);
    const names = readdirSync(folder);
    for (const name of names) compare(new Uint8Array(readFileSync(new URL(name, folder))));
    expect(names.length).toBeGreaterThan(40);
  });

  it("for ten thousand generated transactions, and a hundred thousand mutated ones", () => {
    const rng = createRng(20261121);
    let other: Uint8Array = new Uint8Array(0);
    for (let i = 0; i < 10_000; i += 1) {
      const bytes = generated(rng, tipAccounts);
      compare(bytes);
      for (let j = 0; j < 10; j += 1) compare(mutated(rng, bytes, other));
      other = bytes;
    }
    // Text, and errors that only a worker thread reports, are not among them.
    expect(outcomes.size).toBeGreaterThan(DECODE_ERROR_COUNT - 10);
    expect(cached.counters.keysFound).toBeGreaterThan(1000);
  });

  it("for noise, text and long bodies", () => {
    const rng = createRng(7);
    for (let i = 0; i < 2000; i += 1) {
      const bytes = rng.bytes(rng.below(400));
      compare(bytes);
      bytes[0] = rng.pick([1, 2, 0x80, 0x81]);
      compare(bytes);
      compare(
        new Uint8Array(Buffer.from(Buffer.from(bytes).toString(rng.pick(["hex", "base64"])))),
      );
    }
    for (const size of [
      1232,
      1233,
      V1_TRANSACTION_BYTES_MAX,
      V1_TRANSACTION_BYTES_MAX + 1,
      70_000,
    ]) {
      for (const first of [1, 0x80, 0x81]) compare(new Uint8Array(size).fill(first, 0, 1));
    }
  });
});
