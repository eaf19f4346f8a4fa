import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import type { Outcome } from "../../src/core/flow.ts";
import { createSender, type Sender } from "../../src/send/sender.ts";
import { acceptAndReport } from "../support/packets.ts";
import { until } from "../support/wait.ts";
import { planOf, startFixture } from "./fixture.ts";
import { payload, startLeader, startTransport, type TestLeader } from "./loopback.ts";

const DEAD = "10.0.0.1:8009";
const STALLED = "10.0.0.2:8009";
const EVICTING = "10.0.0.3:8009";
const HEALTHY = "10.0.0.4:8009";

const open: { leaders: TestLeader[]; sender: Sender | null } = { leaders: [], sender: null };

afterEach(async () => {
  await open.sender?.stop();
  for (const { leader } of open.leaders) await leader.stop();
  open.leaders = [];
  open.sender = null;
});

describe("a healthy leader among a dead, a stalled and an evicting one", () => {
  it("is sent everything immediately, in the same call, for minutes", async () => {
    const fixture = await startFixture(planOf([DEAD, STALLED, EVICTING, HEALTHY]));
    fixture.transport.to(STALLED).admit(0);
    fixture.transport.to(EVICTING).admit();
    fixture.transport.to(HEALTHY).admit(1_000_000);
    for (let tick = 0; tick < 3_000; tick += 1) {
      const evicting = fixture.transport.to(EVICTING);
      if (tick % 5 === 0 && !evicting.closed) evicting.end({ kind: "app", code: 1 });
      else if (!evicting.closed && !evicting.admitted) evicting.admit();
      const before = fixture.transport.to(HEALTHY).sent.length;
      expect(fixture.send()).toBeGreaterThan(0);
      expect(fixture.transport.to(HEALTHY).sent.length).toBe(before + 1);
      fixture.transport.to(HEALTHY).ack(before);
      fixture.clock.advance(50);
    }
    const { counters } = fixture.sender;
    expect(counters.deliveriesAcked).toBe(3_000);
    expect(counters.reasons.leader_saturated).toBeGreaterThan(2_000);
    expect(counters.ends.evicted).toBeGreaterThan(3);
    expect(fixture.transport.made.filter((it) => it.address === HEALTHY).length).toBe(1);
  });

  it("receives everything over real connections, and each other delivery ends", async () => {
    const silent = await startLeader({ admission: "silent" });
    const stalled = await startLeader({ reading: "stalled" });
    const evicting = await startLeader({ closeNew: { code: 1, reason: "dropped" } });
    const healthy = await startLeader();
    open.leaders = [silent, stalled, evicting, healthy];
    const outcomes: Outcome[] = [];
    const sender = createSender(
      {
        clock: systemClock,
        transport: await startTransport(),
        onOutcome: (outcome) => outcomes.push(outcome),
        log: { info() {}, warn() {}, error() {} },
      },
      // Deliveries queued for the stalled leader are evicted for lack of room, not by TTL: a
      // machine that pauses briefly drops nothing of the healthy one.
      { reconnectMs: 200, deliveryTtlMs: 60_000, queuePerLeader: 32, stopMs: 300 },
    );
    open.sender = sender;
    await sender.start();
    sender.usePlan(planOf(open.leaders.map((it) => it.address)));
    const isLive = ({ address }: TestLeader) =>
      sender.leaders().some((leader) => leader.address === address && leader.state === "live");
    // The evicting one may be live briefly too.
    await until("two are live", () => isLive(stalled) && isLive(healthy));
    for (let id = 1; id <= 300; id += 1) {
      const bytes = payload(300, id);
      const packet = { id, bytes, account: "a", receivedNs: 0, maxRetries: null };
      expect(acceptAndReport(sender, { ...packet, offeredLamports: id })).toBeGreaterThan(0);
      // Less than its concurrent grant, so that the machine's speed does not matter.
      if (id % 20 !== 0) continue;
      await until(`all ${id} at the healthy one`, () => healthy.received.length === id);
    }
    await sender.stop();
    open.sender = null;
    const { deliveries, deliveriesAcked, deliveriesFailed, deliveriesDropped, reasons } =
      sender.counters;
    expect(deliveriesAcked + deliveriesFailed + deliveriesDropped).toBe(deliveries);
    expect(reasons.leader_saturated).toBeGreaterThan(0);
    const dead = outcomes.filter((it) => it.address === silent.address);
    expect(dead.every((it) => it.kind === "dropped")).toBe(true);
  });
});
