import { describe, expect, it } from "vitest";
import { CLOSE_POLICIES, CLOSE_REASONS, closeReasonOf } from "../../src/send/close-policy.ts";
import type { CloseCause } from "../../src/send/transport.ts";

describe("the end of a connection", () => {
  it.each<readonly [CloseCause, boolean, string]>([
    [{ kind: "app", code: 0 }, true, "closed"],
    [{ kind: "app", code: 1 }, true, "evicted"],
    [{ kind: "app", code: 2 }, true, "disallowed"],
    [{ kind: "app", code: 3 }, true, "too_many_streams"],
    [{ kind: "app", code: 4 }, true, "too_many"],
    [{ kind: "app", code: 5 }, true, "invalid_stream"],
    [{ kind: "app", code: 6 }, true, "other_code"],
    [{ kind: "app", code: 2 ** 40 }, true, "other_code"],
    [{ kind: "transport", code: 2 }, false, "refused"],
    [{ kind: "transport", code: 0x174 }, false, "transport"],
    [{ kind: "silence", code: 0 }, false, "unanswered"],
    [{ kind: "silence", code: 0 }, true, "silent"],
    [{ kind: "local", code: 0 }, true, "local"],
  ])("%j, established %s, is %s", (cause, established, name) => {
    expect(closeReasonOf(cause, established)).toBe(name);
  });
});

describe("the close policies", () => {
  it("have an entry for each name, in the same order", () => {
    expect(CLOSE_REASONS).toEqual(Object.keys(CLOSE_POLICIES));
  });

  it("always wait, and at least one unit after a rejection or no response", () => {
    for (const { wait } of Object.values(CLOSE_POLICIES)) expect(wait).toBeGreaterThan(0);
    const { disallowed, too_many, unanswered, evicted, silent } = CLOSE_POLICIES;
    expect([disallowed.wait, too_many.wait, unanswered.wait]).toEqual([1, 1, 1]);
    expect([evicted.wait, silent.wait].every((wait) => wait < 1)).toBe(true);
  });

  it("reconnect to an evicting leader just before its window; open no second to a full one", () => {
    const named = Object.entries(CLOSE_POLICIES);
    const of = (test: (row: (typeof named)[number][1]) => boolean) =>
      named.filter(([, row]) => test(row)).map(([name]) => name);
    expect(of((row) => row.next === "before_window")).toEqual(["evicted"]);
    expect(of((row) => row.single)).toEqual(["disallowed", "too_many", "unanswered"]);
  });

  it("lower the reliability more for unreachable leaders than for full ones", () => {
    const { unanswered, refused, evicted, invalid_stream } = CLOSE_POLICIES;
    expect(unanswered.score).toBeGreaterThan(refused.score);
    expect(refused.score).toBeGreaterThan(evicted.score);
    expect(invalid_stream.score).toBe(0);
  });
});
