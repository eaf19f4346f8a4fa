import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { TARGET_CELLS_MAX } from "../../../src/send/limits.ts";
import {
  SHARED_TARGET_TABLE_BYTES,
  SharedTargetTable,
} from "../../../src/send/native/shared-target-table.ts";
import type { SharedConnection } from "../../../src/send/transport.ts";
import { TargetTable } from "../../support/target-table.ts";

function setUp() {
  const memory = new SharedArrayBuffer(SHARED_TARGET_TABLE_BYTES);
  const targetTable = new SharedTargetTable(memory);
  return { memory, targetTable, table: new TargetTable(memory), int32: new Uint32Array(memory) };
}

function connectionOf(peer: number, cell: number): SharedConnection {
  return { peer, cell, streamBytesMax: 4096, recordSend: () => {} };
}

describe("the target table", () => {
  it("is read as last written, once it is open", () => {
    const { targetTable, table } = setUp();
    expect([table.isOpen, table.refresh(), table.count]).toEqual([false, true, 0]);
    targetTable.useEngine(3);
    const version = targetTable.publish(
      [connectionOf(2 ** 32 - 1, 0), connectionOf(8, 1)],
      800,
      1232,
      5,
    );
    expect([table.isOpen, table.refresh()]).toEqual([false, true]);
    const fields = { engine: 3, version, count: 2, ttlMs: 800, bytesMax: 1232, excluded: 5 };
    expect(table).toMatchObject(fields);
    expect([...table.peers.slice(0, 2)]).toEqual([2 ** 32 - 1, 8]);
    targetTable.open(true);
    expect(table.isOpen).toBe(true);
    expect(targetTable.publish([], 0, 0)).toBe(version + 1);
    expect([table.isOpen, table.refresh(), table.count]).toEqual([false, true, 0]);
    expect(table.excluded).toBe(0);
  });

  it("may be closed by an ingress thread, until the sender opens it again", () => {
    const { targetTable, table } = setUp();
    targetTable.open(true);
    table.close();
    expect(table.isOpen).toBe(false);
    targetTable.open(true);
    expect(table.isOpen).toBe(true);
  });

  it("is not read while it is being written, and then completely", () => {
    const { targetTable, table, int32 } = setUp();
    targetTable.publish([connectionOf(7, 0)], 800, 1232);
    Atomics.add(int32, 0, 1);
    expect(table.refresh()).toBe(false);
    Atomics.add(int32, 0, 1);
    expect([table.refresh(), table.peers[0]]).toEqual([true, 7]);
  });

  it("is empty as soon as the engine stops", () => {
    const { targetTable, table } = setUp();
    targetTable.useEngine(3);
    targetTable.publish([connectionOf(7, 0)], 800, 1232);
    targetTable.open(true);
    targetTable.useEngine(0);
    expect([table.isOpen, table.refresh(), table.count, table.engine]).toEqual([false, true, 0, 0]);
  });

  it("has a number for each ingress thread", () => {
    const { memory, table } = setUp();
    expect([table.threadNumber, new TargetTable(memory).threadNumber]).toEqual([1, 2]);
  });
});

describe("the target table, read by a thread while it is written", () => {
  it("is never read partly old and partly new", async () => {
    const { memory, targetTable, int32 } = setUp();
    const thread = new Worker(new URL("../../support/target-table-reader.mjs", import.meta.url), {
      workerData: { memory },
    });
    const answer = (): Promise<unknown> =>
      new Promise((resolve, reject) => {
        thread.once("message", resolve);
        thread.once("error", reject);
      });
    await answer();
    const whole = answer();
    // Each version has its count in every field.
    const versions = [16, 1, 9].map((count) =>
      Array.from({ length: count }, () => connectionOf(count, 0)),
    );
    for (let round = 0; round < 30_000; round += 1) {
      for (const version of versions)
        targetTable.publish(version, version.length, 100 * version.length);
    }
    Atomics.store(int32, 60, 1);
    expect(await whole).toMatchObject({ torn: 0, versions: expect.any(Number) });
    await thread.terminate();
  });
});

describe("stream numbers", () => {
  it("are one sequence for all threads, without 0", () => {
    const { targetTable, table, int32 } = setUp();
    const cell = targetTable.allocateCell();
    targetTable.publish([connectionOf(7, cell)], 800, 1232);
    table.refresh();
    expect([
      targetTable.nextStream(cell),
      table.nextStream(0),
      targetTable.nextStream(cell),
    ]).toEqual([1, 2, 3]);
    int32[64 + cell] = 2 ** 32 - 2;
    expect([table.nextStream(0), targetTable.nextStream(cell)]).toEqual([2 ** 32 - 1, 1]);
  });

  it("continue where a cell is reused, so that none repeats", () => {
    const { targetTable } = setUp();
    const cell = targetTable.allocateCell();
    expect(targetTable.allocateCell()).not.toBe(cell);
    targetTable.nextStream(cell);
    targetTable.freeCell(cell);
    expect([targetTable.allocateCell(), targetTable.nextStream(cell)]).toEqual([cell, 2]);
  });

  it("have no cell where all are in use", () => {
    const { targetTable } = setUp();
    for (let count = 0; count < TARGET_CELLS_MAX; count += 1) targetTable.allocateCell();
    expect(targetTable.allocateCell()).toBe(-1);
    targetTable.freeCell(5);
    expect(targetTable.allocateCell()).toBe(5);
  });
});
