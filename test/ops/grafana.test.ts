import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { SUBMISSION_UNITS_MAX } from "../../src/engine/limits.ts";
import { EVENT_NUMBERS } from "../../src/native/contract.ts";
import { CONTROL_METRICS } from "../../src/telemetry/control-metric-table.ts";
import type { MetricRow } from "../../src/telemetry/metric-rows.ts";
import { METRICS } from "../../src/telemetry/metric-table.ts";
import { createMetrics, type MetricSources } from "../../src/telemetry/metrics.ts";
import { parsePrometheus } from "../support/prometheus.ts";
import { ROOT } from "../support/source-tree.ts";

const FOLDER = join(ROOT, "ops/grafana");
const DATA_SOURCE = { type: "prometheus", uid: `\${datasource}` };
const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

const Place = z.object({
  x: z.int().min(0),
  y: z.int().min(0),
  w: z.int().min(1).max(24),
  h: z.int().min(1),
});
const Row = z.object({ id: z.int(), type: z.literal("row"), title: z.string(), gridPos: Place });
const Panel = z.object({
  id: z.int(),
  type: z.enum(["stat", "timeseries", "table"]),
  title: z.string().min(4).max(60),
  description: z.string(),
  gridPos: Place,
  datasource: z.object({ type: z.string(), uid: z.string() }),
  targets: z
    .array(z.object({ refId: z.string(), expr: z.string().min(1), legendFormat: z.string() }))
    .min(1),
  fieldConfig: z.object({
    defaults: z.object({
      unit: z.string().min(1),
      thresholds: z.object({
        mode: z.literal("absolute"),
        steps: z.array(z.object({ color: z.string(), value: z.number().nullable() })).min(1),
      }),
    }),
  }),
});
const Variable = z.object({ name: z.string(), type: z.string(), label: z.string() });
const Dashboard = z.object({
  uid: z.string().regex(/^touchdown-[a-z]+$/),
  id: z.null(),
  title: z.string().regex(/^Touchdown \/ [A-Z]/),
  description: z.string().min(10),
  tags: z.array(z.string()),
  schemaVersion: z.int().min(36),
  time: z.object({ from: z.string(), to: z.string() }),
  templating: z.object({ list: z.array(Variable.loose()) }),
  annotations: z.object({ list: z.array(z.object({ expr: z.string().optional() }).loose()) }),
  panels: z.array(z.union([Row, Panel])).min(1),
});

const files = readdirSync(FOLDER).filter((name) => name.endsWith(".json"));
const boards = files.map((file) => ({
  file,
  board: Dashboard.parse(JSON.parse(readFileSync(join(FOLDER, file), "utf8"))),
}));
const panelsOf = ({ panels }: z.infer<typeof Dashboard>) =>
  panels.flatMap((panel) => (panel.type === "row" ? [] : [panel]));
/** Each expression with its legend, and where it is. */
const queries = boards.flatMap(({ file, board }) => [
  ...panelsOf(board).flatMap(({ title, targets }) =>
    targets.map(({ expr, legendFormat }) => ({ at: `${file}: ${title}`, expr, legendFormat })),
  ),
  ...board.annotations.list.flatMap(({ expr }) =>
    expr === undefined ? [] : [{ at: `${file}: annotation`, expr, legendFormat: "" }],
  ),
]);

const recorded = readFileSync(join(ROOT, "ops/prometheus/rules.yaml"), "utf8").match(
  /(?<=record: )\S+/g,
);
/** The labels of each metric, without those that a scrape adds. */
const LABELS = await labelsByName();

async function labelsByName(): Promise<ReadonlyMap<string, readonly string[]>> {
  const labels = new Map<string, readonly string[]>();
  const rows: readonly MetricRow[] = [...METRICS, ...CONTROL_METRICS];
  for (const row of rows) {
    if (row.kind === "histogram") {
      labels.set(`${row.name}_bucket`, [...row.labels, "le"]);
      labels.set(`${row.name}_count`, row.labels);
      labels.set(`${row.name}_sum`, row.labels);
    } else labels.set(row.name, row.labels);
  }
  for (const name of recorded ?? []) labels.set(name, []);
  labels.set("ALERTS", ["alertname", "alertstate"]);
  // Those of the process, from the page itself.
  for (const name of parsePrometheus(await processPage()).keys()) labels.set(name, []);
  return labels;
}

