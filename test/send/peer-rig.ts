/** A peer on a fake clock and a fake transport, with a record of what it reports. */

import { Scorecard } from "../../src/send/leader-stats.ts";
import { COPIES_IN_FLIGHT_MAX } from "../../src/send/limits.ts";
import { Peer, type PeerOptions } from "../../src/send/peer.ts";
import { newSendCounters } from "../../src/send/send-counters.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeTransport } from "../support/fake-transport.ts";
import { packetOf } from "../support/packets.ts";

export const TARGET = { identity: "leader", address: "10.0.0.1:8009", slot: 7 };
export const BYTES = Uint8Array.of(1, 2, 3);

const OPTIONS: PeerOptions = {
  queuePerPeer: 3,
  copyTtlMs: 800,
  reconnectMs: 8_000,
  reconnectMsMax: 64_000,
  handshakeMs: 3_000,
  keepAliveMs: 1_000,
  lifetimeMs: 60_000,
  lingerMs: 2_000,
  unseenMs: 0,
  inFlightMax: COPIES_IN_FLIGHT_MAX,
  random: () => 0,
};

export function setup(transport = createFakeTransport()) {
  const clock = createFakeClock();
  const counters = newSendCounters();
  const story: string[] = [];
  /** The connection's age in each report. */
  const ages: number[] = [];
  /** When the leader was missed. */
  const missed: number[] = [];
  const scorecard = new Scorecard();
  const peer = new Peer(
    TARGET,
    {
      clock,
      transport,
      counters,
      scorecard,
      onChange: () => {},
      onMissed: () => void missed.push(clock.nowNs()),
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
    missed,
    peer,
    card: scorecard.card(TARGET.identity, TARGET.address),
    connect: () => peer.connect(nowNs()),
    offer: (id: number, bytes = BYTES) => peer.offer(packetOf(id, bytes), TARGET, nowNs()),
    awaitLive: (id: number, bytes = BYTES) => peer.awaitLive(packetOf(id, bytes), TARGET, nowNs()),
    /** The newest connection. */
    connection: () => transport.to(TARGET.address),
    later: (ms: number) => {
      clock.advance(ms);
      peer.tick(nowNs());
    },
  };
}

/** A peer whose connection takes `credit` copies. */
export function live(credit = 1_000) {
  const rig = setup();
  rig.connect();
  rig.connection().admit(credit);
  return rig;
}
