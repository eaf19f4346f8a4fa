import { describe, expect, it } from "vitest";
import { isFeeOnly, ledgerError } from "../../src/sandbox/ledger-errors.ts";

describe("an error of the virtual machine", () => {
  it("has the name at its index in the network's enumeration", () => {
    expect(ledgerError(6)).toEqual({ err: "AlreadyProcessed", lands: false });
    expect(ledgerError(34)).toEqual({ err: "CommitCancelled", lands: false });
    expect(ledgerError(3)).toEqual({ err: "ProgramAccountNotFound", lands: true });
    expect(ledgerError(999)).toEqual({ err: "SanitizeFailure", lands: false });
  });

  it("leaves the fee alone to be paid where a program could not be loaded", () => {
    const raws = [3, 6, { index: 0, err: () => 0 }, { accountIndex: 0 }];
    expect(raws.map((raw) => isFeeOnly(ledgerError(raw)))).toEqual([true, false, false, false]);
  });

  it("keeps its fields", () => {
    expect(ledgerError({ index: 2, err: () => 52 }).err).toEqual({
      InstructionError: [2, "BorshIoError"],
    });
    expect(ledgerError({ index: 2, err: () => 5 }).err).toEqual({
      InstructionError: [2, "InsufficientFunds"],
    });
    expect(ledgerError({ index: 1, err: () => ({ code: 6001 }) }).err).toEqual({
      InstructionError: [1, { Custom: 6001 }],
    });
    expect(ledgerError({ index: 3 })).toEqual({ err: { DuplicateInstruction: 3 }, lands: false });
    expect(ledgerError({ accountIndex: 1 })).toEqual({
      err: { InsufficientFundsForRent: { account_index: 1 } },
      lands: true,
    });
  });
});
