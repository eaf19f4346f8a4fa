import { afterEach, describe, expect, it } from "vitest";
import { encodeBase58 } from "../../src/core/encoding.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import type { SenderOptions } from "../../src/send/sender.ts";
import { until } from "../support/wait.ts";
import { type AgaveLeaders, type Fixture, payload, startLeaders, startSender } from "./harness.ts";

const open: { leaders: AgaveLeaders | null; fixtures: Fixture[] } = { leaders: null, fixtures: [] };

afterEach(async () => {
  for (const fixture of open.fixtures) await fixture.sender.stop();
  open.leaders?.close();
  open.fixtures = [];
  open.leaders = null;
});

async function leadersOf(count: number, options: readonly string[] = []): Promise<AgaveLeaders> {
  open.leaders = await startLeaders(count, options);
  return open.leaders;
}

async function senderTo(
  leaders: AgaveLeaders,
  options: Partial<SenderOptions> = {},
): Promise<Fixture> {
  const fixture = await startSender(leaders.addresses, options);
  open.fixtures.push(fixture);
  return fixture;
}

async function delivers(leaders: AgaveLeaders, fixture: Fixture, seed: number): Promise<void> {
  const { counters } = fixture.sender;
  const arrived = () => leaders.received.some((it) => it.bytes.readUInt32LE(0) === seed);
  // Another client may cause this connection to end before the leader has read from it.
  while (!arrived()) {
    await until("a connection is live", () => fixture.sender.sendableCount > 0);
    const ends = counters.connectionsEnded;
    expect(fixture.send(payload(300, seed))).toBeGreaterThan(0);
    await until("the transaction arrives", () => arrived() || counters.connectionsEnded > ends);
  }
}

