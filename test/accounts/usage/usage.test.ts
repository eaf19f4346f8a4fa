import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Queryable } from "../../../src/accounts/database/database.ts";
import { DatabaseError } from "../../../src/accounts/database/database-error.ts";
import {
  USAGE_BATCH_ROWS_MAX,
  USAGE_PACKETS_MAX,
  USAGE_ROUNDS_MAX,
  USAGE_ROWS_PER_SLICE,
  USAGE_ROWS_WAITING_MAX,
} from "../../../src/accounts/limits.ts";
import { createUsage } from "../../../src/accounts/usage/usage.ts";
import type { WrittenRow } from "../../../src/accounts/usage/usage-row.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { FinalState, Outcome } from "../../../src/core/flow.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { silent, testDatabase } from "../../support/postgres.ts";
import { stub } from "../../support/stub.ts";
import { until } from "../../support/wait.ts";

const KEY = "a".repeat(32);
const PERIOD_MS = 10_000;

interface Call {
  readonly run: string;
  readonly sequence: number;
  readonly rows: readonly WrittenRow[];
}

/** A database that records its calls, and responds while `up`. */
function fakeDatabase() {
  const calls: Call[] = [];
  const state = { up: true };
  const database: Queryable = {
    async query(_, values = []) {
      const [run, sequence, , , rows] = values;
      // The module passes these types, in this order.
      calls.push({
        run: run as string,
        sequence: sequence as number,
        rows: JSON.parse(rows as string) as WrittenRow[],
      });
      if (!state.up) throw new Error("unavailable");
      return [];
    },
  };
  return { database, calls, state };
}

function fixture() {
  const clock = createFakeClock();
  const fake = fakeDatabase();
  const logged: string[] = [];
  const record = (_: object, message: string): void => void logged.push(message);
  const usage = createUsage(
    { clock, log: { info: record, warn: record, error: record }, database: fake.database },
    { edge: "e", region: "r", periodMs: PERIOD_MS },
  );
  usage.start();
  const advance = async (ms: number) => {
    clock.advance(ms);
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
  };
  return { clock, usage, logged, ...fake, advance };
}

/** Creates a key of a separate account; returns the key's id. */
async function makeKey(owner: Queryable): Promise<string> {
  const [key] = await owner.query<{ id: string }>(
    `with made as (insert into touchdown.accounts (name, plan, created_at)
       values ('a', 'Beta', now()) returning id)
     insert into touchdown.keys (id, account_id, sha256, hint, label, created_at)
     select gen_random_uuid(), id, sha256('k'), 'td_…', '', now() from made
     returning replace(id::text, '-', '') as id`,
  );
  return key?.id ?? "";
}

const sent = (packetId: number, atNs: number) =>
  stub<Outcome>({ packetId, kind: "sent", reason: null, atNs });
const end = (packetId: number, kind: FinalState["kind"], more: Partial<FinalState> = {}) =>
  stub<FinalState>({ packetId, kind, reason: null, slotDelta: null, ...more });

