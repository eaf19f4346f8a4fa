import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { LeaderConnection } from "../../src/send/leader-connection.ts";
import { createLivenessProbe } from "../../src/send/liveness-probe.ts";
import { POLL_FAST_MS, POLL_SLOW_MS } from "../../src/send/poll-timer.ts";
import { FakeConnection, NO_EVENTS } from "../support/fake-transport.ts";

const TIMES = { responseMs: () => 200, probeLeadMs: () => 500 };

function setUp(heard = 0) {
  const connection = new LeaderConnection(0, 8);
  const engineConnection = new FakeConnection("10.0.0.1:1", NO_EVENTS);
  engineConnection.datagramsReceived = heard;
  connection.engineConnection = engineConnection;
  const probe = createLivenessProbe();
  const at = (nowMs: number, turnMs: number): boolean =>
    probe.isUnresponsive(connection, turnMs * NS_PER_MS, nowMs * NS_PER_MS, "A", TIMES);
  const waits = (nowMs: number, turnMs: number): number =>
    probe.nextPollMs(turnMs * NS_PER_MS, nowMs * NS_PER_MS, "A", TIMES);
  return { engineConnection, connection, probe, at, waits };
}

describe("the probe before a leader window", () => {
  it("pings once, early enough for another connection", () => {
    const { engineConnection, at } = setUp();
    at(400, 1_000);
    expect(engineConnection.pings).toBe(0);
    at(500, 1_000);
    at(550, 1_010);
    expect(engineConnection.pings).toBe(1);
  });

  it("succeeds when any datagram arrives", () => {
    const { engineConnection, at } = setUp();
    at(600, 1_000);
    engineConnection.datagramsReceived += 1;
    expect([at(650, 1_000), at(800, 1_000), at(950, 1_000)]).toEqual([false, false, false]);
    expect(engineConnection.pings).toBe(1);
  });

  it("reports silence once, when the response is due", () => {
    const { at } = setUp();
    at(600, 1_000);
    expect([at(799, 1_000), at(800, 1_000), at(850, 1_000)]).toEqual([false, true, false]);
  });

  it("pings again for the next window, and not once the window has begun", () => {
    const { engineConnection, at } = setUp();
    at(600, 1_000);
    engineConnection.datagramsReceived += 1;
    at(700, 1_000);
    at(1_000, 1_000);
    expect(engineConnection.pings).toBe(1);
    at(9_700, 10_000);
    expect(engineConnection.pings).toBe(2);
  });

  it("returns when the next ping or result is due", () => {
    const { engineConnection, at, waits } = setUp();
    expect([waits(200, 1_000), waits(500, 1_000)]).toEqual([300, 0]);
    at(500, 1_000);
    expect(waits(510, 1_000)).toBe(POLL_FAST_MS);
    engineConnection.datagramsReceived += 1;
    at(550, 1_000);
    expect([waits(560, 1_010), waits(1_100, 1_000)]).toEqual([POLL_SLOW_MS, POLL_SLOW_MS]);
    expect(waits(1_100, 5_000)).toBe(3_400);
  });

  it("awaits no response of a replaced connection", () => {
    const { at, waits, connection, probe } = setUp();
    at(500, 1_000);
    expect(waits(510, 1_000)).toBe(POLL_FAST_MS);
    const other = new LeaderConnection(0, 8);
    other.engineConnection = connection.engineConnection;
    probe.isUnresponsive(other, 1_000 * NS_PER_MS, 600 * NS_PER_MS, "A", TIMES);
    expect([waits(600, 1_000), waits(1_100, 1_000)]).toEqual([POLL_SLOW_MS, POLL_SLOW_MS]);
  });

  it("ignores an engine that does not count datagrams", () => {
    const { engineConnection, at } = setUp(-1);
    expect([at(600, 1_000), at(900, 1_000)]).toEqual([false, false]);
    expect(engineConnection.pings).toBe(0);
  });
});
