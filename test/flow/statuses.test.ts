/**
 * A node that does not report the status of transactions: an edge detects it, reports it to
 * operators, and reports to no sender that what may have landed has expired.
 */

import { describe, expect, it } from "vitest";
import { decodeBase58 } from "../../src/core/encoding.ts";
import { startFakeGeyser } from "../support/fake-geyser.ts";
import { untilResponse } from "../support/flow.ts";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import { type Landed, useLanding } from "../support/landing-fixture.ts";
import { seriesValue } from "../support/prometheus.ts";
import { until } from "../support/wait.ts";

/** Blockhashes that expire within seconds. */
const SHORT = { slotMs: 50, blockhashAgeMax: 90 };

/** `SlotStatus` in Yellowstone's description. */
const CONFIRMED = 1;

const fixture = useLanding();

/** An edge on a cluster that has existed for longer than a probe looks back. */
async function start(statuses: "works" | "silent" | "unsupported"): Promise<Landed> {
  const network = await fixture.network({ cluster: SHORT });
  network.cluster.behave({ statuses });
  const first = network.cluster.currentSlot();
  await until("some blocks", () => network.cluster.currentSlot() > first + 60);
  return fixture.edge({}, network);
}

const reportsStatuses = async (running: Landed): Promise<number> =>
  seriesValue(await running.metrics(), "touchdown_node_reports_statuses");

const detail = (running: Landed): string =>
  running.edge.readiness().checks.find(({ name }) => name === "statuses")?.detail ?? "";

/** Posts a transaction; returns how it ended, once it did. */
async function endOf(running: Landed) {
  const { network } = running;
  const { bytes, signature } = network.tipped();
  expect(await running.post(bytes)).toBe(200);
  const { state, landing } = await running.ended(signature);
  const end = `${state} ${landing["reason"]}`;
  return { end, hasLanded: network.cluster.statusOf(signature) !== null };
}

describe("a node that reports no statuses", () => {
  it.each(["silent", "unsupported"] as const)("(%s) is detected", async (manner) => {
    const running = await start(manner);
    // On a stalled machine one may come too late to land; none is reported as expired.
    await untilResponse(
      "one that lands, and the node to be found out",
      async () => {
        const { end, hasLanded } = await endOf(running);
        expect(end).toBe("dropped status_unknown");
        return hasLanded && (await reportsStatuses(running)) === 0;
      },
      (isFound) => isFound,
      90_000,
    );
    expect(detail(running)).toContain("reports no statuses");
    expect(running.edge.readiness().ok).toBe(true);
    const warning = "warn the node reports no statuses: what landed cannot be learned from it";
    expect(running.lines.filter((line) => line === warning)).toHaveLength(1);

    running.network.cluster.behave({ statuses: "works" });
    await untilResponse(
      "one that is known to have landed",
      () => endOf(running),
      ({ end }) => end === "landed null",
      90_000,
    );
    expect(await reportsStatuses(running)).toBe(1);
    expectScrapedBalance(await running.metrics());
  });

  it("is distinguished from one with no status to report", async () => {
    const running = await start("works");
    for (const { identity } of running.network.contacts) running.network.deaf.add(identity);
    // Nothing lands, so only the node's own blocks can prove expiry; until then it is unknown.
    await untilResponse(
      "one that is known to have expired",
      async () => {
        const { end } = await endOf(running);
        expect(["expired blockhash_expired", "dropped status_unknown"]).toContain(end);
        return end;
      },
      (end) => end.startsWith("expired"),
      120_000,
    );
    expect(await reportsStatuses(running)).toBe(1);
  });

  it("hides nothing when gRPC reports landings and confirmations", async () => {
    const geyser = await startFakeGeyser();
    try {
      const network = await fixture.network({
        cluster: {
          onLanded({ signature, slot }) {
            const bytes = Buffer.from(decodeBase58(signature, 64) ?? []);
            geyser.say({ transaction_status: { slot, signature: bytes } });
          },
        },
      });
      network.cluster.behave({ statuses: "unsupported" });
      const running = await fixture.edge({ cluster: { grpc_url: geyser.url } }, network);
      await until("its stream", () => geyser.requests.length > 0);
      const { bytes, signature } = network.tipped();
      expect(await running.post(bytes)).toBe(200);
      const { landing } = await untilResponse(
        "a sighting",
        () => running.receipt(signature),
        ({ state }) => state === "processed",
      );
      geyser.say({ slot: { slot: landing["slot"], status: CONFIRMED } });
      expect(await running.ended(signature)).toMatchObject({ state: "landed" });
      expect(await reportsStatuses(running)).not.toBe(1);
      expectScrapedBalance(await running.metrics());
    } finally {
      geyser.stop();
    }
  });
});
