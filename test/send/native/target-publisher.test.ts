import { describe, expect, it } from "vitest";
import { TARGETS_MAX } from "../../../src/core/limits.ts";
import { SATURATED } from "../../../src/send/transport.ts";
import { fc } from "../../support/properties.ts";
import { planOf } from "../fixture.ts";
import { A, B, BYTES, C, live, setUp } from "./ingress-fixture.ts";

const RESET = { kind: "transport", code: 0 } as const;

describe("ingress threads", () => {
  it("may send to every live leader, once there is one", async () => {
    const fixture = await setUp();
    fixture.check();
    expect(fixture.sendAsIngress()).toBeNull();
    fixture.transport.to(B).admit();
    fixture.check();
    expect([fixture.sendAsIngress(1)?.count, fixture.engine.peers]).toEqual([1, [2]]);
    // A leader without a connection needs no immediate wake-up.
    expect(fixture.needsImmediateWake()).toBe(false);
    fixture.transport.to(A).admit();
    fixture.check();
    expect([fixture.sendAsIngress()?.count, fixture.engine.peers]).toEqual([2, [1, 2]]);
    fixture.transport.to(A).end(RESET);
    fixture.check();
    expect([fixture.sendAsIngress(1)?.count, fixture.engine.peers]).toEqual([1, [2]]);
  });

  it("send to no leader more than it accepts, which is reported, nor to more than 16", async () => {
    const fixture = await setUp();
    fixture.transport.to(A).streamBytesMax = 2;
    for (const address of [A, B]) fixture.transport.to(address).admit();
    fixture.check();
    const sent = fixture.send(0b1);
    expect(fixture.engine.peers).toEqual([2]);
    sent.recordSend();
    expect(fixture.story(sent.id, A)).toEqual(["dropped:stream_too_large"]);
    expect(fixture.story(sent.id, B)).toEqual(["sent"]);
    fixture.transport.to(B).streamBytesMax = 2;
    fixture.check();
    expect(fixture.sendAsIngress()).toBeNull();
    const many = Array.from({ length: TARGETS_MAX + 1 }, (_, n) => `10.0.1.${n}:8009`);
    fixture.sender.usePlan(planOf(many));
    for (const address of many) fixture.transport.to(address).admit();
    fixture.check();
    expect(fixture.sendAsIngress(0xffff)?.count).toBe(TARGETS_MAX);
  });

  it("may send nothing once the sender stops", async () => {
    const fixture = await live();
    const stopping = fixture.sender.stop();
    expect(fixture.sendAsIngress()).toBeNull();
    fixture.clock.advance(1_000);
    await stopping;
    fixture.check();
    expect(fixture.sendAsIngress()).toBeNull();
  });

  it("send on to all, however many deliveries a leader has queued", async () => {
    const fixture = await live();
    for (let count = 0; count < 100; count += 1) fixture.send(0b01 | (1 << 17)).recordSend();
    expect([fixture.sendAsIngress()?.count, fixture.needsImmediateWake()]).toEqual([2, false]);
    const { queued } = fixture.sender.leaders().find(({ address }) => address === B) ?? {};
    expect(queued).toBe(100);
  });
});

