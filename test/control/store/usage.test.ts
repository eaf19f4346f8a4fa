import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  USAGE_SLOT_BOUNDS,
  USAGE_WIRE_BOUNDS_NS,
} from "../../../src/accounts/usage/usage-shape.ts";
import { percentile } from "../../../src/control/store/usage.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { actor, createFixture, plain, value } from "./fixture.ts";

const { store, clock, user, there } = await createFixture();
const edge = there.open(there.edgeUrl);
const all = { region: null, keyId: null };
const MINUTE_MS = 60_000;

/** A histogram with `count` values in bucket `at`, and none in the others. */
function bucket(bounds: readonly number[], at: number, count: number): number[] {
  return Array.from({ length: bounds.length + 1 }, (_, index) => (index === at ? count : 0));
}

async function write(region: string, key: string, minute: number, requests: number, name = "e") {
  const row = {
    key,
    minute,
    requests,
    accepted: requests - 1,
    refused: 1,
    bytes: 100,
    landed: 3,
    expired: 1,
    dropped: 0,
    wire: bucket(USAGE_WIRE_BOUNDS_NS, 2, requests - 1),
    slots: bucket(USAGE_SLOT_BOUNDS, 1, 3),
    reasons: [
      ["refused", "rate_limited", 1],
      ["expired", "blockhash_expired", 1],
    ],
  };
  await edge.query("select touchdown.edge_write_usage($1, 1, $2, $3, $4)", [
    randomUUID(),
    name,
    region,
    JSON.stringify([row]),
  ]);
}

