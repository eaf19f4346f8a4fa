import { describe, expect, it, vi } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { RESENDS_IN_FLIGHT_MAX } from "../../src/send/limits.ts";
import { ALL_FULL } from "../../src/send/sender.ts";
import { acceptAndReport } from "../support/packets.ts";
import { fc } from "../support/properties.ts";
import { planOf, startFixture } from "./fixture.ts";

const A = "10.0.0.1:8009";
const B = "10.0.0.2:8009";
const C = "10.0.0.3:8009";
const D = "10.0.0.4:8009";
const E = "10.0.0.5:8009";
const RESET = { kind: "transport", code: 0 } as const;

describe("accept", () => {
  it("sends one delivery to each live leader of the plan and reports each", async () => {
    const fixture = await startFixture(planOf([A, B], [C]));
    for (const address of [A, B, C]) fixture.transport.to(address).admit();
    expect(fixture.send(Uint8Array.of(9, 8))).toBe(2);
    expect(fixture.transport.to(A).sent).toEqual([Uint8Array.of(9, 8)]);
    expect(fixture.transport.to(C).sent).toEqual([]);
    expect(fixture.story(1)).toEqual(["sent", "sent"]);
    expect(fixture.outcomes[0]).toEqual({
      packetId: 1,
      identity: `id-of-${A}`,
      address: A,
      slot: 7,
      kind: "sent",
      reason: null,
      atNs: fixture.clock.nowNs(),
      rttUs: 0,
      connectionAgeMs: 0,
      resend: 0,
    });
  });

  it("accepts and queues nothing when no connection is live", async () => {
    const fixture = await startFixture(planOf([A, B]));
    expect(fixture.send()).toBe(0);
    fixture.transport.to(A).establish();
    expect(fixture.send()).toBe(0);
    fixture.transport.to(A).admit();
    fixture.clock.advance(10_000);
    expect(fixture.transport.to(A).sent).toEqual([]);
    expect(fixture.outcomes).toEqual([]);
    expect(fixture.sender.counters).toMatchObject({ packetsRejected: 2, deliveries: 0 });
  });

  it("queues a delivery for a connecting leader once another accepted it", async () => {
    const fixture = await startFixture(planOf([A, B]));
    fixture.transport.to(A).admit();
    const lent = Uint8Array.of(5, 6);
    expect(fixture.send(lent)).toBe(1);
    lent.fill(0);
    fixture.transport.to(B).admit();
    expect(fixture.transport.to(B).sent).toEqual([Uint8Array.of(5, 6)]);
  });

  it("drops the delivery of a leader that is not even connecting", async () => {
    const fixture = await startFixture(planOf([A, B]));
    fixture.transport.to(A).admit();
    fixture.transport.to(B).end(RESET);
    expect(fixture.send()).toBe(1);
    expect(fixture.story(1, B)).toEqual(["dropped:not_connected"]);
  });

  it("counts a live leader out of credit as accepted and sends when credit comes", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit(1);
    expect([fixture.send(), fixture.send(), fixture.send()]).toEqual([1, 1, 1]);
    expect(fixture.transport.to(A).sent.length).toBe(1);
    fixture.transport.to(A).grant(1);
    expect(fixture.story(2)).toEqual(["sent"]);
    expect(fixture.story(3)).toEqual([]);
  });

  it("ranks what is queued by offer times landed share, anew with each plan", async () => {
    const shares = new Map([["test", 1]]);
    const landedShareOf = (account: string): number => shares.get(account) ?? 0.5;
    const fixture = await startFixture(planOf([A, B]), { landedShareOf, leaveGraceMs: 60_000 });
    for (const address of [A, B]) fixture.transport.to(address).admit(0);
    fixture.send(Uint8Array.of(1), 60);
    const other = { ...fixture.packet(2, Uint8Array.of(2), 100), account: "other" };
    expect(acceptAndReport(fixture.sender, other)).toBe(2);
    shares.set("test", 0.02);
    fixture.send(Uint8Array.of(3), 70);
    // B has left the plan, and still gets what is queued.
    fixture.sender.usePlan(planOf([A]));
    for (const address of [A, B]) {
      fixture.transport.to(address).grant(3);
      expect(fixture.transport.to(address).sent.map(([byte]) => byte)).toEqual([2, 3, 1]);
    }
  });

  it("returns ALL_FULL when the only live leader's queue is full", async () => {
    const fixture = await startFixture(planOf([A, B]), { queuePerLeader: 2 });
    fixture.transport.to(A).admit(0);
    expect([fixture.send(), fixture.send(), fixture.send()]).toEqual([1, 1, ALL_FULL]);
    expect(fixture.story(3)).toEqual([]);
    expect(fixture.sender.counters).toMatchObject({ packetsAccepted: 2, packetsRejected: 1 });
    // No connection is left.
    fixture.transport.to(A).end(RESET);
    expect(fixture.send()).toBe(0);
  });

  it("drops the delivery of a full queue when another leader accepted the packet", async () => {
    const fixture = await startFixture(planOf([A, B]), { queuePerLeader: 1 });
    fixture.transport.to(A).admit(0);
    fixture.transport.to(B).admit();
    expect([fixture.send(), fixture.send()]).toEqual([2, 1]);
    expect(fixture.story(2, A)).toEqual(["dropped:leader_saturated"]);
    expect(fixture.story(2, B)).toEqual(["sent"]);
  });

  it("drops expired deliveries: saturated when connected, expired when not", async () => {
    const fixture = await startFixture(planOf([A, B, C]), { deliveryTtlMs: 500 });
    fixture.transport.to(A).admit(0);
    fixture.transport.to(B).establish();
    fixture.send();
    fixture.clock.advance(400);
    expect(fixture.outcomes).toEqual([]);
    fixture.clock.advance(150);
    expect(fixture.story(1, A)).toEqual(["dropped:leader_saturated"]);
    expect(fixture.story(1, B)).toEqual(["dropped:leader_saturated"]);
    expect(fixture.story(1, C)).toEqual(["dropped:expired"]);
  });

  it("never sends an expired delivery, even when credit comes before the next poll", async () => {
    const fixture = await startFixture(planOf([A]), { deliveryTtlMs: 70 });
    fixture.transport.to(A).admit(0);
    fixture.clock.advance(1);
    fixture.send();
    fixture.clock.advance(72);
    fixture.transport.to(A).grant(5);
    expect(fixture.story(1)).toEqual(["dropped:leader_saturated"]);
    expect(fixture.transport.to(A).sent).toEqual([]);
  });

  it("drops a transaction that is larger than the leader's streams", async () => {
    const fixture = await startFixture(planOf([A, B]));
    fixture.transport.to(A).admit();
    fixture.transport.to(B).admit();
    fixture.transport.to(B).streamBytesMax = 1232;
    expect(fixture.send(new Uint8Array(1233))).toBe(1);
    expect(fixture.story(1, B)).toEqual(["dropped:stream_too_large"]);
    // No live leader accepts that size, so the queue does not matter.
    fixture.transport.to(A).streamBytesMax = 1232;
    expect(fixture.send(new Uint8Array(1233))).toBe(0);
  });

  it("does not count a leader whose connection ends while it sends", async () => {
    const fixture = await startFixture(planOf([A, B]));
    fixture.transport.to(A).admit();
    fixture.transport.to(B).admit();
    fixture.transport.to(A).endOnSend = { kind: "local", code: 0 };
    expect(fixture.send()).toBe(1);
    expect(fixture.story(1, A)).toEqual(["dropped:not_connected"]);
  });

  it("sends it to no leader twice where the connection of another ends meanwhile", async () => {
    // C and D stand in for A and B, and E follows where one of those ends.
    const fixture = await startFixture(planOf([A, B], [C, D, E]));
    for (const address of [C, D, E]) fixture.transport.to(address).admit();
    fixture.transport.to(C).endOnSend = { kind: "silence", code: 0 };
    expect(fixture.send()).toBe(1);
    fixture.clock.advance(200);
    expect([C, D, E].map((address) => fixture.transport.to(address).sent.length)).toEqual([
      0, 1, 0,
    ]);
    expect([fixture.story(1, C), fixture.story(1, D)]).toEqual([
      ["dropped:not_connected"],
      ["sent"],
    ]);
  });

  it("counts no delivery to a leader that stands in only once it is sent", async () => {
    const fixture = await startFixture(planOf([A, B], [C]));
    for (const address of [A, C]) fixture.transport.to(address).admit();
    fixture.send();
    fixture.transport.to(B).admit();
    fixture.transport.to(B).endOnSend = { kind: "silence", code: 0 };
    const before = fixture.sender.counters.deliveries;
    expect(fixture.send()).toBe(1);
    expect(fixture.sender.counters.deliveries - before).toBe(2);
    expect(fixture.story(2, C)).toEqual([]);
  });

  it("accepts nothing before start and after stop", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit();
    await fixture.sender.stop();
    expect(fixture.send()).toBe(0);
    expect(fixture.transport.running).toBe(false);
  });
});

