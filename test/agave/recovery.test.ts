import { afterEach, describe, expect, it } from "vitest";
import { encodeBase58 } from "../../src/core/encoding.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import type { SenderOptions } from "../../src/send/sender.ts";
import { until } from "../support/wait.ts";
import { type AgaveLeaders, payload, type Rig, startLeaders, startSender } from "./harness.ts";

const open: { leaders: AgaveLeaders | null; rigs: Rig[] } = { leaders: null, rigs: [] };

afterEach(async () => {
  for (const rig of open.rigs) await rig.sender.stop();
  open.leaders?.close();
  open.rigs = [];
  open.leaders = null;
});

async function leadersOf(count: number, options: readonly string[] = []): Promise<AgaveLeaders> {
  open.leaders = await startLeaders(count, options);
  return open.leaders;
}

async function senderTo(leaders: AgaveLeaders, options: Partial<SenderOptions> = {}): Promise<Rig> {
  const rig = await startSender(leaders.addresses, options);
  open.rigs.push(rig);
  return rig;
}

async function delivers(leaders: AgaveLeaders, rig: Rig, seed: number): Promise<void> {
  const { counters } = rig.sender;
  const arrived = () => leaders.received.some((it) => it.bytes.readUInt32LE(0) === seed);
  // Another client may cause this connection to end before the leader has read from it.
  while (!arrived()) {
    await until("a connection is live", () => rig.sender.sendableCount > 0);
    const ends = counters.connectionsEnded;
    expect(rig.send(payload(300, seed))).toBeGreaterThan(0);
    await until("the transaction arrives", () => arrived() || counters.connectionsEnded > ends);
  }
}

