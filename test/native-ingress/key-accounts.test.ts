import { describe, expect, it } from "vitest";
import { CACHED_KEYS_MAX } from "../../src/limits/bounds.ts";
import { KeyAccounts } from "../../src/native-ingress/key-accounts.ts";
import { accountNumber } from "../../src/send/native/account-number.ts";

describe("the accounts of key slots", () => {
  it("are in shared memory, one number for each slot", () => {
    const accounts = new KeyAccounts();
    accounts.set(CACHED_KEYS_MAX - 1, "acme");
    accounts.set(3, "other");
    const numbers = new Float64Array(accounts.memory);
    expect(numbers).toHaveLength(CACHED_KEYS_MAX);
    expect([numbers[CACHED_KEYS_MAX - 1], numbers[3], numbers[0]]).toEqual([
      accountNumber("acme"),
      accountNumber("other"),
      0,
    ]);
  });
});
