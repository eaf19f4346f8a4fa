/**
 * Feeds of slots that lie, stop or lag, beside honest ones: transactions land all the same, and the
 * metrics tell which source is off.
 */

import { afterEach, describe, expect, it } from "vitest";
import type { Vices } from "../../src/sandbox/cluster-rpc.ts";
import { untilAnswer } from "../support/flow.ts";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import {
  type LandingEdge,
  type LandingNetwork,
  startLandingEdge,
  startLandingNetwork,
} from "../support/landing-network.ts";
import { type Family, seriesValue } from "../support/prometheus.ts";

let network: LandingNetwork;
let edge: LandingEdge | null = null;
afterEach(async () => {
  await edge?.stop();
  await network?.stop();
});

type Families = ReadonlyMap<string, Family>;

const of = (families: Families, name: string, source: string): number =>
  seriesValue(families, `touchdown_slot_source_${name}`, { source });

const FEEDS: readonly {
  readonly name: string;
  readonly vices: Partial<Vices>;
  /** What the metrics tell of it in the end. */
  readonly tells: (families: Families) => boolean;
}[] = [
  {
    name: "tells of a far future now and then",
    vices: { bogusSlotsAhead: 1_000_000 },
    tells: (families) =>
      seriesValue(families, "touchdown_slot_events_total", { result: "far_ahead" }) > 0,
  },
  {
    name: "is far in the future altogether",
    vices: { skewSlots: 1_000_000 },
    tells: (families) => of(families, "followed", "slotsUpdates") === 0,
  },
  {
    name: "is thirty slots ahead",
    vices: { skewSlots: 30 },
    tells: (families) => of(families, "followed", "slotsUpdates") === 0,
  },
  {
    name: "is twenty slots behind",
    vices: { skewSlots: -20 },
    tells: (families) =>
      of(families, "followed", "slotsUpdates") === 0 &&
      of(families, "lag_seconds", "slotsUpdates") > 1,
  },
  {
    name: "stops",
    vices: { slotsUpdates: "silent" },
    tells: (families) => of(families, "age_seconds", "slotsUpdates") > 1,
  },
];

describe("a feed of slots that", () => {
  it.each(FEEDS)("$name does not keep transactions from landing", async ({ vices, tells }) => {
    network = await startLandingNetwork();
    const running = await startLandingEdge(network);
    edge = running;
    // It was honest before, and so believed.
    const first = network.tipped();
    expect(await running.post(first.bytes)).toBe(200);
    expect(await running.ended(first.signature)).toMatchObject({ state: "landed" });
    network.cluster.behave(vices);
    await untilAnswer("the metrics to tell", running.metrics, tells);
    const built = Array.from({ length: 20 }, () => network.tipped());
    for (const { bytes } of built) {
      await untilAnswer(
        "a leader that takes it",
        () => running.post(bytes),
        (status) => status === 200,
      );
    }
    for (const { signature } of built) {
      expect(await running.ended(signature)).toMatchObject({ state: "landed" });
    }
    // What is told may be a moment old on a busy machine, but never for long as far off as the lie.
    const families = await untilAnswer(
      "a slot that is right",
      running.metrics,
      (now) => Math.abs(seriesValue(now, "touchdown_slot") - network.cluster.currentSlot()) < 15,
    );
    expectScrapedBalance(families);
  });
});
