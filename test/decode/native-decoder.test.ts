import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { afterAll, describe, expect, it } from "vitest";
import { DECODE_ERROR } from "../../src/core/decode-errors.ts";
import { createNativeDecoder, nativeDecoder } from "../../src/decode/native-decoder.ts";
import {
  DECODER_OPTIONS,
  NO_DECODER,
  NO_ROOM,
  OK,
  VALIDATION_NUMBERS,
} from "../../src/native/contract.ts";
import { ADDON_PATH } from "../../src/native/load.ts";
import { native } from "../native/addon.ts";
import { createRng } from "../support/rng.ts";
import { buildTransaction, newKeypair } from "../support/transactions.ts";
import { LAMPORTS_MIN, tipAccount } from "../support/validations.ts";
import { until } from "../support/wait.ts";

const options = {
  tipAccounts: [tipAccount.publicKey],
  lamportsMin: LAMPORTS_MIN,
  verify: true,
  keyCacheSize: 16,
};
const tips = [{ to: tipAccount.publicKey, lamports: LAMPORTS_MIN }];
const good = buildTransaction({ tips }).bytes;
const unsigned = buildTransaction({ tips, sign: false }).bytes;

describe.skipIf(native === null)("the native decoder", () => {
  const addon = native;
  if (addon === null) return;
  const decoder = createNativeDecoder(addon, options);
  afterAll(() => decoder.close());

  it("counts verified signatures", () => {
    const own = createNativeDecoder(addon, options);
    own.decode(good);
    own.decode(unsigned);
    expect([own.counters.verified, own.counters.invalid]).toEqual([1, 1]);
    own.close();
  });

  it("accepts any signature when verification is off", () => {
    const lax = createNativeDecoder(addon, { ...options, verify: false });
    expect(lax.decode(unsigned).kind).toBe("accepted");
    expect(lax.counters.verified).toBe(0);
    lax.close();
  });

  it("builds a table at a key's second valid signature, with unchanged results", async () => {
    const own = createNativeDecoder(addon, options);
    expect(own.decode(good).kind).toBe("accepted");
    expect(own.decode(good).kind).toBe("accepted");
    await until("a table", () => own.counters.keysMade === 1);
    expect(own.decode(good)).toEqual(decoder.decode(good));
    expect(own.decode(unsigned)).toMatchObject({ errorCode: DECODE_ERROR.signature_missing });
    expect(own.counters.keysFound).toBe(1);
    own.close();
  });

  it("reports the encoding of text", () => {
    const text = new Uint8Array(Buffer.from(Buffer.from(good).toString("base64")));
    expect(decoder.decode(text)).toMatchObject({
      errorCode: DECODE_ERROR.text_base64,
      found: text.length,
    });
  });

  it("returns error codes for invalid handles, offsets and options", () => {
    const out = new Float64Array(VALIDATION_NUMBERS);
    expect(addon.decode(0, good, out, 0)).toBe(NO_DECODER);
    expect(addon.decode(2 ** 32 - 1, good, out, 0)).toBe(NO_DECODER);
    expect(addon.decode(decoder.handle, good, out, 1)).toBe(NO_ROOM);
    expect(addon.decode(decoder.handle, good, new Float64Array(0), 0)).toBe(NO_ROOM);
    expect(addon.decode(decoder.handle, new Uint8Array(0), out, 0)).toBe(0);
    const { buffer } = new Float64Array(VALIDATION_NUMBERS + 1);
    const numbers = new Float64Array(buffer, 8);
    expect(addon.decode(decoder.handle, new Uint8Array(buffer, 0, 9), numbers, 0)).toBe(NO_ROOM);
    expect(addon.decode(decoder.handle, new Uint8Array(buffer, 0, 8), numbers, 0)).toBe(0);
    expect(addon.decoderCounters(0, out)).toBe(0);
    expect(addon.decoderCounters(decoder.handle, new Float64Array(2))).toBe(2);
    expect(addon.decoderClose(0)).toBe(NO_DECODER);
    for (const [accounts, lamports] of [
      [31, 1],
      [32, -1],
      [32, 0.5],
      [32, Number.NaN],
    ] as const) {
      const code = addon.decoderCreate(new Uint8Array(accounts), lamports, true, 0);
      expect(code).toBe(DECODER_OPTIONS);
    }
    expect(() => createNativeDecoder(addon, { ...options, lamportsMin: -1 })).toThrow(/-40/);
  });

  it("is unusable once closed, though its handle may be reused", () => {
    const own = createNativeDecoder(addon, options);
    expect(addon.decoderClose(own.handle)).toBe(OK);
    expect(() => own.decode(good)).toThrow(/-42/);
  });

  it("throws only for arguments of another type", () => {
    const rng = createRng(3);
    const odd: readonly unknown[] = [null, undefined, "text", {}, [], -1, 900.5, Number.NaN, good];
    for (let i = 0; i < 3000; i += 1) {
      const names = ["decode", "decoderClose", "decoderCounters"] as const;
      const call: unknown = addon[rng.pick(names)];
      const given = Array.from({ length: rng.below(6) }, () => odd[rng.below(odd.length)]);
      if (given[0] === decoder.handle) given[0] = 0;
      try {
        // The functions take numbers and arrays; this tests other types.
        const response = (call as (...all: readonly unknown[]) => unknown)(...given);
        expect(typeof response).toBe("number");
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
    }
    expect(decoder.decode(good).kind).toBe("accepted");
  });

  it("serves all threads by one handle, from one set of tables", async () => {
    // Large enough that keys rarely collide; the hash seed is random per start.
    const own = createNativeDecoder(addon, { ...options, keyCacheSize: 1024 });
    const files = Array.from({ length: 8 }, (_, i) => {
      return buildTransaction({ payer: newKeypair(2000 + i), tips }).bytes;
    });
    const entry = new URL("../support/native-worker.mjs", import.meta.url);
    const workers = [1, 2].map(() => {
      return new Worker(entry, {
        workerData: { addon: ADDON_PATH, handle: own.handle, files, rounds: 200 },
      });
    });
    const responses = await Promise.all(workers.map((worker) => once(worker, "message")));
    expect(responses).toEqual([[1600], [1600]]);
    expect(nativeDecoder(addon, own.handle).counters.verified).toBe(3200);
    // A key that arrived while the table thread was busy, or between two occurrences of another key
    // with the same history slot, gets its table when it occurs twice again.
    await until("eight tables", () => {
      for (const bytes of files.flatMap((file) => [file, file])) own.decode(bytes);
      return own.counters.keysMade === 8;
    });
    own.close();
  });
});
