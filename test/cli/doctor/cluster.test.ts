import { describe, expect, it } from "vitest";
import { type ClusterSide, clusterFindings } from "../../../src/cli/doctor/cluster.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { stub } from "../../support/stub.ts";

/** A node whose every answer takes some time, and that says nothing but its slot. */
function nodeThatTakes(ms: number, stakes = new Map<string, number>()): ClusterSide {
  const clock = createFakeClock();
  const slot = async (): Promise<number> => {
    clock.advance(ms);
    return 100;
  };
  return {
    clock,
    rpc: stub<ClusterSide["rpc"]>({
      slot,
      confirmedSlot: slot,
      contacts: async () => [],
      blockSignatures: async () => [],
      openSlotSubscriber: ({ event }) => {
        queueMicrotask(() => event("slot", "start", 101));
        return { subscribe: async () => true, end() {} } as never;
      },
      health: async () => null,
      version: async () => "4.3.0",
      votes: async () => ({ delinquent: [], stakes }),
    }),
  };
}

describe("a node of the cluster", () => {
  it("that answers late is asked on", async () => {
    const found = await clusterFindings(nodeThatTakes(80), null, 128);
    expect(found[0]).toMatchObject({ check: "reachable", level: "warning" });
    expect(found.map(({ check }) => check)).toContain("in_step");
    expect(found.length).toBeGreaterThan(3);
  });

  it("that answers at once is well", async () => {
    const [first] = await clusterFindings(nodeThatTakes(2), null, 128);
    expect(first).toMatchObject({ check: "reachable", level: "ok" });
  });

  it("that knows the identity's stake shows that the default queue is short", async () => {
    const queueOf = async (queuePerLeader: number, identity: string | null) => {
      const node = nodeThatTakes(2, new Map([["staked", 5e9]]));
      const found = await clusterFindings(node, identity, queuePerLeader);
      return found.find(({ check }) => check === "queue");
    };
    expect(await queueOf(128, "staked")).toMatchObject({
      level: "warning",
      message: "send.queue_per_leader is 128, and the identity has stake",
      fix: "send.queue_per_leader = 1024, or half a second of the edge's load",
    });
    expect(await queueOf(1_023, "staked")).toMatchObject({ level: "warning" });
    expect(await queueOf(1_024, "staked")).toMatchObject({ level: "ok" });
    for (const identity of [null, "unstaked"]) {
      expect(await queueOf(128, identity)).toMatchObject({
        level: "ok",
        message: "send.queue_per_leader is 128, and the identity has no stake",
      });
    }
  });
});
