import { expect, it } from "vitest";
import {
  RECEIPT_ANSWERS_A_TURN,
  RECEIPT_WAITS_MAX,
  RECEIPT_WAITS_PER_ACCOUNT_MAX,
} from "../../../src/http/limits.ts";
import { createWaits } from "../../../src/http/receipts/long-poll.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

function setup() {
  const clock = createFakeClock();
  const ended = new Set<number>();
  const answered: number[] = [];
  const waits = createWaits({ clock, receipts: { reached: (ticket) => ended.has(ticket) } });
  const hold = (ticket: number, account = "acme", timeoutMs = 1_000) =>
    waits.hold({
      account,
      ticket,
      goal: "landed",
      timeoutMs,
      answer: () => void answered.push(ticket),
    });
  return { clock, ended, answered, waits, hold };
}

it("answers when the end is known, and stops looking when nobody waits", () => {
  const { clock, ended, answered, waits, hold } = setup();
  hold(1);
  hold(2);
  clock.advance(100);
  expect([answered, waits.counters.held]).toEqual([[], 2]);
  ended.add(2);
  clock.advance(20);
  expect([answered, waits.counters.held]).toEqual([[2], 1]);
  ended.add(1);
  clock.advance(20);
  expect(answered).toEqual([2, 1]);
  expect(waits.counters).toMatchObject({ held: 0, reached: 2, timedOut: 0 });
  expect(clock.pending).toBe(0);
});

it("answers when the time is up", () => {
  const { clock, answered, waits, hold } = setup();
  hold(1, "acme", 500);
  clock.advance(490);
  expect(answered).toEqual([]);
  clock.advance(20);
  expect([answered, waits.counters.timedOut, clock.pending]).toEqual([[1], 1, 0]);
});

it("forgets a client that left, once", () => {
  const { clock, answered, waits, hold } = setup();
  const held = hold(1);
  if (typeof held === "string") throw new Error("not held");
  held.leave();
  held.leave();
  clock.advance(2_000);
  expect([answered, waits.counters.left, waits.counters.held]).toEqual([[], 1, 0]);
});

it("bounds those of an account and all of them", () => {
  const { waits, hold } = setup();
  const accounts = RECEIPT_WAITS_MAX / RECEIPT_WAITS_PER_ACCOUNT_MAX;
  for (let n = 0; n < RECEIPT_WAITS_MAX; n += 1) hold(n, `account ${n % accounts}`);
  expect(hold(0, "account 0")).toBe("account");
  expect(hold(0, "another")).toBe("all");
  expect(waits.counters).toMatchObject({ held: RECEIPT_WAITS_MAX, refused: 2 });
});

/** How many of a few turns' worth are answered in each, from when `begin` says so. */
function inEachTurn(begin: (rig: ReturnType<typeof setup>) => void): number[] {
  const rig = setup();
  const { clock, answered, hold } = rig;
  for (let n = 0; n < 2 * RECEIPT_ANSWERS_A_TURN + 1; n += 1) hold(n);
  const { after } = clock;
  const told: number[] = [];
  const note = (): void => void told.push(answered.length - told.reduce((sum, n) => sum + n, 0));
  clock.after = (delayMs, act) => {
    note();
    return after(delayMs, act);
  };
  begin(rig);
  clock.advance(10);
  note();
  expect(clock.pending).toBe(0);
  return told;
}

it("answers a few in a turn where many are answered at the same moment", () => {
  const few = RECEIPT_ANSWERS_A_TURN;
  const all = Array.from({ length: 2 * few + 1 }, (_, n) => n);
  const ending = ({ ended }: { readonly ended: Set<number> }): void => {
    for (const n of all) ended.add(n);
  };
  expect(inEachTurn(ending)).toEqual([few, few, 1]);
  expect(inEachTurn(({ waits }) => waits.drain())).toEqual([few, few, 1]);
});

it("answers all when draining, and holds nothing any more", () => {
  const { clock, answered, waits, hold } = setup();
  hold(1);
  hold(2);
  waits.drain();
  hold(3);
  expect(answered).toEqual([1, 2, 3]);
  expect(waits.counters).toMatchObject({ held: 0, drained: 3 });
  expect(clock.pending).toBe(0);
});
