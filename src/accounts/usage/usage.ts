/**
 * Usage per key and minute: requests by outcome, bytes, time to the wire, and final states. It is
 * counted in memory and written to the accounts database in batches, outside the transaction path.
 *
 * A batch has a number and is repeated until the database confirms it, so nothing is counted twice;
 * unwritten counts are lost if the process is killed. While the database is unavailable, batches
 * wait; at their limit new counts are added to the current ones, so sums stay correct while minutes
 * blur.
 *
 * Hot path: `request` and `taken` are one look-up and a few additions.
 */

import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock, Timer } from "../../core/clock.ts";
import type { FinalState, Outcome } from "../../core/flow.ts";
import type { Log } from "../../core/log.ts";
import type { Queryable } from "../database/database.ts";
import { DatabaseError } from "../database/database-error.ts";
import {
  USAGE_BATCH_ROWS_MAX,
  USAGE_PACKETS_MAX,
  USAGE_ROUNDS_MAX,
  USAGE_ROWS_PER_SLICE,
  USAGE_ROWS_WAITING_MAX,
} from "../limits.ts";
import { UsageRow, type WrittenRow } from "./usage-row.ts";

export interface UsageDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly database: Queryable;
}

export interface UsageOptions {
  /** This edge's name, by which the dashboard distinguishes edges of one region. */
  readonly edge: string;
  readonly region: string;
  /** Interval between two batches. */
  readonly periodMs: number;
}

export interface UsageCounters {
  /** Batches that the database confirmed. */
  batchesWritten: number;
  /** Failed writes; the batch waits. */
  failures: number;
  /** Batches waiting for the database. */
  waiting: number;
  /** Periods merged into the previous one because the queue was full. */
  merged: number;
  /** Batches discarded because the database would never accept them. */
  refused: number;
  /** Final states and first sends of transactions no longer tracked. */
  untracked: number;
}

export interface Usage {
  /** Counts a response to a valid key: `reason` is null when the request was accepted. */
  request(keyId: string, reason: string | null, bytes: number): void;
  /** Attributes later outcomes of this packet to this key. */
  taken(packetId: number, keyId: string, receivedNs: number): void;
  /** Processes one delivery's event; the first delivery on the wire counts. */
  outcome(outcome: Outcome): void;
  ended(end: FinalState): void;
  start(): void;
  /** Writes the remaining counts, if the database responds. */
  stop(): Promise<void>;
  readonly counters: Readonly<UsageCounters>;
}

interface Batch {
  readonly sequence: number;
  readonly rows: readonly UsageRow[];
}

const MINUTE_MS = 60_000;