describe("a packet sent by an ingress thread", () => {
  it("is reported as if it had been sent by the sender, with its own time", async () => {
    const fixture = await live();
    const sent = fixture.send();
    fixture.clock.advance(50);
    sent.recordSend();
    expect(fixture.story(sent.id)).toEqual(["sent", "sent"]);
    expect(fixture.outcomes[0]).toEqual({
      packetId: sent.id,
      identity: `id-of-${A}`,
      address: A,
      slot: 7,
      kind: "sent",
      reason: null,
      atNs: sent.sentNs,
      rttUs: 0,
      connectionAgeMs: 0,
      resend: 0,
    });
    fixture.transport.to(A).ack(sent.number);
    fixture.transport.to(B).stop(sent.number);
    expect(fixture.story(sent.id, A)).toEqual(["sent", "acked"]);
    expect(fixture.story(sent.id, B)).toEqual(["sent", "failed:stream_stopped"]);
    expect(fixture.sender.counters).toMatchObject({
      packetsAccepted: 1,
      deliveries: 2,
      deliveriesSent: 2,
    });
    expect(fixture.sender.leaders().map(({ inFlight }) => inFlight)).toEqual([0, 0]);
  });

  it("is reported on the wire when the engine reports it", async () => {
    const fixture = await live();
    const sent = fixture.send(0b01 | (1 << 17));
    sent.recordSend();
    expect([fixture.story(sent.id, A), fixture.story(sent.id, B)]).toEqual([["sent"], []]);
    fixture.transport.to(B).sendQueued(sent.number);
    expect(fixture.story(sent.id, B)).toEqual(["sent"]);
  });

  it("goes to leaders that the ingress thread missed, now or when they are live", async () => {
    const fixture = await live(planOf([A, B, C]));
    const sent = fixture.send(0b01);
    sent.recordSend();
    expect(fixture.transport.to(A).sent).toEqual([]);
    expect(fixture.transport.to(B).sent).toEqual([BYTES]);
    expect(fixture.story(sent.id, C)).toEqual([]);
    fixture.transport.to(C).admit();
    expect(fixture.story(sent.id, C)).toEqual(["sent"]);
    expect(fixture.sender.counters).toMatchObject({ deliveries: 3, deliveriesSent: 3 });
  });

  it("is dropped for a leader without a connection", async () => {
    const fixture = await live();
    fixture.transport.to(B).end(RESET);
    fixture.check();
    const sent = fixture.send(0b01);
    sent.recordSend();
    expect(fixture.story(sent.id, B)).toEqual(["dropped:not_connected"]);
  });
});

describe("a delivery on a connection that ended before it is recorded", () => {
  it("is lost, or never sent where it waited", async () => {
    const fixture = await live();
    const [lost, waiting] = [fixture.send(), fixture.send(0b10 | (1 << 16))];
    fixture.transport.to(A).end(RESET);
    for (const sent of [lost, waiting]) sent.recordSend();
    expect(fixture.story(lost.id, A)).toEqual(["sent", "failed:connection_lost"]);
    expect(fixture.story(waiting.id, A)).toEqual(["dropped:not_connected"]);
    for (const { id } of [lost, waiting]) expect(fixture.story(id, B)).toEqual(["sent"]);
  });

  it("is cut where this edge has stopped", async () => {
    const fixture = await live();
    const sent = fixture.send();
    const stopping = fixture.sender.stop();
    fixture.clock.advance(1_000);
    await stopping;
    sent.recordSend();
    expect(fixture.story(sent.id, A)).toEqual(["sent", "failed:shutting_down"]);
    const { deliveries, deliveriesFailed } = fixture.sender.counters;
    expect(deliveriesFailed).toBe(deliveries);
  });

  it("is awaited where the connection is only being replaced", async () => {
    const fixture = await live(planOf([A, B]), { lifetimeMs: 60_000 });
    const first = fixture.transport.to(A);
    fixture.clock.advance(60_100);
    const second = fixture.transport.to(A);
    expect(second).not.toBe(first);
    const sent = fixture.send();
    second.admit();
    fixture.check();
    fixture.clock.advance(100);
    expect(first.closed).toBe(false);
    sent.recordSend();
    first.ack(sent.number);
    expect(fixture.story(sent.id, A)).toEqual(["sent", "acked"]);
    fixture.clock.advance(300);
    expect(first.closed).toBe(true);
  });
});