/** A page of which only the metrics of the process matter. */
async function processPage(): Promise<string> {
  const empty = { boundsNs: [], counts: [0], sumNs: 0 };
  const sourceOf = ({ kind, labels }: MetricRow) => {
    if (kind === "histogram") return () => empty;
    return labels.length === 0 ? () => 0 : () => [];
  };
  const sources = METRICS.map((row) => [row.name, sourceOf(row)] as const);
  // Built from the table by the rule that also defines the type.
  const text = await createMetrics(Object.fromEntries(sources) as unknown as MetricSources).text();
  return text
    .split("\n\n")
    .filter((family) => !family.includes(" touchdown_"))
    .join("\n\n");
}

/** The metrics that an expression names, with the labels that it selects by. */
function selectorsOf(expr: string) {
  const bare = expr.replace(/\b(by|on|group_left) \([^)]*\)/g, "$1");
  return [...bare.matchAll(/([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})?(?![\w:]* *\()/g)].flatMap(
    ([, name = "", matchers]) => {
      if (WORDS.has(name) || isTime(expr, name)) return [];
      return [{ name, labels: [...(matchers ?? "").matchAll(/(\w+) *[=!]/g)].map(([, l]) => l) }];
    },
  );
}

const WORDS: ReadonlySet<string> = new Set(
  ["sum", "avg", "min", "max", "count", "by", "on", "group_left", "or", "rate", "increase"].concat([
    "histogram_quantile",
    "changes",
    "scalar",
    "vector",
    "__rate_interval",
  ]),
);

/** A duration as `1h`, or the exponent of a number. */
function isTime(expr: string, name: string): boolean {
  return /^(h|m|s|d|e9)$/.test(name) && !expr.includes(`${name}{`);
}

describe("dashboards", () => {
  it("are an overview, the regions, the stages, the leaders and the accounts", () => {
    expect(files.sort()).toEqual(
      ["accounts", "leaders", "overview", "region", "stages"].map((name) => `${name}.json`),
    );
  });

  it("have a uid each, after their file, and panels with an id and a place of their own", () => {
    for (const { file, board } of boards) {
      expect(`${board.uid}.json`).toBe(`touchdown-${file}`);
      expect(board.tags).toEqual(["touchdown"]);
      const ids = board.panels.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      const titles = panelsOf(board).map(({ title }) => title);
      expect(new Set(titles).size, file).toBe(titles.length);
      expect(overlaps(board.panels.map(({ gridPos }) => gridPos))).toEqual([]);
    }
  });

  it("choose the data source, the regions and their edges by variables", () => {
    for (const { board } of boards) {
      const [source, region, edge] = board.templating.list;
      expect(source).toMatchObject({ name: "datasource", type: "datasource", query: "prometheus" });
      expect(region).toMatchObject({ name: "region", includeAll: true, multi: true });
      expect(region?.["definition"]).toBe("label_values(touchdown_build_info, region)");
      expect(edge).toMatchObject({ name: "edge", includeAll: true, multi: true });
      expect(edge?.["definition"]).toContain(`region=~"$region"`);
      const panels = panelsOf(board);
      for (const { datasource } of panels) expect(datasource).toEqual(DATA_SOURCE);
      const known = board.templating.list.map(({ name }) => name).concat("__rate_interval");
      const used = panels.flatMap(({ targets }) =>
        targets.flatMap(({ expr }) => [...expr.matchAll(/\$(\w+)/g)].map(([, name]) => name)),
      );
      expect(used.filter((name) => !known.includes(name ?? ""))).toEqual([]);
    }
  });

  it("have ascending thresholds, the first without a value", () => {
    for (const { board } of boards) {
      for (const { fieldConfig, title } of panelsOf(board)) {
        const [first, ...rest] = fieldConfig.defaults.thresholds.steps.map(({ value }) => value);
        expect(first, title).toBeNull();
        expect(rest, title).toEqual(rest.toSorted((a, b) => Number(a) - Number(b)));
      }
    }
  });
});

