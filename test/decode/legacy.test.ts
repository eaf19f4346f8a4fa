import { describe, expect, it } from "vitest";
import { LEGACY_TRANSACTION_BYTES_MAX } from "../../src/core/limits.ts";
import { memo, newKeypair, type RawTable, serializeTransaction } from "../support/transactions.ts";
import {
  accepted,
  tipAccount,
  tipped,
  validationOf,
  validationWith,
} from "../support/validations.ts";

const VERSIONS = [-1, 0] as const;
const key = (seed: number): Uint8Array => newKeypair(1000 + seed).publicKey;

function table(writable: number, readonly: number, seed = 0): RawTable {
  const accounts = Array.from({ length: writable + readonly }, (_, account) => account);
  return {
    key: key(seed),
    writable: accounts.slice(0, writable),
    readonly: accounts.slice(writable),
  };
}

describe.each(VERSIONS)("a transaction of version %i", (version) => {
  it("accepts at most 1232 bytes", () => {
    const sized = (size: number): Uint8Array => {
      const build = (fill: number): Uint8Array =>
        tipped({ version, extraInstructions: [memo(new Uint8Array(fill))] }).bytes;
      return build(800 + size - build(800).length);
    };
    for (const [size, validation] of [
      [LEGACY_TRANSACTION_BYTES_MAX - 1, "accepted"],
      [LEGACY_TRANSACTION_BYTES_MAX, "accepted"],
      [LEGACY_TRANSACTION_BYTES_MAX + 1, "too_long"],
    ] as const) {
      const bytes = sized(size);
      expect(bytes.length).toBe(size);
      expect(validationOf(bytes)).toBe(validation);
    }
  });

  it("accepts 1 to 12 signatures", () => {
    expect(validationWith(version, () => ({ signatureCount: 0 }))).toBe("signatures_none");
    const signedBy = (count: number): string => {
      const keys = [...Array(count).keys()].map(key);
      const header = [count, 0, 0] as const;
      return validationWith(version, () => ({ keys, header, instructions: [] }));
    };
    // Twelve signatures leave no room for a tip, so the missing tip is the expected error.
    expect([signedBy(11), signedBy(12)]).toEqual(["tip_absent", "tip_absent"]);
    const thirteen = Uint8Array.of(13);
    expect(validationWith(version, () => ({ signatureCountBytes: thirteen }))).toBe(
      "signatures_too_many",
    );
  });

  it("requires the signature count of its header", () => {
    const two = [2, 0, 1] as const;
    expect(validationWith(version, () => ({ header: two }))).toBe("accepted");
    expect(validationWith(version, () => ({ header: two, signatureCount: 1 }))).toBe(
      "signature_count",
    );
    expect(validationWith(version, () => ({ signatureCount: 2 }))).toBe("signature_count");
    const none = [0, 0, 1] as const;
    expect(validationWith(version, () => ({ header: none, signatureCount: 1 }))).toBe(
      "signature_count",
    );
  });

  it("accepts 1 to 38 static keys", () => {
    const count = (value: number): string =>
      validationWith(version, () => ({ keyCountBytes: Uint8Array.of(value) }));
    expect(count(0)).toBe("keys_none");
    expect(count(37)).toBe("truncated");
    expect(count(38)).toBe("truncated");
    expect(count(39)).toBe("keys_too_many");
    expect(count(128)).toBe("keys_too_many");
  });

  it("requires counts in the shortest compact-u16 of one or two bytes", () => {
    const count = (...bytes: number[]): string =>
      validationWith(version, () => ({ instructionCountBytes: Uint8Array.from(bytes) }));
    expect(count(1)).toBe("accepted");
    expect(count(0x81, 0)).toBe("length_malformed");
    expect(count(0x81, 0x80)).toBe("length_malformed");
    expect(count(0x81, 0x80, 0)).toBe("length_malformed");
    expect(count(0x80, 0x80, 0x01)).toBe("length_malformed");
    expect(count(0x80, 0x01)).toBe("instructions_too_many");
  });

  it("accepts at most 255 accounts in an instruction", () => {
    const accounts = (count: number): string => {
      const { parts } = tipped({ version, extraInstructions: [memo("")] });
      const [tip, last] = parts.instructions;
      if (tip === undefined || last === undefined) throw new Error("two instructions were built");
      const instructions = [tip, { ...last, accounts: Array(count).fill(0) }];
      return validationOf(serializeTransaction({ ...parts, instructions }, []).bytes);
    };
    expect([254, 255, 256].map(accounts)).toEqual(["accepted", "accepted", "accounts_too_many"]);
  });

  it("must end where its last part ends", () => {
    expect(validationWith(version, () => ({ trailing: Uint8Array.of(0) }))).toBe("trailing_bytes");
  });
});

