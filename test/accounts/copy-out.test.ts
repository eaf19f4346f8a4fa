import { describe, expect, it } from "vitest";
import { createDatabase } from "../../src/accounts/database.ts";
import { systemClock } from "../../src/core/clock.ts";
import { silent, testDatabase } from "../support/postgres.ts";

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
      tx.copyOut(COPY, (chunk) => {
        text += chunk.toString();
      }),
    );
    isDone = true;
    expect(text.split("\n").slice(0, -1)).toEqual(
      Array.from({ length: MANY }, (_, index) => String(index + 1)),
    );
    // A megabyte and more, in pieces of what the kernel gives at a time.
    expect(turns).toBeGreaterThan(10);
  });

  it("leaves the connection good for the next statement", async () => {
    const rows = await database.transaction(async (tx) => {
      await tx.copyOut("copy (select 1) to stdout", () => undefined);
      return await tx.query("select 2 as two");
    });
    expect(rows).toEqual([{ two: 2 }]);
  });

  it("ends with what its reader throws, and the next one is served", async () => {
    let pieces = 0;
    const reading = database.transaction((tx) =>
      tx.copyOut(COPY, () => {
        pieces += 1;
        throw new RangeError("too much");
      }),
    );
    await expect(reading).rejects.toThrow("too much");
    expect(pieces).toBe(1);
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("fails where the server refuses it, before or midway", async () => {
    const copy = (text: string) => database.transaction((tx) => tx.copyOut(text, () => undefined));
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
      tx.copyOut("copy (select pg_sleep(600)) to stdout", () => undefined),
    );
    await expect(reading).rejects.toMatchObject({ name: "DatabaseError", kind: "timeout" });
    expect(await hasty.query("select 1 as one")).toEqual([{ one: 1 }]);
    await hasty.stop();
  });

  it("fails when the connection is lost midway", async () => {
    let pieces = 0;
    const reading = database.transaction(async (tx) => {
      const [row] = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
      // In the list of columns, because in "from" all of it would be made before any of it is sent.
      const endless = "copy (select generate_series(1, 1000000000)) to stdout";
      await tx.copyOut(endless, () => {
        pieces += 1;
        if (pieces === 1) void database.query("select pg_terminate_backend($1)", [row?.pid]);
      });
    });
    await expect(reading).rejects.toMatchObject({ name: "DatabaseError", kind: "unavailable" });
    expect(pieces).toBeGreaterThan(0);
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
  });
});