describe("the outcome of a delivery", () => {
  it("is acked as soon as the leader has it, whatever was sent before", async () => {
    const fixture = await startFixture(planOf([A]));
    const a = fixture.transport.to(A);
    a.admit();
    fixture.send();
    fixture.send();
    a.ack(1);
    expect([fixture.story(1), fixture.story(2)]).toEqual([["sent"], ["sent", "acked"]]);
    a.ack(0);
    expect(fixture.story(1)).toEqual(["sent", "acked"]);
    expect(fixture.story(2)).toEqual(["sent", "acked"]);
  });

  it("is failed when the leader's stack stopped the stream", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit();
    fixture.send();
    fixture.transport.to(A).stop(0);
    expect(fixture.story(1)).toEqual(["sent", "failed:stream_stopped"]);
  });

  it("is failed when the connection ends first, and queued ones are dropped", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit(1);
    fixture.send();
    fixture.send();
    fixture.transport.to(A).end(RESET);
    expect(fixture.story(1)).toEqual(["sent", "failed:connection_lost"]);
    expect(fixture.story(2)).toEqual(["dropped:not_connected"]);
  });

  it("waits over a reconnect that is allowed immediately", async () => {
    const fixture = await startFixture(planOf([A]), { reconnectMs: 0, deliveryTtlMs: 500 });
    fixture.transport.to(A).admit(0);
    fixture.send();
    fixture.transport.to(A).end({ kind: "silence", code: 0 });
    fixture.clock.advance(50);
    fixture.transport.to(A).admit();
    expect(fixture.story(1)).toEqual(["sent"]);
  });

  it("fails the oldest when more than the in-flight bound await acknowledgement", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit(2_000);
    for (let count = 0; count < 1025; count += 1) fixture.send();
    expect(fixture.story(1)).toEqual(["sent", "failed:too_many_in_flight"]);
    expect(fixture.story(2)).toEqual(["sent"]);
    expect(fixture.sender.leaders()[0]?.inFlight).toBe(1024);
  });

  it("is final at stop at the latest", async () => {
    const fixture = await startFixture(planOf([A]), { stopMs: 100 });
    fixture.transport.to(A).admit(1);
    fixture.send();
    fixture.send();
    const stopped = fixture.sender.stop();
    fixture.clock.advance(150);
    await stopped;
    expect(fixture.story(1)).toEqual(["sent", "failed:shutting_down"]);
    expect(fixture.story(2)).toEqual(["dropped:shutting_down"]);
  });

  it("is awaited at stop", async () => {
    const fixture = await startFixture(planOf([A]), { stopMs: 100 });
    fixture.transport.to(A).admit();
    fixture.send();
    const stopped = fixture.sender.stop();
    fixture.clock.advance(20);
    fixture.transport.to(A).ack(0);
    fixture.clock.advance(20);
    await stopped;
    expect(fixture.story(1)).toEqual(["sent", "acked"]);
  });
});

