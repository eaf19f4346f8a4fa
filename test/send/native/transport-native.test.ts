import { constants } from "node:os";
import { describe, expect, it } from "vitest";
import { EVENT_NUMBERS } from "../../../src/native/contract.ts";
import {
  EVENT_UNITS_PER_DRAIN,
  UNREAD_UNITS_MAX,
  WORK_OF_SUBMISSION,
  WORK_PER_SLICE,
} from "../../../src/send/limits.ts";
import { accountNumber } from "../../../src/send/native/account-number.ts";
import { TargetTable } from "../../../src/send/native/target-table.ts";
import { BATCH_NUMBERS } from "../../../src/send/native/transport-native.ts";
import { ACKED, NO_LOSSES } from "../../../src/send/transport.ts";
import { NO_EVENTS } from "../../support/fake-transport.ts";
import { TestTargets } from "../../support/target-table.ts";
import { admitted, BYTES, ENGINE, fixture, RECORD_NS } from "../native-fixture.ts";

describe("the native transport", () => {
  it("drains batches larger than one call reads, and ignores unknown connections", async () => {
    const { native, transport, connection, hookEvents } = await admitted();
    const strangers = Array.from({ length: 2_000 }, () => ({ kind: "acked", peer: 99 }) as const);
    const stream = connection.send(BYTES);
    native.emit(...strangers, { kind: "acked", tag: stream });
    expect(hookEvents).toEqual([[stream, ACKED, RECORD_NS], "progress"]);
    expect(transport.counters["eventUnitsDrained"]).toBe(2_003);
  });

  it("returns null for an invalid address, and counts it", async () => {
    const { native, transport } = await fixture();
    native.openResponse = -20;
    expect(transport.connect("nowhere", NO_EVENTS)).toBeNull();
    expect(transport.counters["connectErrors"]).toBe(1);
  });

  it("reports the engine's losses, also after it has stopped", async () => {
    const { native, transport } = await fixture();
    native.counters = [8, 7, 6, 5, 4];
    const known = { recordsLost: 7, datagramsDropped: 6, datagramsRejected: 5, panics: 4 };
    expect(transport.losses?.()).toEqual({ ...NO_LOSSES, ...known });
    native.counters = [8, 8, 6, 5, 4];
    await transport.stop();
    native.counters = [0, 0, 0, 0, 0];
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

describe("the native transport with submissions", () => {
  /** A transport whose events are listed, in the order in which they are reported. */
  async function listed() {
    const targetTable = new TargetTable(new TestTargets());
    const [order, ways, unread]: [unknown[], number[], number[]] = [[], [], []];
    const parts = await admitted(128, targetTable, {
      batch: new Float64Array(BATCH_NUMBERS),
      take(at) {
        order.push(`submission ${at / EVENT_NUMBERS}`);
        return EVENT_NUMBERS;
      },
      noteUnread: (units) => void unread.push(units),
      yieldThread: () => void ways.push(order.length + parts.hookEvents.length),
    });
    targetTable.afterEvents = () => order.push("after");
    return { ...parts, order, ways, unread };
  }

  it("reports them and what became of them in one order", async () => {
    const { native, hookEvents, order } = await listed();
    native.emit({ kind: "submission" }, { kind: "acked", tag: 4 }, { kind: "submission" });
    expect(order).toEqual(["submission 0", "submission 2", "after"]);
    expect(hookEvents).toEqual([[4, ACKED, RECORD_NS], "progress"]);
  });

  it("notes how much waited when it began to read", async () => {
    const { native, unread } = await listed();
    unread.length = 0;
    native.emit({ kind: "submission" }, { kind: "acked", tag: 4 }, { kind: "submission" });
    native.emit({ kind: "submission" });
    expect(unread).toEqual([3, 1]);
  });

  it("reports the end of a connection in its place, and nothing of it behind", async () => {
    const { native, hookEvents } = await listed();
    native.emit(
      { kind: "acked", tag: 4 },
      { kind: "closed", reason: 5 },
      { kind: "acked", tag: 5 },
    );
    const silence = { kind: "silence", code: 0 };
    expect(hookEvents).toEqual([[4, ACKED, RECORD_NS], "progress", silence]);
  });

  it("reads all on flush, also what was sent while the engine stopped", async () => {
    const { native, transport, order } = await listed();
    native.happen({ kind: "submission" });
    expect(order).toEqual([]);
    transport.flushEvents?.();
    expect(order).toEqual(["submission 0", "after"]);
    await transport.stop();
    native.happen({ kind: "submission" }, { kind: "acked", tag: 4 });
    transport.flushEvents?.();
    expect(order).toEqual(["submission 0", "after", "submission 0", "after"]);
  });

  it("reads no more than was there at the start", async () => {
    const { native, transport, order } = await listed();
    const emit = native.eventsDrain.bind(native);
    native.eventsDrain = (engine, out) => {
      const count = emit(engine, out);
      native.happen({ kind: "submission" });
      return count;
    };
    native.happen({ kind: "submission" });
    transport.flushEvents?.();
    expect(order).toEqual(["submission 0", "after"]);
  });

  it("yields to ingress threads after every few, unless much is unread", async () => {
    const { native, order, ways } = await listed();
    const each = WORK_PER_SLICE / WORK_OF_SUBMISSION;
    native.emit(...new Array(2 * each + 1).fill({ kind: "submission" }));
    native.emit(...new Array(WORK_PER_SLICE).fill({ kind: "acked", tag: 1 }));
    expect(ways).toEqual([each, 2 * each, order.length - 1 + WORK_PER_SLICE]);
    ways.length = 0;
    native.emit(...new Array(UNREAD_UNITS_MAX + 2 * EVENT_UNITS_PER_DRAIN).fill({ kind: "acked" }));
    expect(ways).toHaveLength(UNREAD_UNITS_MAX / WORK_PER_SLICE);
  });

  it("names its engine, until it stops", async () => {
    const table = new TargetTable(new TestTargets());
    const { transport } = await admitted(128, table);
    expect(table.engine).toBe(ENGINE);
    await transport.stop();
    expect(table.engine).toBe(0);
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
