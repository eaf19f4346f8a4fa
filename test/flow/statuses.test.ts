/**
 * A node that does not tell what became of transactions: an edge finds out, says so where operators
 * look, and tells no sender that what may have landed has expired.
 */

import { afterEach, describe, expect, it } from "vitest";
import { untilAnswer } from "../support/flow.ts";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import {
  type LandingEdge,
  type LandingNetwork,
  startLandingEdge,
  startLandingNetwork,
} from "../support/landing-network.ts";
import { seriesValue } from "../support/prometheus.ts";
import { until } from "../support/wait.ts";

/** Blockhashes that are old within seconds; what is to land has to within them. */
const SHORT = { slotMs: 50, blockhashAgeMax: 90 };

let network: LandingNetwork;
let edge: LandingEdge | null = null;
afterEach(async () => {
  await edge?.stop();
  await network?.stop();
});

/** An edge before a cluster that has existed for longer than a probe looks back. */
async function start(statuses: "works" | "silent" | "unsupported"): Promise<LandingEdge> {
  network = await startLandingNetwork({ cluster: SHORT });
  network.cluster.behave({ statuses });
  const first = network.cluster.currentSlot();
  await until("some blocks", () => network.cluster.currentSlot() > first + 60);
  edge = await startLandingEdge(network);
  return edge;
}

const told = async (running: LandingEdge): Promise<number> =>
  seriesValue(await running.metrics(), "touchdown_statuses_told");

const detail = (running: LandingEdge): string =>
  running.edge.readiness().checks.find(({ name }) => name === "statuses")?.detail ?? "";

describe("a node that tells no statuses", () => {
  it.each(["silent", "unsupported"] as const)("(%s) is found out", async (manner) => {
    const running = await start(manner);
    const { bytes, signature } = network.tipped();
    expect(await running.post(bytes)).toBe(200);
    const { state, landing } = await running.ended(signature);
    expect({ state, reason: landing["reason"] }).toEqual({
      state: "dropped",
      reason: "status_unknown",
    });
    // It did land: "expired" would have been a lie.
    expect(network.cluster.statusOf(signature)).not.toBeNull();
    expect(await told(running)).toBe(0);
    expect(detail(running)).toContain("tells no statuses");
    expect(running.edge.readiness().ok).toBe(true);
    const warning = "warn the node tells no statuses: what landed cannot be known of it";
    expect(running.lines.filter((line) => line === warning)).toHaveLength(1);

    network.cluster.behave({ statuses: "works" });
    const next = network.tipped();
    expect(await running.post(next.bytes)).toBe(200);
    expect(await running.ended(next.signature)).toMatchObject({ state: "landed" });
    expect(await told(running)).toBe(1);
    expectScrapedBalance(await running.metrics());
  });

  it("is not confused with one that has nothing to tell of", async () => {
    const running = await start("works");
    const { bytes, signature } = network.tipped(new Uint8Array(32).fill(9));
    expect(await running.post(bytes)).toBe(200);
    await untilAnswer(
      "a probe",
      () => told(running),
      (value) => value === 1,
    );
    const { state, landing } = await running.ended(signature);
    expect({ state, reason: landing["reason"] }).toEqual({
      state: "expired",
      reason: "blockhash_expired",
    });
  });
});
