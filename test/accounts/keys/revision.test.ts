import { expect, it } from "vitest";
import { isSameRevision } from "../../../src/accounts/keys/revision.ts";

it("revisions are equal if their numbers and marks are", () => {
  const one = { number: 1, mark: "a" };
  expect(isSameRevision(one, { ...one })).toBe(true);
  expect(isSameRevision(one, { ...one, number: 2 })).toBe(false);
  expect(isSameRevision(one, { ...one, mark: "b" })).toBe(false);
  expect(isSameRevision(one, { ...one, mark: null })).toBe(false);
});
