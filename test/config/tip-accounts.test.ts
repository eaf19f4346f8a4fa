import { SYSVAR_CLOCK_PUBKEY, SystemProgram, VoteProgram } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { RESERVED_ACCOUNTS, tipAccounts } from "../../src/config/tip-accounts.ts";
import { decodeBase58 } from "../../src/core/encoding.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";
const read = (list: unknown) => tipAccounts(64).read(list, "/");

describe("tip accounts", () => {
  it("are any accounts that a transaction can write to", () => {
    expect(read([TIP])).toEqual({ kind: "ok", value: [TIP] });
  });

  it.each([SystemProgram.programId, VoteProgram.programId, SYSVAR_CLOCK_PUBKEY])(
    "are never %s, which no transaction can write to",
    (account) => {
      const reading = read([TIP, account.toBase58()]);
      expect(reading).toMatchObject({ kind: "problem" });
      expect(JSON.stringify(reading)).toContain(account.toBase58());
    },
  );

  it("are checked as other accounts are", () => {
    for (const wrong of [[], ["x"], [TIP, TIP], TIP]) {
      expect(read(wrong)).toMatchObject({ kind: "problem" });
    }
  });

  it("are held against a list of addresses of 32 bytes", () => {
    const sizes = [...RESERVED_ACCOUNTS].map((account) => decodeBase58(account, 32)?.length);
    expect(new Set(sizes)).toEqual(new Set([32]));
  });
});