describe("the sender when a real leader fails it", () => {
  it("comes back after the leader restarts on the same port", async () => {
    const leaders = await leadersOf(1);
    const rig = await senderTo(leaders);
    await delivers(leaders, rig, 1);
    await leaders.command("stop 0");
    await until("the connection is given up", () => rig.sender.warmCount === 0);
    expect(rig.send(payload(300, 2))).toBe(0);
    await leaders.command("start 0");
    await delivers(leaders, rig, 3);
  });

  it("goes on with the other leaders while one is down", async () => {
    const leaders = await leadersOf(4);
    const rig = await senderTo(leaders);
    await until("all are live", () => rig.sender.warmCount === 4);
    await leaders.command("stop 2");
    await until("one is gone", () => rig.sender.warmCount === 3);
    expect(rig.send(payload(300, 1))).toBe(3);
    await until("three arrive", () => leaders.received.length === 3);
    await leaders.command("start 2");
    await until("all are live again", () => rig.sender.warmCount === 4);
  });

  it("comes back after it was evicted by another client (code 1)", async () => {
    const leaders = await leadersOf(1, ["--unstaked-max", "1"]);
    const first = await senderTo(leaders);
    await delivers(leaders, first, 1);
    const second = await senderTo(leaders);
    await until("the first is evicted", () => first.sender.counters.endedDropped > 0);
    await delivers(leaders, second, 2);
    await second.sender.stop();
    await delivers(leaders, first, 3);
  });

  it("is told no on a port for staked peers (code 2), and keeps its pace", async () => {
    const leaders = await leadersOf(1, ["--unstaked-max", "0"]);
    const rig = await senderTo(leaders, { reconnectMs: 300, reconnectMsMax: 2_400 });
    await until("it was told no twice", () => rig.sender.counters.endedDisallowed >= 2);
    expect(rig.send(payload(300, 1))).toBe(0);
    expect(rig.sender.counters.connectionsAttempted).toBeLessThanOrEqual(4);
    expect(rig.sender.leaders()[0]?.failures).toBeGreaterThanOrEqual(2);
  });

  it("gets its place when a connection of its address goes (code 4)", async () => {
    const leaders = await leadersOf(1, ["--per-peer-max", "1"]);
    const first = await senderTo(leaders);
    await delivers(leaders, first, 1);
    const second = await senderTo(leaders);
    await until("the second is one too many", () => second.sender.counters.endedTooMany > 0);
    await delivers(leaders, first, 2);
    await first.sender.stop();
    await delivers(leaders, second, 3);
  });

  it("shows another identity without losing what is in hand", async () => {
    const leaders = await leadersOf(2, ["--kind", "raw"]);
    await leaders.command("admit 0 128");
    await leaders.command("admit 1 128");
    const rig = await senderTo(leaders);
    await until("both are live", () => rig.sender.warmCount === 2);
    const next = freshIdentity();
    let sent = 0;
    const feed = (): void => {
      sent += 1;
      expect(rig.send(payload(900, sent))).toBe(2);
    };
    for (let count = 0; count < 50; count += 1) feed();
    rig.sender.useIdentity(next);
    await until("the new one is shown by both", () => {
      // At most what the leader has granted, in case it is late.
      if (2 * sent - rig.count("acked") <= 100) feed();
      return rig.sender.outdatedCount === 0;
    });
    await until("room for more", () => rig.count("acked") === 2 * sent);
    for (let count = 0; count < 50; count += 1) feed();
    await until("all are acknowledged", () => rig.count("acked") === 2 * sent);
    expect(rig.count("failed") + rig.count("dropped")).toBe(0);
    // The leaders' own reports may arrive after their acknowledgements.
    await until("all are reported", () => leaders.received.length >= 2 * sent);
    expect(leaders.received).toHaveLength(2 * sent);
    const keys = [rig.identity, next].map((it) => encodeBase58(it.publicKey));
    for (const leader of [0, 1]) {
      const seen = leaders.received.filter((it) => it.leader === leader).map((it) => it.peer);
      expect(new Set(seen)).toEqual(new Set(keys));
      expect([seen[0], seen.at(-1)]).toEqual(keys);
    }
  });

  it.each([0, 1, 2, 3, 4, 5, 99])("comes back after a close with code %i", async (code) => {
    const leaders = await leadersOf(1, ["--kind", "raw"]);
    await leaders.command("admit 0 128");
    const rig = await senderTo(leaders);
    await delivers(leaders, rig, 1);
    await leaders.command(`close 0 ${code} because`);
    await until("the end is noticed", () => rig.sender.counters.connectionsEnded === 1);
    await delivers(leaders, rig, 2);
    const { counters } = rig.sender;
    expect(counters.deliveries).toBe(
      counters.deliveriesAcked +
        counters.deliveriesFailed +
        counters.deliveriesDropped +
        inFlight(rig),
    );
  });

  it("takes nothing from a leader that never admits, and sends as soon as it does", async () => {
    const leaders = await leadersOf(1, ["--kind", "raw"]);
    const rig = await senderTo(leaders);
    await until("the handshake is done", () => rig.sender.leaders()[0]?.state === "waiting");
    expect(rig.sender.warmCount).toBe(0);
    expect(rig.send(payload(300, 1))).toBe(0);
    await leaders.command("admit 0 128");
    await delivers(leaders, rig, 2);
    expect(leaders.received.length).toBe(1);
  });

  it("sends to the leader that admits and lets the other's copies expire", async () => {
    const leaders = await leadersOf(2, ["--kind", "raw"]);
    const rig = await senderTo(leaders, { copyTtlMs: 200, handshakeMs: 60_000 });
    await leaders.command("admit 0 128");
    await until("one admits", () => rig.sender.warmCount === 1);
    await until("the other is waiting", () =>
      rig.sender.leaders().some((peer) => peer.state === "waiting"),
    );
    expect(rig.send(payload(300, 1))).toBe(1);
    await until("both copies end", () => rig.count("acked") === 1 && rig.count("dropped") === 1);
    expect(rig.outcomes.find((it) => it.kind === "dropped")?.reason).toBe("leader_saturated");
  });

  it("outlives refusal and silence", async () => {
    const leaders = await leadersOf(1, ["--kind", "raw"]);
    await leaders.command("admit 0 128");
    await leaders.command("refuse 0 on");
    const rig = await senderTo(leaders, { handshakeMs: 400 });
    await until("it was refused", () => rig.sender.counters.endedTransport > 0);
    await leaders.command("refuse 0 off");
    await delivers(leaders, rig, 1);
    await leaders.command("ignore 0 on");
    await leaders.command("close 0 0 bye");
    await until("nobody answers", () => rig.sender.counters.handshakeTimeouts > 0);
    await leaders.command("ignore 0 off");
    await delivers(leaders, rig, 2);
  });
});

function inFlight(rig: Rig): number {
  return rig.sender.leaders().reduce((sum, peer) => sum + peer.inFlight + peer.queued, 0);
}
