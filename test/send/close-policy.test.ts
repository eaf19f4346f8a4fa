import { describe, expect, it } from "vitest";
import { END_NAMES, endNameOf, REACTIONS } from "../../src/send/close-policy.ts";
import type { Ending } from "../../src/send/transport.ts";

describe("the end of a connection", () => {
  it.each<readonly [Ending, boolean, string]>([
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
  ])("%j, established %s, is %s", (ending, established, name) => {
    expect(endNameOf(ending, established)).toBe(name);
  });
});

describe("the table of reactions", () => {
  it("has a row for each name, in the same order", () => {
    expect(END_NAMES).toEqual(Object.keys(REACTIONS));
  });

  it("never hammers: a pause each, and a whole one after a no or no answer at all", () => {
    for (const { wait } of Object.values(REACTIONS)) expect(wait).toBeGreaterThan(0);
    const { disallowed, too_many, unanswered, evicted, silent } = REACTIONS;
    expect([disallowed.wait, too_many.wait, unanswered.wait]).toEqual([1, 1, 1]);
    expect([evicted.wait, silent.wait].every((wait) => wait < 1)).toBe(true);
  });

  it("comes back to who evicted it just before the turn; opens no second to who is full", () => {
    const named = Object.entries(REACTIONS);
    const of = (test: (row: (typeof named)[number][1]) => boolean) =>
      named.filter(([, row]) => test(row)).map(([name]) => name);
    expect(of((row) => row.next === "before_turn")).toEqual(["evicted"]);
    expect(of((row) => row.single)).toEqual(["disallowed", "too_many", "unanswered"]);
  });

  it("takes more standing from who cannot be reached than from who has no room", () => {
    const { unanswered, refused, evicted, invalid_stream } = REACTIONS;
    expect(unanswered.score).toBeGreaterThan(refused.score);
    expect(refused.score).toBeGreaterThan(evicted.score);
    expect(invalid_stream.score).toBe(0);
  });
});
