import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  checkText,
  cutText,
  instant,
  isUuid,
  pageOf,
  readCursor,
  writeCursor,
} from "../../../src/control/store/records.ts";

describe("texts", () => {
  it("are trimmed, and counted as people count", () => {
    expect(checkText("it", "  a  ", 1)).toEqual({ kind: "ok", value: "a" });
    expect(checkText("it", "👩".repeat(64), 1).kind).toBe("ok");
    expect(checkText("it", "👩".repeat(65), 1).kind).toBe("refused");
    expect(checkText("it", " ", 1).kind).toBe("refused");
  });

  it("of a provider are cut and cleaned instead of refused", () => {
    expect(cutText("a\u0000b\u202ec", 10)).toBe("a b c");
    expect(cutText("\u0001", 10)).toBeNull();
    expect(cutText("x".repeat(20), 10)).toHaveLength(10);
    expect(cutText(null, 10)).toBeNull();
  });
});

it("ids are distinguished from everything else", () => {
  expect(isUuid(randomUUID())).toBe(true);
  for (const text of ["", "1", randomUUID().toUpperCase(), `${randomUUID()} `, "{}"]) {
    expect(isUuid(text)).toBe(false);
  }
});

it("a cursor is read back unchanged, and nothing else is accepted as one", () => {
  const id = randomUUID();
  expect(readCursor(writeCursor(1234, id))).toEqual({ at: instant(1234), id });
  for (const text of [null, "", "1_2", `x_${id}`, `1_${id.slice(1)}0-`]) {
    expect(readCursor(text)).toBeNull();
  }
});

it("a page has a next one only when there was a row more", () => {
  const page = (rows: readonly number[]) => pageOf(rows, 2, String);
  expect(page([1, 2, 3])).toEqual({ items: [1, 2], next: "2" });
  expect(page([1, 2])).toEqual({ items: [1, 2], next: null });
  expect(page([])).toEqual({ items: [], next: null });
});
