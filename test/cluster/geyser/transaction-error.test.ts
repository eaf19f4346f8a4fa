import { describe, expect, it } from "vitest";
import { transactionErrorText } from "../../../src/cluster/geyser/transaction-error.ts";

/** As validators encode it: indexes as 32 bits, little-endian, fields after them. */
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

describe("a transaction's error", () => {
  it.each([
    ["one without fields", encoded([32, 7]), '"BlockhashNotFound"'],
    ["the last one", encoded([32, 38]), '"CommitCancelled"'],
    [
      "a program's own",
      encoded([32, 8], [8, 2], [32, 25], [32, 6001]),
      '{"InstructionError":[2,{"Custom":6001}]}',
    ],
    [
      "an instruction's",
      encoded([32, 8], [8, 0], [32, 37]),
      '{"InstructionError":[0,"ComputationalBudgetExceeded"]}',
    ],
    [
      "the last of an instruction",
      encoded([32, 8], [8, 1], [32, 53]),
      '{"InstructionError":[1,"BuiltinProgramsMustConsumeComputeUnits"]}',
    ],
    ["a repeated instruction", encoded([32, 30], [8, 3]), '{"DuplicateInstruction":3}'],
    [
      "too little rent",
      encoded([32, 31], [8, 4]),
      '{"InsufficientFundsForRent":{"account_index":4}}',
    ],
    ["one of a newer network", encoded([32, 99]), '"Unknown(99)"'],
    [
      "an instruction's of a newer network",
      encoded([32, 8], [8, 1], [32, 99]),
      '{"InstructionError":[1,"Unknown(99)"]}',
    ],
    ["one that breaks off", encoded([32, 8], [8, 1]), '{"InstructionError":[1,"Unknown"]}'],
    ["nothing", new Uint8Array(0), '"Unknown"'],
  ])("is shown as the RPC shows it: %s", (_, bytes, text) => {
    expect(transactionErrorText(bytes)).toBe(text);
  });

  it("is read from the middle of a message as well", () => {
    const message = Buffer.concat([Buffer.from([1, 2, 3]), encoded([32, 4])]);
    expect(transactionErrorText(message.subarray(3))).toBe('"InsufficientFundsForFee"');
  });
});
