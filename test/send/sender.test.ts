import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { RESENDS_IN_FLIGHT_MAX } from "../../src/send/limits.ts";
import { ALL_FULL } from "../../src/send/sender.ts";
import { fc } from "../support/properties.ts";
import { planOf, startRig } from "./rig.ts";

const A = "10.0.0.1:8009";
const B = "10.0.0.2:8009";
const C = "10.0.0.3:8009";
const RESET = { kind: "transport", code: 0 } as const;

describe("accept", () => {
  it("sends one delivery to each live leader of the plan and reports each", async () => {
    const rig = await startRig(planOf([A, B], [C]));
    for (const address of [A, B, C]) rig.transport.to(address).admit();
    expect(rig.send(Uint8Array.of(9, 8))).toBe(2);
    expect(rig.transport.to(A).sent).toEqual([Uint8Array.of(9, 8)]);
    expect(rig.transport.to(C).sent).toEqual([]);
    expect(rig.story(1)).toEqual(["sent", "sent"]);
    expect(rig.outcomes[0]).toEqual({
      packetId: 1,
      identity: `id-of-${A}`,
      address: A,
      slot: 7,
      kind: "sent",
      reason: null,
      atNs: rig.clock.nowNs(),
      rttUs: 0,
      connectionAgeMs: 0,
      resend: 0,
    });
  });

  it("accepts and queues nothing when no connection is live", async () => {
    const rig = await startRig(planOf([A, B]));
    expect(rig.send()).toBe(0);
    rig.transport.to(A).establish();
    expect(rig.send()).toBe(0);
    rig.transport.to(A).admit();
    rig.clock.advance(10_000);
    expect(rig.transport.to(A).sent).toEqual([]);
    expect(rig.outcomes).toEqual([]);
    expect(rig.sender.counters).toMatchObject({ packetsRefused: 2, deliveries: 0 });
  });

  it("queues a delivery for a connecting leader once another accepted it", async () => {
    const rig = await startRig(planOf([A, B]));
    rig.transport.to(A).admit();
    const lent = Uint8Array.of(5, 6);
    expect(rig.send(lent)).toBe(1);
    lent.fill(0);
    rig.transport.to(B).admit();
    expect(rig.transport.to(B).sent).toEqual([Uint8Array.of(5, 6)]);
  });

  it("drops the delivery of a leader that is not even connecting", async () => {
    const rig = await startRig(planOf([A, B]));
    rig.transport.to(A).admit();
    rig.transport.to(B).end(RESET);
    expect(rig.send()).toBe(1);
    expect(rig.story(1, B)).toEqual(["dropped:not_connected"]);
  });

  it("counts a live leader out of credit as accepted and sends when credit comes", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit(1);
    expect([rig.send(), rig.send(), rig.send()]).toEqual([1, 1, 1]);
    expect(rig.transport.to(A).sent.length).toBe(1);
    rig.transport.to(A).grant(1);
    expect(rig.story(2)).toEqual(["sent"]);
    expect(rig.story(3)).toEqual([]);
  });

  it("returns ALL_FULL when the only live leader's queue is full", async () => {
    const rig = await startRig(planOf([A, B]), { queuePerPeer: 2 });
    rig.transport.to(A).admit(0);
    expect([rig.send(), rig.send(), rig.send()]).toEqual([1, 1, ALL_FULL]);
    expect(rig.story(3)).toEqual([]);
    expect(rig.sender.counters).toMatchObject({ packetsAccepted: 2, packetsRefused: 1 });
    // No connection is left.
    rig.transport.to(A).end(RESET);
    expect(rig.send()).toBe(0);
  });

  it("drops the delivery of a full queue when another leader accepted the packet", async () => {
    const rig = await startRig(planOf([A, B]), { queuePerPeer: 1 });
    rig.transport.to(A).admit(0);
    rig.transport.to(B).admit();
    expect([rig.send(), rig.send()]).toEqual([2, 1]);
    expect(rig.story(2, A)).toEqual(["dropped:leader_saturated"]);
    expect(rig.story(2, B)).toEqual(["sent"]);
  });

  it("drops expired deliveries: saturated when connected, expired when not", async () => {
    const rig = await startRig(planOf([A, B, C]), { copyTtlMs: 500 });
    rig.transport.to(A).admit(0);
    rig.transport.to(B).establish();
    rig.send();
    rig.clock.advance(400);
    expect(rig.outcomes).toEqual([]);
    rig.clock.advance(150);
    expect(rig.story(1, A)).toEqual(["dropped:leader_saturated"]);
    expect(rig.story(1, B)).toEqual(["dropped:leader_saturated"]);
    expect(rig.story(1, C)).toEqual(["dropped:expired"]);
  });

  it("never sends an expired delivery, even when credit comes before the next poll", async () => {
    const rig = await startRig(planOf([A]), { copyTtlMs: 70 });
    rig.transport.to(A).admit(0);
    rig.clock.advance(1);
    rig.send();
    rig.clock.advance(72);
    rig.transport.to(A).grant(5);
    expect(rig.story(1)).toEqual(["dropped:leader_saturated"]);
    expect(rig.transport.to(A).sent).toEqual([]);
  });

  it("drops a transaction that is larger than the leader's streams", async () => {
    const rig = await startRig(planOf([A, B]));
    rig.transport.to(A).admit();
    rig.transport.to(B).admit();
    rig.transport.to(B).streamBytesMax = 1232;
    expect(rig.send(new Uint8Array(1233))).toBe(1);
    expect(rig.story(1, B)).toEqual(["dropped:stream_too_large"]);
    // No live leader accepts that size, so the queue does not matter.
    rig.transport.to(A).streamBytesMax = 1232;
    expect(rig.send(new Uint8Array(1233))).toBe(0);
  });

  it("does not count a leader whose connection ends while it sends", async () => {
    const rig = await startRig(planOf([A, B]));
    rig.transport.to(A).admit();
    rig.transport.to(B).admit();
    rig.transport.to(A).endOnSend = { kind: "local", code: 0 };
    expect(rig.send()).toBe(1);
    expect(rig.story(1, A)).toEqual(["dropped:not_connected"]);
  });

  it("accepts nothing before start and after stop", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit();
    await rig.sender.stop();
    expect(rig.send()).toBe(0);
    expect(rig.transport.running).toBe(false);
  });
});

