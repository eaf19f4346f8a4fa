import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { ROUTE_CELLS_MAX } from "../../../src/send/limits.ts";
import { SHARED_ROUTES_BYTES, SharedRoutes } from "../../../src/send/native/shared-route-table.ts";
import type { SharedConnection } from "../../../src/send/transport.ts";
import { RouteTable } from "../../support/route-table.ts";

function setUp() {
  const memory = new SharedArrayBuffer(SHARED_ROUTES_BYTES);
  const routes = new SharedRoutes(memory);
  return { memory, routes, table: new RouteTable(memory), words: new Uint32Array(memory) };
}

function connectionOf(peer: number, cell: number): SharedConnection {
  return { peer, cell, streamBytesMax: 4096, crowded: () => false, adopt: () => false };
}

describe("the table of routes", () => {
  it("is read as it was written last, once it is open", () => {
    const { routes, table } = setUp();
    expect([table.isOpen, table.refresh(), table.count]).toEqual([false, true, 0]);
    routes.useEngine(3);
    const version = routes.publish(
      [connectionOf(2 ** 32 - 1, 0), connectionOf(8, 1)],
      800,
      1232,
      5,
    );
    expect([table.isOpen, table.refresh()]).toEqual([false, true]);
    const told = { engine: 3, version, count: 2, ttlMs: 800, bytesMax: 1232, leftOut: 5 };
    expect(table).toMatchObject(told);
    expect([...table.peers.slice(0, 2)]).toEqual([2 ** 32 - 1, 8]);
    routes.open(true);
    expect(table.isOpen).toBe(true);
    expect(routes.publish([], 0, 0)).toBe(version + 1);
    expect([table.isOpen, table.refresh(), table.count]).toEqual([false, true, 0]);
    expect(table.leftOut).toBe(0);
  });

  it("may be closed by a front, until the sender opens it again", () => {
    const { routes, table } = setUp();
    routes.open(true);
    table.close();
    expect(table.isOpen).toBe(false);
    routes.open(true);
    expect(table.isOpen).toBe(true);
  });

  it("is not read while it is being written, and then as a whole", () => {
    const { routes, table, words } = setUp();
    routes.publish([connectionOf(7, 0)], 800, 1232);
    Atomics.add(words, 0, 1);
    expect(table.refresh()).toBe(false);
    Atomics.add(words, 0, 1);
    expect([table.refresh(), table.peers[0]]).toEqual([true, 7]);
  });

  it("is empty as soon as the engine ends", () => {
    const { routes, table } = setUp();
    routes.useEngine(3);
    routes.publish([connectionOf(7, 0)], 800, 1232);
    routes.open(true);
    routes.useEngine(0);
    expect([table.isOpen, table.refresh(), table.count, table.engine]).toEqual([false, true, 0, 0]);
  });

  it("has a number for each front", () => {
    const { memory, table } = setUp();
    expect([table.front, new RouteTable(memory).front]).toEqual([1, 2]);
  });
});

describe("the table of routes, read by a thread while it is written", () => {
  it("is never read half old and half new", async () => {
    const { memory, routes, words } = setUp();
    const thread = new Worker(new URL("../../support/routes-reader.mjs", import.meta.url), {
      workerData: { memory },
    });
    const answer = (): Promise<unknown> =>
      new Promise((resolve, reject) => {
        thread.once("message", resolve);
        thread.once("error", reject);
      });
    await answer();
    const whole = answer();
    // Each version tells its count everywhere.
    const versions = [16, 1, 9].map((count) =>
      Array.from({ length: count }, () => connectionOf(count, 0)),
    );
    for (let round = 0; round < 30_000; round += 1) {
      for (const version of versions) routes.publish(version, version.length, 100 * version.length);
    }
    Atomics.store(words, 60, 1);
    expect(await whole).toMatchObject({ torn: 0, versions: expect.any(Number) });
    await thread.terminate();
  });
});

describe("the numbers of streams", () => {
  it("are one sequence for all threads, without 0", () => {
    const { routes, table, words } = setUp();
    const cell = routes.takeCell();
    routes.publish([connectionOf(7, cell)], 800, 1232);
    table.refresh();
    expect([routes.nextStream(cell), table.nextStream(0), routes.nextStream(cell)]).toEqual([
      1, 2, 3,
    ]);
    words[64 + cell] = 2 ** 32 - 2;
    expect([table.nextStream(0), routes.nextStream(cell)]).toEqual([2 ** 32 - 1, 1]);
  });

  it("go on where a cell is lent again, so that none comes twice", () => {
    const { routes } = setUp();
    const cell = routes.takeCell();
    expect(routes.takeCell()).not.toBe(cell);
    routes.nextStream(cell);
    routes.giveCell(cell);
    expect([routes.takeCell(), routes.nextStream(cell)]).toEqual([cell, 2]);
  });

  it("have no cell where all are lent", () => {
    const { routes } = setUp();
    for (let count = 0; count < ROUTE_CELLS_MAX; count += 1) routes.takeCell();
    expect(routes.takeCell()).toBe(-1);
    routes.giveCell(5);
    expect(routes.takeCell()).toBe(5);
  });
});
