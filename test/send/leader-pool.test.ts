import { describe, expect, it } from "vitest";
import { LEADERS_REMEMBERED_MAX } from "../../src/send/limits.ts";
import { planOf, startRig, targetOf } from "./rig.ts";

const A = "10.0.0.1:8009";
const B = "10.0.0.2:8009";
const C = "10.0.0.3:8009";

const addressesOf = (rig: Awaited<ReturnType<typeof startRig>>): string[] =>
  rig.transport.made.map((it) => it.address);

describe("connections follow the plan", () => {
  it("are opened for send and warm targets, once per address", async () => {
    const rig = await startRig(planOf([A], [A, B]));
    expect(addressesOf(rig)).toEqual([A, B]);
    rig.sender.usePlan(planOf([B], [C]));
    expect(addressesOf(rig)).toEqual([A, B, C]);
  });

  it("are closed a grace period after they left it, kept when they return in time", async () => {
    const rig = await startRig(planOf([A, B]), { leaveGraceMs: 1_000 });
    const [a, b] = [rig.transport.to(A), rig.transport.to(B)];
    a.admit();
    b.admit();
    rig.sender.usePlan(planOf([C]));
    rig.clock.advance(900);
    rig.sender.usePlan(planOf([B, C]));
    rig.clock.advance(200);
    expect([a.closed, b.closed]).toEqual([true, false]);
  });

  it("wait for acknowledgements before they are closed, but not forever", async () => {
    const rig = await startRig(planOf([A]), { leaveGraceMs: 1_000, closeTimeoutMs: 500 });
    rig.transport.to(A).admit();
    rig.send();
    rig.sender.usePlan(planOf([B]));
    rig.clock.advance(1_400);
    expect(rig.transport.to(A).closed).toBe(false);
    rig.clock.advance(150);
    expect(rig.transport.to(A).closed).toBe(true);
    expect(rig.story(1)).toEqual(["sent", "failed:connection_lost"]);
  });

  it("stay below their bound, nearest leader window first", async () => {
    const rig = await startRig(planOf([A], [B, C]), { connectionsMax: 2 });
    expect(addressesOf(rig)).toEqual([A, B]);
    expect(rig.sender.counters.connectionsOverLimit).toBe(1);
  });

  it("make room for a new leader by closing one that left the plan", async () => {
    const rig = await startRig(planOf([A], [B]), { connectionsMax: 2 });
    rig.sender.usePlan(planOf([B], [C]));
    expect(rig.transport.to(A).closed).toBe(true);
    expect(addressesOf(rig)).toEqual([A, B, C]);
  });

  it("use the identity that the plan names now when leaders share an address", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit();
    const other = { identity: "other", address: A, slot: 11 };
    rig.sender.usePlan({ slot: 11, send: [other], warm: [other] });
    rig.send();
    expect(rig.transport.made.length).toBe(1);
    expect(rig.outcomes[0]).toMatchObject({ identity: "other", slot: 11 });
  });
});

it("ends the queued deliveries of a leader that is forgotten at the bound", async () => {
  const rig = await startRig(planOf([A, B]), { connectionsMax: 2 * LEADERS_REMEMBERED_MAX });
  rig.transport.to(A).admit(0);
  rig.transport.to(B).admit();
  rig.clock.advance(9_000);
  rig.send();
  // It may be connected to again immediately, so the delivery is kept.
  rig.transport.to(A).end({ kind: "local", code: 0 });
  expect(rig.story(1, A)).toEqual([]);
  rig.sender.usePlan(planOf([B]));
  const many = Array.from(
    { length: LEADERS_REMEMBERED_MAX },
    (_, n) => `10.1.${n >> 8}.${n & 255}:1`,
  );
  rig.sender.usePlan(planOf([B], many));
  rig.clock.advance(5_000);
  expect(rig.story(1, A)).toEqual(["dropped:not_connected"]);
});

it("does not forget a returning leader for one that comes with it", async () => {
  const rig = await startRig(planOf([A]), { connectionsMax: 2 * LEADERS_REMEMBERED_MAX });
  rig.transport.to(A).end({ kind: "local", code: 0 });
  const many = Array.from(
    { length: LEADERS_REMEMBERED_MAX - 1 },
    (_, n) => `10.1.${n >> 8}.${n & 255}:1`,
  );
  rig.sender.usePlan(planOf(many));
  rig.sender.usePlan(planOf([A, B]));
  const shown = rig.sender.leaders().filter(({ wanted }) => wanted);
  expect(shown.map(({ address }) => address).sort()).toEqual([A, B]);
});

