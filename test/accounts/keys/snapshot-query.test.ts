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

describe("a copy out of the database", () => {
  it("comes whole and in order, while other work has its turns", async () => {
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

  it("leaves the connection good for the next statement", async () => {
    const rows = await database.transaction(async (tx) => {
      await tx.streamSnapshot("copy (select 1) to stdout", () => undefined);
      return await tx.query("select 2 as two");
    });
    expect(rows).toEqual([{ two: 2 }]);
  });

  it("ends with what its reader throws, and the next one is served", async () => {
    let pieces = 0;
    const reading = database.transaction((tx) =>
      tx.streamSnapshot(COPY, () => {
        pieces += 1;
        throw new RangeError("too much");
      }),
    );
    await expect(reading).rejects.toThrow("too much");
    expect(pieces).toBe(1);
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("fails where the server refuses it, before or midway", async () => {
    const copy = (text: string) =>
      database.transaction((tx) => tx.streamSnapshot(text, () => undefined));
    await expect(copy("copy nowhere to stdout")).rejects.toMatchObject({ name: "DatabaseError" });
    const midway = "copy (select 1 / (100000 - n) from generate_series(1, 100000) n) to stdout";
    await expect(copy(midway)).rejects.toMatchObject({ code: "22012" });
    await expect(copy("select 1")).rejects.toThrow("a COPY is needed");
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("is given up when nothing comes, and the next statement is served", async () => {
    const every = (_: number, act: () => void) => systemClock.every(50, act);
    const hasty = createDatabase({ clock: { ...systemClock, every }, log: silent }, { url });
    const reading = hasty.transaction((tx) =>
      tx.streamSnapshot("copy (select pg_sleep(600)) to stdout", () => undefined),
    );
    await expect(reading).rejects.toMatchObject({ name: "DatabaseError", kind: "timeout" });
    expect(await hasty.query("select 1 as one")).toEqual([{ one: 1 }]);
    await hasty.stop();
  });

  it("fails when the connection is lost midway", async () => {
    let pieces = 0;
    const reading = database.transaction(async (tx) => {
      const [row] = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
      // In the select list, because in "from" Postgres would compute all rows before sending any.
      const endless = "copy (select generate_series(1, 1000000000)) to stdout";
      await tx.streamSnapshot(endless, () => {
        pieces += 1;
        if (pieces === 1) void database.query("select pg_terminate_backend($1)", [row?.pid]);
      });
    });
    await expect(reading).rejects.toMatchObject({ name: "DatabaseError", kind: "unavailable" });
    expect(pieces).toBeGreaterThan(0);
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
  });
});

describe("pieces that come all at once", () => {
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const PIECE = Buffer.alloc(DATABASE_SNAPSHOT_BYTES_PER_SLICE / 4);

  /** A copy query that received `pieces` chunks, what was taken of it, and how it ended. */
  function copyOf(pieces: number, take: (count: number) => void = () => undefined) {
    const told = { taken: 0, paused: false, ends: [] as (Error | null)[] };
    const stream = {
      pause: () => (told.paused = true),
      resume: () => (told.paused = false),
      destroy: () => undefined,
    };
    const connection: SnapshotConnection = { query: () => undefined, stream };
    const taken = (): void => {
      told.taken += 1;
      take(told.taken);
    };
    const copy = new SnapshotQuery("copy", 1_000, taken, (error) => told.ends.push(error));
    copy.submit(connection);
    for (let piece = 0; piece < pieces; piece += 1) copy.handleCopyData({ chunk: PIECE });
    return { copy, told };
  }

  it("are taken in several turns, and nothing is read until all are", async () => {
    const { told } = copyOf(10);
    expect(told).toMatchObject({ taken: 0, paused: true });
    const seen: number[] = [];
    while (told.paused) {
      await turn();
      seen.push(told.taken);
    }
    expect(seen).toEqual([4, 8, 10]);
  });

  it("are all taken before the end is told, once", async () => {
    const { copy, told } = copyOf(6);
    copy.handleReadyForQuery();
    expect(told.ends).toEqual([]);
    await turn();
    expect(told).toMatchObject({ taken: 4, ends: [] });
    await turn();
    expect(told).toMatchObject({ taken: 6, ends: [null], paused: false });
    // The client's timer fires slightly too late.
    copy.handleError(new Error("timeout"));
    expect(told.ends).toEqual([null]);
  });

  it("are let go when the connection fails", async () => {
    const { copy, told } = copyOf(10);
    await turn();
    copy.handleError(new Error("gone"));
    await turn();
    await turn();
    expect(told).toMatchObject({ taken: 4, ends: [new Error("gone")], paused: false });
  });

  it("are let go when one of them cannot be taken", async () => {
    const { copy, told } = copyOf(10, (count) => {
      if (count === 2) throw new RangeError("not this one");
    });
    await turn();
    // The error that the client reports for a destroyed socket.
    copy.handleError(new Error("socket closed"));
    await turn();
    expect(told).toMatchObject({ taken: 2, ends: [new RangeError("not this one")] });
  });
});