describe("a legacy transaction", () => {
  it("has no lookup tables: a count after its instructions is trailing", () => {
    const { bytes } = tipped({ version: 0 });
    expect(validationOf(bytes)).toBe("accepted");
    expect(validationWith(-1, () => ({ trailing: Uint8Array.of(0) }))).toBe("trailing_bytes");
  });
});

describe("a version 0 transaction", () => {
  it("rejects other version bytes after its signatures", () => {
    const version = (versionByte: number): string => validationWith(0, () => ({ versionByte }));
    expect(version(0x80)).toBe("accepted");
    expect(version(0x81)).toBe("version_misplaced");
    expect(version(0x82)).toBe("version_unknown");
    expect(version(0xff)).toBe("version_unknown");
  });

  it("accepts at most 31 lookup tables", () => {
    const tables = (count: number): string =>
      validationWith(0, ({ keys }) => ({
        keys: keys.slice(0, 1),
        header: [1, 0, 0],
        instructions: [],
        tables: Array.from({ length: count }, (_, i) => table(i % 2, (i + 1) % 2, i)),
      }));
    expect([30, 31].map(tables)).toEqual(["tip_absent", "tip_absent"]);
    expect(validationWith(0, () => ({ tableCountBytes: Uint8Array.of(31) }))).toBe("truncated");
    expect(validationWith(0, () => ({ tableCountBytes: Uint8Array.of(32) }))).toBe(
      "tables_too_many",
    );
    expect(validationWith(0, () => ({ tableCountBytes: Uint8Array.of(0x80, 1) }))).toBe(
      "tables_too_many",
    );
  });

  it("requires at least one account from each table", () => {
    const tables = (...all: RawTable[]): string => validationWith(0, () => ({ tables: all }));
    expect(tables(table(1, 0))).toBe("accepted");
    expect(tables(table(0, 1))).toBe("accepted");
    expect(tables(table(1, 1))).toBe("accepted");
    expect(tables(table(0, 0))).toBe("table_unused");
    expect(tables(table(1, 1), table(0, 0, 1))).toBe("table_unused");
  });

  it("looks up each account of a table once, as leaders load none twice", () => {
    const tables = (...all: RawTable[]): string => validationWith(0, () => ({ tables: all }));
    const of = (writable: number[], readonly: number[], seed = 0): RawTable => {
      return { key: key(seed), writable, readonly };
    };
    expect(tables(of([7, 8], [9]), of([8], [7, 9], 1))).toBe("accepted");
    expect(tables(of([7, 8, 7], []))).toBe("lookup_duplicate");
    expect(tables(of([], [0, 255, 255]))).toBe("lookup_duplicate");
    expect(tables(of([7], []), of([3], [4, 3], 1))).toBe("lookup_duplicate");
  });

  it("accepts at most 64 accounts including looked-up ones, as many as leaders lock", () => {
    // Three static keys, and the rest from two tables.
    const total = (count: number): string =>
      validationWith(0, () => ({ tables: [table(40, 0), table(10, count - 53, 1)] }));
    expect([63, 64, 65].map(total)).toEqual(["accepted", "accepted", "lookups_too_many"]);
    expect([256, 257].map(total)).toEqual(["lookups_too_many", "lookups_too_many"]);
  });

  it("allows looked-up accounts in instructions, but not as programs", () => {
    const tables = [table(2, 3)];
    const named = (account: number): string =>
      validationWith(0, ({ instructions }) => ({
        tables,
        instructions: instructions.map((ix) => ({ ...ix, accounts: [...ix.accounts, account] })),
      }));
    expect([7, 8].map(named)).toEqual(["accepted", "account_index"]);
    const called = validationWith(0, ({ instructions }) => ({
      tables,
      instructions: instructions.map((ix) => ({ ...ix, programIndex: 3 })),
    }));
    expect(called).toBe("program_index");
  });

  it("is rejected at every truncation within its tables", () => {
    // The length of 130 takes two bytes; the complete transaction names too many accounts.
    const { bytes } = tipped({ version: 0, tables: [table(1, 2), table(130, 1, 1)] });
    expect(validationOf(bytes)).toBe("lookups_too_many");
    expect(accepted(tipped({ version: 0, tables: [table(1, 2)] }).bytes).version).toBe(0);
    for (let size = 218; size < bytes.length; size += 1) {
      expect(validationOf(bytes.subarray(0, size))).toBe("truncated");
    }
  });

  it("reports that a tip to a looked-up account does not count", () => {
    const validation = validationWith(0, ({ instructions }) => ({
      tables: [{ key: tipAccount.publicKey, writable: [0], readonly: [] }],
      instructions: instructions.map((ix) => ({ ...ix, accounts: [0, 3] })),
    }));
    expect(validation).toBe("tip_in_table");
  });
});