describe("a leader without a live connection", () => {
  const D = "10.0.0.4:8009";

  it("is replaced by the next live one until it is back", async () => {
    const rig = await startRig(planOf([A, B], [C, D]));
    for (const address of [A, C, D]) rig.transport.to(address).admit();
    expect(rig.send()).toBe(2);
    expect(rig.transport.to(C).sent.length).toBe(1);
    rig.transport.to(A).end({ kind: "app", code: 2 });
    expect(rig.send()).toBe(2);
    expect([C, D].map((it) => rig.transport.to(it).sent.length)).toEqual([2, 1]);
    rig.transport.to(B).admit();
    expect(rig.send()).toBe(2);
    expect([B, C, D].map((it) => rig.transport.to(it).sent.length)).toEqual([3, 3, 1]);
    expect(rig.story(2, A)).toEqual(["dropped:not_connected"]);
  });

  it("is not replaced by one whose leader window is too far away", async () => {
    const rig = await startRig(planOf([A]));
    const far = { ...targetOf(C), slot: 7 + 20 };
    rig.sender.usePlan({ slot: 7, send: [targetOf(A)], warm: [targetOf(A), far] });
    rig.transport.to(C).admit();
    expect(rig.send()).toBe(0);
    const near = { ...far, slot: 7 + 19 };
    rig.sender.usePlan({ slot: 7, send: [targetOf(A)], warm: [targetOf(A), near] });
    expect(rig.send()).toBe(1);
  });
});

describe("the bound on connections", () => {
  it("closes the leader with the least stake first among those that left the plan", async () => {
    const stakeShareOf = (identity: string) => (identity === `id-of-${A}` ? 0.2 : 0.1);
    const rig = await startRig(planOf([A, B]), { connectionsMax: 3, stakeShareOf });
    const [a, b] = [rig.transport.to(A), rig.transport.to(B)];
    rig.sender.usePlan(planOf(["10.0.0.8:1", "10.0.0.9:1"]));
    expect([a.closed, b.closed]).toEqual([false, true]);
  });

  it("replaces the leader with the latest window by an earlier one", async () => {
    const rig = await startRig(planOf([A], [B, C]), { connectionsMax: 3, lifetimeMs: 5_000 });
    const [a, b, c] = [rig.transport.to(A), rig.transport.to(B), rig.transport.to(C)];
    b.admit();
    rig.clock.advance(2_000);
    a.admit();
    c.admit();
    // B reached its lifetime, and is being replaced when A needs a connection.
    rig.clock.advance(3_100);
    expect(addressesOf(rig)).toEqual([A, B, C, B]);
    a.end({ kind: "app", code: 0 });
    rig.clock.advance(1_100);
    expect(addressesOf(rig)).toEqual([A, B, C, B, A]);
    expect([b.closed, c.closed]).toEqual([false, true]);
  });

  it("replaces leaders that left the plan before that", async () => {
    const rig = await startRig(planOf([A], [B]), { connectionsMax: 2 });
    rig.transport.to(A).end({ kind: "app", code: 0 });
    rig.sender.usePlan(planOf([A], [C]));
    expect(addressesOf(rig)).toEqual([A, B, C]);
    rig.clock.advance(1_050);
    expect(addressesOf(rig)).toEqual([A, B, C, A]);
    expect(rig.transport.to(B).closed).toBe(true);
  });
});