describe("a plan that has changed since", () => {
  it("keeps the deliveries to leaders that left it, and adds those to its own", async () => {
    const fixture = await live();
    const sent = fixture.send();
    fixture.sender.usePlan(planOf([C]));
    sent.recordSend();
    expect([A, B, C].map((address) => fixture.story(sent.id, address))).toEqual([
      ["sent"],
      ["sent"],
      [],
    ]);
    fixture.transport.to(C).admit();
    expect(fixture.story(sent.id, C)).toEqual(["sent"]);
    expect(fixture.sender.counters).toMatchObject({ packetsAccepted: 1, deliveries: 3 });
  });
});

describe("conservation of deliveries, with ingress threads", () => {
  type Fixture = Awaited<ReturnType<typeof setUp>>;
  const step = fc.record({
    what: fc.constantFrom(
      ...["ingress", "ingress", "ingress", "record", "record", "send", "admit", "grant"],
      ...["ack", "ack", "fly", "refuse", "stop", "end", "wait", "plan", "check", "crowd"],
    ),
    which: fc.nat({ max: 2 }),
    stream: fc.nat({ max: 12 }),
    status: fc.constantFrom(0b111, 0b11, 0b01, 0b10, 1 << 16, 0b10 | (1 << 16), 0b111 << 16),
  });
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
  const PLANS = [planOf([A, B]), planOf([B, C], [A]), planOf([A, B, C])];

  function play(
    fixture: Fixture,
    waiting: (() => void)[],
    { what, which, stream, status }: Step,
  ): void {
    if (what === "send") fixture.accept();
    if (what === "ingress") {
      const recordSend = fixture.trySend(status);
      if (recordSend !== null) waiting.push(recordSend);
    }
    if (what === "record") for (const recordSend of waiting.splice(0, which + 1)) recordSend();
    if (what === "wait") fixture.clock.advance(60 * (which + 1));
    if (what === "plan") fixture.sender.usePlan(PLANS[which] ?? planOf([A]));
    if (what === "check") fixture.check();
    if (what === "fly" || what === "refuse") {
      const [delivery] = fixture.held.splice(stream, 1);
      if (delivery === undefined || delivery.connection.closed) return;
      if (what === "fly") delivery.connection.sendQueued(delivery.number);
      else delivery.connection.refuse(delivery.number, 2);
    }
    const address = [A, B, C][which] ?? A;
    const connection = fixture.transport.made.findLast((it) => it.address === address);
    if (connection === undefined || connection.closed) return;
    if (what === "crowd") connection.result = connection.result === null ? SATURATED : null;
    if (what === "admit") connection.admit(which);
    if (what === "grant" && connection.admitted) connection.grant(1);
    if (what === "ack") connection.ack(stream);
    if (what === "stop") connection.stop(stream);
    if (what === "end") connection.end({ kind: "app", code: which });
  }

  it("holds for any history: each delivery ends once, sent at most once before", async () => {
    let acceptedCount = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const fixture = await live(PLANS[2], { reconnectMs: 100, queuePerLeader: 3 });
        const waiting: (() => void)[] = [];
        for (const it of steps) play(fixture, waiting, it);
        const { counters } = fixture.sender;
        const open = fixture.sender.leaders().reduce((sum, it) => sum + it.queued + it.inFlight, 0);
        const ended = (): number =>
          counters.deliveriesAcked + counters.deliveriesFailed + counters.deliveriesDropped;
        expect(ended() + open).toBe(counters.deliveries);
        const stopped = fixture.sender.stop();
        fixture.clock.advance(1_000);
        await stopped;
        for (const recordSend of waiting) recordSend();
        expect(ended()).toBe(counters.deliveries);
        expect(counters.deliveriesSent).toBe(counters.deliveriesAcked + counters.deliveriesFailed);
        const ends = fixture.outcomes.filter(({ kind }) => kind !== "sent");
        expect(new Set(ends.map((it) => `${it.packetId} ${it.address}`)).size).toBe(ends.length);
        acceptedCount += counters.packetsAccepted;
      }),
      { numRuns: 300 },
    );
    expect(acceptedCount).toBeGreaterThan(300);
  });
});
