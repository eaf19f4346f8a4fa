import { describe, expect, it, vi } from "vitest";
import { DELIVERY_REASONS, REJECTIONS } from "../../src/core/errors.ts";
import { CONTROL_METRICS } from "../../src/telemetry/control-metric-table.ts";
import type { MetricRow } from "../../src/telemetry/metric-rows.ts";
import { METRICS } from "../../src/telemetry/metric-table.ts";
import { createMetrics, type MetricSources, samplesBy } from "../../src/telemetry/metrics.ts";
import { parsePrometheus, seriesValue } from "../support/prometheus.ts";

const histogram = { boundsNs: [10_000, 100_000], counts: [3, 0, 2], sumNs: 2_500_000 };

/** A source for every row; values that are not given are zero. */
function sources(given: Partial<MetricSources> = {}): MetricSources {
  const all: Record<string, () => unknown> = {};
  for (const row of METRICS as readonly MetricRow[]) {
    if (row.kind === "histogram") all[row.name] = () => histogram;
    else all[row.name] = row.labels.length === 0 ? () => 0 : () => [];
  }
  // Built from the table by the rule that also defines the type.
  return { ...all, ...given } as unknown as MetricSources;
}

const page = async (given: Partial<MetricSources> = {}) =>
  parsePrometheus(await createMetrics(sources(given), { process: false }).text());

describe("the metric table", () => {
  const rows: readonly MetricRow[] = [...METRICS, ...CONTROL_METRICS];

  it("names each metric once, in base units, counters and only counters with _total", () => {
    expect(new Set(rows.map((row) => row.name)).size).toBe(rows.length);
    for (const row of rows) {
      expect(row.name).toMatch(/^touchdown_[a-z_]+$/);
      expect(row.name).not.toMatch(/_(ms|us|ns|millis|micros|kb|mb|count|sum|bucket)$/);
      expect(row.name.endsWith("_total")).toBe(row.kind === "counter");
      if (row.kind === "histogram") expect(row.name).toMatch(/_(seconds|bytes|slots)$/);
      expect(row.help).toMatch(/\.$/);
    }
  });

  it("has no label with unbounded values", () => {
    const known = ["version", "engine", "region", "outcome", "reason", "result"];
    known.push("path", "feed", "event", "kind", "state", "source", "client", "leader", "reachable");
    known.push("consensus", "plan", "thread", "number", "identity", "protocol");
    for (const row of rows) for (const label of row.labels) expect(known).toContain(label);
  });
});

