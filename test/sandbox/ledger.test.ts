import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  createBlindLedger,
  createLedger,
  type Decoded,
  type Ledger,
} from "../../src/sandbox/ledger.ts";
import {
  buildTransaction,
  computeUnitLimit,
  computeUnitPrice,
  type InstructionSpec,
  loadedAccountsLimit,
  memo,
  newKeypair,
} from "../support/transactions.ts";

function decoded(ledger: Ledger, bytes: Uint8Array): Decoded {
  const found = ledger.decode(bytes);
  if (found === null) throw new Error("the transaction did not decode");
  return found;
}

describe("the ledger", () => {
  it.each([-1, 0, 1] as const)("executes a funded transfer of version %i", async (version) => {
    const ledger = await createLedger();
    expect(ledger.executes).toBe(true);
    const payer = newKeypair();
    const to = newKeypair();
    ledger.airdrop(payer.address, 1_000_000_000n);
    const config = { computeUnitLimit: 10_000, loadedAccountsBytes: 65_536 };
    const tips = [{ to: to.publicKey, lamports: 2_000_000 }];
    const built = buildTransaction({ version, payer, tips, ...(version === 1 ? { config } : {}) });
    const transaction = decoded(ledger, built.bytes);
    expect(transaction.signature).toBe(built.signature);
    expect(ledger.execute(transaction)).toBeNull();
    expect(ledger.balance(to.address)).toBe(2_000_000n);
    expect(ledger.balance(payer.address)).toBe(1_000_000_000n - 2_000_000n - 5000n);
    expect(ledger.account(to.address)).toMatchObject({ lamports: 2_000_000n, executable: false });
  });

  it("rejects a transaction of a payer without funds", async () => {
    const ledger = await createLedger();
    const built = buildTransaction({ tips: [{ to: randomBytes(32), lamports: 5 }] });
    const error = ledger.execute(decoded(ledger, built.bytes));
    expect(error).toEqual({ err: "AccountNotFound", lands: false });
  });

  it("rejects a transaction with an invalid signature", async () => {
    const ledger = await createLedger();
    const payer = newKeypair();
    ledger.airdrop(payer.address, 1_000_000_000n);
    const built = buildTransaction({ payer, tips: [{ to: randomBytes(32), lamports: 5 }] });
    const bytes = Uint8Array.from(built.bytes);
    bytes[9] = (bytes[9] ?? 0) ^ 1;
    const error = ledger.execute(decoded(ledger, bytes));
    expect(error).toEqual({ err: "SignatureFailure", lands: false });
  });

  it("lands a transaction that fails in an instruction, with the RPC's own error", async () => {
    const ledger = await createLedger();
    const payer = newKeypair();
    ledger.airdrop(payer.address, 1_000_000_000n);
    const tips = [{ to: randomBytes(32), lamports: 9_000_000_000 }];
    const error = ledger.execute(decoded(ledger, buildTransaction({ payer, tips }).bytes));
    expect(error).toEqual({ err: { InstructionError: [0, { Custom: 1 }] }, lands: true });
  });

  const cosigner = newKeypair();
  const noProgram: InstructionSpec = {
    program: randomBytes(32),
    accounts: [{ key: cosigner.publicKey, signer: true, writable: false }],
    data: new Uint8Array(0),
  };
  // 100 lamports for each compute unit.
  const price = computeUnitPrice(100_000_000);
  it.each<readonly [string, bigint, readonly InstructionSpec[]]>([
    ["InvalidProgramForExecution", 10_000n, [noProgram]],
    ["InvalidProgramForExecution", 30_000n, [price, computeUnitLimit(200), noProgram]],
    ["MaxLoadedAccountsDataSizeExceeded", 5_000n, [loadedAccountsLimit(1), memo("x")]],
  ])("lands a transaction with %s, which pays %i lamports", async (err, fee, instructions) => {
    const ledger = await createLedger();
    const payer = newKeypair();
    ledger.airdrop(payer.address, 1_000_000_000n);
    const { bytes } = buildTransaction({ payer, instructions, signers: [cosigner] });
    const transaction = decoded(ledger, bytes);
    expect(ledger.simulate(transaction)).toEqual({ err, lands: true });
    expect(ledger.balance(payer.address)).toBe(1_000_000_000n);
    expect(ledger.execute(transaction)).toEqual({ err, lands: true });
    expect(ledger.balance(payer.address)).toBe(1_000_000_000n - fee);
  });

  it("decodes a copy, so the bytes may be reused", async () => {
    const ledger = await createLedger();
    const payer = newKeypair();
    ledger.airdrop(payer.address, 1_000_000_000n);
    const to = newKeypair();
    const built = buildTransaction({ payer, tips: [{ to: to.publicKey, lamports: 1_000_000 }] });
    const lent = Buffer.from(built.bytes);
    const transaction = decoded(ledger, lent);
    lent.fill(0);
    expect(ledger.execute(transaction)).toBeNull();
  });

  it("reports bytes that are not a transaction", async () => {
    const ledger = await createLedger();
    for (const size of [0, 1, 64, 200, 1232, 5000]) {
      expect(ledger.decode(randomBytes(size))).toBeNull();
    }
  });
});

describe("the ledger without LiteSVM", () => {
  it("reports its absence, lands everything and supports airdrops", () => {
    const ledger = createBlindLedger();
    expect(ledger.executes).toBe(false);
    const built = buildTransaction({ tips: [{ to: randomBytes(32), lamports: 5 }] });
    expect(ledger.execute(decoded(ledger, built.bytes))).toBeNull();
    const { address } = newKeypair();
    expect(ledger.account(address)).toBeNull();
    ledger.airdrop(address, 7n);
    ledger.airdrop(address, 7n);
    expect(ledger.balance(address)).toBe(14n);
    expect(ledger.account(address)?.lamports).toBe(14n);
  });
});
