import { expect, it } from "vitest";
import { DatabaseError, translate } from "../../../src/accounts/database/database-error.ts";

const thrown = (message: string, code?: string): Error =>
  Object.assign(new Error(message), code === undefined ? {} : { code });

it.each([
  [thrown("x", "ECONNREFUSED"), "unavailable"],
  [thrown("x", "57P01"), "unavailable"],
  [thrown("x", "53300"), "unavailable"],
  [thrown("Connection terminated unexpectedly"), "unavailable"],
  [thrown("timeout exceeded when trying to connect"), "timeout"],
  [thrown("x", "57014"), "timeout"],
  [thrown("x", "28P01"), "refused"],
  [thrown("x", "40P01"), "conflict"],
  [thrown("x", "23505"), "constraint"],
  [thrown("x", "42P01"), "fault"],
])("translates %o to %s", (error, kind) => {
  expect(translate(error)).toMatchObject({ kind, cause: error });
});

it("returns errors of other origin unchanged", () => {
  for (const error of [new RangeError("x"), "text", null, thrown("x", "ERR_OTHER")]) {
    expect(translate(error)).toBe(error);
  }
  const known = new DatabaseError("fault", "x", null, null);
  expect(translate(known)).toBe(known);
});
