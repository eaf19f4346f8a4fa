/** What a scrape costs: it runs on the HTTP thread, which sends nothing meanwhile. */

import { strict as assert } from "node:assert";
import { Bench } from "tinybench";
import { createHistogram } from "../../../src/runtime/histogram.ts";
import type { MetricRow } from "../../../src/telemetry/metric-rows.ts";
import { METRICS } from "../../../src/telemetry/metric-table.ts";
import { createMetrics, type MetricSources } from "../../../src/telemetry/metrics.ts";
import { parsePrometheus, seriesValue } from "../../../test/support/prometheus.ts";

/** Values of each labelled row, about as many as an edge has. */
const VALUES = 16;

export async function build(): Promise<Bench> {
  const histogram = createHistogram();
  for (let us = 1; us < 100_000; us *= 2) histogram.record(us * 1000);
  const sources: Record<string, () => unknown> = {};
  for (const row of METRICS as readonly MetricRow[]) {
    const samples = Array.from({ length: VALUES }, (_, value) => ({
      labels: Object.fromEntries(row.labels.map((label) => [label, `value_${value}`])),
      value,
    }));
    if (row.kind === "histogram") sources[row.name] = () => histogram;
    else sources[row.name] = row.labels.length === 0 ? () => 1 : () => samples;
  }
  // Built from the table by the rule that its type also follows.
  const given = sources as unknown as MetricSources;
  const edge = createMetrics(given, { process: false });
  const whole = createMetrics(given);

  const families = parsePrometheus(await whole.text());
  assert.equal(seriesValue(families, "touchdown_first_send_seconds_count"), histogram.count);

  return new Bench({ name: "scrape", time: 500 })
    .add("the table's metrics", async () => void (await edge.text()))
    .add("with the process's own", async () => void (await whole.text()));
}
