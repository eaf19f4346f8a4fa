import { afterEach, describe, expect, it } from "vitest";
import { endAll, land, setUpByHand, setUpRunning } from "./cluster-fixture.ts";

afterEach(endAll);

describe("the simulated cluster", () => {
  it("produces a block in each slot that is not skipped", async () => {
    const { clock, cluster } = await setUpByHand({ skipShare: 0.3 });
    const first = cluster.currentSlot();
    clock.advance(250 * 1000);
    expect(cluster.currentSlot()).toBe(first + 1000);
    const { blocks, skipped } = cluster.counters;
    expect(blocks + skipped).toBe(1001);
    expect(skipped / 1001).toBeGreaterThan(0.25);
    expect(skipped / 1001).toBeLessThan(0.35);
  });

  it("continues while its RPC is down, which returns on the same ports", async () => {
    const { cluster, rpcUrl, wsUrl, web3 } = await setUpRunning();
    await cluster.stopRpc();
    await expect(fetch(`${rpcUrl}/health`)).rejects.toThrow();
    const { signature } = land(cluster, cluster.latestBlockhash());
    expect(cluster.statusOf(signature)).not.toBeNull();
    expect(await cluster.startRpc()).toEqual({ rpcUrl, wsUrl });
    expect((await web3.getSignatureStatus(signature)).value?.err).toBeNull();
  });

  it("leaves no timer behind when it is stopped", async () => {
    const { clock, cluster } = await setUpByHand();
    expect(clock.pending).toBe(1);
    await cluster.stop();
    expect(clock.pending).toBe(0);
  });
});
