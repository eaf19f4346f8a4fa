import { describe, expect, it } from "vitest";
import type { Rejection } from "../../src/core/errors.ts";
import { createRejectionLog } from "../../src/receipts/rejection-log.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const rejection = (message: string): Rejection => ({ reason: "tip_missing", message, data: {} });

const KEY = "0123456789abcdef0123456789abcdef";

describe("the latest rejections", () => {
  it("are returned to their account only, newest first, with their time", () => {
    const clock = createFakeClock();
    const log = createRejectionLog(clock);
    log.record("ada", rejection("first"), KEY);
    clock.advance(1000);
    log.record("ada", rejection("second"), KEY);
    log.record("grace", rejection("other"), KEY);
    const [second, first] = log.latest("ada");
    expect(second).toMatchObject({ reason: "tip_missing", message: "second", key_id: KEY });
    expect(Date.parse(second?.at ?? "") - Date.parse(first?.at ?? "")).toBe(1000);
    expect(log.latest("grace").map(({ message }) => message)).toEqual(["other"]);
    expect(log.latest("nobody")).toEqual([]);
  });

  it("are bounded per account: the oldest is evicted", () => {
    const log = createRejectionLog(createFakeClock(), { eachMax: 2 });
    for (const message of ["a", "b", "c"]) log.record("ada", rejection(message), KEY);
    expect(log.latest("ada").map(({ message }) => message)).toEqual(["c", "b"]);
  });

  it("contain one entry, the latest, of consecutive requests with a restricted key", () => {
    const log = createRejectionLog(createFakeClock(), { eachMax: 2 });
    const barred = (message: string): Rejection => ({ reason: "unauthorized", message, data: {} });
    log.record("ada", rejection("a"), KEY);
    for (const message of ["b", "c", "d"]) log.record("ada", barred(message), KEY);
    expect(log.latest("ada").map(({ message }) => message)).toEqual(["d", "a"]);
    log.record("ada", barred("e"), "another key");
    expect(log.latest("ada").map(({ message }) => message)).toEqual(["e", "d"]);
  });

  it("are bounded over all accounts: the oldest account is evicted, and counted", () => {
    const log = createRejectionLog(createFakeClock(), { accountsMax: 2 });
    for (const account of ["a", "b", "a", "c"]) log.record(account, rejection("x"), KEY);
    expect(log.latest("a")).toEqual([]);
    expect(log.latest("b")).toHaveLength(1);
    expect(log.latest("c")).toHaveLength(1);
    expect(log.counters.accountsEvicted).toBe(1);
  });
});
