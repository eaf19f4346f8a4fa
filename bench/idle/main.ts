/**
 * `npm run bench:idle` measures what an idle edge costs. An edge with the default configuration and
 * a simulated cluster of four leaders with 250 ms slots: the slots are known, connections are warm,
 * and no transactions arrive. It prints processor time per second, by thread; then the memory that
 * the native engine alone takes for a thousand warm connections, and its processor time.
 */

import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { rssMb } from "../load/children.ts";
import { commit, machine } from "../machine.ts";
import { startConnections, startFixture } from "./fixture.ts";
import { ratesBetween, type ThreadRate, threadTimes } from "./threads.ts";

const USAGE = `usage: npm run bench:idle -- [options]

  --seconds N       how long each is measured (20)
  --settle N        how long each runs before that (10)
  --connections N   warm connections of the native engine; 0: not measured (1000)
  --no-edge         measures the connections alone
  --dry             prints, and keeps no result`;

const RESULTS = join(import.meta.dirname, "../results");

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "20" },
    settle: { type: "string", default: "10" },
    connections: { type: "string", default: "1000" },
    "no-edge": { type: "boolean", default: false },
    dry: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const seconds = Number(values.seconds);
const connections = Number(values.connections);

if (values.help) console.log(USAGE);
else {
  if (!values["no-edge"]) await measureEdge();
  if (connections > 0) await measureConnections();
}

async function measureEdge(): Promise<void> {
  const fixture = await startFixture();
  try {
    const threads = await ratesOf(fixture.edgePid);
    const rss = rssMb(fixture.edgePid);
    report("idle edge", threads, { rss_mb: rss });
  } finally {
    await fixture.stop();
  }
}

async function measureConnections(): Promise<void> {
  const fixture = await startConnections(connections);
  try {
    await sleep(2_000);
    const before = rssMb(fixture.pid);
    await fixture.warm();
    const threads = await ratesOf(fixture.pid);
    const after = rssMb(fixture.pid);
    const grown = before === null || after === null ? null : after - before;
    report(`${connections} warm connections`, threads, { rss_grown_mb: grown });
  } finally {
    await fixture.stop();
  }
}

async function ratesOf(pid: number): Promise<readonly ThreadRate[]> {
  await sleep(Number(values.settle) * 1000);
  const before = threadTimes(pid);
  const beforeNs = process.hrtime.bigint();
  await sleep(seconds * 1000);
  const took = Number(process.hrtime.bigint() - beforeNs) / 1e9;
  return ratesBetween(before, threadTimes(pid), took);
}

function report(
  what: string,
  threads: readonly ThreadRate[],
  memory: Readonly<Record<string, number | null>>,
): void {
  const woken = threads.filter((rate) => rate.wakes_per_s > 0);
  const sum = (pick: (rate: ThreadRate) => number): number =>
    woken.reduce((all, rate) => all + pick(rate), 0);
  const cpu = sum((rate) => rate.cpu_ms_per_s);
  const wakes = sum((rate) => rate.wakes_per_s);
  for (const { name, cpu_ms_per_s: ms, wakes_per_s: turns } of woken) {
    console.log(`  ${name.padEnd(16)} ${ms.toFixed(2)} ms/s, ${turns.toFixed(1)} turns/s`);
  }
  const taken = JSON.stringify(memory);
  console.log(`${what}: ${cpu.toFixed(2)} ms of CPU a second, ${wakes.toFixed(0)} wakes, ${taken}`);
  if (values.dry) return;
  const line = {
    at: new Date().toISOString(),
    machine: machine(),
    node: process.version,
    commit: commit(),
    what,
    seconds,
    cpu_ms_per_s: cpu,
    wakes_per_s: wakes,
    ...memory,
    threads: woken,
  };
  mkdirSync(RESULTS, { recursive: true });
  appendFileSync(join(RESULTS, "idle.ndjson"), `${JSON.stringify(line)}\n`);
}