export function createUsage(deps: UsageDeps, options: UsageOptions): Usage {
  const { clock, log, database } = deps;
  const run = randomUUID();
  const counters: UsageCounters = {
    batchesWritten: 0,
    failures: 0,
    waiting: 0,
    merged: 0,
    refused: 0,
    untracked: 0,
  };
  /** Rows of the current batch by key and minute. */
  let rows = new Map<string, UsageRow>();
  let minuteMs = 0;
  /** Counts of the current minute by key. */
  let current = new Map<string, UsageRow>();
  let sequence = 0;
  /** The rest of the waiting periods, oldest first. */
  const rounds: Iterator<UsageRow, undefined>[] = [];
  let waitingRows = 0;
  /** The queue is full: each key's counts go to the minute of its existing row. */
  let isFull = false;
  /** The batch being written, until the database confirms it. */
  let batch: Batch | null = null;
  let isAway = false;
  let writing: Promise<void> | null = null;
  let timer: Timer | null = null;
  let minute: Timer | null = null;
  /** Data of a packet, indexed by its id modulo the size. */
  const packetIds = new Float64Array(USAGE_PACKETS_MAX);
  const packetKeys: string[] = new Array<string>(USAGE_PACKETS_MAX).fill("");
  const packetNs = new Float64Array(USAGE_PACKETS_MAX);
  const isOnWire = new Uint8Array(USAGE_PACKETS_MAX);

  function rowOf(keyId: string): UsageRow {
    const known = current.get(keyId);
    if (known !== undefined) return known;
    const name = `${keyId} ${minuteMs}`;
    const row = rows.get(name) ?? new UsageRow(keyId, minuteMs);
    rows.set(name, row);
    current.set(keyId, row);
    return row;
  }

  /** Starts this minute; schedules itself for the start of the next one. */
  function turnMinute(): void {
    const nowMs = clock.unixMs();
    minuteMs = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS;
    if (!isFull) current = new Map();
    minute = clock.after(minuteMs + MINUTE_MS - nowMs, turnMinute);
  }

  /** Queues the current counts for the database if there is room. */
  function cut(): void {
    if (rows.size === 0) return;
    const hasRoom =
      rounds.length < USAGE_ROUNDS_MAX && waitingRows + rows.size <= USAGE_ROWS_WAITING_MAX;
    // A single waiting period may have any size; otherwise it could never be written.
    isFull = !hasRoom && rounds.length > 0;
    if (isFull) {
      counters.merged += 1;
      return;
    }
    rounds.push(rows.values());
    waitingRows += rows.size;
    counters.waiting += Math.ceil(rows.size / USAGE_BATCH_ROWS_MAX);
    rows = new Map();
    current = new Map();
  }

  /** The next batch, from one period only; null when none waits. */
  function take(): Batch | null {
    const [round] = rounds;
    if (round === undefined) return null;
    const taken: UsageRow[] = [];
    while (taken.length < USAGE_BATCH_ROWS_MAX) {
      const { value, done } = round.next();
      if (done) break;
      taken.push(value);
    }
    if (taken.length < USAGE_BATCH_ROWS_MAX) rounds.splice(0, 1);
    if (taken.length === 0) return take();
    sequence += 1;
    waitingRows -= taken.length;
    return { sequence, rows: taken };
  }

  /** True: the batch is stored, or never will be. */
  async function writeOne({ sequence: number, rows: part }: Batch): Promise<boolean> {
    try {
      const text = await textOf(part);
      await database.query(
        "select touchdown.edge_write_usage($1::uuid, $2, $3, $4, $5::jsonb) as counted",
        [run, number, options.edge, options.region, text],
      );
      counters.batchesWritten += 1;
      if (isAway) log.info({ waiting: counters.waiting }, "usage is written again");
      isAway = false;
      return true;
    } catch (error) {
      counters.failures += 1;
      if (isForever(error)) {
        counters.refused += 1;
        const message = "usage is lost: the database does not take it; is this host's clock right?";
        log.error({ err: error, rows: part.length }, message);
        return true;
      }
      // Once per outage, because each period retries.
      if (!isAway) {
        log.warn({ err: error, waiting: counters.waiting }, "usage was not written; it is kept");
      }
      isAway = true;
      return false;
    }
  }

  async function writeAll(): Promise<void> {
    for (;;) {
      batch ??= take();
      if (batch === null || !(await writeOne(batch))) return;
      batch = null;
      counters.waiting -= 1;
    }
  }

  function flush(): Promise<void> {
    cut();
    writing ??= writeAll().finally(() => {
      writing = null;
    });
    return writing;
  }

  /** The index of a packet that is still tracked, -1 for none. */
  function placeOf(packetId: number): number {
    const place = packetId % USAGE_PACKETS_MAX;
    if (packetIds[place] === packetId) return place;
    counters.untracked += 1;
    return -1;
  }

  return {
    counters,
    request(keyId, reason, bytes) {
      rowOf(keyId).request(reason, bytes);
    },
    taken(packetId, keyId, receivedNs) {
      const place = packetId % USAGE_PACKETS_MAX;
      packetIds[place] = packetId;
      packetKeys[place] = keyId;
      packetNs[place] = receivedNs;
      isOnWire[place] = 0;
    },
    outcome({ packetId, kind, atNs }) {
      if (kind !== "sent") return;
      const place = placeOf(packetId);
      if (place === -1 || isOnWire[place] === 1) return;
      isOnWire[place] = 1;
      rowOf(packetKeys[place] ?? "").wire(atNs - (packetNs[place] ?? 0));
    },
    ended({ packetId, kind, reason, slotDelta }) {
      const place = placeOf(packetId);
      if (place !== -1) rowOf(packetKeys[place] ?? "").ended(kind, reason, slotDelta);
    },
    start() {
      if (timer !== null) return;
      turnMinute();
      timer = clock.every(options.periodMs, () => void flush());
    },
    async stop() {
      timer?.cancel();
      minute?.cancel();
      timer = null;
      const unreached = counters.failures - counters.refused;
      await flush();
      // Once more, for counts that arrived during or after the last write.
      if (counters.failures - counters.refused === unreached) await flush();
      const { waiting: batches } = counters;
      if (batches > 0) log.error({ batches }, "usage is lost: it was not written before the end");
    },
  };
}

/** Whether the database would always reject the batch, which would block all later ones. */
function isForever(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  return error.kind === "constraint" || (error.code?.startsWith(CLASS_DATA) ?? false);
}

/** SQLSTATE class 22, data exception: the value is invalid, so a retry fails too. */
const CLASS_DATA = "22";

/** Serializes the rows a few per event-loop turn: 1,000 at once would take 10 ms. */
async function textOf(rows: readonly UsageRow[]): Promise<string> {
  const parts: string[] = [];
  for (let start = 0; start < rows.length; start += USAGE_ROWS_PER_SLICE) {
    if (start > 0) await nextTurn();
    const written = rows.slice(start, start + USAGE_ROWS_PER_SLICE).map((row) => row.written());
    parts.push(JSON.stringify(written satisfies WrittenRow[]).slice(1, -1));
  }
  return `[${parts.join(",")}]`;
}
