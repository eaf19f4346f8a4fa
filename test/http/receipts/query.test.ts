import { describe, expect, it } from "vitest";
import { readListQuery, readStreamQuery, readWaitQuery } from "../../../src/http/receipts/query.ts";

const SIGNATURE = "5".repeat(88);

/** The query, or the message of its rejection. */
function outcomeOf(
  read: ReturnType<typeof readListQuery | typeof readWaitQuery | typeof readStreamQuery>,
) {
  return read.kind === "query" ? read.query : read.rejection.message;
}

describe("accepted queries", () => {
  it.each([
    ["", { goal: null, timeoutMs: 10_000 }],
    ["wait=landed", { goal: "landed", timeoutMs: 10_000 }],
    ["wait=processed&timeout=1.5s", { goal: "processed", timeoutMs: 1_500 }],
    ["timeout=60s&wait=landed", { goal: "landed", timeoutMs: 60_000 }],
    ["wait=landed&timeout=10ms", { goal: "landed", timeoutMs: 10 }],
  ])("of one receipt: %j", (text, query) => {
    expect(outcomeOf(readWaitQuery(text))).toEqual(query);
  });

  it.each([
    ["", { states: null, limit: 50, before: null }],
    ["state=landed&limit=1", { states: ["landed"], limit: 1, before: null }],
    [
      "state=expired%2Cdropped&limit=200",
      { states: ["expired", "dropped"], limit: 200, before: null },
    ],
    [`before=${SIGNATURE}`, { states: null, limit: 50, before: SIGNATURE }],
  ])("of a list: %j", (text, query) => {
    expect(outcomeOf(readListQuery(text))).toEqual(query);
  });

  it("of a stream", () => {
    expect(outcomeOf(readStreamQuery("state=landed,expired"))).toEqual({
      states: ["landed", "expired"],
    });
  });
});

describe("a rejected query names what was found and what is needed", () => {
  it.each([
    [readWaitQuery, "wait=finalized", 'wait is "finalized", landed or processed is needed'],
    [readWaitQuery, "timeout=5s", 'timeout is "5s" without a wait, wait=landed is needed'],
    [readWaitQuery, "wait=landed&timeout=5", 'timeout is "5", a duration of 10ms to 60s is needed'],
    [readWaitQuery, "wait=landed&timeout=61s", 'timeout is "61s", a duration of 10ms to 60s'],
    [readWaitQuery, "wait=landed&timeout=9ms", 'timeout is "9ms", a duration of 10ms to 60s'],
    [readWaitQuery, "wait=landed&wait=landed", "wait is given twice, once is needed"],
    [readWaitQuery, "wiat=landed", 'the query has "wiat", only wait, timeout are known here'],
    [readListQuery, "limit=0", 'limit is "0", a number from 1 to 200 is needed'],
    [readListQuery, "limit=201", 'limit is "201", a number from 1 to 200 is needed'],
    [readListQuery, "limit=1e2", 'limit is "1e2", a number from 1 to 200 is needed'],
    [readListQuery, "limit=", 'limit is "", a number from 1 to 200 is needed'],
    [readListQuery, "before=xyz", 'before is "xyz", a signature in base58 is needed'],
    [readListQuery, "state=", 'state has "", some of accepted,sent,acknowledged'],
    [readListQuery, "state=landed,done", 'state has "done", some of accepted,sent,acknowledged'],
    [readStreamQuery, "__proto__=1", 'the query has "__proto__", only state are known here'],
    [readStreamQuery, `state=${"x".repeat(3_000)}`, `state has "${"x".repeat(40)}", some of`],
  ])("%o %j", (read, text, message) => {
    const response = read(text);
    expect(response).toMatchObject({ kind: "rejected", rejection: { reason: "invalid_params" } });
    expect(outcomeOf(response)).toContain(message);
  });
});
