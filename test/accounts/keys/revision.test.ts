import { expect, it } from "vitest";
import { isSameRevision } from "../../../src/accounts/keys/revision.ts";

it("two revisions are the same by number and mark alone", () => {
  const one = { number: 1, mark: "a" };
  expect(isSameRevision(one, { ...one })).toBe(true);
  expect(isSameRevision(one, { ...one, number: 2 })).toBe(false);
  expect(isSameRevision(one, { ...one, mark: "b" })).toBe(false);
  expect(isSameRevision(one, { ...one, mark: null })).toBe(false);
});
