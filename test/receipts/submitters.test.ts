import { expect, it } from "vitest";
import { NONE } from "../../src/receipts/columns.ts";
import { RECEIPT_SUBMITTERS_MAX } from "../../src/receipts/limits.ts";
import { NO_ACCOUNT, ReceiptSubmitters } from "../../src/receipts/submitters.ts";
import { fc } from "../support/properties.ts";

/** The rows of an account, newest first, in the order of its list. */
function rowsOf(submitters: ReceiptSubmitters, account: string): number[] {
  const rows: number[] = [];
  let node = submitters.newest(submitters.numberOf(account));
  for (; node !== NONE; node = submitters.older(node)) rows.push(submitters.rowOf(node));
  return rows;
}

it("lists the rows of an account, the last one sent first", () => {
  const submitters = new ReceiptSubmitters(8);
  for (const row of [3, 1, 7]) submitters.add(row, "acme");
  submitters.add(1, "other");
  submitters.add(3, "acme");
  expect(rowsOf(submitters, "acme")).toEqual([7, 1, 3]);
  expect(rowsOf(submitters, "other")).toEqual([1]);
  expect(rowsOf(submitters, "nobody")).toEqual([]);
  expect(submitters.nodeOf(1, submitters.numberOf("other"))).not.toBe(NONE);
  expect(submitters.nodeOf(7, submitters.numberOf("other"))).toBe(NONE);
  expect(submitters.nodeOf(7, NO_ACCOUNT)).toBe(NONE);
});

it("accepts a bounded number of accounts per row, the first ones", () => {
  const submitters = new ReceiptSubmitters(2);
  for (let n = 0; n <= RECEIPT_SUBMITTERS_MAX; n += 1) submitters.add(0, `account ${n}`);
  expect(submitters.accounts).toBe(RECEIPT_SUBMITTERS_MAX + 1 - 1);
  expect(submitters.numberOf(`account ${RECEIPT_SUBMITTERS_MAX}`)).toBe(NO_ACCOUNT);
});

it("removes an account with its last row, and keeps a reused number separate", () => {
  const submitters = new ReceiptSubmitters(4);
  submitters.add(0, "acme");
  submitters.add(1, "acme");
  submitters.release(0);
  expect(rowsOf(submitters, "acme")).toEqual([1]);
  submitters.release(1);
  expect([submitters.accounts, submitters.numberOf("acme")]).toEqual([0, NO_ACCOUNT]);
  submitters.add(2, "other");
  expect(rowsOf(submitters, "other")).toEqual([2]);
  expect(rowsOf(submitters, "acme")).toEqual([]);
});

it("matches plain lists, over any order of adding and releasing", () => {
  const step = fc.record({
    row: fc.integer({ min: 0, max: 4 }),
    account: fc.constantFrom("a", "b", "c", "d", "e", "f"),
    releases: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const submitters = new ReceiptSubmitters(5);
      const model = new Map<string, number[]>();
      for (const { row, account, releases } of steps) {
        if (releases) {
          submitters.release(row);
          for (const [key, rows] of model) {
            model.set(
              key,
              rows.filter((each) => each !== row),
            );
          }
          continue;
        }
        const sharers = [...model.values()].filter((rows) => rows.includes(row)).length;
        const rows = model.get(account) ?? [];
        submitters.add(row, account);
        if (!rows.includes(row) && sharers < RECEIPT_SUBMITTERS_MAX)
          model.set(account, [row, ...rows]);
      }
      for (const [account, rows] of model) expect(rowsOf(submitters, account)).toEqual(rows);
      const known = [...model.values()].filter((rows) => rows.length > 0).length;
      expect(submitters.accounts).toBe(known);
    }),
  );
});