describe("the outcome of a delivery", () => {
  it("is acked when the leader has it, in the order of sending", async () => {
    const rig = await startRig(planOf([A]));
    const a = rig.transport.to(A);
    a.admit();
    rig.send();
    rig.send();
    a.ack(1);
    expect(rig.story(2)).toEqual(["sent"]);
    a.ack(0);
    expect(rig.story(1)).toEqual(["sent", "acked"]);
    expect(rig.story(2)).toEqual(["sent", "acked"]);
  });

  it("is failed when the leader's stack stopped the stream", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit();
    rig.send();
    rig.transport.to(A).stop(0);
    expect(rig.story(1)).toEqual(["sent", "failed:stream_stopped"]);
  });

  it("is failed when the connection ends first, and queued ones are dropped", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit(1);
    rig.send();
    rig.send();
    rig.transport.to(A).end(RESET);
    expect(rig.story(1)).toEqual(["sent", "failed:connection_lost"]);
    expect(rig.story(2)).toEqual(["dropped:not_connected"]);
  });

  it("waits over a reconnect that is allowed immediately", async () => {
    const rig = await startRig(planOf([A]), { reconnectMs: 0, copyTtlMs: 500 });
    rig.transport.to(A).admit(0);
    rig.send();
    rig.transport.to(A).end({ kind: "silence", code: 0 });
    rig.clock.advance(50);
    rig.transport.to(A).admit();
    expect(rig.story(1)).toEqual(["sent"]);
  });

  it("fails the oldest when more than the in-flight bound await acknowledgement", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit(2_000);
    for (let count = 0; count < 1025; count += 1) rig.send();
    expect(rig.story(1)).toEqual(["sent", "failed:too_many_in_flight"]);
    expect(rig.story(2)).toEqual(["sent"]);
    expect(rig.sender.leaders()[0]?.inFlight).toBe(1024);
  });

  it("is final at stop at the latest", async () => {
    const rig = await startRig(planOf([A]), { stopMs: 100 });
    rig.transport.to(A).admit(1);
    rig.send();
    rig.send();
    const stopped = rig.sender.stop();
    rig.clock.advance(150);
    await stopped;
    expect(rig.story(1)).toEqual(["sent", "failed:shutting_down"]);
    expect(rig.story(2)).toEqual(["dropped:shutting_down"]);
  });

  it("is awaited at stop", async () => {
    const rig = await startRig(planOf([A]), { stopMs: 100 });
    rig.transport.to(A).admit();
    rig.send();
    const stopped = rig.sender.stop();
    rig.clock.advance(20);
    rig.transport.to(A).ack(0);
    rig.clock.advance(20);
    await stopped;
    expect(rig.story(1)).toEqual(["sent", "acked"]);
  });
});

