import { expect, it } from "vitest";
import { NONE } from "../../src/receipts/columns.ts";
import { RECEIPT_OWNERS_MAX } from "../../src/receipts/limits.ts";
import { NOBODY, ReceiptOwners } from "../../src/receipts/owners.ts";
import { fc } from "../support/properties.ts";

/** The rows of an account, newest first, as its list has them. */
function rowsOf(owners: ReceiptOwners, account: string): number[] {
  const rows: number[] = [];
  let node = owners.newest(owners.numberOf(account));
  for (; node !== NONE; node = owners.older(node)) rows.push(owners.rowOf(node));
  return rows;
}

it("lists the rows of an account, the one that it sent last first", () => {
  const owners = new ReceiptOwners(8);
  for (const row of [3, 1, 7]) owners.add(row, "acme");
  owners.add(1, "other");
  owners.add(3, "acme");
  expect(rowsOf(owners, "acme")).toEqual([7, 1, 3]);
  expect(rowsOf(owners, "other")).toEqual([1]);
  expect(rowsOf(owners, "nobody")).toEqual([]);
  expect(owners.nodeOf(1, owners.numberOf("other"))).not.toBe(NONE);
  expect(owners.nodeOf(7, owners.numberOf("other"))).toBe(NONE);
  expect(owners.nodeOf(7, NOBODY)).toBe(NONE);
});

it("gives a row to a bounded number of accounts, the first ones", () => {
  const owners = new ReceiptOwners(2);
  for (let n = 0; n <= RECEIPT_OWNERS_MAX; n += 1) owners.add(0, `account ${n}`);
  expect(owners.accounts).toBe(RECEIPT_OWNERS_MAX + 1 - 1);
  expect(owners.numberOf(`account ${RECEIPT_OWNERS_MAX}`)).toBe(NOBODY);
});

it("forgets an account with its last row, and shows its number to no other", () => {
  const owners = new ReceiptOwners(4);
  owners.add(0, "acme");
  owners.add(1, "acme");
  owners.release(0);
  expect(rowsOf(owners, "acme")).toEqual([1]);
  owners.release(1);
  expect([owners.accounts, owners.numberOf("acme")]).toEqual([0, NOBODY]);
  owners.add(2, "other");
  expect(rowsOf(owners, "other")).toEqual([2]);
  expect(rowsOf(owners, "acme")).toEqual([]);
});

it("holds what plain lists would hold, over any order of adding and releasing", () => {
  const step = fc.record({
    row: fc.integer({ min: 0, max: 4 }),
    account: fc.constantFrom("a", "b", "c", "d", "e", "f"),
    releases: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const owners = new ReceiptOwners(5);
      const model = new Map<string, number[]>();
      for (const { row, account, releases } of steps) {
        if (releases) {
          owners.release(row);
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
        owners.add(row, account);
        if (!rows.includes(row) && sharers < RECEIPT_OWNERS_MAX) model.set(account, [row, ...rows]);
      }
      for (const [account, rows] of model) expect(rowsOf(owners, account)).toEqual(rows);
      const known = [...model.values()].filter((rows) => rows.length > 0).length;
      expect(owners.accounts).toBe(known);
    }),
  );
});
