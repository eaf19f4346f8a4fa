import { expect, it } from "vitest";
import { NO_ERROR, ReceiptErrors } from "../../src/receipts/errors.ts";
import { RECEIPT_ERROR_CHARS_MAX, RECEIPT_ERRORS_MAX } from "../../src/receipts/limits.ts";

it("stores a text once, while a receipt shows it", () => {
  const errors = new ReceiptErrors();
  const first = errors.take('"A"');
  expect(errors.take('"A"')).toBe(first);
  expect([errors.at(first), errors.size]).toEqual(['"A"', 1]);
  errors.release(first);
  expect(errors.at(first)).toBe('"A"');
  errors.release(first);
  expect(errors.size).toBe(0);
  expect(errors.at(errors.take('"B"'))).toBe('"B"');
});

it("reports a text that is too long, or for which there is no space", () => {
  const errors = new ReceiptErrors();
  const long = errors.take("x".repeat(RECEIPT_ERROR_CHARS_MAX + 1));
  expect(JSON.parse(errors.at(long) ?? "")).toContain("not kept");
  errors.release(long);
  for (let n = 0; n < RECEIPT_ERRORS_MAX; n += 1) errors.take(`${n}`);
  const surplus = errors.take('"one more"');
  expect(JSON.parse(errors.at(surplus) ?? "")).toContain("not kept");
  expect(errors.size).toBe(RECEIPT_ERRORS_MAX);
});

it("has a number for the absence of an error", () => {
  const errors = new ReceiptErrors();
  expect([errors.take(null), errors.at(NO_ERROR)]).toEqual([NO_ERROR, null]);
  errors.release(NO_ERROR);
});
