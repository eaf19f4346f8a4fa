import { describe, expect, it } from "vitest";
import { V1_TRANSACTION_BYTES_MAX } from "../../src/core/limits.ts";
import { computeBudget, memo, newKeypair, serializeTransaction } from "../support/transactions.ts";
import { accepted, tipped, validationOf, validationWith } from "../support/validations.ts";

const key = (seed: number): Uint8Array => newKeypair(1000 + seed).publicKey;
const signer = (seed: number) => ({ key: key(seed), signer: true, writable: false });
const reader = (seed: number) => ({ key: key(seed), signer: false, writable: false });

describe("a version 1 transaction", () => {
  it("accepts at most 4096 bytes", () => {
    const sized = (size: number): Uint8Array => {
      const build = (fill: number): Uint8Array =>
        tipped({ version: 1, extraInstructions: [memo(new Uint8Array(fill))] }).bytes;
      return build(size - build(0).length);
    };
    for (const [size, validation] of [
      [V1_TRANSACTION_BYTES_MAX - 1, "accepted"],
      [V1_TRANSACTION_BYTES_MAX, "accepted"],
      [V1_TRANSACTION_BYTES_MAX + 1, "too_long"],
    ] as const) {
      const bytes = sized(size);
      expect(bytes.length).toBe(size);
      expect(validationOf(bytes)).toBe(validation);
    }
  });

  it("accepts 1 to 12 signatures, all at the end", () => {
    const signed = (count: number): string => {
      const accounts = Array.from({ length: count - 1 }, (_, i) => signer(i));
      return validationOf(tipped({ version: 1, instructions: [{ ...memo(""), accounts }] }).bytes);
    };
    expect([1, 11, 12].map(signed)).toEqual(["accepted", "accepted", "accepted"]);
    expect(signed(13)).toBe("signatures_too_many");
    expect(validationWith(1, () => ({ header: [0, 0, 1] }))).toBe("signatures_none");
    expect(validationWith(1, () => ({ signatureCount: 2 }))).toBe("trailing_bytes");
    expect(validationWith(1, () => ({ trailing: Uint8Array.of(0) }))).toBe("trailing_bytes");
  });

  it("accepts at most 64 keys", () => {
    const keys = (count: number): string => {
      const accounts = Array.from({ length: count - 4 }, (_, i) => reader(i));
      const built = tipped({ version: 1, instructions: [{ ...memo(""), accounts }] });
      expect(built.parts.keys).toHaveLength(count);
      return validationOf(built.bytes);
    };
    expect([63, 64, 65].map(keys)).toEqual(["accepted", "accepted", "keys_too_many"]);
    expect(validationWith(1, () => ({ keyCountBytes: Uint8Array.of(0) }))).toBe("keys_none");
  });

  it("accepts 255 accounts in an instruction and data of more than 255 bytes", () => {
    const { parts } = tipped({ version: 1, extraInstructions: [memo(new Uint8Array(3000))] });
    const instructions = parts.instructions.map((ix, i) => {
      return i === 0 ? ix : { ...ix, accounts: Array(255).fill(0) };
    });
    expect(validationOf(serializeTransaction({ ...parts, instructions }, []).bytes)).toBe(
      "accepted",
    );
  });

  it("accepts five bits of the configuration mask", () => {
    for (let bit = 0; bit < 32; bit += 1) {
      const configMask = (1 << bit) >>> 0;
      const validation = validationWith(1, () => ({ configMask, configWords: [65_536] }));
      if (bit < 2) expect(validation).toBe("config_fee");
      else expect(validation).toBe(bit < 5 ? "accepted" : "config_mask");
    }
    const all = { configMask: 0b11111, configWords: [1, 2, 3, 4, 65_536] };
    expect(validationWith(1, () => all)).toBe("accepted");
    expect(validationWith(1, () => ({ ...all, configMask: 0b111111 }))).toBe("config_mask");
    expect(validationWith(1, () => ({ ...all, configWords: [1, 2, 3, 65_536] }))).toBe("heap_size");
  });

  it("accepts a heap of 32 to 256 KiB in whole KiB", () => {
    const heap = (heapBytes: number): string =>
      validationOf(tipped({ version: 1, config: { heapBytes } }).bytes);
    for (const size of [32_768, 33_792, 262_144]) expect(heap(size)).toBe("accepted");
    for (const size of [0, 31_744, 32_767, 32_769, 262_143, 262_145, 263_168, 2 ** 32 - 1]) {
      expect(heap(size)).toBe("heap_size");
    }
  });

  it("accepts any unit limit and loaded size", () => {
    for (const value of [0, 1, 2 ** 32 - 1]) {
      const config = { computeUnitLimit: value, loadedAccountsBytes: value };
      expect(validationOf(tipped({ version: 1, config }).bytes)).toBe("accepted");
    }
  });

  it("reads the priority fee of its configuration", () => {
    const fee = (priorityFeeLamports: number | bigint): number =>
      accepted(tipped({ version: 1, config: { priorityFeeLamports } }).bytes).priorityFeeLamports;
    expect(fee(0)).toBe(0);
    expect(fee(2 ** 40 + 7)).toBe(2 ** 40 + 7);
    expect(fee(2n ** 64n - 1n)).toBe(Number.MAX_SAFE_INTEGER);
    expect(accepted(tipped({ version: 1 }).bytes).priorityFeeLamports).toBe(0);
  });

  it("ignores any ComputeBudget instruction", () => {
    const nonsense = computeBudget(Uint8Array.of(99));
    const { bytes } = tipped({ version: 1, instructions: [nonsense, nonsense] });
    expect(accepted(bytes).priorityFeeLamports).toBe(0);
  });
});
