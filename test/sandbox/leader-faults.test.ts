/** The configurable faults of a simulated leader, as a transport sees them. */

import { afterEach, describe, expect, it } from "vitest";
import type { LeaderBehaviour } from "../../src/sandbox/leader.ts";
import type { Transport } from "../../src/send/transport.ts";
import {
  connectTo,
  payload,
  startLeader,
  startTransport,
  type TestLeader,
} from "../send/loopback.ts";
import { until } from "../support/wait.ts";

const open: { leader: TestLeader | null; transport: Transport | null } = {
  leader: null,
  transport: null,
};

afterEach(async () => {
  await open.transport?.stop();
  await open.leader?.leader.stop();
});

async function startFixture(behaviour: Partial<LeaderBehaviour>) {
  open.leader = await startLeader(behaviour);
  open.transport = await startTransport();
  const { connection, cause } = connectTo(open.transport, open.leader.address);
  const { leader, received } = open.leader;
  return { leader, received, connection, cause };
}

describe("a leader with a fault", () => {
  it("completes the handshake and grants no stream", async () => {
    const { connection } = await startFixture({ streamsMax: 0 });
    await until("the handshake", () => connection.established);
    for (let round = 0; round < 20; round += 1) {
      connection.ping();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(connection.admitted).toBe(false);
    expect(connection.send(payload(100))).toBeLessThan(0);
  });

  it("evicts each connection with code 1 after its time", async () => {
    const { leader, cause } = await startFixture({ evictAfterMs: 50 });
    await until("the close", () => cause() !== null);
    expect(cause()).toEqual({ kind: "app", code: 1 });
    expect(leader.counters.evictions).toBe(1);
  });

  for (const code of [1, 2, 4, 5]) {
    it(`closes new connections with code ${code}`, async () => {
      const { cause } = await startFixture({ closeNew: { code, reason: "no" } });
      await until("the close", () => cause() !== null);
      expect(cause()).toEqual({ kind: "app", code });
    });
  }

  it("drops a connection that is silent for two seconds", async () => {
    const { connection, leader } = await startFixture({ idleTimeoutMs: 2_000 });
    await until("admission", () => connection.admitted);
    expect(leader.counters.connections).toBe(1);
    await until("it is forgotten", () => leader.connectionCount === 0);
  });

  it("loses the first datagrams of an address, and accepts the retransmitted ones", async () => {
    const { connection, received, leader } = await startFixture({ dropFirst: 2 });
    await until("admission", () => connection.admitted);
    connection.send(payload(300));
    await until("the transaction", () => received.length === 1);
    expect(leader.counters.connectionsIgnored).toBe(2);
  });

  it("loses a transaction with late fragments, and no other", async () => {
    const { connection, received, leader } = await startFixture({ fragmentMs: 0 });
    await until("admission", () => connection.admitted);
    expect(connection.send(payload(4096))).toBeGreaterThanOrEqual(0);
    await until("the late fragment", () => leader.counters.fragmentsLate > 0);
    connection.send(payload(300));
    await until("an unfragmented transaction", () => received.length > 0);
    expect(received.map(({ bytes }) => bytes.length)).toEqual([300]);
  });
});
