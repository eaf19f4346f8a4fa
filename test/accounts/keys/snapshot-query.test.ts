import { describe, expect, it } from "vitest";
import { createDatabase } from "../../../src/accounts/database/database.ts";
import {
  type SnapshotConnection,
  SnapshotQuery,
} from "../../../src/accounts/keys/snapshot-query.ts";
import { DATABASE_SNAPSHOT_BYTES_PER_SLICE } from "../../../src/accounts/limits.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { silent, testDatabase } from "../../support/postgres.ts";

const { database, controlUrl: url } = await testDatabase();
const MANY = 200_000;
const COPY = `copy (select n from generate_series(1, ${MANY}) n) to stdout`;

describe("snapshot query", () => {
  it("delivers all data in order while other work runs", async () => {
    let text = "";
    let turns = 0;
    let isDone = false;
    const turn = (): void => {
      turns += 1;
      if (!isDone) setImmediate(turn);
    };
    turn();
    await database.transaction((tx) =>
      tx.streamSnapshot(COPY, (chunk) => {
        text += chunk.toString();
      }),
    );
    isDone = true;
    expect(text.split("\n").slice(0, -1)).toEqual(
      Array.from({ length: MANY }, (_, index) => String(index + 1)),
    );
    // At least 1 MB, in chunks of the size that the kernel delivers.
    expect(turns).toBeGreaterThan(10);
  });

  it("leaves the connection usable for the next statement", async () => {
    const rows = await database.transaction(async (tx) => {
      await tx.streamSnapshot("copy (select 1) to stdout", () => undefined);
      return await tx.query("select 2 as two");
    });
    expect(rows).toEqual([{ two: 2 }]);
  });

  it("fails with the error that its reader throws, and the next statement succeeds", async () => {
    let chunks = 0;
    const reading = database.transaction((tx) =>
      tx.streamSnapshot(COPY, () => {
        chunks += 1;
        throw new RangeError("too much");
      }),
    );
    await expect(reading).rejects.toThrow("too much");
    expect(chunks).toBe(1);
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("fails if the server rejects it before or during the transfer", async () => {
    const copy = (text: string) =>
      database.transaction((tx) => tx.streamSnapshot(text, () => undefined));
    await expect(copy("copy nowhere to stdout")).rejects.toMatchObject({ name: "DatabaseError" });
    const midway = "copy (select 1 / (100000 - n) from generate_series(1, 100000) n) to stdout";
    await expect(copy(midway)).rejects.toMatchObject({ code: "22012" });
    await expect(copy("select 1")).rejects.toThrow("a COPY is needed");
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("times out without data, and the next statement succeeds", async () => {
    const every = (_: number, act: () => void) => systemClock.every(50, act);
    const impatient = createDatabase({ clock: { ...systemClock, every }, log: silent }, { url });
    const reading = impatient.transaction((tx) =>
      tx.streamSnapshot("copy (select pg_sleep(600)) to stdout", () => undefined),
    );
    await expect(reading).rejects.toMatchObject({ name: "DatabaseError", kind: "timeout" });
    expect(await impatient.query("select 1 as one")).toEqual([{ one: 1 }]);
    await impatient.stop();
  });

  it("fails if the connection is lost during the transfer", async () => {
    let chunks = 0;
    const reading = database.transaction(async (tx) => {
      const [row] = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
      // In the select list, because in "from" Postgres would compute all rows before sending any.
      const endless = "copy (select generate_series(1, 1000000000)) to stdout";
      await tx.streamSnapshot(endless, () => {
        chunks += 1;
        if (chunks === 1) void database.query("select pg_terminate_backend($1)", [row?.pid]);
      });
    });
    await expect(reading).rejects.toMatchObject({ name: "DatabaseError", kind: "unavailable" });
    expect(chunks).toBeGreaterThan(0);
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
  });
});

describe("snapshot chunks that arrive together", () => {
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const PIECE = Buffer.alloc(DATABASE_SNAPSHOT_BYTES_PER_SLICE / 4);

  /** A snapshot query that received this number of chunks, its consumption and its ends. */
  function copyOf(chunks: number, read: (count: number) => void = () => undefined) {
    const state = { consumed: 0, paused: false, ends: [] as (Error | null)[] };
    const stream = {
      pause: () => (state.paused = true),
      resume: () => (state.paused = false),
      destroy: () => undefined,
    };
    const connection: SnapshotConnection = { query: () => undefined, stream };
    const onChunk = (): void => {
      state.consumed += 1;
      read(state.consumed);
    };
    const copy = new SnapshotQuery("copy", 1_000, onChunk, (error) => state.ends.push(error));
    copy.submit(connection);
    for (let piece = 0; piece < chunks; piece += 1) copy.handleCopyData({ chunk: PIECE });
    return { copy, state };
  }

  it("are consumed over several iterations while the stream is paused", async () => {
    const { state } = copyOf(10);
    expect(state).toMatchObject({ consumed: 0, paused: true });
    const consumedCounts: number[] = [];
    while (state.paused) {
      await turn();
      consumedCounts.push(state.consumed);
    }
    expect(consumedCounts).toEqual([4, 8, 10]);
  });

  it("are all consumed before the end is reported, once", async () => {
    const { copy, state } = copyOf(6);
    copy.handleReadyForQuery();
    expect(state.ends).toEqual([]);
    await turn();
    expect(state).toMatchObject({ consumed: 4, ends: [] });
    await turn();
    expect(state).toMatchObject({ consumed: 6, ends: [null], paused: false });
    // The client's timer fires slightly too late.
    copy.handleError(new Error("timeout"));
    expect(state.ends).toEqual([null]);
  });

  it("are dropped if the connection fails", async () => {
    const { copy, state } = copyOf(10);
    await turn();
    copy.handleError(new Error("gone"));
    await turn();
    await turn();
    expect(state).toMatchObject({ consumed: 4, ends: [new Error("gone")], paused: false });
  });

  it("are dropped if their reader throws", async () => {
    const { copy, state } = copyOf(10, (count) => {
      if (count === 2) throw new RangeError("not this one");
    });
    await turn();
    // The error that the client reports for a destroyed socket.
    copy.handleError(new Error("socket closed"));
    await turn();
    expect(state).toMatchObject({ consumed: 2, ends: [new RangeError("not this one")] });
  });
});
