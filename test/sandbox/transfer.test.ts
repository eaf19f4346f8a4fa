import { expect, it } from "vitest";
import { createDecoder } from "../../src/decode/decoder.ts";
import { signedTransfer } from "../../src/sandbox/transfer.ts";
import { identityOfSeed } from "../../src/send/identity.ts";
import { buildTransaction, newKeypair } from "../support/transactions.ts";

const PAYER = newKeypair(7);
const TO = newKeypair(11).publicKey;
const BLOCKHASH = new Uint8Array(32).fill(5);

const transferOf = (lamports: bigint): Uint8Array =>
  signedTransfer({ payer: identityOfSeed(PAYER.seed), to: TO, lamports, blockhash: BLOCKHASH });

it.each([0n, 1_000_000n, 2n ** 64n - 1n])(
  "a transfer of %d lamports equals another builder's, byte for byte",
  (lamports) => {
    const tips = [{ to: TO, lamports }];
    const { bytes } = buildTransaction({ payer: PAYER, tips, blockhash: BLOCKHASH });
    expect(Buffer.from(transferOf(lamports)).toString("hex")).toBe(
      Buffer.from(bytes).toString("hex"),
    );
  },
);

it("a transfer has the documented size, and the decoder finds its tip", () => {
  const options = { tipAccounts: [TO], lamportsMin: 1_000_000, verify: true, keyCacheSize: 4 };
  const bytes = transferOf(1_000_001n);
  expect(bytes).toHaveLength(215);
  expect(createDecoder(options).decode(bytes)).toMatchObject({
    kind: "accepted",
    version: -1,
    tipLamports: 1_000_001,
  });
});
