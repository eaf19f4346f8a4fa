import { describe, expect, it } from "vitest";
import { createReadiness } from "../../src/edge/readiness.ts";
import type { RouterStatus } from "../../src/route/router.ts";
import { readSource } from "../support/source-tree.ts";

const READY: RouterStatus = {
  slot: 1_000,
  slotTimeMs: 400,
  slotAgeMs: 120.4,
  scheduleCovers: true,
  epochs: [2],
  contacts: 4,
  delinquent: 0,
  targets: 2,
};

function readinessOf(
  status: Partial<RouterStatus> = {},
  liveCount = 1,
  feed: { hasKeys: boolean } | null = null,
  isServing = true,
  engine: "native" | "portable" = "native",
) {
  const world = { status: { ...READY, ...status }, liveCount, reporting: "yes" as "yes" | "no" };
  const readiness = createReadiness({
    router: { status: () => world.status },
    sender: {
      get liveCount() {
        return world.liveCount;
      },
    },
    cluster: { statusReporting: () => world.reporting },
    feed,
    engine,
  });
  if (isServing) readiness.serve();
  return { world, readiness };
}

/** The names of the failing checks. */
const failing = ({ readiness }: ReturnType<typeof readinessOf>): string[] =>
  readiness
    .check()
    .checks.filter(({ ok }) => !ok)
    .map(({ name }) => name);

describe("an edge's readiness", () => {
  it("waits for keys when a database provides them", () => {
    const feed = { hasKeys: false };
    const fixture = readinessOf({}, 1, feed);
    expect(failing(fixture)).toEqual(["keys"]);
    feed.hasKeys = true;
    expect(failing(fixture)).toEqual([]);
  });

  it("has a cause in the runbook for each check that may fail", () => {
    const nothing = { slot: null, slotAgeMs: null, scheduleCovers: false, contacts: 0 };
    const names = failing(readinessOf(nothing, 0, { hasKeys: false }, false));
    const [, text = ""] = readSource("docs/runbook.md").text.split("## TouchdownEdgeNotReady\n");
    const [paragraph = ""] = text.split("\n## ");
    expect(names).toHaveLength(6);
    expect(names.filter((name) => !paragraph.includes(`\`${name}\``))).toEqual([]);
  });

  it("is reported when all data is known, with details", () => {
    const { ok, checks } = readinessOf().readiness.check();
    expect(ok).toBe(true);
    expect(checks).toEqual([
      { name: "serving", ok: true, detail: "taking work" },
      { name: "slot", ok: true, detail: "slot 1000, last event 120 ms ago" },
      { name: "schedule", ok: true, detail: "the current leader is known" },
      { name: "contacts", ok: true, detail: "4 leaders with an address" },
      { name: "live", ok: true, detail: "1 live connections" },
      { name: "statuses", ok: true, detail: "the node reports statuses" },
      { name: "engine", ok: true, detail: "the native engine sends" },
    ]);
  });

  it("names the portable engine, with what it is for", () => {
    const { ok, checks } = readinessOf({}, 1, null, true, "portable").readiness.check();
    expect(ok).toBe(true);
    const detail = "the portable engine sends, which is for development only";
    expect(checks).toContainEqual({ name: "engine", ok: true, detail });
  });

  it("waits until clients can connect", () => {
    const edge = readinessOf({}, 1, null, false);
    const detail = "no client can connect yet";
    const { ok, checks } = edge.readiness.check();
    expect(ok).toBe(false);
    expect(checks).toContainEqual({ name: "serving", ok: false, detail });
    edge.readiness.serve();
    expect(failing(edge)).toEqual([]);
    edge.readiness.drain();
    expect(failing(edge)).toEqual(["serving"]);
  });

  it("distinguishes a node that hangs from one that is silent", () => {
    const hanging = readinessOf({ slot: null }).readiness.check();
    const detail = "slot unknown because the node reports no new one, last event 120 ms ago";
    expect(hanging.checks).toContainEqual({ name: "slot", ok: false, detail });
    const silent = readinessOf({ slot: null, slotAgeMs: null }).readiness.check();
    const none = "slot unknown, no event yet";
    expect(silent.checks).toContainEqual({ name: "slot", ok: false, detail: none });
  });

  it("is ready, with a note, when the node reports no statuses", () => {
    const edge = readinessOf();
    edge.world.reporting = "no";
    const { ok, checks } = edge.readiness.check();
    expect(ok).toBe(true);
    const detail = expect.stringContaining("reports no statuses");
    expect(checks).toContainEqual({ name: "statuses", ok: true, detail });
  });

  it.each([
    ["no slot", "slot", { slot: null }, 1],
    ["no slot event yet", "slot", { slotAgeMs: null }, 1],
    ["a slot feed silent for more than 5 s", "slot", { slotAgeMs: 5_000.1 }, 1],
    ["an unknown current leader", "schedule", { scheduleCovers: false }, 1],
    ["no leader's address", "contacts", { contacts: 0 }, 1],
    ["no live connection", "live", {}, 0],
  ] as const)("is denied for %s, and names only the check %s", (_, name, status, liveCount) => {
    const edge = readinessOf(status, liveCount);
    expect(failing(edge)).toEqual([name]);
    expect(edge.readiness.check().ok).toBe(false);
  });

  it("tolerates a slot event of 5 s ago", () => {
    expect(readinessOf({ slotAgeMs: 5_000 }).readiness.check().ok).toBe(true);
  });

  it("follows the state: lost, recovered, and lost for good by draining", () => {
    const edge = readinessOf();
    edge.world.liveCount = 0;
    expect(failing(edge)).toEqual(["live"]);
    edge.world.liveCount = 3;
    expect(failing(edge)).toEqual([]);
    edge.readiness.drain();
    expect(failing(edge)).toEqual(["serving"]);
    edge.readiness.drain();
    expect(failing(edge)).toEqual(["serving"]);
  });
});
