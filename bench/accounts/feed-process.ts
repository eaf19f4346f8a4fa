/**
 * The keys of one edge, in a process of its own: the table, the journal and the feed as
 * `src/edge/keys.ts` joins them. It tells its parent when the keys are there, and on "report" when
 * each change was known, how long the event loop was held and what a look-up costs.
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

/** What the parent is told. */
export type FeedMessage =
  | {
      readonly kind: "ready";
      /** From the start of the feed until the keys can be looked up. */
      readonly startMs: number;
      /** What it took of a processor meanwhile, Node's own start left out. */
      readonly startCpuMs: number;
      readonly keys: number;
    }
  | {
      readonly kind: "report";
      /** When each key came or went, by its digest. */
      readonly knownNs: ReadonlyMap<string, number>;
      /** The longest turn of the event loop since the feed began, in ms. */
      readonly heldMsMax: number;
      readonly heldMsP99: number;
      /** The same by the processor time of the loop's thread: a busy machine changes less of it. */
      readonly heldCpuMsMax: number;
      readonly heldCpuMsP99: number;
      readonly rssMb: number;
      readonly rssMbMax: number;
      /** Processor time for one look-up by its digest of a key that is there, another each time. */
      readonly lookupNs: number;
      /** The same from the text of the key, its hash included, as the gate finds it. */
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
/** Keys that are looked up for one figure. */
const LOOKUPS = 200_000;
const delay = monitorEventLoopDelay({ resolution: 1 });
/**
 * Processor time of this thread so far: the first field of its schedstat, in ns. While the thread
 * runs it is brought up to date at each tick of the scheduler, so a turn is told to 4 ms at best.
 */
const SCHEDSTAT = `/proc/${process.pid}/task/${process.pid}/schedstat`;
const threadCpuMs = (): number => Number.parseInt(readFileSync(SCHEDSTAT, "latin1"), 10) / 1e6;
const turns = createHistogram();
let turnFromMs = 0;
/** At most one a turn, so what lies between two of them is a turn and a millisecond at most. */
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

/** Keys all over the table, in an order that no cache foresees. */
const picked = function* (count: number): Generator<number> {
  const { keys } = table.counters;
  for (let i = 0; i < count; i += 1) yield 1 + ((i * 7_919_993) % keys);
};

/** What one of `count` calls costs of a processor, in nanoseconds. */
function cpuNs(count: number, act: (index: number) => void): number {
  const before = process.cpuUsage();
  for (let index = 0; index < count; index += 1) act(index);
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1_000) / count;
}

/** Of a digest that was just made, as a request's is: it lies in one place. */
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

/** From the text of a key that was not used lately: hash and look-up, as the gate does it. */
function findNs(): number {
  const count = Math.min(table.counters.keys, LOOKUPS);
  const access = createAccessControl({
    clock: systemClock,
    keys: table,
    looksMistyped: () => false,
    sharedLimits: null,
  });
  const tokens = [...picked(count)].map(textOf);
  const origin = { remoteAddress: () => "127.0.0.1" };
  return cpuNs(count, (index) => void access.authenticate(tokens[index] ?? "", origin));
}

function median(measure: () => number): number {
  return [measure(), measure(), measure()].sort((a, b) => a - b)[1] ?? Number.NaN;
}

function tell(message: FeedMessage): void {
  process.send?.(message);
}

const deps = { clock: systemClock, log: silent };
const database = createDatabase(deps, { url, connections: 2 });
const journal = createKeyJournal(journalPath);
const feed = createKeyFeed({ ...deps, database, table: watched, journal });
const startNs = systemClock.nowNs();
const startCpu = process.cpuUsage();
feed.start();
// From here on others could be answered: what the journal held back is in the start's time.
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
  tell({ kind: "ready", startMs: (readyNs - startNs) / 1e6, startCpuMs, keys });
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
  tell({
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
