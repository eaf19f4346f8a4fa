import { expect, it } from "vitest";
import { DatabaseError, translate } from "../../../src/accounts/database/database-error.ts";

const thrown = (message: string, code?: string): Error =>
  Object.assign(new Error(message), code === undefined ? {} : { code });

it.each([
  [thrown("x", "ECONNREFUSED"), "unavailable"],
  [thrown("x", "57P01"), "unavailable"],
  [thrown("x", "53300"), "unavailable"],
  [thrown("x", "25006"), "unavailable"],
  [thrown("Connection terminated unexpectedly"), "unavailable"],
  [thrown("The server does not support SSL connections"), "unavailable"],
  [thrown("x", "CERT_HAS_EXPIRED"), "unavailable"],
  [thrown("x", "SELF_SIGNED_CERT_IN_CHAIN"), "unavailable"],
  [thrown("x", "ERR_TLS_CERT_ALTNAME_INVALID"), "unavailable"],
  [thrown("x", "EACCES"), "unavailable"],
  [thrown("SASL: client password must be a string"), "refused"],
  [thrown("timeout exceeded when trying to connect"), "timeout"],
  [thrown("x", "57014"), "timeout"],
  [thrown("x", "28P01"), "refused"],
  [thrown("x", "40P01"), "conflict"],
  [thrown("x", "23505"), "constraint"],
  [thrown("x", "42P01"), "fault"],
])("translates %o to %s", (error, kind) => {
  expect(translate(error)).toMatchObject({ kind, cause: error });
});

it("names every address that a connection was tried to", () => {
  const each = ["::1", "127.0.0.1"].map((host) => thrown(`connect ECONNREFUSED ${host}:5432`));
  const error = Object.assign(new AggregateError(each), { code: "ECONNREFUSED" });
  expect(translate(error)).toMatchObject({
    kind: "unavailable",
    message:
      "the accounts database: connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432",
  });
});

it("returns errors of other origin unchanged", () => {
  for (const error of [new RangeError("x"), "text", null, thrown("x", "ERR_OTHER")]) {
    expect(translate(error)).toBe(error);
  }
  const known = new DatabaseError("fault", "x", null, null);
  expect(translate(known)).toBe(known);
});
