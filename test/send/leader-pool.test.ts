import { describe, expect, it } from "vitest";
import { LEADERS_REMEMBERED_MAX } from "../../src/send/limits.ts";
import { planOf, startFixture, targetOf } from "./fixture.ts";

const A = "10.0.0.1:8009";
const B = "10.0.0.2:8009";
const C = "10.0.0.3:8009";

const addressesOf = (fixture: Awaited<ReturnType<typeof startFixture>>): string[] =>
  fixture.transport.made.map((it) => it.address);

describe("connections follow the plan", () => {
  it("are opened for send and warm targets, once per address", async () => {
    const fixture = await startFixture(planOf([A], [A, B]));
    expect(addressesOf(fixture)).toEqual([A, B]);
    fixture.sender.usePlan(planOf([B], [C]));
    expect(addressesOf(fixture)).toEqual([A, B, C]);
  });

  it("are closed a grace period after they left it, kept when they return in time", async () => {
    const fixture = await startFixture(planOf([A, B]), { leaveGraceMs: 1_000 });
    const [a, b] = [fixture.transport.to(A), fixture.transport.to(B)];
    a.admit();
    b.admit();
    fixture.sender.usePlan(planOf([C]));
    fixture.clock.advance(900);
    fixture.sender.usePlan(planOf([B, C]));
    fixture.clock.advance(200);
    expect([a.closed, b.closed]).toEqual([true, false]);
  });

  it("wait for acknowledgements before they are closed, but not forever", async () => {
    const fixture = await startFixture(planOf([A]), { leaveGraceMs: 1_000, closeTimeoutMs: 500 });
    fixture.transport.to(A).admit();
    fixture.send();
    fixture.sender.usePlan(planOf([B]));
    fixture.clock.advance(1_400);
    expect(fixture.transport.to(A).closed).toBe(false);
    fixture.clock.advance(150);
    expect(fixture.transport.to(A).closed).toBe(true);
    expect(fixture.story(1)).toEqual(["sent", "failed:connection_lost"]);
  });

  it("stay below their bound, nearest leader window first", async () => {
    const fixture = await startFixture(planOf([A], [B, C]), { connectionsMax: 2 });
    expect(addressesOf(fixture)).toEqual([A, B]);
    expect(fixture.sender.counters.connectionsOverLimit).toBe(1);
  });

  it("make room for a new leader by closing one that left the plan", async () => {
    const fixture = await startFixture(planOf([A], [B]), { connectionsMax: 2 });
    fixture.sender.usePlan(planOf([B], [C]));
    expect(fixture.transport.to(A).closed).toBe(true);
    expect(addressesOf(fixture)).toEqual([A, B, C]);
  });

  it("use the identity that the plan names now when leaders share an address", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit();
    const other = { identity: "other", address: A, slot: 11 };
    fixture.sender.usePlan({ slot: 11, send: [other], warm: [other] });
    fixture.send();
    expect(fixture.transport.made.length).toBe(1);
    expect(fixture.outcomes[0]).toMatchObject({ identity: "other", slot: 11 });
  });
});

it("ends the queued deliveries of a leader that is forgotten at the bound", async () => {
  const fixture = await startFixture(planOf([A, B]), {
    connectionsMax: 2 * LEADERS_REMEMBERED_MAX,
  });
  fixture.transport.to(A).admit(0);
  fixture.transport.to(B).admit();
  fixture.clock.advance(9_000);
  fixture.send();
  // It may be connected to again immediately, so the delivery is kept.
  fixture.transport.to(A).end({ kind: "local", code: 0 });
  expect(fixture.story(1, A)).toEqual([]);
  fixture.sender.usePlan(planOf([B]));
  const many = Array.from(
    { length: LEADERS_REMEMBERED_MAX },
    (_, n) => `10.1.${n >> 8}.${n & 255}:1`,
  );
  fixture.sender.usePlan(planOf([B], many));
  fixture.clock.advance(5_000);
  expect(fixture.story(1, A)).toEqual(["dropped:not_connected"]);
});

it("does not forget a returning leader for one that comes with it", async () => {
  const fixture = await startFixture(planOf([A]), { connectionsMax: 2 * LEADERS_REMEMBERED_MAX });
  fixture.transport.to(A).end({ kind: "local", code: 0 });
  const many = Array.from(
    { length: LEADERS_REMEMBERED_MAX - 1 },
    (_, n) => `10.1.${n >> 8}.${n & 255}:1`,
  );
  fixture.sender.usePlan(planOf(many));
  fixture.sender.usePlan(planOf([A, B]));
  const shown = fixture.sender.leaders().filter(({ wanted }) => wanted);
  expect(shown.map(({ address }) => address).sort()).toEqual([A, B]);
});