describe("usage", () => {
  it("is counted per key: requests, bytes, time to first send, final states, reasons", async () => {
    const { usage, calls, advance, clock } = fixture();
    usage.request(KEY, null, 300);
    usage.request(KEY, "rate_limited", 100);
    usage.request(KEY, "rate_limited", 0);
    const atNs = clock.nowNs();
    usage.taken(1, KEY, atNs);
    usage.taken(2, KEY, atNs);
    usage.outcome(sent(1, atNs + 40_000));
    // A second delivery of the same transaction adds no information.
    usage.outcome(sent(1, atNs + 90_000_000));
    usage.ended(end(1, "landed", { slotDelta: 1 }));
    usage.ended(end(2, "expired", { reason: "blockhash_expired" }));
    await advance(PERIOD_MS);
    const [row] = calls[0]?.rows ?? [];
    expect(calls[0]?.rows).toHaveLength(1);
    expect(row).toMatchObject({ key: KEY, requests: 3, accepted: 1, refused: 2, bytes: 400 });
    expect(row).toMatchObject({ landed: 1, expired: 1, dropped: 0 });
    expect(row?.wire.reduce((a, b) => a + b)).toBe(1);
    expect(row?.slots[1]).toBe(1);
    expect(row?.reasons).toEqual([
      ["refused", "rate_limited", 2],
      ["expired", "blockhash_expired", 1],
    ]);
  });

  it("is counted in the minute of the request", async () => {
    const { clock, usage, calls, advance } = fixture();
    const first = Math.floor(clock.unixMs() / 60_000) * 60_000;
    await advance(first + 59_999 - clock.unixMs());
    usage.request(KEY, null, 1);
    clock.advance(1);
    usage.request(KEY, null, 1);
    await advance(PERIOD_MS);
    const rows = calls.flatMap((call) => call.rows);
    expect(rows.map(({ minute, requests }) => [minute, requests])).toEqual([
      [first, 1],
      [first + 60_000, 1],
    ]);
  });

  it("repeats a batch with its sequence until written, and writes none when idle", async () => {
    const { usage, calls, state, advance } = fixture();
    state.up = false;
    usage.request(KEY, null, 1);
    await advance(PERIOD_MS);
    usage.request(KEY, null, 1);
    await advance(PERIOD_MS);
    expect(calls.map(({ sequence }) => sequence)).toEqual([1, 1]);
    expect(usage.counters).toMatchObject({ failures: 2, waiting: 2 });
    state.up = true;
    await advance(PERIOD_MS);
    await advance(PERIOD_MS);
    expect(calls.map(({ sequence }) => sequence)).toEqual([1, 1, 1, 2]);
    expect(new Set(calls.map(({ run }) => run)).size).toBe(1);
    expect(usage.counters).toMatchObject({ batchesWritten: 2, waiting: 0 });
  });

  it("logs once when the database becomes unavailable, and once when it recovers", async () => {
    const { usage, logged, state, advance } = fixture();
    for (const up of [false, false, false, true, true, false, false]) {
      state.up = up;
      usage.request(KEY, null, 1);
      await advance(PERIOD_MS);
    }
    const kept = "usage was not written; it is kept";
    expect(logged).toEqual([kept, "usage is written again", kept]);
  });

  it("keeps its sums if more rounds wait than USAGE_ROUNDS_MAX", async () => {
    const { usage, calls, state, advance } = fixture();
    state.up = false;
    const periods = USAGE_ROUNDS_MAX + 21;
    for (let period = 0; period < periods; period += 1) {
      usage.request(KEY, "overloaded", 2);
      await advance(PERIOD_MS);
    }
    // One more is being written to the database.
    expect(usage.counters).toMatchObject({ waiting: USAGE_ROUNDS_MAX + 1, merged: 20 });
    state.up = true;
    calls.splice(0);
    await usage.stop();
    const rows = calls.flatMap((call) => call.rows);
    expect(rows.reduce((sum, row) => sum + row.requests, 0)).toBe(periods);
    expect(rows.flatMap((row) => row.reasons).reduce((sum, it) => sum + it[2], 0)).toBe(periods);
    expect(new Set(calls.map(({ sequence }) => sequence)).size).toBe(USAGE_ROUNDS_MAX + 2);
  });

  it("is split into batches of at most USAGE_BATCH_ROWS_MAX rows", async () => {
    const { usage, calls, state, advance } = fixture();
    state.up = false;
    const keys = 2 * USAGE_BATCH_ROWS_MAX + 7;
    for (let period = 0; period < 3; period += 1) {
      for (let key = 0; key < keys; key += 1) usage.request(`${key}`, null, 1);
      await advance(PERIOD_MS);
    }
    expect(usage.counters.waiting).toBe(9);
    state.up = true;
    await usage.stop();
    const written = calls.slice(calls.length - 9);
    const sizes = written.map(({ rows }) => rows.length);
    expect(Math.max(...sizes)).toBe(USAGE_BATCH_ROWS_MAX);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(3 * keys);
    expect(written.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(usage.counters).toMatchObject({ batchesWritten: 9, waiting: 0, merged: 0 });
  });

  it("of 60,000 keys is merged into fewer waiting rows without losing counts", async () => {
    const { usage, calls, state, advance } = fixture();
    state.up = false;
    const [periods, keys] = [8, 60_000];
    for (let period = 0; period < periods; period += 1) {
      for (let key = 0; key < keys; key += 1) usage.request(`${key}`, null, 1);
      await advance(PERIOD_MS);
    }
    expect(usage.counters.merged).toBeGreaterThan(0);
    state.up = true;
    calls.splice(0);
    await usage.stop();
    const rows = calls.flatMap((call) => call.rows);
    expect(rows.reduce((sum, row) => sum + row.requests, 0)).toBe(periods * keys);
    // The rows that did not fit cover at most two minutes.
    expect(rows.length).toBeLessThanOrEqual(USAGE_ROWS_WAITING_MAX + 2 * keys);
    expect(usage.counters.waiting).toBe(0);
  });

  it("is serialized in slices over several event loop iterations", async () => {
    const { clock, usage, calls } = fixture();
    for (let key = 0; key < 10 * USAGE_ROWS_PER_SLICE; key += 1) usage.request(`${key}`, null, 1);
    clock.advance(PERIOD_MS);
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    expect(calls).toEqual([]);
    for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    expect(calls).toHaveLength(1);
  });

  it("writes its pending rows when it stops", async () => {
    const { usage, calls, logged } = fixture();
    usage.request(KEY, null, 1);
    await usage.stop();
    expect(calls).toHaveLength(1);
    expect(logged).toEqual([]);
  });

  it("says that its pending rows are lost when it stops while the database is away", async () => {
    const { usage, logged, state, advance } = fixture();
    state.up = false;
    usage.request(KEY, null, 1);
    await advance(PERIOD_MS);
    await usage.stop();
    expect(logged.slice(1)).toEqual(["usage is lost: it was not written before the end"]);
  });

  it("writes rows added during stop() after a permanently rejected batch", async () => {
    const { clock } = fixture();
    const written: string[] = [];
    const database: Queryable = {
      async query(_, values = []) {
        await nextTurn();
        const text = String(values[4]);
        if (text.includes("bad")) throw new DatabaseError("constraint", "never", null, null);
        written.push(text);
        return [];
      },
    };
    const options = { edge: "e", region: "r", periodMs: PERIOD_MS };
    const usage = createUsage({ clock, log: silent, database }, options);
    usage.request("bad", null, 1);
    const stopped = usage.stop();
    usage.request("good", null, 1);
    await stopped;
    expect(written).toHaveLength(1);
    expect(usage.counters).toMatchObject({ refused: 1, batchesWritten: 1 });
  });

  it("counts events of packets that it no longer tracks", () => {
    const { usage } = fixture();
    usage.taken(1, KEY, 0);
    usage.taken(1 + USAGE_PACKETS_MAX, KEY, 0);
    usage.ended(end(1, "landed"));
    usage.outcome(sent(7, 0));
    expect(usage.counters.untracked).toBe(2);
  });
});

describe("usage in the database", () => {
  it("is written after a permanently rejected batch", async () => {
    const testDb = await testDatabase();
    const edge = testDb.open(testDb.edgeUrl);
    const key = await makeKey(testDb.owner);
    let aheadMs = 7_200_000;
    const fake = createFakeClock();
    const clock = { ...fake, unixMs: () => systemClock.unixMs() + aheadMs };
    const usage = createUsage(
      { clock, log: silent, database: edge },
      { edge: "e", region: "fra", periodMs: PERIOD_MS },
    );
    usage.start();
    usage.request(key, null, 1);
    clock.advance(PERIOD_MS);
    await until("it is rejected", () => usage.counters.failures > 0);
    // The clock is corrected.
    aheadMs = 0;
    clock.advance(60_000);
    usage.request(key, null, 1);
    await usage.stop();
    expect(usage.counters).toMatchObject({ refused: 1, batchesWritten: 1, waiting: 0 });
  });

  it("is counted once if a batch is written twice", async () => {
    const testDb = await testDatabase();
    const edge = testDb.open(testDb.edgeUrl);
    const key = await makeKey(testDb.owner);
    const twice: Queryable = {
      async query(text, values) {
        await edge.query(text, values);
        return edge.query(text, values);
      },
    };
    const clock = createFakeClock(0, Date.UTC(2026, 0, 2));
    const usage = createUsage(
      { clock, log: silent, database: twice },
      { edge: "e", region: "fra", periodMs: PERIOD_MS },
    );
    usage.start();
    usage.request(key, null, 300);
    usage.request(key, "undecodable", 5);
    usage.taken(1, key, 0);
    usage.ended(end(1, "landed", { slotDelta: 0 }));
    await usage.stop();
    expect(usage.counters).toMatchObject({ batchesWritten: 1, failures: 0 });
    const written = await testDb.owner.query(
      `select region, requests, accepted, refused, bytes, landed, slots[1] as slots
       from touchdown.usage_minutes`,
    );
    expect(written).toEqual([
      { region: "fra", requests: 2, accepted: 1, refused: 1, bytes: 305, landed: 1, slots: 1 },
    ]);
  });
});