describe("conservation of deliveries", () => {
  type Step = { readonly what: string; readonly which: number };
  const step = fc.record({
    what: fc.constantFrom("send", "send", "send", "admit", "grant", "ack", "stop", "end", "wait"),
    which: fc.nat({ max: 2 }),
  });

  function play(fixture: Awaited<ReturnType<typeof startFixture>>, { what, which }: Step): void {
    if (what === "send") fixture.send();
    if (what === "wait") fixture.clock.advance(60 * (which + 1));
    const connection = fixture.transport.to([A, B, C][which] ?? A);
    if (connection.closed) return;
    if (what === "admit") connection.admit(which);
    if (what === "grant" && connection.admitted) connection.grant(1);
    if (what === "ack") connection.ack(connection.sent.length - 1);
    if (what === "stop") connection.stop(connection.sent.length - 1);
    if (what === "end") connection.end({ kind: "app", code: which });
  }

  it("holds for any history: each delivery ends once, sent at most once before", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const fixture = await startFixture(planOf([A, B, C]), {
          reconnectMs: 100,
          queuePerLeader: 3,
        });
        for (const it of steps) play(fixture, it);
        const { counters } = fixture.sender;
        const open = fixture.sender.leaders().reduce((sum, it) => sum + it.queued + it.inFlight, 0);
        const { deliveriesAcked, deliveriesFailed, deliveriesDropped } = counters;
        expect(deliveriesAcked + deliveriesFailed + deliveriesDropped + open).toBe(
          counters.deliveries,
        );
        const stopped = fixture.sender.stop();
        fixture.clock.advance(1_000);
        await stopped;
        const ended =
          counters.deliveriesAcked + counters.deliveriesFailed + counters.deliveriesDropped;
        expect(ended).toBe(counters.deliveries);
        expect(counters.deliveriesSent).toBe(counters.deliveriesAcked + counters.deliveriesFailed);
        const reasons = Object.values(counters.reasons).reduce((sum, it) => sum + it, 0);
        expect(reasons).toBe(counters.deliveriesFailed + counters.deliveriesDropped);
        const ends = fixture.outcomes.filter((it) => it.kind !== "sent");
        expect(new Set(ends.map((it) => `${it.packetId} ${it.address}`)).size).toBe(ends.length);
      }),
      { numRuns: 150 },
    );
  });
});

