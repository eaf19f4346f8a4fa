/**
 * `npm run bench:idle`: what an edge costs while it waits. An edge with the default configuration
 * before a simulated cluster of four leaders with 250 ms slots: the slots are known, connections
 * are warm, and no transaction comes. Its processor time each second, thread by thread.
 */

import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { rssMb } from "../load/children.ts";
import { commit, machine } from "../machine.ts";
import { startScene } from "./scene.ts";
import { ratesBetween, type ThreadRate, threadTimes } from "./threads.ts";

const USAGE = `usage: npm run bench:idle -- [options]

  --seconds N    how long is measured (20)
  --settle N     how long the edge runs before that (10)
  --dry          prints, and keeps no result`;

const RESULTS = join(import.meta.dirname, "../results");

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "20" },
    settle: { type: "string", default: "10" },
    dry: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (values.help) console.log(USAGE);
else await run(Number(values.seconds), Number(values.settle));

async function run(seconds: number, settle: number): Promise<void> {
  const scene = await startScene();
  try {
    await sleep(settle * 1000);
    const before = threadTimes(scene.edgePid);
    const beforeNs = process.hrtime.bigint();
    await sleep(seconds * 1000);
    const took = Number(process.hrtime.bigint() - beforeNs) / 1e9;
    const threads = ratesBetween(before, threadTimes(scene.edgePid), took);
    report(threads, took, rssMb(scene.edgePid));
  } finally {
    await scene.stop();
  }
}

function report(threads: readonly ThreadRate[], seconds: number, rss: number | null): void {
  const sum = (pick: (rate: ThreadRate) => number): number =>
    threads.reduce((all, rate) => all + pick(rate), 0);
  const cpu = sum((rate) => rate.cpu_ms_per_s);
  const wakes = sum((rate) => rate.wakes_per_s);
  for (const { name, cpu_ms_per_s: ms, wakes_per_s: turns } of threads) {
    if (turns > 0)
      console.log(`${name.padEnd(16)} ${ms.toFixed(2)} ms/s, ${turns.toFixed(1)} turns/s`);
  }
  console.log(
    `idle edge: ${cpu.toFixed(2)} ms of CPU a second, ${wakes.toFixed(0)} wakes, ${rss} MB`,
  );
  if (values.dry) return;
  const line = {
    at: new Date().toISOString(),
    machine: machine(),
    node: process.version,
    commit: commit(),
    seconds,
    cpu_ms_per_s: cpu,
    wakes_per_s: wakes,
    rss_mb: rss,
    threads: threads.filter((rate) => rate.wakes_per_s > 0),
  };
  mkdirSync(RESULTS, { recursive: true });
  appendFileSync(join(RESULTS, "idle.ndjson"), `${JSON.stringify(line)}\n`);
}
