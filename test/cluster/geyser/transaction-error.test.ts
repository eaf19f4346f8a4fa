import { describe, expect, it } from "vitest";
import { transactionErrorText } from "../../../src/cluster/geyser/transaction-error.ts";

/** The validator's encoding: variant indexes as little-endian u32, fields after them. */
function encoded(...parts: readonly (readonly [bits: 8 | 32, value: number])[]): Uint8Array {
  return Buffer.concat(
    parts.map(([bits, value]) => {
      const bytes = Buffer.alloc(bits / 8);
      if (bits === 8) bytes.writeUInt8(value);
      else bytes.writeUInt32LE(value);
      return bytes;
    }),
  );
}

describe("transaction error text", () => {
  it.each([
    ["a variant without fields", encoded([32, 7]), '"BlockhashNotFound"'],
    ["the last transaction error", encoded([32, 38]), '"CommitCancelled"'],
    [
      "a program's custom error",
      encoded([32, 8], [8, 2], [32, 25], [32, 6001]),
      '{"InstructionError":[2,{"Custom":6001}]}',
    ],
    [
      "an instruction error",
      encoded([32, 8], [8, 0], [32, 37]),
      '{"InstructionError":[0,"ComputationalBudgetExceeded"]}',
    ],
    [
      "the last instruction error",
      encoded([32, 8], [8, 1], [32, 53]),
      '{"InstructionError":[1,"BuiltinProgramsMustConsumeComputeUnits"]}',
    ],
    ["a repeated instruction", encoded([32, 30], [8, 3]), '{"DuplicateInstruction":3}'],
    [
      "insufficient funds for rent",
      encoded([32, 31], [8, 4]),
      '{"InsufficientFundsForRent":{"account_index":4}}',
    ],
    ["an unknown transaction error", encoded([32, 99]), '"Unknown(99)"'],
    [
      "an unknown instruction error",
      encoded([32, 8], [8, 1], [32, 99]),
      '{"InstructionError":[1,"Unknown(99)"]}',
    ],
    ["a truncated error", encoded([32, 8], [8, 1]), '{"InstructionError":[1,"Unknown"]}'],
    ["empty bytes", new Uint8Array(0), '"Unknown"'],
  ])("matches the RPC node's JSON for %s", (_, bytes, text) => {
    expect(transactionErrorText(bytes)).toBe(text);
  });

  it("decodes a view into a larger buffer", () => {
    const message = Buffer.concat([Buffer.from([1, 2, 3]), encoded([32, 4])]);
    expect(transactionErrorText(message.subarray(3))).toBe('"InsufficientFundsForFee"');
  });
});