describe("the overview", () => {
  it("adds up by step, region, key and reason, over each span", async () => {
    const { id } = await user();
    const { key } = value(await store.keys.create(id, { ...plain, label: "bot" }, actor));
    const [other] = (await store.keys.list(id)).filter((one) => one.id !== key.id);
    const nowMs = clock.unixMs();
    const before = (await store.usage.overall("month")).requests;
    await write("fra", key.id, nowMs, 10);
    await write("fra", key.id, nowMs - 30 * MINUTE_MS, 20);
    await write("nyc", other?.id ?? "", nowMs - 5 * 60 * MINUTE_MS, 40);
    await write("nyc", key.id, nowMs - 9 * 24 * 60 * MINUTE_MS, 80);
    const counts = [];
    for (const span of ["hour", "day", "month"] as const) {
      const seen = await store.usage.overview(id, { span, ...all });
      expect(seen.points.reduce((sum, { requests }) => sum + requests, 0)).toBe(
        seen.total.requests,
      );
      counts.push([seen.points.length, seen.total.requests]);
    }
    expect(counts).toEqual([
      [60, 30],
      [96, 70],
      [720, 150],
    ]);
    const month = await store.usage.overview(id, { span: "month", ...all });
    expect(month.total).toMatchObject({
      accepted: 146,
      refused: 4,
      landed: 12,
      expired: 4,
      landedShare: 0.75,
      wireNsP50: USAGE_WIRE_BOUNDS_NS[2],
      slotDeltaP99: USAGE_SLOT_BOUNDS[1],
    });
    const names = month.byKey.map(({ label, requests }) => [label, requests]).sort();
    expect(names).toEqual([
      ["First key", 40],
      ["bot", 110],
    ]);
    expect(month.byRegion.map(({ region, requests }) => [region, requests]).sort()).toEqual([
      ["fra", 30],
      ["nyc", 120],
    ]);
    expect(month.byReason).toEqual([
      { kind: "expired", reason: "blockhash_expired", count: 4 },
      { kind: "refused", reason: "rate_limited", count: 4 },
    ]);
    const chosen = await store.usage.overview(id, { span: "month", region: "nyc", keyId: key.id });
    expect([chosen.total.requests, chosen.byReason[0]?.count]).toEqual([80, 1]);
    expect((await store.usage.overall("month")).requests).toBe(before + 150);
  });

  it("of the last minutes has whole ones only, and the requests of the busiest edge", async () => {
    const { id } = await user();
    const [key] = await store.keys.list(id);
    const nowMs = clock.unixMs();
    const ages = [
      [3, 1000],
      [2, 10],
      [1, 30],
      [0, 1000],
    ] as const;
    for (const [minutes, requests] of ages) {
      await write("fra", key?.id ?? "", nowMs - minutes * MINUTE_MS, requests, "fra-1");
      await write("fra", key?.id ?? "", nowMs - minutes * MINUTE_MS, 2 * requests, "fra-2");
    }
    const recent = await store.usage.recent(id);
    expect(recent).toMatchObject({ requests: 120, refused: 4, busiestEdgeRequests: 80 });
  });

  it("of an account without usage, or of none, is empty and not wrong", async () => {
    const { id } = await user();
    for (const account of [id, "nobody"]) {
      const seen = await store.usage.overview(account, { span: "hour", region: "x", keyId: null });
      expect(seen.points).toHaveLength(60);
      expect(seen.total).toMatchObject({ requests: 0, landedShare: null, wireNsP50: null });
      expect([seen.byRegion, seen.byKey, seen.byReason]).toEqual([[], [], []]);
      expect((await store.usage.recent(account)).requests).toBe(0);
    }
  });

  it("shows another account nothing", async () => {
    const [mine, other] = [await user(), await user()];
    const [key] = await store.keys.list(mine.id);
    await write("fra", key?.id ?? "", clock.unixMs(), 10);
    const query = { span: "hour", region: null, keyId: key?.id ?? "" } as const;
    expect((await store.usage.overview(other.id, query)).total.requests).toBe(0);
  });

  it("of a month of minutes, three keys and two regions, is whole", async () => {
    const { id } = await user();
    for (let i = 0; i < 2; i += 1) value(await store.keys.create(id, plain, actor));
    const filled = (length: number): string => `array_fill(7::bigint, array[${length}])`;
    for (const [table, step] of [
      ["usage_minutes", "1 minute"],
      ["usage_hours", "1 hour"],
    ] as const) {
      await there.owner.query(
        `insert into touchdown.${table}
         select $1, at, k.id, r, r, 60, 50, 10, 9000, 40, 8, 2,
           ${filled(USAGE_WIRE_BOUNDS_NS.length + 1)}, ${filled(USAGE_SLOT_BOUNDS.length + 1)}
         from generate_series(date_trunc('hour', $2::timestamptz) - interval '719 hours',
             date_trunc('hour', $2::timestamptz) + interval '59 minutes', $3::interval) at,
           touchdown.keys k, unnest(array['fra', 'nyc']) r
         where k.account_id = $1`,
        [id, new Date(clock.unixMs()), step],
      );
    }
    await there.owner.query("analyze touchdown.usage_minutes, touchdown.usage_hours");
    const told: string[] = [];
    for (const span of ["hour", "day", "month"] as const) {
      const startNs = systemClock.nowNs();
      const seen = await store.usage.overview(id, { span, ...all });
      told.push(`${span} ${((systemClock.nowNs() - startNs) / 1e6).toFixed(0)} ms`);
      expect(seen.points.every(({ requests }) => span === "hour" || requests > 0)).toBe(true);
      expect([seen.byKey.length, seen.byRegion.length]).toEqual([3, 2]);
    }
    process.stdout.write(`overview over 259,200 rows of minutes: ${told.join(", ")}\n`);
  });
});

describe("a percentile", () => {
  const bounds = [1, 2, 5];
  it.each([
    [[0, 0, 0, 0], 0.5, null],
    [[1, 0, 0, 0], 0.99, 1],
    [[50, 49, 1, 0], 0.5, 1],
    [[50, 49, 1, 0], 0.51, 2],
    [[50, 49, 1, 0], 0.99, 2],
    [[50, 49, 1, 0], 1, 5],
    [[0, 0, 0, 3], 0.5, 5],
  ])("of %j at %d is %j", (counts, share, response) => {
    expect(percentile(counts, bounds, share)).toBe(response);
  });
});
