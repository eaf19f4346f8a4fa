import { describe, expect, it } from "vitest";
import { slotOriginsOf } from "../../src/edge/leaders.ts";

describe("slot sources", () => {
  it("count as one node when they share a host, whatever the ports", () => {
    const urls = { rpcUrl: "http://a.test:8899/key", wsUrl: "wss://a.test:8900" };
    const own = { slotsUpdates: "a.test", slot: "a.test", polling: "a.test" };
    expect(slotOriginsOf({ ...urls, grpcUrl: "https://b.test" })).toEqual({
      ...own,
      grpc: "b.test",
    });
    expect(slotOriginsOf({ ...urls, grpcUrl: "http://a.test:10000" }).grpc).toBe("a.test");
    expect(slotOriginsOf({ ...urls, wsUrl: "ws://c.test", grpcUrl: null }).slot).toBe("c.test");
  });
});
