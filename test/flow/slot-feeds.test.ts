/**
 * Slot feeds that lie, stop or lag, next to honest ones, and a node that reports wild heights:
 * transactions land all the same, and the metrics show what is wrong.
 */

import { describe, expect, it } from "vitest";
import type { ClusterFaults } from "../../src/sandbox/cluster-rpc.ts";
import { untilResponse } from "../support/flow.ts";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import { useLanding } from "../support/landing-fixture.ts";
import { type Family, seriesValue } from "../support/prometheus.ts";

const fixture = useLanding();

type Families = ReadonlyMap<string, Family>;

const of = (families: Families, name: string, source: string): number =>
  seriesValue(families, `touchdown_slot_source_${name}`, { source });

const FEEDS: readonly {
  readonly name: string;
  readonly faults: Partial<ClusterFaults>;
  /** What the metrics finally show. */
  readonly isReported: (families: Families) => boolean;
}[] = [
  {
    name: "occasionally reports a far future slot",
    faults: { bogusSlotsAhead: 1_000_000 },
    isReported: (families) =>
      seriesValue(families, "touchdown_slot_events_total", { result: "too_far_ahead" }) > 0,
  },
  {
    name: "is far in the future altogether",
    faults: { skewSlots: 1_000_000 },
    isReported: (families) => of(families, "followed", "slotsUpdates") === 0,
  },
  {
    name: "is thirty slots ahead",
    faults: { skewSlots: 30 },
    isReported: (families) => of(families, "followed", "slotsUpdates") === 0,
  },
  {
    name: "is twenty slots behind",
    faults: { skewSlots: -20 },
    isReported: (families) =>
      of(families, "followed", "slotsUpdates") === 0 &&
      of(families, "lag_seconds", "slotsUpdates") > 1,
  },
  {
    name: "stops",
    faults: { slotsUpdates: "silent" },
    isReported: (families) => of(families, "age_seconds", "slotsUpdates") > 1,
  },
];

describe("a slot subscription that", () => {
  it.each(FEEDS)(
    "$name does not keep transactions from landing",
    async ({ faults, isReported }) => {
      const { network, ...edge } = await fixture.start();
      // The feed was honest before, and so accepted.
      const first = network.tipped();
      expect(await edge.post(first.bytes)).toBe(200);
      expect(await edge.ended(first.signature)).toMatchObject({ state: "landed" });
      network.cluster.behave(faults);
      await untilResponse("the metrics to report it", edge.metrics, isReported);
      const signatures: string[] = [];
      for (let count = 0; count < 20; count += 1) {
        signatures.push(await edge.postUntilTaken(network.tipped()));
      }
      for (const signature of signatures) {
        expect(await edge.ended(signature)).toMatchObject({ state: "landed" });
      }
      // On a busy machine the value may be briefly stale, but never for long as far off as the lie.
      const families = await untilResponse(
        "a slot that is right",
        edge.metrics,
        (now) => Math.abs(seriesValue(now, "touchdown_slot") - network.cluster.currentSlot()) < 15,
      );
      expectScrapedBalance(families);
    },
  );
});

describe("a node that occasionally reports a far future height", () => {
  it("expires nothing that can still land", async () => {
    const { network, ...edge } = await fixture.start({ cluster: { slotMs: 250 } });
    const implausibleCount = (families: Families): number =>
      seriesValue(families, "touchdown_block_heights_total", { result: "implausible" });
    // Nothing lands while it lies.
    for (const { identity } of network.contacts) network.deaf.add(identity);
    const signature = await edge.postUntilTaken(network.tipped());
    // It was honest before: its first two heights are accepted.
    const honest = await untilResponse(
      "a height",
      edge.metrics,
      (now) => seriesValue(now, "touchdown_block_height") > 0,
    );
    const before = implausibleCount(honest);
    network.cluster.behave({ heightsAhead: 1_000_000 });
    await untilResponse(
      "its false heights",
      edge.metrics,
      (now) => implausibleCount(now) >= before + 4,
    );
    network.deaf.clear();
    expect(await edge.ended(signature)).toMatchObject({ state: "landed" });
    const families = await edge.metrics();
    expect(seriesValue(families, "touchdown_block_height")).toBeLessThan(1_000_000);
    expectScrapedBalance(families);
  });
});
