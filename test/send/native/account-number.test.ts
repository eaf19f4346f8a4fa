import { describe, expect, it } from "vitest";
import { accountNumber } from "../../../src/send/native/account-number.ts";

describe("the number of an account", () => {
  it("is an exact integer, the same at each call, and another for another account", () => {
    const numbers = Array.from({ length: 10_000 }, (_, n) => accountNumber(`account-${n}`));
    expect(new Set(numbers).size).toBe(10_000);
    expect(numbers.every((number) => Number.isSafeInteger(number) && number >= 0)).toBe(true);
    expect(accountNumber("account-7")).toBe(numbers[7]);
  });

  it("uses all of 53 bits", () => {
    const numbers = Array.from({ length: 1_000 }, (_, n) => accountNumber(`${n}`));
    expect(Math.max(...numbers)).toBeGreaterThan(2 ** 52);
    expect(numbers.some((number) => number % 2 === 1)).toBe(true);
  });
});
