import { describe, expect, it } from "vitest";
import { clientKindOfVersion, LeaderStats, LeaderStatsTable } from "../../src/send/leader-stats.ts";

const ADDRESS = "10.0.0.1:8009";

describe("the leader stats", () => {
  it("return estimates for an unknown leader, and show no unmeasured value", () => {
    const leaderStats = new LeaderStatsTable();
    expect([leaderStats.roundTripMs("A"), leaderStats.neededMs("A")]).toEqual([100, 100]);
    expect(leaderStats.leadMs("A")).toBe(Number.POSITIVE_INFINITY);
    expect(leaderStats.size).toBe(0);
    leaderStats.stats("A", ADDRESS);
    expect(leaderStats.view()[0]).toMatchObject({
      reachable: null,
      clientKind: "unknown",
      rttMs: null,
      handshakeMs: null,
      neededMs: null,
      ackedShare: null,
      landedShare: null,
      ends: {},
    });
  });

  it("keep means of delivery times", () => {
    const leaderStats = new LeaderStatsTable();
    const stats = leaderStats.stats("A", ADDRESS);
    stats.rttUs = 40_000;
    expect(leaderStats.neededMs("A")).toBe(40);
    stats.ack(50_000);
    stats.ack(60_000);
    expect(leaderStats.neededMs("A")).toBe(51);
    expect(leaderStats.roundTripMs("A")).toBe(40);
  });

  it("report the share that was acknowledged, and how many of those landed", () => {
    const leaderStats = new LeaderStatsTable();
    const stats = leaderStats.stats("A", ADDRESS);
    stats.sent = 4;
    stats.ack(1_000);
    stats.ack(1_000);
    leaderStats.landed("A");
    leaderStats.landed("nobody");
    expect(leaderStats.view()[0]).toMatchObject({ ackedShare: 0.5, landedShare: 0.5 });
  });

  it("forget the leader with the oldest last attempt at their bound", () => {
    const leaderStats = new LeaderStatsTable({ leadersMax: 2 });
    leaderStats.stats("A", ADDRESS).rttUs = 1_000;
    leaderStats.stats("B", ADDRESS).rttUs = 2_000;
    leaderStats.stats("A", ADDRESS);
    leaderStats.stats("C", ADDRESS);
    expect(leaderStats.size).toBe(2);
    expect([leaderStats.roundTripMs("A"), leaderStats.roundTripMs("B")]).toEqual([1, 100]);
  });

  it("list leaders by deliveries sent, up to the requested count", () => {
    const leaderStats = new LeaderStatsTable();
    for (const [identity, sent] of [
      ["A", 1],
      ["B", 3],
      ["C", 2],
    ] as const) {
      leaderStats.stats(identity, ADDRESS).sent = sent;
    }
    expect(leaderStats.view(2).map((row) => row.identity)).toEqual(["B", "C"]);
  });
});

describe("the leader counts", () => {
  it("group leaders by client kind and reachability", () => {
    const leaderStats = new LeaderStatsTable({
      versionOf: (identity) => (identity === "A" ? null : "4.2"),
    });
    leaderStats.stats("A", ADDRESS);
    for (const identity of ["B", "C"]) leaderStats.stats(identity, ADDRESS).admit(128, false);
    const stats = leaderStats.stats("D", ADDRESS);
    for (let count = 0; count < 3; count += 1) stats.end("unanswered", false, false);
    expect(leaderStats.countByKind()).toEqual([
      { clientKind: "unknown", reachable: "unknown", count: 1 },
      { clientKind: "agave", reachable: "yes", count: 2 },
      { clientKind: "agave", reachable: "no", count: 1 },
    ]);
  });
});

describe("the reliability of a leader", () => {
  it("falls with each end by its policy and rises when the leader is reached", () => {
    const leaderStats = new LeaderStatsTable();
    const stats = leaderStats.stats("A", ADDRESS);
    stats.end("unanswered", false, false);
    stats.end("unanswered", false, false);
    expect(leaderStats.reliabilityOf("A")).toBe(0.25);
    expect(leaderStats.view()[0]).toMatchObject({ reachable: false, ends: { unanswered: 2 } });
    stats.admit(128, false);
    expect(leaderStats.reliabilityOf("A")).toBe(0.625);
    expect(leaderStats.view()[0]).toMatchObject({ reachable: true, streamsMax: 128 });
  });

  it("is independent of the last reachability", () => {
    const leaderStats = new LeaderStatsTable();
    const stats = leaderStats.stats("A", ADDRESS);
    const reachable = () => leaderStats.view()[0]?.reachable;
    const reported = [reachable()];
    for (const happens of [
      () => stats.end("local", false, false),
      () => stats.admit(128, false),
      () => stats.end("unanswered", false, false),
      () => stats.ack(1_000),
      () => stats.end("silent", true, true),
    ]) {
      happens();
      reported.push(reachable());
    }
    expect(reported).toEqual([null, false, true, false, true, true]);
  });
});

describe("the lead time of a connection", () => {
  it("shrinks with each eviction of an idle one, down to two handshakes and slack", () => {
    const leaderStats = new LeaderStatsTable();
    const stats = leaderStats.stats("A", ADDRESS);
    stats.established(100_000, false);
    const leads: number[] = [];
    for (let count = 0; count < 6; count += 1) {
      stats.end("evicted", true, false);
      leads.push(leaderStats.leadMs("A"));
    }
    expect(leads).toEqual([2_000, 1_000, 500, 350, 350, 350]);
  });

  it("ignores an eviction after the window, and is restored after a successful window", () => {
    const leaderStats = new LeaderStatsTable();
    const stats = leaderStats.stats("A", ADDRESS);
    stats.end("evicted", true, true);
    expect(leaderStats.leadMs("A")).toBe(Number.POSITIVE_INFINITY);
    stats.end("evicted", true, false);
    stats.ack(1_000);
    expect(leaderStats.leadMs("A")).toBe(Number.POSITIVE_INFINITY);
  });

  it("leaves time for the probe's response and another connection", () => {
    const leaderStats = new LeaderStatsTable();
    const stats = leaderStats.stats("A", ADDRESS);
    stats.rttUs = 50_000;
    stats.established(100_000, false);
    expect([leaderStats.responseMs("A"), leaderStats.probeLeadMs("A")]).toEqual([250, 450]);
  });
});

describe("the client kind of a leader", () => {
  it.each([
    [null, "unknown"],
    ["", "unknown"],
    ["main", "unknown"],
    ["0.708.40300", "firedancer"],
    ["26.8.1", "firedancer"],
    ["4.2.1", "agave"],
    ["v3.1.0-beta.2", "agave"],
  ])("by its version %j is %s", (version, clientKind) => {
    expect(clientKindOfVersion(version)).toBe(clientKind);
  });

  it("prefers its behaviour over its version", () => {
    const leaderStats = new LeaderStatsTable({ versionOf: () => "4.2.1" });
    const stats = new LeaderStats("A", ADDRESS);
    expect(leaderStats.clientKindOf(stats)).toBe("agave");
    stats.established(1_000, true);
    expect(leaderStats.clientKindOf(stats)).toBe("firedancer");
    const wide = new LeaderStats("B", ADDRESS);
    wide.admit(2 ** 60, false);
    expect(leaderStats.clientKindOf(wide)).toBe("firedancer");
    const full = new LeaderStats("C", ADDRESS);
    full.end("too_many", false, false);
    expect(new LeaderStatsTable({ versionOf: () => "0.708.1" }).clientKindOf(full)).toBe("agave");
  });
});