describe("a leader without a live connection", () => {
  const D = "10.0.0.4:8009";

  it("is replaced by the next live one until it is back", async () => {
    const fixture = await startFixture(planOf([A, B], [C, D]));
    for (const address of [A, C, D]) fixture.transport.to(address).admit();
    expect(fixture.send()).toBe(2);
    expect(fixture.transport.to(C).sent.length).toBe(1);
    fixture.transport.to(A).end({ kind: "app", code: 2 });
    expect(fixture.send()).toBe(2);
    expect([C, D].map((it) => fixture.transport.to(it).sent.length)).toEqual([2, 1]);
    fixture.transport.to(B).admit();
    expect(fixture.send()).toBe(2);
    expect([B, C, D].map((it) => fixture.transport.to(it).sent.length)).toEqual([3, 3, 1]);
    expect(fixture.story(2, A)).toEqual(["dropped:not_connected"]);
  });

  it("is not replaced by one whose leader window is too far away", async () => {
    const fixture = await startFixture(planOf([A]));
    const far = { ...targetOf(C), slot: 7 + 20 };
    fixture.sender.usePlan({ slot: 7, send: [targetOf(A)], warm: [targetOf(A), far] });
    fixture.transport.to(C).admit();
    expect(fixture.send()).toBe(0);
    const near = { ...far, slot: 7 + 19 };
    fixture.sender.usePlan({ slot: 7, send: [targetOf(A)], warm: [targetOf(A), near] });
    expect(fixture.send()).toBe(1);
  });
});

describe("the bound on connections", () => {
  it("closes the leader with the least stake first among those that left the plan", async () => {
    const stakeShareOf = (identity: string) => (identity === `id-of-${A}` ? 0.2 : 0.1);
    const fixture = await startFixture(planOf([A, B]), { connectionsMax: 3, stakeShareOf });
    const [a, b] = [fixture.transport.to(A), fixture.transport.to(B)];
    fixture.sender.usePlan(planOf(["10.0.0.8:1", "10.0.0.9:1"]));
    expect([a.closed, b.closed]).toEqual([false, true]);
  });

  it("replaces the leader with the latest window by an earlier one", async () => {
    const fixture = await startFixture(planOf([A], [B, C]), {
      connectionsMax: 3,
      lifetimeMs: 5_000,
    });
    const [a, b, c] = [fixture.transport.to(A), fixture.transport.to(B), fixture.transport.to(C)];
    b.admit();
    fixture.clock.advance(2_000);
    a.admit();
    c.admit();
    // B reached its lifetime, and is being replaced when A needs a connection.
    fixture.clock.advance(3_100);
    expect(addressesOf(fixture)).toEqual([A, B, C, B]);
    a.end({ kind: "app", code: 0 });
    fixture.clock.advance(1_100);
    expect(addressesOf(fixture)).toEqual([A, B, C, B, A]);
    expect([b.closed, c.closed]).toEqual([false, true]);
  });

  it("replaces leaders that left the plan before that", async () => {
    const fixture = await startFixture(planOf([A], [B]), { connectionsMax: 2 });
    fixture.transport.to(A).end({ kind: "app", code: 0 });
    fixture.sender.usePlan(planOf([A], [C]));
    expect(addressesOf(fixture)).toEqual([A, B, C]);
    fixture.clock.advance(1_050);
    expect(addressesOf(fixture)).toEqual([A, B, C, A]);
    expect(fixture.transport.to(B).closed).toBe(true);
  });
});