describe("the metrics page", () => {
  it("shows every row with its kind and help, and nothing else", async () => {
    const families = await page();
    expect([...families.keys()]).toEqual(METRICS.map((row) => row.name));
    for (const row of METRICS) {
      expect(families.get(row.name)).toMatchObject({ kind: row.kind, help: row.help });
    }
  });

  it("reads the sources at each scrape, not before", async () => {
    let slot = 7;
    const metrics = createMetrics(sources({ touchdown_slot: () => slot }), { process: false });
    expect(seriesValue(parsePrometheus(await metrics.text()), "touchdown_slot")).toBe(7);
    slot = 8;
    expect(seriesValue(parsePrometheus(await metrics.text()), "touchdown_slot")).toBe(8);
  });

  it("shows values of one moment, and yields to the event loop while it writes them", async () => {
    let counted = 1;
    const [first, last] = ["touchdown_ready", "touchdown_receipts"] as const;
    const names = METRICS.map((row): string => row.name);
    expect(names.indexOf(last) - names.indexOf(first)).toBeGreaterThan(8);
    const given = { [first]: () => counted, [last]: () => counted };
    const metrics = createMetrics(sources(given), { process: false });
    let turns = 0;
    const turn = (): void => {
      turns += 1;
      counted += 1;
      timer = setImmediate(turn);
    };
    let timer = setImmediate(turn);
    const families = parsePrometheus(await metrics.text());
    clearImmediate(timer);
    expect(turns).toBeGreaterThan(METRICS.length / 16);
    expect(seriesValue(families, first)).toBe(1);
    expect(seriesValue(families, last)).toBe(1);
  });

  it("returns one page to all requests while it is written", async () => {
    let reads = 0;
    const slot = (): number => {
      reads += 1;
      return reads;
    };
    const metrics = createMetrics(sources({ touchdown_slot: slot }), { process: false });
    const [one, other] = await Promise.all([metrics.text(), metrics.text()]);
    expect(other).toBe(one);
    await metrics.text();
    expect(reads).toBe(2);
  });

  it("shows one series for each labelled counter", async () => {
    const outcomes = {
      accepted: 4,
      ...Object.fromEntries(Object.keys(REJECTIONS).map((r) => [r, 1])),
    };
    const losses = Object.fromEntries(Object.keys(DELIVERY_REASONS).map((reason) => [reason, 2]));
    const families = await page({
      touchdown_requests_total: () => samplesBy("outcome", outcomes),
      touchdown_deliveries_unacknowledged_total: () => samplesBy("reason", losses),
    });
    expect(seriesValue(families, "touchdown_requests_total", { outcome: "accepted" })).toBe(4);
    expect(families.get("touchdown_requests_total")?.samples).toHaveLength(
      Object.keys(REJECTIONS).length + 1,
    );
    const full = { reason: "queue_full" };
    expect(seriesValue(families, "touchdown_deliveries_unacknowledged_total", full)).toBe(2);
  });

  it("writes a histogram of nanoseconds as accumulated buckets in seconds", async () => {
    const text = await createMetrics(sources(), { process: false }).text();
    expect(text).toContain(
      [
        "# TYPE touchdown_first_send_seconds histogram",
        'touchdown_first_send_seconds_bucket{le="0.00001"} 3',
        'touchdown_first_send_seconds_bucket{le="0.0001"} 3',
        'touchdown_first_send_seconds_bucket{le="+Inf"} 5',
        "touchdown_first_send_seconds_sum 0.0025",
        "touchdown_first_send_seconds_count 5",
      ].join("\n"),
    );
    parsePrometheus(text);
  });

  it("escapes label values", async () => {
    const region = 'a "quoted\\ region"\nwith a break';
    const labels = { version: "1", engine: "portable", region };
    const families = await page({ touchdown_build_info: () => [{ labels, value: 1 }] });
    expect(seriesValue(families, "touchdown_build_info", labels)).toBe(1);
  });

  it("shows an unknown age as NaN", async () => {
    const families = await page({ touchdown_slot_age_seconds: () => Number.NaN });
    expect(seriesValue(families, "touchdown_slot_age_seconds")).toBeNaN();
  });

  it("adds the process and its event loop, with no gauge named like a counter", async () => {
    const families = parsePrometheus(await createMetrics(sources()).text());
    expect(seriesValue(families, "process_resident_memory_bytes")).toBeGreaterThan(0);
    expect(families.has("nodejs_eventloop_lag_p99_seconds")).toBe(true);
    for (const { name, kind } of families.values()) {
      expect(name.endsWith("_total"), name).toBe(kind === "counter");
    }
  });

  it("uses no JavaScript timer that wakes an idle process", async () => {
    const timers = vi.spyOn(globalThis, "setInterval");
    const families = parsePrometheus(await createMetrics(sources()).text());
    const pausesMs = timers.mock.calls.map(([, pauseMs]) => pauseMs);
    timers.mockRestore();
    expect(pausesMs.filter((pauseMs) => (pauseMs ?? 0) < 3_600_000)).toEqual([]);
    expect([...families.keys()].filter((name) => name.includes("utilization"))).toEqual([]);
  });

  it("is rejected when a row has no source", () => {
    const { touchdown_slot: _left, ...rest } = sources();
    // The compiler rejects it as well, hence the cast.
    expect(() => createMetrics(rest as unknown as MetricSources)).toThrow(/touchdown_slot/);
  });

  it("is rejected when a source has no row", () => {
    const more = { ...sources(), touchdown_other: () => 1 };
    expect(() => createMetrics(more)).toThrow(/touchdown_other/);
  });

  it.each([
    [
      "labels that the row does not have",
      { touchdown_leader_connections: () => [{ labels: {}, value: 1 }] },
    ],
    ["a negative counter", { touchdown_duplicate_submissions_total: () => -1 }],
    ["what is not a number", { touchdown_decoded_total: () => [{ labels: { path: "x" } }] }],
    [
      "counts that do not fit the bounds",
      { touchdown_delivery_ack_seconds: () => ({ ...histogram, counts: [1] }) },
    ],
  ])("fails the scrape on %s", async (_name, given) => {
    const broken = { ...sources(), ...given } as unknown as MetricSources;
    await expect(createMetrics(broken, { process: false }).text()).rejects.toThrow(/touchdown_/);
  });
});
