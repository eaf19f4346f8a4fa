import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { Link } from "../../src/send/leader-connection.ts";
import { createTurnCheck } from "../../src/send/liveness-probe.ts";
import { LOOK_LATE_MS, LOOK_SOON_MS } from "../../src/send/ticker.ts";
import { FakeConnection } from "../support/fake-transport.ts";

const TIMES = { answerMs: () => 200, checkLeadMs: () => 500 };

function setUp(heard = 0) {
  const link = new Link(0, 8);
  const connection = new FakeConnection("10.0.0.1:1", { progress() {}, ended() {} });
  connection.heard = heard;
  link.connection = connection;
  const check = createTurnCheck();
  const at = (nowMs: number, turnMs: number): boolean =>
    check.isSilent(link, turnMs * NS_PER_MS, nowMs * NS_PER_MS, "A", TIMES);
  const waits = (nowMs: number, turnMs: number): number =>
    check.nextLookMs(turnMs * NS_PER_MS, nowMs * NS_PER_MS, "A", TIMES);
  return { connection, link, check, at, waits };
}

describe("the check before a turn", () => {
  it("asks once, so early that there is time for another connection", () => {
    const { connection, at } = setUp();
    at(400, 1_000);
    expect(connection.pings).toBe(0);
    at(500, 1_000);
    at(550, 1_010);
    expect(connection.pings).toBe(1);
  });

  it("is content when anything is heard", () => {
    const { connection, at } = setUp();
    at(600, 1_000);
    connection.heard += 1;
    expect([at(650, 1_000), at(800, 1_000), at(950, 1_000)]).toEqual([false, false, false]);
    expect(connection.pings).toBe(1);
  });

  it("tells of silence once, when the answer is due", () => {
    const { at } = setUp();
    at(600, 1_000);
    expect([at(799, 1_000), at(800, 1_000), at(850, 1_000)]).toEqual([false, true, false]);
  });

  it("asks again for the next turn, and not once the turn is there", () => {
    const { connection, at } = setUp();
    at(600, 1_000);
    connection.heard += 1;
    at(700, 1_000);
    at(1_000, 1_000);
    expect(connection.pings).toBe(1);
    at(9_700, 10_000);
    expect(connection.pings).toBe(2);
  });

  it("says when there is something to ask or to say", () => {
    const { connection, at, waits } = setUp();
    expect([waits(200, 1_000), waits(500, 1_000)]).toEqual([300, 0]);
    at(500, 1_000);
    expect(waits(510, 1_000)).toBe(LOOK_SOON_MS);
    connection.heard += 1;
    at(550, 1_000);
    expect([waits(560, 1_010), waits(1_100, 1_000)]).toEqual([LOOK_LATE_MS, LOOK_LATE_MS]);
    expect(waits(1_100, 5_000)).toBe(3_400);
  });

  it("waits for no answer of a connection that was replaced", () => {
    const { at, waits, link, check } = setUp();
    at(500, 1_000);
    expect(waits(510, 1_000)).toBe(LOOK_SOON_MS);
    const other = new Link(0, 8);
    other.connection = link.connection;
    check.isSilent(other, 1_000 * NS_PER_MS, 600 * NS_PER_MS, "A", TIMES);
    expect([waits(600, 1_000), waits(1_100, 1_000)]).toEqual([LOOK_LATE_MS, LOOK_LATE_MS]);
  });

  it("leaves an engine alone that does not tell what it hears", () => {
    const { connection, at } = setUp(-1);
    expect([at(600, 1_000), at(900, 1_000)]).toEqual([false, false]);
    expect(connection.pings).toBe(0);
  });
});
