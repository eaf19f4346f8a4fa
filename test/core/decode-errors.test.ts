import { describe, expect, it } from "vitest";
import {
  DECODE_ERROR,
  DECODE_ERROR_COUNT,
  reasonOf,
  rejectionOf,
} from "../../src/core/decode-errors.ts";
import { REJECTIONS } from "../../src/core/errors.ts";

/** The order that workers, the native engine and receipts rely on; append only. */
const ORDER = [
  "empty",
  "text_json",
  "text_base64",
  "text_base58",
  "text_hex",
  "text_other",
  "message_only",
  "too_long",
  "truncated",
  "trailing_bytes",
  "version_unknown",
  "version_misplaced",
  "length_malformed",
  "signatures_none",
  "signatures_too_many",
  "signature_count",
  "payer_readonly",
  "keys_none",
  "keys_too_many",
  "keys_too_few",
  "key_duplicate",
  "instructions_too_many",
  "program_is_payer",
  "program_index",
  "account_index",
  "accounts_too_many",
  "tables_too_many",
  "table_unused",
  "lookup_duplicate",
  "lookups_too_many",
  "config_mask",
  "config_fee",
  "heap_size",
  "compute_budget_malformed",
  "compute_budget_duplicate",
  "loaded_accounts_size",
  "tip_absent",
  "tip_too_low",
  "tip_account_readonly",
  "tip_source_unfit",
  "tip_in_table",
  "signature_missing",
  "signature_wrong",
  "signature_malformed",
  "signer_key_malformed",
  "worker_died",
  "ring_full",
];

const CODES = [...Array(DECODE_ERROR_COUNT).keys()];
const rejected = (errorCode: number, found = 3, needed = 7) =>
  rejectionOf({ kind: "rejected", errorCode, found, needed });

describe("decode error table", () => {
  it("keeps the code of each error", () => {
    expect(Object.keys(DECODE_ERROR).slice(0, ORDER.length)).toEqual(ORDER);
    expect(Object.values(DECODE_ERROR)).toEqual(CODES);
  });

  it("maps each error to a documented reason and a one-line message", () => {
    for (const code of CODES) {
      const { reason, message, data } = rejected(code);
      expect(Object.keys(REJECTIONS)).toContain(reason);
      expect(reason).toBe(reasonOf(code));
      expect(message).toMatch(/^[a-z].*[^.]$/);
      expect(message).not.toMatch(/undefined|NaN|\$\{/);
      expect(data).toEqual({ fault: Object.keys(DECODE_ERROR)[code], found: 3, needed: 7 });
    }
  });

  it("starts each undecodable message with the documented prefix", () => {
    for (const code of CODES.filter((each) => reasonOf(each) === "undecodable")) {
      expect(rejected(code).message).toMatch(/^transaction could not be decoded: /);
    }
  });

  it("has a distinct message for each error", () => {
    expect(new Set(CODES.map((code) => rejected(code).message)).size).toBe(DECODE_ERROR_COUNT);
  });

  it("throws for an unknown error code", () => {
    for (const code of [-1, DECODE_ERROR_COUNT, 0.5, Number.NaN]) {
      expect(() => rejected(code)).toThrow(RangeError);
    }
  });

  it("includes the found and the required lamports in the message of a low tip", () => {
    expect(rejected(DECODE_ERROR.tip_too_low, 400_000, 1_000_000)).toEqual({
      reason: "tip_missing",
      message: "a tip of 400000 lamports was found where 1000000 is the minimum",
      data: { fault: "tip_too_low", found: 400_000, needed: 1_000_000 },
    });
  });
});