describe("counts", () => {
  it("reports live connections, and those of them that are sent to now", async () => {
    const fixture = await startFixture(planOf([A], [B, C]));
    fixture.transport.to(A).admit();
    fixture.transport.to(B).admit();
    fixture.transport.to(C).establish();
    expect([fixture.sender.liveCount, fixture.sender.sendableCount]).toEqual([2, 1]);
    expect(["live", "live", "waiting"]).toEqual([A, B, C].map(fixture.stateOf));
  });

  it("reports leaders that are sent to until they are live, or an attempt has ended", async () => {
    const fixture = await startFixture(planOf([A, B], [C]));
    const opening = (): number => fixture.sender.openingCount;
    expect(opening()).toBe(2);
    fixture.transport.to(A).establish();
    expect(opening()).toBe(2);
    fixture.transport.to(A).admit();
    expect(opening()).toBe(1);
    fixture.transport.to(B).end(RESET);
    expect(opening()).toBe(0);
    fixture.transport.to(A).end(RESET);
    expect(opening()).toBe(0);
    fixture.sender.usePlan(planOf([C]));
    expect(opening()).toBe(1);
  });

  it("reports a leader without streams as opening for the time of a handshake", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).establish();
    fixture.clock.advance(2_900);
    expect([fixture.sender.openingCount, fixture.stateOf(A)]).toEqual([1, "waiting"]);
    fixture.clock.advance(100);
    expect([fixture.sender.openingCount, fixture.stateOf(A)]).toEqual([0, "waiting"]);
  });

  it("stamps outcomes with the clock", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit();
    const beforeNs = fixture.clock.nowNs();
    fixture.clock.advance(3);
    fixture.send();
    expect(fixture.outcomes[0]?.atNs).toBe(beforeNs + 3 * NS_PER_MS);
  });
});

