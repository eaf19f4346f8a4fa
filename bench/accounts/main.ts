/**
 * `npm run bench:accounts` measures how soon five edges receive a change with 100,000 keys, and
 * what a million keys cost one edge: start from the database and from disk, memory, a look-up, and
 * how long the event loop is blocked meanwhile. Also measures the dashboard's Overview over a
 * month. The memory of a feed's process includes the TypeScript loader; operators run the edge.
 */

import { once } from "node:events";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../../src/core/clock.ts";
import {
  type Child,
  cpuUs,
  freePort,
  LIKE_THE_IMAGE,
  startChild,
  untilReady,
} from "../load/children.ts";
import { commit, machine } from "../machine.ts";
import { type BenchDatabase, digestOf, startDatabase, textOf } from "./database.ts";
import type { FeedMessage } from "./feed-process.ts";
import { overviewOfMonth } from "./month.ts";

const RESULTS = join(import.meta.dirname, "../results/accounts.ndjson");
const LOAD_BEFORE = Math.round((loadavg()[0] ?? 0) * 10) / 10;
const READY_MS = 120_000;

const { values } = parseArgs({
  options: {
    edges: { type: "string", default: "5" },
    changes: { type: "string", default: "400" },
    keys: { type: "string", default: "100000" },
    many: { type: "string", default: "1000000" },
    month: { type: "string", default: "yes" },
  },
});
const [edges, changes, keys, many] = [values.edges, values.changes, values.keys, values.many].map(
  Number,
) as [number, number, number, number]; // Four added, four removed.

type Stats = Readonly<Record<string, number | string | null>>;

function note(task: string, stats: Stats): void {
  const at = new Date().toISOString();
  const where = { machine: { ...machine(), load_before: LOAD_BEFORE }, node: process.version };
  const line = { at, ...where, commit: commit(), task, ...stats };
  mkdirSync(join(RESULTS, ".."), { recursive: true });
  appendFileSync(RESULTS, `${JSON.stringify(line)}\n`);
  process.stdout.write(`${task.padEnd(28)} ${JSON.stringify(stats)}\n`);
}

interface FeedChild {
  readonly child: Child;
  readonly ready: Extract<FeedMessage, { kind: "ready" }>;
  report(): Promise<Extract<FeedMessage, { kind: "report" }>>;
}

async function startFeed(url: string, journal: string): Promise<FeedChild> {
  const file = join(import.meta.dirname, "feed-process.ts");
  const child = startChild([...LIKE_THE_IMAGE, "--import", "tsx", file, url, journal], true);
  const ready = await message(child, "ready");
  return {
    child,
    ready,
    async report() {
      const response = message(child, "report");
      child.process.send("report");
      return await response;
    },
  };
}

async function message<Kind extends FeedMessage["kind"]>(
  child: Child,
  kind: Kind,
): Promise<Extract<FeedMessage, { kind: Kind }>> {
  const signal = AbortSignal.timeout(READY_MS);
  const died = once(child.process, "exit", { signal }).then(() => {
    throw new Error(`the feed ended: ${child.output()}`);
  });
  died.catch(() => undefined);
  // The child sends no other messages.
  const [got] = (await Promise.race([once(child.process, "message", { signal }), died])) as [
    Extract<FeedMessage, { kind: Kind }>,
  ];
  if (got.kind !== kind) throw new Error(`${got.kind} instead of ${kind}`);
  return got;
}

async function propagation(database: BenchDatabase): Promise<void> {
  await database.fill(keys);
  const urls = Array.from({ length: edges }, (_, i) => join(database.folder, `edge-${i}.journal`));
  const feeds = await Promise.all(urls.map((path) => startFeed(database.edgeUrl, path)));
  await pause(2_000);
  const committed: { readonly digest: string; readonly atNs: number; readonly made: boolean }[] =
    [];
  for (let number = 0; number < changes; number += 1) {
    const made = number % 2 === 0;
    const text = made ? `change ${number}` : textOf(number);
    await (made ? database.make(text) : database.revoke(text));
    committed.push({ digest: digestOf(text).toString("hex"), atNs: systemClock.nowNs(), made });
    await pause(20 + (number % 7) * 10);
  }
  await pause(2_000);
  const reports = await Promise.all(feeds.map((feed) => feed.report()));
  for (const kind of ["made", "revoked"] as const) {
    const lateMs = committed
      .filter(({ made }) => made === (kind === "made"))
      .flatMap(({ digest, atNs }) =>
        reports.map(({ knownNs }) => ((knownNs.get(digest) ?? Number.NaN) - atNs) / 1e6),
      );
    if (lateMs.some(Number.isNaN)) throw new Error(`a key ${kind} was never known`);
    // The feed received the change before the writer received its own response: 0 ms.
    const sorted = lateMs.map((ms) => Math.max(0, ms)).sort((a, b) => a - b);
    const at = (share: number) => round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0);
    const stats = { p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1) };
    note(`${kind}, known everywhere`, { edges, keys, changes: sorted.length / edges, ...stats });
  }
  await Promise.all(feeds.map(({ child }) => child.stop()));
}

