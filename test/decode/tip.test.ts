import { describe, expect, it } from "vitest";
import { DECODE_ERROR, rejectionOf } from "../../src/core/decode-errors.ts";
import {
  concat,
  type InstructionSpec,
  memo,
  newKeypair,
  SYSTEM_PROGRAM,
  transfer,
  u32,
  u64,
} from "../support/transactions.ts";
import {
  accepted,
  decoder,
  LAMPORTS_MIN,
  otherTipAccount,
  tipAccount,
  tipped,
  validationOf,
} from "../support/validations.ts";

const VERSIONS = [-1, 0, 1] as const;
const payer = newKeypair(7);
const stranger = newKeypair(11);
const tip = transfer(payer.publicKey, tipAccount.publicKey, LAMPORTS_MIN);

/** The validation result of a transaction with exactly these instructions. */
function validationOn(version: -1 | 0 | 1, ...instructions: readonly InstructionSpec[]): string {
  return validationOf(tipped({ version, tips: [], instructions }).bytes);
}

describe.each(VERSIONS)("a tip in version %i", (version) => {
  it("must reach the minimum alone", () => {
    const pays = (...lamports: readonly number[]): string =>
      validationOf(
        tipped({
          version,
          tips: lamports.map((each) => ({ to: tipAccount.publicKey, lamports: each })),
        }).bytes,
      );
    expect(pays(LAMPORTS_MIN - 1)).toBe("tip_too_low");
    expect(pays(LAMPORTS_MIN)).toBe("accepted");
    expect(pays(LAMPORTS_MIN + 1)).toBe("accepted");
    expect(pays(LAMPORTS_MIN / 2, LAMPORTS_MIN / 2)).toBe("tip_too_low");
    expect(pays(1, LAMPORTS_MIN)).toBe("accepted");
    expect(pays(0)).toBe("tip_too_low");
  });

  it("must go to a tip account", () => {
    const to = (key: Uint8Array): string =>
      validationOn(version, transfer(payer.publicKey, key, LAMPORTS_MIN));
    expect(to(tipAccount.publicKey)).toBe("accepted");
    expect(to(otherTipAccount.publicKey)).toBe("accepted");
    expect(to(stranger.publicKey)).toBe("tip_absent");
    const close = Uint8Array.from(tipAccount.publicKey);
    close[31] = (close[31] ?? 0) ^ 1;
    expect(to(close)).toBe("tip_absent");
  });

  it("is the largest one, at any position", () => {
    const tips = [5, 9, 7].map((times) => {
      return { to: tipAccount.publicKey, lamports: times * LAMPORTS_MIN };
    });
    const { bytes } = tipped({ version, tips, instructions: [memo("")] });
    expect(accepted(bytes).tipLamports).toBe(9 * LAMPORTS_MIN);
  });

  it("may have trailing data and further accounts", () => {
    const [from, to] = tip.accounts;
    if (from === undefined || to === undefined) throw new Error("a transfer has two accounts");
    const third = { key: stranger.publicKey, signer: false, writable: false };
    const data = concat([tip.data, Uint8Array.of(1, 2, 3)]);
    expect(validationOn(version, { ...tip, data })).toBe("accepted");
    expect(validationOn(version, { ...tip, accounts: [from, to, third] })).toBe("accepted");
  });

  it("does not count with short data, one account, or another instruction", () => {
    expect(validationOn(version, { ...tip, data: tip.data.subarray(0, 11) })).toBe("tip_absent");
    expect(validationOn(version, { ...tip, accounts: tip.accounts.slice(0, 1) })).toBe(
      "tip_absent",
    );
    expect(validationOn(version, { ...tip, program: stranger.publicKey })).toBe("tip_absent");
    for (const index of [0, 1, 3, 11, 0x102, 0x0200_0000]) {
      const data = concat([u32(index), u64(LAMPORTS_MIN), new Uint8Array(60)]);
      expect(validationOn(version, { ...tip, data })).toBe("tip_absent");
    }
  });

  it("does not count as TransferWithSeed", () => {
    const base = { key: stranger.publicKey, signer: true, writable: false };
    const [from, to] = tip.accounts;
    if (from === undefined || to === undefined) throw new Error("a transfer has two accounts");
    const seed = concat([u64(4), new Uint8Array(4).fill(97), SYSTEM_PROGRAM]);
    const data = concat([u32(11), u64(LAMPORTS_MIN), seed]);
    expect(validationOn(version, { ...tip, accounts: [from, base, to], data })).toBe("tip_absent");
  });

  it("must go to a writable account", () => {
    const [from, to] = tip.accounts;
    if (from === undefined || to === undefined) throw new Error("a transfer has two accounts");
    const accounts = [from, { ...to, writable: false }];
    expect(validationOn(version, { ...tip, accounts })).toBe("tip_account_readonly");
  });

  it("must come from a writable signer", () => {
    const comes = (signer: boolean, writable: boolean): string => {
      const from = { key: stranger.publicKey, signer, writable };
      const accounts = [from, ...tip.accounts.slice(1)];
      return validationOn(version, { ...tip, accounts });
    };
    expect(comes(true, true)).toBe("accepted");
    expect(comes(false, true)).toBe("tip_source_unfit");
    expect(comes(true, false)).toBe("tip_source_unfit");
    expect(comes(false, false)).toBe("tip_source_unfit");
  });

  it("is found after one that does not qualify", () => {
    const [from, to] = tip.accounts;
    if (from === undefined || to === undefined) throw new Error("a transfer has two accounts");
    const unsigned = { key: stranger.publicKey, signer: false, writable: true };
    const miss = { ...tip, accounts: [unsigned, to] };
    expect(validationOn(version, miss, tip)).toBe("accepted");
    expect(validationOn(version, tip, miss)).toBe("accepted");
  });
});

describe("a rejection for the tip", () => {
  it("reports the found and the needed lamports", () => {
    const tips = [3, 400_000, 7].map((lamports) => ({ to: tipAccount.publicKey, lamports }));
    const validation = decoder.decode(tipped({ tips }).bytes);
    if (validation.kind !== "rejected") throw new Error("a low tip was accepted");
    expect(rejectionOf(validation)).toEqual({
      reason: "tip_missing",
      message: "a tip of 400000 lamports was found where 1000000 is the minimum",
      data: { fault: "tip_too_low", found: 400_000, needed: 1_000_000 },
    });
  });

  it("reports the minimum when there is no tip", () => {
    const validation = decoder.decode(tipped({ tips: [] }).bytes);
    expect(validation).toEqual({
      kind: "rejected",
      errorCode: DECODE_ERROR.tip_absent,
      found: 0,
      needed: LAMPORTS_MIN,
    });
  });
});