describe("the threshold of events that wait for the main thread", () => {
  it("is the number of bytes from which on submissions are refused", () => {
    const panels = boards.flatMap(({ board }) => panelsOf(board));
    const panel = panels.find(({ title }) => title === "Events that wait for the main thread");
    const steps = panel?.fieldConfig.defaults.thresholds.steps.map(({ value }) => value);
    const unitBytes = EVENT_NUMBERS * Float64Array.BYTES_PER_ELEMENT;
    expect(steps).toEqual([null, SUBMISSION_UNITS_MAX * unitBytes]);
  });
});

describe("the queries of the dashboards", () => {
  it("name metrics that exist, and select by labels that these have", () => {
    const wrong = queries.flatMap(({ at, expr }) =>
      selectorsOf(expr).flatMap(({ name, labels }) => {
        const known = LABELS.get(name);
        if (known === undefined) return [`${at}: no metric ${name}`];
        const more = labels.filter((label) => ![...known, ...OF_A_SCRAPE].includes(label ?? ""));
        return more.map((label) => `${at}: ${name} has no label ${label}`);
      }),
    );
    expect(wrong).toEqual([]);
    expect(queries.flatMap(({ expr }) => selectorsOf(expr)).length).toBeGreaterThan(150);
  });

  it("group, and name their series, by labels that their metrics have", () => {
    for (const { at, expr, legendFormat } of queries) {
      const known = selectorsOf(expr).flatMap(({ name }) => LABELS.get(name) ?? []);
      const grouped = [...expr.matchAll(/\b(?:by|on|group_left) \(([^)]*)\)/g)].flatMap(
        ([, list = ""]) => list.split(/, */),
      );
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
      expect([...known, ...OF_A_SCRAPE], at).toEqual(
        expect.arrayContaining([...grouped, ...shown]),
      );
    }
  });

  it("cover the metrics that say what an edge accepts, sends and lands", () => {
    const used = new Set(queries.flatMap(({ expr }) => selectorsOf(expr).map(({ name }) => name)));
    const unused = METRICS.map(({ name }) => name).filter(
      (name) => !used.has(name) && !used.has(`${name}_bucket` as typeof name),
    );
    expect(unused.length).toBeLessThan(METRICS.length / 3);
  });

  it.skipIf(!hasPromtool && process.env["CI"] === undefined)("parse with promtool", () => {
    const folder = mkdtempSync(join(tmpdir(), "grafana-"));
    const rules = queries.map(({ expr }, index) => ({
      record: `query:${index}`,
      expr: expr.replaceAll("$__rate_interval", "1m").replaceAll(/\$(region|edge|control)/g, "a|b"),
    }));
    // JSON is YAML.
    const text = JSON.stringify({ groups: [{ name: "dashboards", rules }] });
    writeFileSync(join(folder, "rules.yaml"), text);
    const { status, stdout, stderr } = spawnSync("promtool", ["check", "rules", "rules.yaml"], {
      cwd: folder,
    });
    rmSync(folder, { recursive: true });
    expect(status === 0 ? "" : `${stdout}${stderr}`).toBe("");
    expect(String(stdout)).toContain(`${queries.length} rules found`);
  });
});

/** Labels that Prometheus adds. */
const OF_A_SCRAPE = ["instance", "job"];

/** Pairs of places that overlap, or that exceed the 24 columns. */
function overlaps(places: readonly z.infer<typeof Place>[]) {
  return places.flatMap((a, index) => [
    ...(a.x + a.w > 24 ? [[a]] : []),
    ...places
      .slice(index + 1)
      .filter((b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h)
      .map((b) => [a, b]),
  ]);
}