describe("conservation of deliveries", () => {
  type Step = { readonly what: string; readonly which: number };
  const step = fc.record({
    what: fc.constantFrom("send", "send", "send", "admit", "grant", "ack", "stop", "end", "wait"),
    which: fc.nat({ max: 2 }),
  });

  function play(rig: Awaited<ReturnType<typeof startRig>>, { what, which }: Step): void {
    if (what === "send") rig.send();
    if (what === "wait") rig.clock.advance(60 * (which + 1));
    const connection = rig.transport.to([A, B, C][which] ?? A);
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
        const rig = await startRig(planOf([A, B, C]), { reconnectMs: 100, queuePerPeer: 3 });
        for (const it of steps) play(rig, it);
        const { counters } = rig.sender;
        const open = rig.sender.leaders().reduce((sum, it) => sum + it.queued + it.inFlight, 0);
        const { deliveriesAcked, deliveriesFailed, deliveriesDropped } = counters;
        expect(deliveriesAcked + deliveriesFailed + deliveriesDropped + open).toBe(
          counters.deliveries,
        );
        const stopped = rig.sender.stop();
        rig.clock.advance(1_000);
        await stopped;
        const ended =
          counters.deliveriesAcked + counters.deliveriesFailed + counters.deliveriesDropped;
        expect(ended).toBe(counters.deliveries);
        expect(counters.deliveriesSent).toBe(counters.deliveriesAcked + counters.deliveriesFailed);
        const reasons = Object.values(counters.reasons).reduce((sum, it) => sum + it, 0);
        expect(reasons).toBe(counters.deliveriesFailed + counters.deliveriesDropped);
        const ends = rig.outcomes.filter((it) => it.kind !== "sent");
        expect(new Set(ends.map((it) => `${it.packetId} ${it.address}`)).size).toBe(ends.length);
      }),
      { numRuns: 150 },
    );
  });
});

describe("counts", () => {
  it("reports live connections, and those of them that are sent to now", async () => {
    const rig = await startRig(planOf([A], [B, C]));
    rig.transport.to(A).admit();
    rig.transport.to(B).admit();
    rig.transport.to(C).establish();
    expect([rig.sender.warmCount, rig.sender.sendableCount]).toEqual([2, 1]);
    expect(["live", "live", "waiting"]).toEqual([A, B, C].map(rig.stateOf));
  });

  it("stamps outcomes with the clock", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit();
    const beforeNs = rig.clock.nowNs();
    rig.clock.advance(3);
    rig.send();
    expect(rig.outcomes[0]?.atNs).toBe(beforeNs + 3 * NS_PER_MS);
  });
});

describe("resend", () => {
  const packet = {
    id: 77,
    bytes: Uint8Array.of(4, 2),
    account: "",
    receivedNs: 0,
    maxRetries: null,
    priorityLamports: 0,
  };
  const anyone = { ordinal: 1, wants: () => true, accepted: () => {} };

  it("sends to the selected live leaders of the plan, and reports each", async () => {
    const rig = await startRig(planOf([A, B, C]));
    rig.transport.to(A).admit();
    rig.transport.to(B).admit();
    const accepted: string[] = [];
    const to = {
      ordinal: 3,
      wants: ({ address }: { address: string }) => address !== A,
      accepted: ({ address }: { address: string }) => void accepted.push(address),
    };
    expect(rig.sender.resend(packet, to)).toBe(1);
    expect(accepted).toEqual([B]);
    expect(rig.transport.to(A).sent).toEqual([]);
    expect(rig.transport.to(B).sent).toEqual([packet.bytes]);
    expect(rig.story(77)).toEqual(["sent"]);
    rig.transport.to(B).ack(0);
    expect(rig.story(77)).toEqual(["sent", "acked"]);
    expect(rig.outcomes.map(({ resend }) => resend)).toEqual([3, 3]);
    expect(rig.sender.counters).toMatchObject({
      deliveries: 1,
      deliveriesAcked: 1,
      packetsAccepted: 0,
    });
  });

  it("neither queues nor reports a delivery where there is no credit", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit(0);
    expect(rig.sender.resend(packet, anyone)).toBe(0);
    rig.transport.to(A).grant(10);
    expect(rig.transport.to(A).sent).toEqual([]);
    expect(rig.outcomes).toEqual([]);
  });

  it("does not overtake queued first sends", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit(0);
    rig.send();
    expect(rig.sender.resend(packet, anyone)).toBe(0);
    rig.transport.to(A).grant(1);
    expect(rig.story(1)).toEqual(["sent"]);
  });

  it("leaves part of a connection's grant to first sends", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit(1_000);
    let taken = 0;
    while (rig.sender.resend(packet, anyone) === 1) taken += 1;
    expect(taken).toBe(RESENDS_IN_FLIGHT_MAX);
    expect(rig.send()).toBe(1);
    rig.transport.to(A).ack(0);
    rig.transport.to(A).ack(1);
    expect(rig.sender.resend(packet, anyone)).toBe(1);
  });

  it("sends nothing once stopped", async () => {
    const rig = await startRig(planOf([A]));
    rig.transport.to(A).admit();
    const stopping = rig.sender.stop();
    expect(rig.sender.resend(packet, anyone)).toBe(0);
    rig.clock.advance(1_000);
    await stopping;
  });
});