async function startOfMany(database: BenchDatabase): Promise<void> {
  await database.fill(many);
  const journal = join(database.folder, "many.journal");
  const nowhere = "postgres://nobody@127.0.0.1:1/none";
  for (const [task, url] of [
    ["start from the database", database.edgeUrl],
    ["start from disk", nowhere],
  ] as const) {
    const feed = await startFeed(url, journal);
    // The journal is written meanwhile, and the event loop is measured.
    await pause(task === "start from disk" ? 2_000 : 20_000);
    const report = await feed.report();
    note(task, {
      keys: feed.ready.keys,
      start_ms: round(feed.ready.startMs),
      start_cpu_ms: round(feed.ready.startCpuMs),
      rss_mb: round(report.rssMb),
      rss_mb_max: round(report.rssMbMax),
      lookup_ns: round(report.lookupNs),
      find_ns: round(report.findNs),
      held_ms_p99: round(report.heldMsP99),
      held_ms_max: round(report.heldMsMax),
      held_cpu_ms_p99: round(report.heldCpuMsP99),
      held_cpu_ms_max: round(report.heldCpuMsMax),
      journal_ms: Number.isNaN(report.rewriteMs) ? null : round(report.rewriteMs),
    });
    await feed.child.stop();
  }
  await wholeEdge(database, "database", database.edgeUrl);
  // Starts from the journal that the first feed wrote, while the database is down.
  await wholeEdge(database, "disk", nowhere);
}

/** Runs `touchdown edge` without a cluster until it has all keys. */
async function wholeEdge(database: BenchDatabase, from: string, url: string): Promise<void> {
  const [port, admin] = [await freePort(), await freePort()];
  const file = join(database.folder, "edge.toml");
  const journal = join(database.folder, "edge.journal");
  writeFileSync(
    file,
    `[http]\nlisten = "127.0.0.1:${port}"\n[admin]\nlisten = "127.0.0.1:${admin}"\n` +
      `[cluster]\nrpc_url = "http://127.0.0.1:1"\nws_url = "ws://127.0.0.1:1"\n` +
      `[tip]\naccounts = ["T1pyyaTNZsKv2WcRAB8oVnk93mLJw2XzjtVYqCsaHqt"]\n` +
      `[accounts]\ndatabase_url = "${url}"\njournal = "${journal}"\n`,
  );
  const startNs = systemClock.nowNs();
  const program = join(import.meta.dirname, "../../dist/main.js");
  const edge = startChild([...LIKE_THE_IMAGE, program, "edge", "--config", file]);
  await untilReady(edge, `http://127.0.0.1:${port}/ping`, READY_MS);
  const deadlineNs = systemClock.nowNs() + READY_MS * 1e6;
  while ((await statOf(admin, "touchdown_keys")) < many) {
    if (systemClock.nowNs() > deadlineNs)
      throw new Error(`the keys never arrived: ${edge.output()}`);
    // Each check costs the edge 1 to 2 ms.
    await pause(100);
  }
  const startMs = (systemClock.nowNs() - startNs) / 1e6;
  const startCpuMs = (cpuUs(edge.pid) ?? Number.NaN) / 1_000;
  // The journal is written meanwhile.
  await pause(from === "disk" ? 3_000 : 15_000);
  const keys = await statOf(admin, "touchdown_keys");
  const [rss, peak] = [memoryMb(edge.pid, "VmRSS"), memoryMb(edge.pid, "VmHWM")];
  note(`whole edge from ${from === "disk" ? "disk" : "the database"}`, {
    ...{ keys, start_ms: round(startMs), start_cpu_ms: round(startCpuMs) },
    ...{ rss_mb: rss, rss_mb_max: peak },
  });
  await edge.stop();
}

async function statOf(admin: number, name: string): Promise<number> {
  const metrics = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
  const line = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)`, "m").exec(metrics);
  return Number(line?.[1] ?? Number.NaN);
}

function memoryMb(pid: number, field: string): number {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  return round(Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(text)?.[1]) / 1000);
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const round = (value: number): number => Math.round(value * 10) / 10;

const database = await startDatabase();
try {
  if (changes > 0) await propagation(database);
  if (values.month === "yes") {
    await database.fill(keys);
    note("overview of a month", { ...(await overviewOfMonth(database)) });
  }
  if (many > 0) await startOfMany(database);
} finally {
  await database.stop();
}
