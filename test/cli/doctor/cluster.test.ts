import { describe, expect, it } from "vitest";
import { type ClusterSide, clusterFindings } from "../../../src/cli/doctor/cluster.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { stub } from "../../support/stub.ts";

/** A node whose every answer takes some time, and that says nothing but its slot. */
function nodeThatTakes(ms: number): ClusterSide {
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
    }),
    facts: stub<ClusterSide["facts"]>({
      health: async () => null,
      version: async () => "4.3.0",
      stakes: async () => new Map(),
    }),
    close() {},
  };
}

describe("a node of the cluster", () => {
  it("that answers late is asked on", async () => {
    const found = await clusterFindings(nodeThatTakes(80), null);
    expect(found[0]).toMatchObject({ check: "reachable", level: "warning" });
    expect(found.map(({ check }) => check)).toContain("in_step");
    expect(found.length).toBeGreaterThan(3);
  });

  it("that answers at once is well", async () => {
    const [first] = await clusterFindings(nodeThatTakes(2), null);
    expect(first).toMatchObject({ check: "reachable", level: "ok" });
  });
});