describe("attempts", () => {
  it("are at most eight a minute for a leader, whatever its response", async () => {
    const rig = await startRig(planOf([A]));
    const minutes: number[] = [];
    for (let second = 0; second < 300; second += 1) {
      if (second % 60 === 0) minutes.push(0);
      const before = rig.transport.made.length;
      const connection = rig.transport.to(A);
      connection.admit();
      if (!connection.closed) connection.end({ kind: "app", code: second % 6 });
      rig.clock.advance(1_000);
      minutes[minutes.length - 1] = (minutes.at(-1) ?? 0) + rig.transport.made.length - before;
    }
    expect(Math.max(...minutes)).toBeLessThanOrEqual(8);
    expect(rig.transport.made.length).toBeGreaterThan(6);
  });

  it("return within a window after an eviction, when the leader is sent to", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit();
    rig.transport.to(A).end({ kind: "app", code: 1 });
    rig.clock.advance(950);
    expect(rig.transport.made.length).toBe(1);
    rig.clock.advance(100);
    expect(rig.transport.made.length).toBe(2);
  });

  it("wait for the window of a leader that evicts idle connections", async () => {
    const rig = await startRig(planOf([A], [B]));
    const plan = (ahead: number) => {
      const warm = [targetOf(A), { ...targetOf(B), slot: 7 + ahead }];
      rig.sender.usePlan({ slot: 7, send: [targetOf(A)], warm });
    };
    plan(16);
    rig.transport.to(B).admit();
    rig.transport.to(B).end({ kind: "app", code: 1 });
    rig.clock.advance(1_900);
    expect(addressesOf(rig)).toEqual([A, B]);
    rig.clock.advance(150);
    expect(addressesOf(rig)).toEqual([A, B, B]);
  });

  it("are remembered when the leader leaves the plan and returns", async () => {
    const rig = await startRig(planOf([A]), { reconnectMs: 8_000, leaveGraceMs: 100 });
    rig.transport.to(A).end({ kind: "silence", code: 0 });
    rig.sender.usePlan(planOf([B]));
    rig.clock.advance(1_000);
    rig.sender.usePlan(planOf([A]));
    expect(addressesOf(rig)).toEqual([A, B]);
    rig.clock.advance(7_100);
    expect(addressesOf(rig)).toEqual([A, B, A]);
  });

  it("end when the handshake takes too long", async () => {
    const rig = await startRig(planOf([A]), { handshakeMs: 3_000 });
    rig.clock.advance(2_900);
    expect(rig.stateOf(A)).toBe("connecting");
    rig.clock.advance(150);
    expect(rig.transport.to(A).closed).toBe(true);
    expect(rig.stateOf(A)).toBe("idle");
    expect(rig.sender.counters.handshakeTimeouts).toBe(1);
  });

  it("have a backoff as well when they cannot start", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).end({ kind: "silence", code: 0 });
    rig.transport.failing = true;
    rig.clock.advance(8_100);
    expect(rig.sender.counters.connectionsFailed).toBe(1);
    rig.clock.advance(4_000);
    expect(rig.sender.counters.connectionsFailed).toBe(1);
  });

  it("stay open for a leader that completed the handshake but grants no stream", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).establish();
    rig.clock.advance(60_000);
    expect(rig.stateOf(A)).toBe("waiting");
    rig.transport.to(A).admit();
    expect(rig.stateOf(A)).toBe("live");
  });

  it("of one leader do not block those of another", async () => {
    const rig = await startRig(planOf([A, B]));
    rig.transport.to(A).end({ kind: "app", code: 2 });
    rig.transport.to(B).admit();
    expect(rig.send()).toBe(1);
    rig.clock.advance(10_000);
    expect(rig.transport.to(B).closed).toBe(false);
  });
});

describe("a live connection", () => {
  it("is pinged twice in the 10 s idle timeout of Firedancer", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit();
    rig.clock.advance(10_000);
    expect(rig.transport.to(A).pings).toBeGreaterThanOrEqual(2);
  });

  it("is pinged after a second of silence", async () => {
    const rig = await startRig(planOf([A]), { keepAliveMs: 1_000 });
    const a = rig.transport.to(A);
    a.admit();
    rig.clock.advance(900);
    rig.send();
    rig.clock.advance(900);
    expect(a.pings).toBe(0);
    rig.clock.advance(200);
    expect(a.pings).toBe(1);
  });

  it("is replaced at its lifetime, with one always live", async () => {
    const rig = await startRig(planOf([A]), { lifetimeMs: 60_000, closeTimeoutMs: 2_000 });
    const first = rig.transport.to(A);
    first.admit();
    rig.clock.advance(60_050);
    const second = rig.transport.to(A);
    expect(second).not.toBe(first);
    rig.send();
    expect(first.sent.length).toBe(1);
    second.admit();
    rig.send();
    expect(second.sent.length).toBe(1);
    expect(first.closed).toBe(false);
    first.ack(0);
    rig.clock.advance(50);
    expect(first.closed).toBe(true);
    expect(rig.story(1)).toEqual(["sent", "acked"]);
    expect(rig.sender.counters.connectionsRecycled).toBe(1);
  });

  it("stays when its replacement fails", async () => {
    const rig = await startRig(planOf([A]), { lifetimeMs: 60_000 });
    const first = rig.transport.to(A);
    first.admit();
    rig.clock.advance(60_050);
    rig.transport.to(A).end({ kind: "app", code: 4 });
    expect(rig.send()).toBe(1);
    expect(first.sent.length).toBe(1);
    expect(rig.transport.made.length).toBe(2);
  });

  it("is replaced early by its successor when it ends first", async () => {
    const rig = await startRig(planOf([A]), { lifetimeMs: 60_000 });
    const first = rig.transport.to(A);
    first.admit(0);
    rig.clock.advance(60_050);
    rig.send();
    first.end({ kind: "app", code: 1 });
    rig.transport.to(A).admit();
    expect(rig.story(1)).toEqual(["sent"]);
  });

  it("is replaced one leader at a time", async () => {
    const rig = await startRig(planOf([A, B]), { lifetimeMs: 60_000 });
    rig.transport.to(A).admit();
    rig.transport.to(B).admit();
    rig.clock.advance(61_000);
    expect(rig.transport.made.length).toBe(3);
  });
});
