/**
 * A leader comes up under another address in the middle of its window: the edge detects the loss,
 * reads the addresses again, and what it has in flight lands there.
 */

import { describe, expect, it } from "vitest";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import { useLanding } from "../support/landing-fixture.ts";
import { seriesValue } from "../support/prometheus.ts";
import { until } from "../support/wait.ts";

const fixture = useLanding();

describe("a leader that moves in the middle of its window", () => {
  it("receives transactions at its new address, and lands them there", async () => {
    const { network, ...edge } = await fixture.start({ leaders: 2, cluster: { slotMs: 250 } });
    const [mover, other] = network.contacts;
    if (mover === undefined || other === undefined) throw new Error("two leaders");
    const { cluster } = network;
    const oldAddress = mover.address;
    const isMidst = (): boolean => {
      const slot = cluster.currentSlot();
      return cluster.leaderAt(slot) === mover.identity && [1, 2].includes(slot % 4);
    };
    // The other leader accepts everything and lands nothing.
    network.deaf.add(other.identity);
    network.deaf.add(mover.identity);
    await until("the middle of its window", isMidst);
    const before = network.tipped();
    expect(await edge.post(before.bytes)).toBe(200);
    await network.move(0);
    network.deaf.delete(mover.identity);
    expect(mover.address).not.toBe(oldAddress);
    // While it is gone, the other leader still fills the plan.
    const during = network.tipped();
    await edge.postUntilTaken(during);

    for (const { signature } of [before, during]) {
      const { state, leaders } = await edge.ended(signature);
      expect(state).toBe("landed");
      expect(cluster.statusOf(signature)?.leader).toBe(mover.identity);
      const acked = leaders.filter((delivery) => delivery.state === "acked");
      expect(acked.map(({ address }) => address)).toContain(mover.address);
    }
    const metrics = await edge.metrics();
    // The regular one-minute address refresh was not due: the edge detected the loss.
    expect(seriesValue(metrics, "touchdown_contacts_early_refreshes_total")).toBeGreaterThan(0);
    expectScrapedBalance(metrics);
  });
});
