import { afterEach, describe, expect, it } from "vitest";
import {
  alpenglow,
  endAll,
  LEADERS,
  land,
  SLOT_MS,
  setUpByHand,
  setUpRunning,
} from "./cluster-fixture.ts";

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

  it("shows an observer each block, each landing and each confirmation, in order", async () => {
    const seen: string[] = [];
    let first = 0;
    const note = (what: string, { slot }: { readonly slot: number }): void => {
      seen.push(`${what} ${slot - first}`);
    };
    const { clock, cluster } = await setUpByHand({
      ...alpenglow({ twoBanksShare: 1 }),
      observer: {
        blockStarted: (block) => note("started", block),
        blockEnded: (block) => note("ended", block),
        confirmed: (block) => note("confirmed", block),
        landed: (landed) => note("landed", landed),
      },
    });
    while (cluster.currentSlot() % 4 !== 3) clock.advance(SLOT_MS);
    first = cluster.currentSlot();
    seen.length = 0;
    clock.advance(SLOT_MS);
    land(cluster, cluster.latestBlockhash("confirmed"));
    clock.advance(2 * SLOT_MS);
    expect(seen).toEqual([
      ...["ended 0", "confirmed 0", "started 1", "landed 1", "landed 1"],
      // The second bank of the slot.
      ...["started 1", "ended 1", "confirmed 1", "started 2"],
      ...["ended 2", "confirmed 2", "started 3"],
    ]);
  });

  it("lands no airdrop that leaves its account below the minimum for rent", async () => {
    const { cluster, landed, payer } = await setUpByHand();
    const owner = LEADERS[0]?.identity ?? "";
    expect(() => cluster.airdrop(owner, 1n)).toThrow("InsufficientFundsForRent");
    expect(landed).toEqual([]);
    cluster.airdrop(payer.address, 1n);
    expect(landed).toHaveLength(1);
  });

  it("leaves no timer behind when it is stopped", async () => {
    const { clock, cluster } = await setUpByHand();
    expect(clock.pending).toBe(1);
    await cluster.stop();
    expect(clock.pending).toBe(0);
  });
});