describe("resend", () => {
  const packet = {
    id: 77,
    bytes: Uint8Array.of(4, 2),
    account: "",
    receivedNs: 0,
    maxRetries: null,
    offeredLamports: 0,
  };
  const anyone = { ordinal: 1, wants: () => true, mayLeave: () => true, accepted: () => {} };

  it("sends to the selected live leaders of the plan, and reports each", async () => {
    const fixture = await startFixture(planOf([A, B, C]));
    fixture.transport.to(A).admit();
    fixture.transport.to(B).admit();
    const accepted: string[] = [];
    const to = {
      ...anyone,
      ordinal: 3,
      wants: ({ address }: { address: string }) => address !== A,
      accepted: ({ address }: { address: string }) => void accepted.push(address),
    };
    expect(fixture.sender.resend(packet, to)).toBe(1);
    expect(accepted).toEqual([B]);
    expect(fixture.transport.to(A).sent).toEqual([]);
    expect(fixture.transport.to(B).sent).toEqual([packet.bytes]);
    expect(fixture.story(77)).toEqual(["sent"]);
    fixture.transport.to(B).ack(0);
    expect(fixture.story(77)).toEqual(["sent", "acked"]);
    expect(fixture.outcomes.map(({ resend }) => resend)).toEqual([3, 3]);
    expect(fixture.sender.counters).toMatchObject({
      deliveries: 1,
      deliveriesAcked: 1,
      packetsAccepted: 0,
    });
  });

  it("waits for credit, and ends as a first send does where none comes", async () => {
    const fixture = await startFixture(planOf([A, B]));
    fixture.transport.to(A).admit(0);
    fixture.transport.to(B).admit();
    const queued: boolean[] = [];
    const to = {
      ...anyone,
      accepted: (_: unknown, isQueued: boolean) => void queued.push(isQueued),
    };
    expect(fixture.sender.resend(packet, to)).toBe(2);
    expect(queued).toEqual([true, false]);
    fixture.clock.advance(820);
    expect(fixture.outcomes.map(({ kind, reason }) => reason ?? kind)).toEqual([
      "sent",
      "leader_saturated",
    ]);
    fixture.transport.to(A).grant(10);
    expect(fixture.transport.to(A).sent).toEqual([]);
  });

  it("overtakes what pays less, and waits behind what pays the same", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit(0);
    fixture.send();
    fixture.sender.resend(packet, anyone);
    fixture.sender.resend({ ...packet, id: 78, offeredLamports: 1 }, anyone);
    fixture.transport.to(A).grant(1);
    expect(fixture.outcomes.map(({ packetId }) => packetId)).toEqual([78]);
    fixture.transport.to(A).grant(1);
    expect(fixture.outcomes.map(({ packetId }) => packetId)).toEqual([78, 1]);
  });

  it("leaves part of a connection's grant to first sends", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit(1_000);
    let taken = 0;
    const bound = 2 * RESENDS_IN_FLIGHT_MAX;
    while (fixture.sender.roomFor(anyone) === "room" && taken < bound)
      taken += fixture.sender.resend(packet, anyone);
    expect([taken, fixture.sender.roomFor(anyone)]).toEqual([RESENDS_IN_FLIGHT_MAX, "full"]);
    const mayLeave = vi.fn(() => true);
    expect(fixture.sender.resend(packet, { ...anyone, mayLeave })).toBe(0);
    expect(mayLeave).not.toHaveBeenCalled();
    expect(fixture.sender.counters.resendsRefused).toBe(1);
    expect(fixture.send()).toBe(1);
    fixture.transport.to(A).ack(0);
    fixture.transport.to(A).ack(1);
    expect(fixture.sender.roomFor(anyone)).toBe("room");
    expect(fixture.sender.resend(packet, anyone)).toBe(1);
  });

  it("has room at a live leader that wants it", async () => {
    const fixture = await startFixture(planOf([A, B]));
    const notA = { wants: ({ address }: { address: string }) => address !== A };
    expect(fixture.sender.roomFor(anyone)).toBe("none");
    fixture.transport.to(A).admit();
    expect([fixture.sender.roomFor(anyone), fixture.sender.roomFor(notA)]).toEqual([
      "room",
      "none",
    ]);
  });

  it("goes to a leader with room beside one that is full", async () => {
    const fixture = await startFixture(planOf([A, B]));
    fixture.transport.to(A).admit(1_000);
    for (let sent = 0; sent < RESENDS_IN_FLIGHT_MAX; sent += 1)
      fixture.sender.resend(packet, anyone);
    fixture.transport.to(B).admit();
    expect(fixture.sender.roomFor(anyone)).toBe("room");
    expect(fixture.sender.resend(packet, anyone)).toBe(1);
    expect(fixture.transport.to(B).sent).toEqual([packet.bytes]);
  });

  it("leaves to no leader where no copy may leave", async () => {
    const fixture = await startFixture(planOf([A, B]));
    fixture.transport.to(A).admit();
    fixture.transport.to(B).admit();
    const mayLeave = vi.fn(() => false);
    expect(fixture.sender.resend(packet, { ...anyone, mayLeave })).toBe(0);
    expect(mayLeave).toHaveBeenCalledOnce();
    expect(fixture.outcomes).toEqual([]);
  });

  it("goes to a leader again once deliveries whose end was lost are ended", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit();
    while (fixture.sender.resend(packet, anyone) === 1);
    fixture.clock.advance(9_900);
    expect(fixture.sender.resend(packet, anyone)).toBe(0);
    fixture.clock.advance(400);
    expect(fixture.sender.resend(packet, anyone)).toBe(1);
    expect(fixture.sender.counters.deliveriesUnreported).toBe(RESENDS_IN_FLIGHT_MAX);
  });

  it("is not stopped by a delivery whose end is among the unread events", async () => {
    const fixture = await startFixture(planOf([A]));
    const connection = fixture.transport.to(A);
    connection.admit();
    fixture.send();
    fixture.transport.flushEvents = () => connection.ack(0);
    fixture.clock.advance(20_000);
    expect(fixture.story(1)).toEqual(["sent", "acked"]);
  });

  it("sends nothing once stopped", async () => {
    const fixture = await startFixture(planOf([A]));
    fixture.transport.to(A).admit();
    const stopping = fixture.sender.stop();
    expect(fixture.sender.resend(packet, anyone)).toBe(0);
    fixture.clock.advance(1_000);
    await stopping;
  });
});
