import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { RESEND_SAME_LEADER_MS } from "../../src/landing/limits.ts";
import { LeaderMarks, tagOf } from "../../src/landing/recent-recipients.ts";

const PAUSE_NS = RESEND_SAME_LEADER_MS * NS_PER_MS;
const [A, B, C] = [tagOf("LeaderA"), tagOf("LeaderB"), tagOf("LeaderC")];
const [HERE, THERE] = [tagOf("10.0.0.1:8009"), tagOf("10.0.0.2:8009")];

describe("marks of leaders", () => {
  it("allow a leader again once it would not drop the bytes any more", () => {
    const marks = new LeaderMarks(2, 4);
    marks.mark(1, A, HERE, 1_000);
    expect(marks.allows(1, A, HERE, 1_000)).toBe(false);
    expect(marks.allows(1, A, HERE, 1_000 + PAUSE_NS - 1)).toBe(false);
    expect(marks.allows(1, A, HERE, 1_000 + PAUSE_NS)).toBe(true);
  });

  it("know a leader by its identity as well as by its address", () => {
    const marks = new LeaderMarks(1, 4);
    marks.mark(0, A, HERE, 5);
    expect(marks.allows(0, A, THERE, 6)).toBe(false);
    expect(marks.allows(0, B, HERE, 6)).toBe(false);
    expect(marks.allows(0, B, THERE, 6)).toBe(true);
  });

  it("are each transaction's own", () => {
    const marks = new LeaderMarks(3, 2);
    marks.mark(1, A, HERE, 5);
    expect([0, 1, 2].map((row) => marks.allows(row, A, HERE, 6))).toEqual([true, false, true]);
  });

  it("are moved by a later copy for the same leader, and take no second place", () => {
    const marks = new LeaderMarks(1, 2);
    marks.mark(0, A, HERE, 0);
    marks.mark(0, A, HERE, PAUSE_NS);
    expect(marks.allows(0, A, HERE, PAUSE_NS + 1)).toBe(false);
    expect(marks.allows(0, B, THERE, PAUSE_NS + 1)).toBe(true);
  });

  it("allow nobody while every place is young", () => {
    const marks = new LeaderMarks(1, 2);
    marks.mark(0, A, HERE, 0);
    marks.mark(0, B, THERE, 10);
    expect(marks.allows(0, C, tagOf("10.0.0.3:8009"), 11)).toBe(false);
    expect(marks.allows(0, C, tagOf("10.0.0.3:8009"), PAUSE_NS)).toBe(true);
  });

  it("give their oldest place to a copy that went out all the same", () => {
    const marks = new LeaderMarks(1, 2);
    marks.mark(0, A, HERE, 0);
    marks.mark(0, B, THERE, 10);
    marks.mark(0, C, tagOf("10.0.0.3:8009"), 20);
    expect(marks.allows(0, B, THERE, 10 + PAUSE_NS - 1)).toBe(false);
    expect(marks.allows(0, A, HERE, 10 + PAUSE_NS)).toBe(true);
  });

  it("are taken back for a copy that never went out, and all at once", () => {
    const marks = new LeaderMarks(1, 3);
    marks.mark(0, A, HERE, 0);
    marks.mark(0, B, THERE, 0);
    marks.unmark(0, A, HERE);
    expect(marks.allows(0, A, HERE, 1)).toBe(true);
    expect(marks.allows(0, B, THERE, 1)).toBe(false);
    marks.clear(0);
    expect(marks.allows(0, B, THERE, 1)).toBe(true);
  });
});
