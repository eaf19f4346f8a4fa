/**
 * A bad network between a complete edge and its leaders: a seeded proxy loses, delays, reorders and
 * duplicates datagrams of a real QUIC engine. What was accepted lands, and every delivery ends
 * once.
 */

import { describe, expect, it } from "vitest";
import type { Faults } from "../../src/sandbox/fault-proxy.ts";
import { untilResponse } from "../support/flow.ts";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import { useLanding } from "../support/landing-fixture.ts";
import { seriesValue } from "../support/prometheus.ts";

const fixture = useLanding();

const NETWORKS: readonly {
  readonly name: string;
  readonly faults: Partial<Faults>;
  /** The counter of the proxies that shows that it happened. */
  readonly shows: "lost" | "reordered" | "doubled" | "passed";
}[] = [
  { name: "loses a tenth", faults: { loss: 0.1 }, shows: "lost" },
  { name: "is far away and unsteady", faults: { delayMs: 60, jitterMs: 60 }, shows: "passed" },
  { name: "reorders a fifth", faults: { reorder: 0.2, reorderMs: 30 }, shows: "reordered" },
  { name: "doubles a fifth", faults: { duplicate: 0.2 }, shows: "doubled" },
  {
    name: "does all of it",
    faults: { loss: 0.05, delayMs: 20, jitterMs: 20, reorder: 0.1, duplicate: 0.05 },
    shows: "lost",
  },
];

describe("a network that", () => {
  it.each(NETWORKS)("$name lands every accepted transaction", async ({ faults, shows }) => {
    const { network, ...edge } = await fixture.start({ faults, cluster: { slotMs: 250 } });
    const signatures: string[] = [];
    for (let count = 0; count < 60; count += 1) {
      signatures.push(await edge.postUntilTaken(network.tipped()));
    }
    for (const signature of signatures) {
      expect(await edge.ended(signature)).toMatchObject({ state: "landed" });
      const { leaders } = await untilResponse(
        "every delivery to end",
        () => edge.receipt(signature),
        (receipt) => receipt.leaders.every(({ state }) => state !== "sent"),
      );
      for (const { state, reason } of leaders) expect(state === "acked").toBe(reason === null);
    }
    const happened = network.proxies.reduce((sum, { counters }) => sum + counters[shows], 0);
    expect(happened).toBeGreaterThan(0);
    const deliveries = (outcome: string) => (families: Parameters<typeof seriesValue>[0]) =>
      seriesValue(families, "touchdown_deliveries_ended_total", { outcome });
    const families = await untilResponse(
      "the deliveries of resends to end",
      edge.metrics,
      (now) =>
        seriesValue(now, "touchdown_deliveries_sent_total") ===
        deliveries("acked")(now) + deliveries("failed")(now),
    );
    const { accepted, landed } = expectScrapedBalance(families);
    expect({ accepted, landed }).toEqual({ accepted: 60, landed: 60 });
  });
});
