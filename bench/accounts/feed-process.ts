/**
 * The keys of one edge in a separate process: table, journal and feed, joined as in
 * `src/edge/keys.ts`. It notifies its parent when the keys are loaded. On "report" it returns when
 * it received each change, how long the event loop was blocked, and the cost of a look-up.
 */

import { readFileSync } from "node:fs";
import { createHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { createDatabase } from "../../src/accounts/database/database.ts";
import { createKeyFeed } from "../../src/accounts/keys/feed.ts";
import { createKeyJournal } from "../../src/accounts/keys/journal.ts";
import { createKeyTable, type KeyTable } from "../../src/accounts/keys/table.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createAccessControl } from "../../src/limits/access-control.ts";
import { digestOf, silent, textOf } from "./database.ts";

/** Messages to the parent. */
export type FeedMessage =
  | {
      readonly kind: "ready";
      /** From the start of the feed until keys can be looked up. */
      readonly startMs: number;
      /** Processor time used meanwhile, without Node's own start. */
      readonly startCpuMs: number;
      readonly keys: number;
    }
  | {
      readonly kind: "report";
      /** When each key was added or removed, by its digest. */
      readonly knownNs: ReadonlyMap<string, number>;
      /** The longest turn of the event loop since the feed began, in ms. */
      readonly heldMsMax: number;
      readonly heldMsP99: number;
      /** The same in processor time of the loop's thread, which a busy machine distorts less. */
      readonly heldCpuMsMax: number;
      readonly heldCpuMsP99: number;
      readonly rssMb: number;
      readonly rssMbMax: number;
      /** Processor time of one look-up of an existing key by its digest, each time another key. */
      readonly lookupNs: number;
      /** The same from the text of the key, including its hash, as access control does it. */
      readonly findNs: number;
      readonly rewriteMs: number;
    };

const [url = "", journalPath = ""] = process.argv.slice(2);
const knownNs = new Map<string, number>();
const table = createKeyTable();
const watched: KeyTable = {
  ...table,
  put(row) {
    const was = table.put(row);
    knownNs.set(row.sha256.toString("hex"), systemClock.nowNs());
    return was;
  },
  remove(sha256) {
    const was = table.remove(sha256);
    knownNs.set(sha256.toString("hex"), systemClock.nowNs());
    return was;
  },
};
/** Look-ups per measurement. */
const LOOKUPS = 200_000;
const delay = monitorEventLoopDelay({ resolution: 1 });
/**
 * Processor time of this thread so far: the first field of its schedstat, in ns. While the thread
 * runs, the kernel updates it at each scheduler tick, so a turn is accurate to 4 ms at best.
 */
const SCHEDSTAT = `/proc/${process.pid}/task/${process.pid}/schedstat`;
const threadCpuMs = (): number => Number.parseInt(readFileSync(SCHEDSTAT, "latin1"), 10) / 1e6;
const turns = createHistogram();
let turnFromMs = 0;
/** Fires at most once per turn, so an interval covers at most one turn plus 1 ms. */
const watchTurns = (): void => {
  turnFromMs = threadCpuMs();
  setInterval(() => {
    const nowMs = threadCpuMs();
    turns.record(Math.max(1, Math.round((nowMs - turnFromMs) * 1e3)));
    turnFromMs = nowMs;
  }, 1).unref();
};
let rssMbMax = 0;
const watch = setInterval(() => {
  rssMbMax = Math.max(rssMbMax, process.memoryUsage.rss() / 1e6);
}, 20);

/** Keys from the complete table, in an order that defeats caches. */
const picked = function* (count: number): Generator<number> {
  const { keys } = table.counters;
  for (let i = 0; i < count; i += 1) yield 1 + ((i * 7_919_993) % keys);
};

/** Processor time of one of `count` calls, in nanoseconds. */
function cpuNs(count: number, act: (index: number) => void): number {
  const before = process.cpuUsage();
  for (let index = 0; index < count; index += 1) act(index);
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1_000) / count;
}

/** Looks up a digest that was just computed, as for a request: always at the same address. */
function lookupNs(): number {
  const count = Math.min(table.counters.keys, LOOKUPS);
  const digests = Buffer.concat([...picked(count)].map((number) => digestOf(textOf(number))));
  const digest = Buffer.alloc(32);
  let found = 0;
  const copyNs = cpuNs(count, (index) => {
    digest.set(digests.subarray(index * 32, (index + 1) * 32));
  });
  const ns = cpuNs(count, (index) => {
    digest.set(digests.subarray(index * 32, (index + 1) * 32));
    if (table.lookup(digest) !== null) found += 1;
  });
  if (found < count * 0.99) throw new Error(`${found} of ${count} keys are known`);
  return ns - copyNs;
}

/** From the text of a key not used recently: hash and look-up, as access control does it. */
function findNs(): number {
  const count = Math.min(table.counters.keys, LOOKUPS);
  const access = createAccessControl({
    clock: systemClock,
    keys: table,
    looksMistyped: () => false,
    globalLimits: null,
  });
  const tokens = [...picked(count)].map(textOf);
  const origin = { remoteAddress: () => "127.0.0.1" };
  return cpuNs(count, (index) => void access.authenticate(tokens[index] ?? "", origin));
}

function median(measure: () => number): number {
  return [measure(), measure(), measure()].sort((a, b) => a - b)[1] ?? Number.NaN;
}

function sendMessage(message: FeedMessage): void {
  process.send?.(message);
}

const deps = { clock: systemClock, log: silent };
const database = createDatabase(deps, { url, connections: 2 });
const journal = createKeyJournal(journalPath);
const feed = createKeyFeed({ ...deps, database, table: watched, journal });
const startNs = systemClock.nowNs();
const startCpu = process.cpuUsage();
feed.start();
// Requests could be served from here on; the time blocked by the journal is in the start's.
delay.enable();
watchTurns();
let rewriteMs = Number.NaN;
const wait = setInterval(() => {
  if (!feed.hasKeys) return;
  clearInterval(wait);
  const readyNs = systemClock.nowNs();
  const { user, system } = process.cpuUsage(startCpu);
  const startCpuMs = (user + system) / 1_000;
  const { keys } = table.counters;
  sendMessage({ kind: "ready", startMs: (readyNs - startNs) / 1e6, startCpuMs, keys });
  const rewritten = setInterval(() => {
    if (journal.counters.rewrites === 0) return;
    clearInterval(rewritten);
    rewriteMs = (systemClock.nowNs() - readyNs) / 1e6;
  }, 5);
}, 1);

process.on("message", () => {
  const [heldMsMax, heldMsP99] = [delay.max / 1e6, delay.percentile(99) / 1e6];
  const rssMb = process.memoryUsage.rss() / 1e6;
  const [heldCpuMsMax, heldCpuMsP99] = [turns.max / 1e3, turns.percentile(99) / 1e3];
  const stats = { lookupNs: median(lookupNs), findNs: median(findNs) };
  sendMessage({
    kind: "report",
    ...{
      knownNs,
      heldMsMax,
      heldMsP99,
      heldCpuMsMax,
      heldCpuMsP99,
      rssMb,
      rssMbMax,
      rewriteMs,
      ...stats,
    },
  });
  clearInterval(watch);
});
process.on("disconnect", () => process.exit(0));
