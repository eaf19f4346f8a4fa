import { describe, expect, it } from "vitest";
import { fromBase58 } from "../support/base58.ts";
import {
  computeBudget,
  computeUnitLimit,
  computeUnitPrice,
  heapFrame,
  type InstructionSpec,
  loadedAccountsLimit,
  memo,
  newKeypair,
  transfer,
} from "../support/transactions.ts";
import { accepted, tipAccount, tipped, validationOf } from "../support/validations.ts";

const VERSIONS = [-1, 0] as const;

describe.each(VERSIONS)("compute budget in version %i", (version) => {
  const validationOn = (...instructions: readonly InstructionSpec[]): string =>
    validationOf(tipped({ version, instructions }).bytes);
  const fee = (...instructions: readonly InstructionSpec[]): number =>
    accepted(tipped({ version, instructions }).bytes).priorityFeeLamports;

  it("accepts each setting once", () => {
    const all = [
      heapFrame(65_536),
      computeUnitLimit(1),
      computeUnitPrice(1),
      loadedAccountsLimit(1),
    ];
    expect(validationOn(...all)).toBe("accepted");
    for (const each of all) expect(validationOn(...all, each)).toBe("compute_budget_duplicate");
    expect(validationOn(computeUnitLimit(0), computeUnitLimit(0))).toBe("compute_budget_duplicate");
  });

  it("rejects empty data and unknown tags", () => {
    expect(validationOn(computeBudget(new Uint8Array(0)))).toBe("compute_budget_malformed");
    for (const tag of [0, 5, 6, 255]) {
      const data = new Uint8Array(12).fill(1);
      data[0] = tag;
      expect(validationOn(computeBudget(data))).toBe("compute_budget_malformed");
    }
  });

  it("rejects truncated values and ignores bytes after them", () => {
    for (const [make, size] of [
      [heapFrame(65_536), 5],
      [computeUnitLimit(70_000), 5],
      [computeUnitPrice(70_000), 9],
      [loadedAccountsLimit(70_000), 5],
    ] as const) {
      const data = Buffer.concat([make.data, Buffer.alloc(3)]);
      const sized = (length: number): string =>
        validationOn(computeBudget(new Uint8Array(data.subarray(0, length))));
      expect(sized(size - 1)).toBe("compute_budget_malformed");
      expect(sized(size)).toBe("accepted");
      expect(sized(size + 1)).toBe("accepted");
    }
  });

  it("accepts a heap of 32 to 256 KiB in whole KiB", () => {
    for (const size of [32_768, 33_792, 262_144]) {
      expect(validationOn(heapFrame(size))).toBe("accepted");
    }
    for (const size of [0, 32_767, 32_769, 262_143, 262_145, 263_168, 2 ** 32 - 1]) {
      expect(validationOn(heapFrame(size))).toBe("heap_size");
    }
  });

  it("requires at least one byte of loaded accounts", () => {
    expect(validationOn(loadedAccountsLimit(0))).toBe("loaded_accounts_size");
    expect(validationOn(loadedAccountsLimit(1))).toBe("accepted");
    expect(validationOn(loadedAccountsLimit(2 ** 32 - 1))).toBe("accepted");
  });

  it("computes the fee as price times limit, rounded up to a lamport", () => {
    expect(fee()).toBe(0);
    expect(fee(computeUnitLimit(200_000))).toBe(0);
    expect(fee(computeUnitLimit(1), computeUnitPrice(1))).toBe(1);
    expect(fee(computeUnitLimit(1), computeUnitPrice(1_000_000))).toBe(1);
    expect(fee(computeUnitLimit(1), computeUnitPrice(1_000_001))).toBe(2);
    expect(fee(computeUnitPrice(200), computeUnitLimit(100_000))).toBe(20);
    expect(fee(computeUnitPrice(0), computeUnitLimit(100_000))).toBe(0);
    expect(fee(computeUnitPrice(1_000), computeUnitLimit(0))).toBe(0);
  });

  it("caps the limit at 1.4 million units", () => {
    expect(fee(computeUnitPrice(1_000_000), computeUnitLimit(2 ** 32 - 1))).toBe(1_400_000);
  });

  it("stays exact where the product exceeds 2^53", () => {
    for (const [price, limit] of [
      [8_999_999_999_999_999n, 654_321n],
      [2n ** 32n - 1n, 1_400_000n],
      [2n ** 32n + 1n, 1_399_999n],
      [2n ** 63n + 999_999n, 900n],
      [2n ** 64n - 1n, 488n],
    ] as const) {
      const exact = (price * limit + 999_999n) / 1_000_000n;
      expect(exact).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER);
      expect(fee(computeUnitPrice(price), computeUnitLimit(Number(limit)))).toBe(Number(exact));
    }
    const max = Number.MAX_SAFE_INTEGER;
    expect(fee(computeUnitPrice(2n ** 64n - 1n), computeUnitLimit(1_400_000))).toBe(max);
  });

  it("classifies built-in programs, and only the System Program as System", () => {
    for (const [address, units] of [
      ["Vote111111111111111111111111111111111111111", 3_000],
      ["BPFLoader1111111111111111111111111111111111", 3_000],
      ["BPFLoader2111111111111111111111111111111111", 3_000],
      ["BPFLoaderUpgradeab1e11111111111111111111111", 3_000],
      ["LoaderV411111111111111111111111111111111111", 3_000],
      ["KeccakSecp256k11111111111111111111111111111", 3_000],
      ["Ed25519SigVerify111111111111111111111111111", 3_000],
      ["Stake11111111111111111111111111111111111111", 200_000],
    ] as const) {
      const program = fromBase58(address);
      const big = transfer(newKeypair(7).publicKey, tipAccount.publicKey, 9_000_000);
      const call = { ...big, program };
      const { bytes } = tipped({ version, instructions: [computeUnitPrice(1_000_000), call] });
      expect(accepted(bytes).priorityFeeLamports).toBe(6_000 + units);
      expect(accepted(bytes).tipLamports).toBe(1_000_000);
    }
  });

  it("counts 3,000 units for a built-in program and 200,000 for any other without a limit", () => {
    // The price's own instruction and the tip are built in, a memo is not.
    expect(fee(computeUnitPrice(1_000_000))).toBe(6_000);
    expect(fee(computeUnitPrice(1_000_000), memo(""), memo(""))).toBe(406_000);
    const many = Array.from({ length: 9 }, () => memo(""));
    expect(fee(computeUnitPrice(1_000_000), ...many)).toBe(1_400_000);
  });
});
