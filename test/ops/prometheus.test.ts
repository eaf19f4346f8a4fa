import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONTROL_METRICS } from "../../src/telemetry/control-metric-table.ts";
import { METRICS } from "../../src/telemetry/metric-table.ts";
import { ROOT } from "../support/source-tree.ts";

const FOLDER = join(ROOT, "ops/prometheus");
const rules = readFileSync(join(FOLDER, "rules.yaml"), "utf8");
const config = readFileSync(join(FOLDER, "prometheus.yaml"), "utf8");
const ruleTests = readFileSync(join(FOLDER, "rules.test.yaml"), "utf8");
const runbook = readFileSync(join(ROOT, "docs/runbook.md"), "utf8");
const alerts = [...new Set([...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name ?? ""))];
const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

function promtool(...words: string[]): string {
  const { status, stdout, stderr } = spawnSync("promtool", words, { cwd: FOLDER });
  return status === 0 ? "" : `${stdout}${stderr}`;
}

describe("rules for Prometheus", () => {
  it("name metrics that the edge and the control process have", () => {
    const known = new Set<string>([...METRICS, ...CONTROL_METRICS].map(({ name }) => name));
    const used = [...rules.matchAll(/(?<![\w:#])touchdown_\w+/g)].map(([name]) =>
      name.replace(/_(bucket|count|sum)$/, ""),
    );
    expect(used.filter((name) => !known.has(name))).toEqual([]);
    expect(used.length).toBeGreaterThan(30);
  });

  it.each(alerts)("%s links to a paragraph of the runbook", (name) => {
    expect(rules).toContain(`runbook: docs/runbook.md#${name.toLowerCase()}\n`);
    expect(runbook).toMatch(new RegExp(`^## ${name}\n\n\\*Users see\\*`, "m"));
  });

  it("have a paragraph for no other alert", () => {
    const titles = [...runbook.matchAll(/^## (Touchdown\w+)$/gm)].map(([, name]) => name);
    expect(titles.sort()).toEqual([...alerts].sort());
  });

  it.each(alerts)("%s has a test", (name) => {
    expect(ruleTests).toMatch(new RegExp(`alertname: ${name}\\b`));
  });

  it.skipIf(!hasPromtool && process.env["CI"] === undefined)("pass promtool's tests", () => {
    expect(promtool("check", "rules", "rules.yaml")).toBe("");
    expect(promtool("test", "rules", "rules.test.yaml")).toBe("");
  });
});

describe("the example of a scrape configuration", () => {
  it("loads the rules, has one job for each region and names every edge", () => {
    expect(config).toMatch(/^rule_files: \[rules\.yaml\]$/m);
    const jobs = [...config.matchAll(/job_name: (\S+)/g)].map(([, name]) => name ?? "");
    expect(new Set(jobs).size).toBe(jobs.length);
    for (const job of jobs) expect(job).toMatch(/^touchdown-[a-z]+$/);
    const targets = [...config.matchAll(/^ +- \{ targets: .*$/gm)].map(([line]) => line);
    expect(targets.length).toBeGreaterThan(jobs.length);
    for (const line of targets) expect(line).toMatch(/labels: \{ instance: [a-z0-9-]+ \}/);
  });

  it.skipIf(!hasPromtool && process.env["CI"] === undefined)("passes promtool's check", () => {
    expect(promtool("check", "config", "prometheus.yaml")).toBe("");
  });
});
