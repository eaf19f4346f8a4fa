/**
 * What each key did, by the minute: requests by outcome, bytes, how fast transactions reached the
 * wire, and how they ended. It is counted in memory and written to the accounts database in
 * batches, never on the way of a transaction.
 *
 * A batch has a number and is repeated until the database has said that it is there, so nothing is
 * counted twice; what was not yet written when a process is killed is lost. While the database is
 * away batches wait, and at their bound what is counted next is added to what is counted now, so
 * that sums stay true while minutes blur.
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
  /** This edge's name, as the dashboard tells edges of one region apart. */
  readonly edge: string;
  readonly region: string;
  /** Between two batches. */
  readonly periodMs: number;
}

export interface UsageCounters {
  /** Batches that the database has. */
  batchesWritten: number;
  /** Attempts to write that failed; the batch waits. */
  failures: number;
  /** Batches that wait for the database. */
  waiting: number;
  /** Periods whose counts were added to those of the one before, for want of room. */
  merged: number;
  /** Batches given up because the database would never take them. */
  refused: number;
  /** Ends and first sends of transactions that were no longer known. */
  untracked: number;
}

export interface Usage {
  /** A request with a good key was answered: `reason` is null when it was accepted. */
  request(keyId: string, reason: string | null, bytes: number): void;
  /** From now on what becomes of this packet is counted for this key. */
  taken(packetId: number, keyId: string, receivedNs: number): void;
  /** Takes one copy's news; the first that is on the wire counts. */
  outcome(outcome: Outcome): void;
  ended(end: FinalState): void;
  start(): void;
  /** Writes what there is, as far as the database answers. */
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
  /** Rows by key and minute, of the batch that is filled now. */
  let rows = new Map<string, UsageRow>();
  let minuteMs = 0;
  /** By key, for the minute that is counted now. */
  let current = new Map<string, UsageRow>();
  let sequence = 0;
  /** What is left of the periods that wait, oldest first. */
  const rounds: Iterator<UsageRow, undefined>[] = [];
  let waitingRows = 0;
  /** Nothing more may wait: each key's counts go to the minute that it has a row of. */
  let isFull = false;
  /** The one that the database is given, until it has it. */
  let batch: Batch | null = null;
  let isAway = false;
  let writing: Promise<void> | null = null;
  let timer: Timer | null = null;
  let minute: Timer | null = null;
  /** What belongs to a packet, by its id modulo the size. */
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

  /** From now on this minute is counted; comes back when the next one begins. */
  function turnMinute(): void {
    const nowMs = clock.unixMs();
    minuteMs = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS;
    if (!isFull) current = new Map();
    minute = clock.after(minuteMs + MINUTE_MS - nowMs, turnMinute);
  }

  /** Lets what was counted wait for the database, where there is room. */
  function cut(): void {
    if (rows.size === 0) return;
    const hasRoom =
      rounds.length < USAGE_ROUNDS_MAX && waitingRows + rows.size <= USAGE_ROWS_WAITING_MAX;
    // The only one may be of any size, or it could never be written.
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

  /** The next batch, all of one round; null where none waits. */
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

  /** True: it is there, or will never be. */
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
      // Once for each time that the database goes away: it is tried again each period.
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

  /** The place of a packet that is still known, -1 for none. */
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
      // Once more, for what came while the last batch was on its way or had just gone.
      if (counters.failures - counters.refused === unreached) await flush();
    },
  };
}

/** Whether the same batch would be refused again and again, and hold up all that follow. */
function isForever(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  return error.kind === "constraint" || (error.code?.startsWith(CLASS_DATA) ?? false);
}

/** SQLSTATE class 22, data exception: a value is at fault, not the moment. */
const CLASS_DATA = "22";

/** The rows as the database takes them, a few a turn: a thousand at once would take 10 ms. */
async function textOf(rows: readonly UsageRow[]): Promise<string> {
  const parts: string[] = [];
  for (let start = 0; start < rows.length; start += USAGE_ROWS_PER_SLICE) {
    if (start > 0) await nextTurn();
    const written = rows.slice(start, start + USAGE_ROWS_PER_SLICE).map((row) => row.written());
    parts.push(JSON.stringify(written satisfies WrittenRow[]).slice(1, -1));
  }
  return `[${parts.join(",")}]`;
}
