import { getBase58Decoder } from "@solana/kit";
import { afterEach, describe, expect, it } from "vitest";
import { freshIdentity } from "../../src/send/identity.ts";
import { until } from "../support/wait.ts";
import { type AgaveLeaders, type Fixture, payload, startLeaders, startSender } from "./harness.ts";

const open: { leaders: AgaveLeaders | null; fixture: Fixture | null } = {
  leaders: null,
  fixture: null,
};

afterEach(async () => {
  await open.fixture?.sender.stop();
  open.leaders?.close();
  open.fixture = null;
  open.leaders = null;
});

async function startDelivery(
  count: number,
  options: readonly string[] = [],
  identity = freshIdentity(),
) {
  const leaders = await startLeaders(count, options);
  open.leaders = leaders;
  const fixture = await startSender(leaders.addresses, {}, identity);
  open.fixture = fixture;
  await until("all connections are live", () => fixture.sender.liveCount === count);
  return { leaders, fixture };
}

describe("the sender at Agave's own server", () => {
  it("delivers transactions of every size unchanged and reports each outcome", async () => {
    const { leaders, fixture } = await startDelivery(1);
    const sizes = [1, 134, 300, 1170, 1232, 1233, 2048, 4095, 4096];
    const sent = sizes.map((size, index) => payload(size, index));
    for (const bytes of sent) expect(fixture.send(bytes)).toBe(1);
    await until("all are received", () => leaders.received.length === sizes.length);
    await until("all are acknowledged", () => fixture.count("acked") === sizes.length);
    for (const bytes of sent) {
      expect(leaders.received.some((it) => it.bytes.equals(bytes))).toBe(true);
    }
    expect(fixture.count("failed") + fixture.count("dropped")).toBe(0);
  });

  it("drops what no stream of this leader could carry and keeps the connection", async () => {
    const { leaders, fixture } = await startDelivery(1);
    expect(fixture.send(payload(4097, 1))).toBe(0);
    expect(fixture.send(payload(200, 2))).toBe(1);
    await until("the next one is received", () => leaders.received.length === 1);
    expect(fixture.sender.counters.connectionsEnded).toBe(0);
  });

  it("is treated as unstaked without stake, without a key look-up by the server", async () => {
    const { leaders, fixture } = await startDelivery(1);
    fixture.send(payload(200, 1));
    await until("it is received", () => leaders.received.length === 1);
    expect(leaders.received[0]).toMatchObject({ peer: null, staked: false });
  });

  it("shows its identity in the certificate", async () => {
    const leaders = await startLeaders(1, ["--kind", "raw"]);
    open.leaders = leaders;
    await leaders.command("admit 0 128");
    const fixture = await startSender(leaders.addresses);
    open.fixture = fixture;
    await until("the connection is live", () => fixture.sender.liveCount === 1);
    fixture.send(payload(200, 1));
    await until("it is received", () => leaders.received.length === 1);
    expect(leaders.received[0]?.peer).toBe(getBase58Decoder().decode(fixture.identity.publicKey));
  });

  it("is treated as staked when its identity has stake", async () => {
    const identity = freshIdentity();
    const pubkey = getBase58Decoder().decode(identity.publicKey);
    const { leaders, fixture } = await startDelivery(
      1,
      ["--stake", `${pubkey}=1000000000000`],
      identity,
    );
    fixture.send(payload(200, 1));
    await until("it is received", () => leaders.received.length === 1);
    expect(leaders.received[0]).toMatchObject({ peer: pubkey, staked: true });
  });

  it("delivers to four leaders, once each", async () => {
    const { leaders, fixture } = await startDelivery(4);
    for (let seed = 0; seed < 50; seed += 1) expect(fixture.send(payload(300, seed))).toBe(4);
    await until("all are received", () => leaders.received.length === 200);
    await until("all are acknowledged", () => fixture.count("acked") === 200);
    for (let leader = 0; leader < 4; leader += 1) {
      const seeds = leaders.received
        .filter((it) => it.leader === leader)
        .map((it) => it.bytes.readUInt32LE(0));
      expect(new Set(seeds).size).toBe(50);
    }
  });

  it("loses nothing when it sends faster than the server reads an unstaked client", async () => {
    const { leaders, fixture } = await startDelivery(1);
    // 128 streams immediately, then 20 per 100 ms: further deliveries wait for credit.
    let taken = 0;
    for (let seed = 0; seed < 200; seed += 1) taken += fixture.send(payload(250, seed));
    expect(taken).toBeGreaterThan(128);
    const ended = () => fixture.count("acked") + fixture.count("failed") + fixture.count("dropped");
    await until("every delivery has ended", () => ended() === taken);
    await until(
      "all that were sent arrived",
      () => leaders.received.length === fixture.count("sent"),
    );
    expect(fixture.count("failed")).toBe(0);
    expect(fixture.sender.counters.connectionsEnded).toBe(0);
  });
});
