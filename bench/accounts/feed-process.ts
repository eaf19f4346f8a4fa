/**
 * The keys of one edge, in a process of its own: the table, the journal and the feed as
 * `src/edge-keys.ts` joins them. It tells its parent when the keys are there, and on "report" when
 * each change was known, how long the event loop was held and what a look-up costs.
 */

import { monitorEventLoopDelay } from "node:perf_hooks";
import { createDatabase } from "../../src/accounts/database.ts";
import { createKeyFeed } from "../../src/accounts/key-feed.ts";
import { createKeyJournal } from "../../src/accounts/key-journal.ts";
import { createKeyTable, type KeyTable } from "../../src/accounts/key-table.ts";
import { systemClock } from "../../src/core/clock.ts";
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
      readonly rssMb: number;
      readonly rssMbMax: number;
      /** Processor time for one look-up of a key that is there, another one each time. */
      readonly lookupNs: number;
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
const delay = monitorEventLoopDelay({ resolution: 1 });
let rssMbMax = 0;
const watch = setInterval(() => {
  rssMbMax = Math.max(rssMbMax, process.memoryUsage.rss() / 1e6);
}, 20);

function lookupNs(): number {
  const count = Math.min(table.counters.keys, 200_000);
  const step = Math.max(1, Math.floor(table.counters.keys / count));
  const digests = Array.from({ length: count }, (_, i) => digestOf(textOf(1 + i * step)));
  let found = 0;
  const before = process.cpuUsage();
  for (const digest of digests) if (table.lookup(digest) !== null) found += 1;
  const { user, system } = process.cpuUsage(before);
  const ns = ((user + system) * 1_000) / count;
  if (found < count * 0.99) throw new Error(`${found} of ${count} keys are known`);
  return ns;
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
  const ns = [lookupNs(), lookupNs(), lookupNs()].sort((a, b) => a - b)[1] ?? Number.NaN;
  tell({
    kind: "report",
    ...{ knownNs, heldMsMax, heldMsP99, rssMb, rssMbMax, rewriteMs, lookupNs: ns },
  });
  clearInterval(watch);
});
process.on("disconnect", () => process.exit(0));
