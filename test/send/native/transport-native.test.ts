import { constants } from "node:os";
import { describe, expect, it } from "vitest";
import { ENGINE_EVENTS_PER_SLICE } from "../../../src/send/limits.ts";
import { accountNumber } from "../../../src/send/native/account-number.ts";
import {
  SHARED_TARGET_TABLE_BYTES,
  SharedTargetTable,
} from "../../../src/send/native/shared-target-table.ts";
import { ACKED, NO_LOSSES } from "../../../src/send/transport.ts";
import { NO_EVENTS } from "../../support/fake-transport.ts";
import { TargetTable } from "../../support/target-table.ts";
import { admitted, BYTES, ENGINE, fixture, RECORD_NS } from "../native-fixture.ts";

describe("the native transport", () => {
  it("drains batches larger than one call reads, and ignores unknown connections", async () => {
    const { native, transport, connection, hookEvents } = await admitted();
    const strangers = Array.from({ length: 1_000 }, () => ({ kind: "acked", peer: 99 }) as const);
    const stream = connection.send(BYTES);
    native.emit(...strangers, { kind: "acked", tag: stream });
    expect(hookEvents).toEqual([[stream, ACKED, RECORD_NS], "progress"]);
    expect(transport.counters["recordsDrained"]).toBe(1_003);
  });

  it("returns null for an invalid address, and counts it", async () => {
    const { native, transport } = await fixture();
    native.openResponse = -20;
    expect(transport.connect("nowhere", NO_EVENTS)).toBeNull();
    expect(transport.counters["connectErrors"]).toBe(1);
  });

  it("reports the engine's losses, also after it has stopped", async () => {
    const { native, transport } = await fixture();
    native.counters = [9, 8, 7, 6, 5, 4];
    const known = { recordsLost: 7, datagramsDropped: 6, datagramsRejected: 5, panics: 4 };
    expect(transport.losses?.()).toEqual({ ...NO_LOSSES, ...known });
    native.counters = [9, 8, 8, 6, 5, 4];
    await transport.stop();
    native.counters = [0, 0, 0, 0, 0, 0];
    expect(transport.losses?.()).toEqual({ ...NO_LOSSES, ...known, recordsLost: 8 });
  });

  it("fails to start when the engine does, and stops once", async () => {
    const { native, transport } = await fixture();
    await transport.stop();
    await transport.stop();
    expect(native.stops).toBe(1);
    native.startResult = -1000 - constants.errno.EADDRINUSE;
    await expect(transport.start()).rejects.toThrow("EADDRINUSE");
    native.startResult = -13;
    await expect(transport.start()).rejects.toThrow("certificate");
    native.startResult = -99;
    await expect(transport.start()).rejects.toThrow("-99");
  });
});

describe("the native transport with ingress threads", () => {
  it("has deliveries recorded between taking and processing their events", async () => {
    const targetTable = new SharedTargetTable(new SharedArrayBuffer(SHARED_TARGET_TABLE_BYTES));
    const { native, transport, hookEvents } = await admitted(128, targetTable);
    const taken = transport.counters["recordsDrained"] ?? 0;
    const order: unknown[] = [];
    targetTable.beforeEvents = () => {
      order.push(`before, ${transport.counters["recordsDrained"]} taken`, hookEvents.length);
      return true;
    };
    targetTable.afterEvents = () => order.push(hookEvents.length);
    native.emit({ kind: "acked", tag: 2 ** 24 });
    expect(order).toEqual([`before, ${taken + 1} taken`, 0, 2]);
  });

  it("keeps events that it took until all records that may come first are there", async () => {
    const targetTable = new SharedTargetTable(new SharedArrayBuffer(SHARED_TARGET_TABLE_BYTES));
    const { native, transport, hookEvents } = await admitted(128, targetTable);
    // An ingress thread has no processor while it writes a record.
    targetTable.beforeEvents = () => false;
    native.emit({ kind: "acked", tag: 4 });
    const { drains } = native;
    native.emit({ kind: "acked", tag: 5 });
    // The engine may wake this thread again, however often it has looked in vain.
    expect([hookEvents, native.drains]).toEqual([[], drains + 1]);
    targetTable.beforeEvents = () => true;
    transport.flushEvents?.();
    expect(hookEvents).toEqual([[4, ACKED, RECORD_NS], [5, ACKED, RECORD_NS], "progress"]);
    expect(transport.counters["recordsDrained"]).toBe(4);
  });

  it("drains everything on flush, and records sends while it does not run", async () => {
    const targetTable = new SharedTargetTable(new SharedArrayBuffer(SHARED_TARGET_TABLE_BYTES));
    const { native, transport, hookEvents } = await admitted(128, targetTable);
    let recordCount = 0;
    targetTable.beforeEvents = () => {
      recordCount += 1;
      return true;
    };
    native.happen({ kind: "acked", tag: 4 });
    expect(recordCount).toBe(0);
    transport.flushEvents?.();
    expect([hookEvents[0], recordCount]).toEqual([[4, ACKED, RECORD_NS], 1]);
    await transport.stop();
    transport.flushEvents?.();
    expect(recordCount).toBe(2);
  });

  it("yields to ingress threads after every few events", async () => {
    const targetTable = new SharedTargetTable(new SharedArrayBuffer(SHARED_TARGET_TABLE_BYTES));
    const { native } = await admitted(128, targetTable);
    let ways = 0;
    targetTable.yieldThread = () => {
      ways += 1;
    };
    const count = 2 * ENGINE_EVENTS_PER_SLICE + 1;
    native.emit(...Array.from({ length: count }, (_, tag) => ({ kind: "acked", tag }) as const));
    expect(ways).toBe(2);
  });

  it("publishes its engine, until it stops", async () => {
    const memory = new SharedArrayBuffer(SHARED_TARGET_TABLE_BYTES);
    const { transport } = await admitted(128, new SharedTargetTable(memory));
    const table = new TargetTable(memory);
    expect([table.refresh(), table.engine, table.count]).toEqual([true, ENGINE, 0]);
    await transport.stop();
    expect([table.refresh(), table.engine]).toEqual([true, 0]);
  });
});

describe("landed shares with the native engine", () => {
  it("are passed on by the numbers of their accounts", async () => {
    const { native, transport } = await admitted();
    transport.useLandedShares?.(
      new Map([
        ["a", 0.25],
        ["b", 1],
      ]),
    );
    expect(native.shares).toEqual([[accountNumber("a"), 0.25, accountNumber("b"), 1]]);
  });
});