describe("attempts", () => {
  it("are at most eight a minute for a leader, whatever its response", async () => {
    const fixture = await startFixture(planOf([A]));
    const minutes: number[] = [];
    for (let second = 0; second < 300; second += 1) {
      if (second % 60 === 0) minutes.push(0);
      const before = fixture.transport.made.length;
      const connection = fixture.transport.to(A);
      connection.admit();
      if (!connection.closed) connection.end({ kind: "app", code: second % 6 });
      fixture.clock.advance(1_000);
      minutes[minutes.length - 1] = (minutes.at(-1) ?? 0) + fixture.transport.made.length - before;
    }
    expect(Math.max(...minutes)).toBeLessThanOrEqual(8);
    expect(fixture.transport.made.length).toBeGreaterThan(6);
  });

  it("return within a window after an eviction, when the leader is sent to", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit();
    fixture.transport.to(A).end({ kind: "app", code: 1 });
    fixture.clock.advance(950);
    expect(fixture.transport.made.length).toBe(1);
    fixture.clock.advance(100);
    expect(fixture.transport.made.length).toBe(2);
  });

  it("return a second after each eviction of a connection that was used", async () => {
    const fixture = await startFixture(planOf([A]));
    for (let count = 1; count <= 10; count += 1) {
      fixture.transport.to(A).admit();
      expect(fixture.send()).toBe(1);
      fixture.clock.advance(10_000);
      fixture.transport.to(A).end({ kind: "app", code: 1 });
      fixture.clock.advance(1_050);
      expect(fixture.transport.made.length).toBe(count + 1);
    }
  });

  it("wait for the window of a leader that evicts idle connections", async () => {
    const fixture = await startFixture(planOf([A], [B]));
    const plan = (ahead: number) => {
      const warm = [targetOf(A), { ...targetOf(B), slot: 7 + ahead }];
      fixture.sender.usePlan({ slot: 7, send: [targetOf(A)], warm });
    };
    plan(16);
    fixture.transport.to(B).admit();
    fixture.transport.to(B).end({ kind: "app", code: 1 });
    fixture.clock.advance(1_900);
    expect(addressesOf(fixture)).toEqual([A, B]);
    fixture.clock.advance(150);
    expect(addressesOf(fixture)).toEqual([A, B, B]);
  });

  it("are remembered when the leader leaves the plan and returns", async () => {
    const fixture = await startFixture(planOf([A]), { reconnectMs: 8_000, leaveGraceMs: 100 });
    fixture.transport.to(A).end({ kind: "silence", code: 0 });
    fixture.sender.usePlan(planOf([B]));
    fixture.clock.advance(1_000);
    fixture.sender.usePlan(planOf([A]));
    expect(addressesOf(fixture)).toEqual([A, B]);
    fixture.clock.advance(7_100);
    expect(addressesOf(fixture)).toEqual([A, B, A]);
  });

  it("end when the handshake takes too long", async () => {
    const fixture = await startFixture(planOf([A]), { handshakeMs: 3_000 });
    fixture.clock.advance(2_900);
    expect(fixture.stateOf(A)).toBe("connecting");
    fixture.clock.advance(150);
    expect(fixture.transport.to(A).closed).toBe(true);
    expect(fixture.stateOf(A)).toBe("idle");
    expect(fixture.sender.counters.handshakeTimeouts).toBe(1);
  });

  it("have a backoff as well when they cannot start", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).end({ kind: "silence", code: 0 });
    fixture.transport.failing = true;
    fixture.clock.advance(8_100);
    expect(fixture.sender.counters.connectionsFailed).toBe(1);
    fixture.clock.advance(4_000);
    expect(fixture.sender.counters.connectionsFailed).toBe(1);
  });

  it("stay open for a leader that completed the handshake but grants no stream", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).establish();
    fixture.clock.advance(60_000);
    expect(fixture.stateOf(A)).toBe("waiting");
    fixture.transport.to(A).admit();
    expect(fixture.stateOf(A)).toBe("live");
  });

  it("of one leader do not block those of another", async () => {
    const fixture = await startFixture(planOf([A, B]));
    fixture.transport.to(A).end({ kind: "app", code: 2 });
    fixture.transport.to(B).admit();
    expect(fixture.send()).toBe(1);
    fixture.clock.advance(10_000);
    expect(fixture.transport.to(B).closed).toBe(false);
  });
});

describe("a live connection", () => {
  it("is pinged twice in the 10 s idle timeout of Firedancer", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit();
    fixture.clock.advance(10_000);
    expect(fixture.transport.to(A).pings).toBeGreaterThanOrEqual(2);
  });

  it("is pinged after a second of silence", async () => {
    const fixture = await startFixture(planOf([A]), { keepAliveMs: 1_000 });
    const a = fixture.transport.to(A);
    a.admit();
    fixture.clock.advance(900);
    fixture.send();
    fixture.clock.advance(900);
    expect(a.pings).toBe(0);
    fixture.clock.advance(200);
    expect(a.pings).toBe(1);
  });

  it("is replaced at its lifetime, with one always live", async () => {
    const fixture = await startFixture(planOf([A]), { lifetimeMs: 60_000, closeTimeoutMs: 2_000 });
    const first = fixture.transport.to(A);
    first.admit();
    fixture.clock.advance(60_050);
    const second = fixture.transport.to(A);
    expect(second).not.toBe(first);
    fixture.send();
    expect(first.sent.length).toBe(1);
    second.admit();
    fixture.send();
    expect(second.sent.length).toBe(1);
    expect(first.closed).toBe(false);
    first.ack(0);
    fixture.clock.advance(50);
    expect(first.closed).toBe(true);
    expect(fixture.story(1)).toEqual(["sent", "acked"]);
    expect(fixture.sender.counters.connectionsRecycled).toBe(1);
  });

  it("stays when its replacement fails", async () => {
    const fixture = await startFixture(planOf([A]), { lifetimeMs: 60_000 });
    const first = fixture.transport.to(A);
    first.admit();
    fixture.clock.advance(60_050);
    fixture.transport.to(A).end({ kind: "app", code: 4 });
    expect(fixture.send()).toBe(1);
    expect(first.sent.length).toBe(1);
    expect(fixture.transport.made.length).toBe(2);
  });

  it("is replaced early by its successor when it ends first", async () => {
    const fixture = await startFixture(planOf([A]), { lifetimeMs: 60_000 });
    const first = fixture.transport.to(A);
    first.admit(0);
    fixture.clock.advance(60_050);
    fixture.send();
    first.end({ kind: "app", code: 1 });
    fixture.transport.to(A).admit();
    expect(fixture.story(1)).toEqual(["sent"]);
  });

  it("is replaced one leader at a time", async () => {
    const fixture = await startFixture(planOf([A, B]), { lifetimeMs: 60_000 });
    fixture.transport.to(A).admit();
    fixture.transport.to(B).admit();
    fixture.clock.advance(61_000);
    expect(fixture.transport.made.length).toBe(3);
  });
});
