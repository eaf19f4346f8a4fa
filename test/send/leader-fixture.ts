/**
 * A leader on a fake clock and a fake transport, with a record of its reports.
 */

import { Leader, type LeaderOptions } from "../../src/send/leader.ts";
import { LeaderStatsTable } from "../../src/send/leader-stats.ts";
import { DELIVERIES_IN_FLIGHT_MAX } from "../../src/send/limits.ts";
import { newSendCounters } from "../../src/send/send-counters.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeTransport } from "../support/fake-transport.ts";
import { packetOf } from "../support/packets.ts";

export const TARGET = { identity: "leader", address: "10.0.0.1:8009", slot: 7 };
export const BYTES = Uint8Array.of(1, 2, 3);

const OPTIONS: LeaderOptions = {
  queuePerLeader: 3,
  deliveryTtlMs: 800,
  reconnectMs: 8_000,
  reconnectMsMax: 64_000,
  handshakeMs: 3_000,
  keepAliveMs: 1_000,
  lifetimeMs: 60_000,
  closeTimeoutMs: 2_000,
  unseenMs: 0,
  inFlightMax: DELIVERIES_IN_FLIGHT_MAX,
  random: () => 0,
  landedShareOf: () => 1,
};

export function setup(transport = createFakeTransport()) {
  const clock = createFakeClock();
  transport.nowNs = () => clock.nowNs();
  const counters = newSendCounters();
  const story: string[] = [];
  /** The connection's age in each report. */
  const ages: number[] = [];
  /** When the leader was reported unreachable. */
  const unreachable: number[] = [];
  const leaderStats = new LeaderStatsTable();
  const leader = new Leader(
    TARGET,
    {
      clock,
      transport,
      counters,
      leaderStats,
      onChange: () => {},
      onLeaderUnreachable: () => void unreachable.push(clock.nowNs()),
      report: (packetId, { identity }, kind, reason, _rttUs, ageMs) => {
        ages.push(ageMs);
        story.push([packetId, identity, kind, reason].filter((it) => it !== null).join(" "));
      },
    },
    OPTIONS,
  );
  const nowNs = (): number => clock.nowNs();
  return {
    clock,
    transport,
    counters,
    story,
    ages,
    unreachable,
    leader,
    stats: leaderStats.stats(TARGET.identity, TARGET.address),
    connect: () => leader.connect(nowNs()),
    trySend(id: number, bytes = BYTES) {
      const packet = packetOf(id, bytes);
      const result = leader.trySend(packet, nowNs());
      if (result === "accepted") leader.reportSent(packet, nowNs());
      return result;
    },
    queueUntilLive: (id: number, bytes = BYTES) =>
      leader.queueUntilLive(packetOf(id, bytes), nowNs()),
    /** The newest connection. */
    connection: () => transport.to(TARGET.address),
    later: (ms: number) => {
      clock.advance(ms);
      leader.tick(nowNs());
    },
  };
}

/** A leader whose connection accepts `credit` deliveries. */
export function live(credit = 1_000) {
  const fixture = setup();
  fixture.connect();
  fixture.connection().admit(credit);
  return fixture;
}
