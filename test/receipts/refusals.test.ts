import { describe, expect, it } from "vitest";
import type { Refusal } from "../../src/core/errors.ts";
import { createRefusalBook } from "../../src/receipts/refusals.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const refusal = (sentence: string): Refusal => ({ reason: "tip_missing", sentence, data: {} });

const KEY = "0123456789abcdef0123456789abcdef";

describe("the latest refusals", () => {
  it("are told to their account alone, newest first, with their time", () => {
    const clock = createFakeClock();
    const book = createRefusalBook(clock);
    book.note("ada", refusal("first"), KEY);
    clock.advance(1000);
    book.note("ada", refusal("second"), KEY);
    book.note("grace", refusal("other"), KEY);
    const [second, first] = book.latest("ada");
    expect(second).toMatchObject({ reason: "tip_missing", sentence: "second", key_id: KEY });
    expect(Date.parse(second?.at ?? "") - Date.parse(first?.at ?? "")).toBe(1000);
    expect(book.latest("grace").map(({ sentence }) => sentence)).toEqual(["other"]);
    expect(book.latest("nobody")).toEqual([]);
  });

  it("are bounded for each account: the oldest goes", () => {
    const book = createRefusalBook(createFakeClock(), { eachMax: 2 });
    for (const sentence of ["a", "b", "c"]) book.note("ada", refusal(sentence), KEY);
    expect(book.latest("ada").map(({ sentence }) => sentence)).toEqual(["c", "b"]);
  });

  it("hold one entry, the latest, of a row of requests with a key that is not good there", () => {
    const book = createRefusalBook(createFakeClock(), { eachMax: 2 });
    const barred = (sentence: string): Refusal => ({ reason: "unauthorized", sentence, data: {} });
    book.note("ada", refusal("a"), KEY);
    for (const sentence of ["b", "c", "d"]) book.note("ada", barred(sentence), KEY);
    expect(book.latest("ada").map(({ sentence }) => sentence)).toEqual(["d", "a"]);
    book.note("ada", barred("e"), "another key");
    expect(book.latest("ada").map(({ sentence }) => sentence)).toEqual(["e", "d"]);
  });

  it("are bounded over the accounts: the one heard of first goes, and is counted", () => {
    const book = createRefusalBook(createFakeClock(), { accountsMax: 2 });
    for (const account of ["a", "b", "a", "c"]) book.note(account, refusal("x"), KEY);
    expect(book.latest("a")).toEqual([]);
    expect(book.latest("b")).toHaveLength(1);
    expect(book.latest("c")).toHaveLength(1);
    expect(book.counters.accountsForgotten).toBe(1);
  });
});
