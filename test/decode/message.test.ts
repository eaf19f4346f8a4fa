import { describe, expect, it } from "vitest";
import { advanceNonce, memo, newKeypair, serializeTransaction } from "../support/transactions.ts";
import { accepted, tipped, validationOf, validationWith } from "../support/validations.ts";

const VERSIONS = [-1, 0, 1] as const;

describe.each(VERSIONS)("the message of version %i", (version) => {
  it("requires a writable fee payer: fewer readonly signers than signers", () => {
    const header = (...values: readonly [number, number, number]): string =>
      validationWith(version, () => ({ header: values }));
    expect(header(1, 1, 1)).toBe("payer_readonly");
    expect(header(2, 1, 1)).not.toBe("payer_readonly");
    expect(header(2, 2, 1)).toBe("payer_readonly");
    expect(header(1, 255, 1)).toBe("payer_readonly");
  });

  it("requires a key for each one that its header counts", () => {
    const header = (...values: readonly [number, number, number]): string =>
      validationWith(version, () => ({ header: values }));
    expect(header(1, 0, 1)).toBe("accepted");
    expect(header(1, 0, 2)).toBe("tip_account_readonly");
    expect(header(1, 0, 3)).toBe("keys_too_few");
    expect(header(1, 0, 255)).toBe("keys_too_few");
    expect(header(3, 0, 0)).toBe("accepted");
    expect(header(3, 0, 1)).toBe("keys_too_few");
    expect(header(4, 0, 0)).toBe("keys_too_few");
  });

  it("rejects a duplicate account key at any two indexes", () => {
    const { parts } = tipped({ version, extraInstructions: [memo("")] });
    expect(parts.keys).toHaveLength(4);
    for (let to = 0; to < 4; to += 1) {
      for (let from = 0; from < 4; from += 1) {
        const keys = parts.keys.map((key, i) => (i === to ? (parts.keys[from] ?? key) : key));
        const validation = validationOf(serializeTransaction({ ...parts, keys }, []).bytes);
        if (to === from) expect(validation).toBe("accepted");
        else expect(validation).toBe("key_duplicate");
      }
    }
  });

  it("distinguishes keys that differ in one byte", () => {
    const { parts } = tipped({ version, extraInstructions: [memo("")] });
    for (let at = 0; at < 32; at += 1) {
      const close = Uint8Array.from(parts.keys[3] ?? []);
      close[at] = (close[at] ?? 0) ^ 1;
      const keys = [...parts.keys, close];
      expect(validationOf(serializeTransaction({ ...parts, keys }, []).bytes)).toBe("accepted");
    }
  });

  it("accepts 0 to 64 instructions", () => {
    const count = (length: number): string => {
      const extraInstructions = Array.from({ length: length - 1 }, () => memo(""));
      return validationOf(tipped({ version, extraInstructions }).bytes);
    };
    expect([63, 64, 65].map(count)).toEqual(["accepted", "accepted", "instructions_too_many"]);
    expect(validationWith(version, () => ({ instructions: [] }))).toBe("tip_absent");
  });

  it("allows only its own keys as programs, and never the fee payer", () => {
    const calls = (programIndex: number): string =>
      validationWith(version, ({ instructions }) => ({
        instructions: [...instructions, { programIndex, accounts: [], data: new Uint8Array(0) }],
      }));
    expect(calls(0)).toBe("program_is_payer");
    expect(calls(1)).toBe("accepted");
    expect(calls(2)).toBe("accepted");
    expect(calls(3)).toBe("program_index");
    expect(calls(255)).toBe("program_index");
  });

  it("rejects nonexistent accounts at any index of an instruction", () => {
    for (let at = 0; at < 6; at += 1) {
      const accounts = Array.from({ length: 6 }, (_, i) => (i === at ? 3 : 0));
      const validation = validationWith(version, ({ instructions }) => ({
        instructions: [...instructions, { programIndex: 2, accounts, data: new Uint8Array(0) }],
      }));
      expect(validation).toBe("account_index");
    }
  });

  it("rejects the account index after the last", () => {
    const names = (account: number): string =>
      validationWith(version, ({ instructions }) => ({
        instructions: instructions.map((ix) => ({ ...ix, accounts: [...ix.accounts, account] })),
      }));
    expect([1, 2, 3, 255].map(names)).toEqual([
      "accepted",
      "accepted",
      "account_index",
      "account_index",
    ]);
  });
});

describe.each(VERSIONS)("a durable nonce in version %i", (version) => {
  const nonce = newKeypair(300).publicKey;
  const payer = newKeypair(7);
  const advance = advanceNonce(nonce, payer.publicKey);
  const durable = (spec: Parameters<typeof tipped>[0]): boolean =>
    accepted(tipped({ version, ...spec }).bytes).durableNonce;

  it("is detected when the first instruction advances it", () => {
    expect(durable({})).toBe(false);
    expect(durable({ instructions: [advance] })).toBe(true);
    expect(durable({ instructions: [memo(""), advance] })).toBe(false);
  });

  it("accepts longer data and rejects shorter", () => {
    const data = (...bytes: number[]): boolean =>
      durable({ instructions: [{ ...advance, data: Uint8Array.from(bytes) }] });
    expect(data(4, 0, 0, 0, 9)).toBe(true);
    expect(data(4, 0, 0)).toBe(false);
    expect(data(4, 0, 0, 1)).toBe(false);
    expect(data(12, 0, 0, 0)).toBe(false);
  });

  it("requires a writable account, the first of the instruction", () => {
    const [first, ...rest] = advance.accounts;
    if (first === undefined) throw new Error("an advance names its nonce");
    const readonly = { ...advance, accounts: [{ ...first, writable: false }, ...rest] };
    expect(durable({ instructions: [readonly] })).toBe(false);
    expect(durable({ instructions: [{ ...advance, accounts: [] }] })).toBe(false);
  });
});

describe("a durable nonce from a lookup table", () => {
  it("is not detected: the network requires a static nonce account", () => {
    const nonce = newKeypair(300).publicKey;
    const built = tipped({ version: 0, instructions: [advanceNonce(nonce, nonce)] });
    const [advance, ...rest] = built.parts.instructions;
    if (advance === undefined) throw new Error("two instructions were built");
    const keyCount = built.parts.keys.length;
    const parts = {
      ...built.parts,
      tables: [{ key: newKeypair(301).publicKey, writable: [0], readonly: [] }],
      instructions: [{ ...advance, accounts: [keyCount] }, ...rest],
    };
    expect(accepted(serializeTransaction(parts, []).bytes).durableNonce).toBe(false);
    expect(accepted(built.bytes).durableNonce).toBe(true);
  });
});
