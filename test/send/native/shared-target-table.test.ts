import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import {
  SHARED_TARGET_TABLE_BYTES,
  SharedTargetTable,
} from "../../../src/send/native/shared-target-table.ts";
import { TargetTable } from "../../support/target-table.ts";

function setUp() {
  const memory = new SharedArrayBuffer(SHARED_TARGET_TABLE_BYTES);
  const targetTable = new SharedTargetTable(memory);
  return { memory, targetTable, table: new TargetTable(memory), int32: new Uint32Array(memory) };
}

describe("the target table", () => {
  it("is read as last written", () => {
    const { targetTable, table } = setUp();
    expect([table.refresh(), table.count]).toEqual([true, 0]);
    targetTable.useEngine(3);
    targetTable.publish([2 ** 32 - 1, 8], 800, [1232, 4096]);
    expect(table.refresh()).toBe(true);
    expect(table).toMatchObject({ engine: 3, count: 2, ttlMs: 800 });
    expect([...table.bytesMax.slice(0, 2)]).toEqual([1232, 4096]);
    expect([...table.peers.slice(0, 2)]).toEqual([2 ** 32 - 1, 8]);
    targetTable.publish([], 0, []);
    expect([table.refresh(), table.count]).toEqual([true, 0]);
  });

  it("is not read while it is being written, and then completely", () => {
    const { targetTable, table, int32 } = setUp();
    targetTable.publish([7], 800, [1232]);
    Atomics.add(int32, 0, 1);
    expect(table.refresh()).toBe(false);
    Atomics.add(int32, 0, 1);
    expect([table.refresh(), table.peers[0]]).toEqual([true, 7]);
  });

  it("is empty as soon as the engine stops", () => {
    const { targetTable, table } = setUp();
    targetTable.useEngine(3);
    targetTable.publish([7], 800, [1232]);
    targetTable.useEngine(0);
    expect([table.refresh(), table.count, table.engine]).toEqual([true, 0, 0]);
  });

  it("has a number for each ingress thread", () => {
    const { memory, table } = setUp();
    expect([table.threadNumber, new TargetTable(memory).threadNumber]).toEqual([1, 2]);
  });
});

describe("the target table, read by a thread while it is written", () => {
  it("is never read partly old and partly new", async () => {
    const { memory, targetTable } = setUp();
    const end = new SharedArrayBuffer(4);
    const thread = new Worker(new URL("../../support/target-table-reader.mjs", import.meta.url), {
      workerData: { memory, end },
    });
    const answer = (): Promise<unknown> =>
      new Promise((resolve, reject) => {
        thread.once("message", resolve);
        thread.once("error", reject);
      });
    await answer();
    const whole = answer();
    // Each version has its count in every field.
    const versions = [16, 1, 9].map((count) => Array.from({ length: count }, () => count));
    for (let round = 0; round < 30_000; round += 1) {
      for (const version of versions) {
        const sizes = version.map((count) => 100 * count);
        targetTable.publish(version, version.length, sizes);
      }
    }
    Atomics.store(new Int32Array(end), 0, 1);
    expect(await whole).toMatchObject({ torn: 0, changes: expect.any(Number) });
    await thread.terminate();
  });
});
