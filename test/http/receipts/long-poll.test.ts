import { expect, it } from "vitest";
import {
  RECEIPT_LONG_POLLS_MAX,
  RECEIPT_LONG_POLLS_PER_ACCOUNT_MAX,
  RECEIPT_RESPONSES_PER_SLICE,
} from "../../../src/http/limits.ts";
import { createLongPolls } from "../../../src/http/receipts/long-poll.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

function setup() {
  const clock = createFakeClock();
  const ended = new Set<number>();
  const answered: number[] = [];
  const longPolls = createLongPolls({
    clock,
    receipts: { reached: (ticket) => ended.has(ticket) },
  });
  const add = (ticket: number, account = "acme", timeoutMs = 1_000) =>
    longPolls.add({
      account,
      ticket,
      goal: "landed",
      timeoutMs,
      respond: () => void answered.push(ticket),
    });
  return { clock, ended, answered, longPolls, add };
}

it("responds when the end is known, and stops checking when no request waits", () => {
  const { clock, ended, answered, longPolls, add } = setup();
  add(1);
  add(2);
  clock.advance(100);
  expect([answered, longPolls.counters.pending]).toEqual([[], 2]);
  ended.add(2);
  clock.advance(20);
  expect([answered, longPolls.counters.pending]).toEqual([[2], 1]);
  ended.add(1);
  clock.advance(20);
  expect(answered).toEqual([2, 1]);
  expect(longPolls.counters).toMatchObject({ pending: 0, reached: 2, timedOut: 0 });
  expect(clock.pending).toBe(0);
});

it("answers when the time is up", () => {
  const { clock, answered, longPolls, add } = setup();
  add(1, "acme", 500);
  clock.advance(490);
  expect(answered).toEqual([]);
  clock.advance(20);
  expect([answered, longPolls.counters.timedOut, clock.pending]).toEqual([[1], 1, 0]);
});

it("forgets a client that left, once", () => {
  const { clock, answered, longPolls, add } = setup();
  const pending = add(1);
  if (typeof pending === "string") throw new Error("not held");
  pending.leave();
  pending.leave();
  clock.advance(2_000);
  expect([answered, longPolls.counters.left, longPolls.counters.pending]).toEqual([[], 1, 0]);
});

it("bounds those of an account and all of them", () => {
  const { longPolls, add } = setup();
  const accounts = RECEIPT_LONG_POLLS_MAX / RECEIPT_LONG_POLLS_PER_ACCOUNT_MAX;
  for (let n = 0; n < RECEIPT_LONG_POLLS_MAX; n += 1) add(n, `account ${n % accounts}`);
  expect(add(0, "account 0")).toBe("account");
  expect(add(0, "another")).toBe("all");
  expect(longPolls.counters).toMatchObject({ pending: RECEIPT_LONG_POLLS_MAX, rejected: 2 });
});

/** How many of several turns' worth of longPolls are answered in each turn, from `start` on. */
function inEachTurn(start: (fixture: ReturnType<typeof setup>) => void): number[] {
  const fixture = setup();
  const { clock, answered, add } = fixture;
  for (let n = 0; n < 2 * RECEIPT_RESPONSES_PER_SLICE + 1; n += 1) add(n);
  const { after } = clock;
  const told: number[] = [];
  const note = (): void => void told.push(answered.length - told.reduce((sum, n) => sum + n, 0));
  clock.after = (delayMs, act) => {
    note();
    return after(delayMs, act);
  };
  start(fixture);
  clock.advance(10);
  note();
  expect(clock.pending).toBe(0);
  return told;
}

it("answers a few in a turn where many are answered at the same moment", () => {
  const few = RECEIPT_RESPONSES_PER_SLICE;
  const all = Array.from({ length: 2 * few + 1 }, (_, n) => n);
  const ending = ({ ended }: { readonly ended: Set<number> }): void => {
    for (const n of all) ended.add(n);
  };
  expect(inEachTurn(ending)).toEqual([few, few, 1]);
  expect(inEachTurn(({ longPolls }) => longPolls.drain())).toEqual([few, few, 1]);
});

it("answers all when draining, and holds nothing any more", () => {
  const { clock, answered, longPolls, add } = setup();
  add(1);
  add(2);
  longPolls.drain();
  add(3);
  expect(answered).toEqual([1, 2, 3]);
  expect(longPolls.counters).toMatchObject({ pending: 0, drained: 3 });
  expect(clock.pending).toBe(0);
});