describe("the sender with a failing real leader", () => {
  it("reconnects after the leader restarts on the same port", async () => {
    const leaders = await leadersOf(1);
    const fixture = await senderTo(leaders);
    await delivers(leaders, fixture, 1);
    await leaders.command("stop 0");
    await until("the connection is given up", () => fixture.sender.liveCount === 0);
    expect(fixture.send(payload(300, 2))).toBe(0);
    await leaders.command("start 0");
    await delivers(leaders, fixture, 3);
  });

  it("continues with the other leaders while one is down", async () => {
    const leaders = await leadersOf(4);
    const fixture = await senderTo(leaders);
    await until("all are live", () => fixture.sender.liveCount === 4);
    await leaders.command("stop 2");
    await until("one has ended", () => fixture.sender.liveCount === 3);
    expect(fixture.send(payload(300, 1))).toBe(3);
    await until("three arrive", () => leaders.received.length === 3);
    await leaders.command("start 2");
    await until("all are live again", () => fixture.sender.liveCount === 4);
  });

  it("reconnects after it was evicted by another client (code 1)", async () => {
    const leaders = await leadersOf(1, ["--unstaked-max", "1"]);
    const first = await senderTo(leaders);
    await delivers(leaders, first, 1);
    const second = await senderTo(leaders);
    await until("the first is evicted", () => first.sender.counters.ends.evicted > 0);
    await delivers(leaders, second, 2);
    await second.sender.stop();
    await delivers(leaders, first, 3);
  });

  it("is rejected on a port for staked peers (code 2), and keeps its backoff", async () => {
    const leaders = await leadersOf(1, ["--unstaked-max", "0"]);
    const fixture = await senderTo(leaders, { reconnectMs: 300, reconnectMsMax: 2_400 });
    await until("it was rejected twice", () => fixture.sender.counters.ends.disallowed >= 2);
    expect(fixture.send(payload(300, 1))).toBe(0);
    expect(fixture.sender.counters.connectionsAttempted).toBeLessThanOrEqual(4);
    expect(fixture.sender.leaders()[0]?.failures).toBeGreaterThanOrEqual(2);
  });

  it("is accepted when a connection of its address closes (code 4)", async () => {
    const leaders = await leadersOf(1, ["--per-peer-max", "1"]);
    const first = await senderTo(leaders);
    await delivers(leaders, first, 1);
    const second = await senderTo(leaders);
    await until("the second is one too many", () => second.sender.counters.ends.too_many > 0);
    await delivers(leaders, first, 2);
    await first.sender.stop();
    await delivers(leaders, second, 3);
  });

  it("changes its identity without losing pending deliveries", async () => {
    const leaders = await leadersOf(2, ["--kind", "raw"]);
    await leaders.command("admit 0 128");
    await leaders.command("admit 1 128");
    const fixture = await senderTo(leaders);
    await until("both are live", () => fixture.sender.liveCount === 2);
    const next = freshIdentity();
    let sent = 0;
    const feed = (): void => {
      sent += 1;
      expect(fixture.send(payload(900, sent))).toBe(2);
    };
    for (let count = 0; count < 50; count += 1) feed();
    fixture.sender.useIdentity(next);
    await until("the new one is shown by both", () => {
      // At most what the leader has granted, in case it is late.
      if (2 * sent - fixture.count("acked") <= 100) feed();
      return fixture.sender.outdatedCount === 0;
    });
    await until("room for more", () => fixture.count("acked") === 2 * sent);
    for (let count = 0; count < 50; count += 1) feed();
    await until("all are acknowledged", () => fixture.count("acked") === 2 * sent);
    expect(fixture.count("failed") + fixture.count("dropped")).toBe(0);
    // The leaders' own reports may arrive after their acknowledgements.
    await until("all are reported", () => leaders.received.length >= 2 * sent);
    expect(leaders.received).toHaveLength(2 * sent);
    const keys = [fixture.identity, next].map((it) => encodeBase58(it.publicKey));
    for (const leader of [0, 1]) {
      const keysUsed = leaders.received.filter((it) => it.leader === leader).map((it) => it.peer);
      expect(new Set(keysUsed)).toEqual(new Set(keys));
      expect([keysUsed[0], keysUsed.at(-1)]).toEqual(keys);
    }
  });

  it.each([0, 1, 2, 3, 4, 5, 99])("reconnects after a close with code %i", async (code) => {
    const leaders = await leadersOf(1, ["--kind", "raw"]);
    await leaders.command("admit 0 128");
    const fixture = await senderTo(leaders);
    await delivers(leaders, fixture, 1);
    await leaders.command(`close 0 ${code} because`);
    await until("the end is noticed", () => fixture.sender.counters.connectionsEnded === 1);
    await delivers(leaders, fixture, 2);
    const { counters } = fixture.sender;
    expect(counters.deliveries).toBe(
      counters.deliveriesAcked +
        counters.deliveriesFailed +
        counters.deliveriesDropped +
        inFlight(fixture),
    );
  });

  it("queues nothing for a leader that grants no stream, and sends once it does", async () => {
    const leaders = await leadersOf(1, ["--kind", "raw"]);
    const fixture = await senderTo(leaders);
    await until("the handshake is done", () => fixture.sender.leaders()[0]?.state === "waiting");
    expect(fixture.sender.liveCount).toBe(0);
    expect(fixture.send(payload(300, 1))).toBe(0);
    await leaders.command("admit 0 128");
    await delivers(leaders, fixture, 2);
    expect(leaders.received.length).toBe(1);
  });

  it("sends to the leader that grants streams; deliveries to the other expire", async () => {
    const leaders = await leadersOf(2, ["--kind", "raw"]);
    const fixture = await senderTo(leaders, { deliveryTtlMs: 200, handshakeMs: 60_000 });
    await leaders.command("admit 0 128");
    await until("one admits", () => fixture.sender.liveCount === 1);
    await until("the other is waiting", () =>
      fixture.sender.leaders().some((peer) => peer.state === "waiting"),
    );
    expect(fixture.send(payload(300, 1))).toBe(1);
    await until(
      "both deliveries end",
      () => fixture.count("acked") === 1 && fixture.count("dropped") === 1,
    );
    expect(fixture.outcomes.find((it) => it.kind === "dropped")?.reason).toBe("leader_saturated");
  });

  it("survives rejection and silence", async () => {
    const leaders = await leadersOf(1, ["--kind", "raw"]);
    await leaders.command("admit 0 128");
    await leaders.command("refuse 0 on");
    const fixture = await senderTo(leaders, { handshakeMs: 400 });
    await until("it was rejected", () => fixture.sender.counters.ends.refused > 0);
    await leaders.command("refuse 0 off");
    await delivers(leaders, fixture, 1);
    await leaders.command("ignore 0 on");
    await leaders.command("close 0 0 bye");
    await until("no leader responds", () => fixture.sender.counters.handshakeTimeouts > 0);
    await leaders.command("ignore 0 off");
    await delivers(leaders, fixture, 2);
  });
});

function inFlight(fixture: Fixture): number {
  return fixture.sender.leaders().reduce((sum, peer) => sum + peer.inFlight + peer.queued, 0);
}
