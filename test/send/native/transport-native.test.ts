import { constants } from "node:os";
import { describe, expect, it } from "vitest";
import { NEWS_A_TURN } from "../../../src/send/limits.ts";
import { SHARED_ROUTES_BYTES, SharedRoutes } from "../../../src/send/native/shared-route-table.ts";
import { ACKED, type Connection, NO_LOSSES } from "../../../src/send/transport.ts";
import { RouteTable } from "../../support/route-table.ts";
import { admitted, BYTES, ENGINE, PEER, scene } from "../native-rig.ts";

describe("the native transport", () => {
  it("drains batches larger than one call takes, and ignores peers it does not know", async () => {
    const { native, transport, connection } = await admitted();
    const strangers = Array.from({ length: 1_000 }, () => ({ kind: "acked", peer: 99 }) as const);
    const stream = connection.send(BYTES);
    native.tell(...strangers, { kind: "acked", tag: stream });
    expect(connection.fate(stream)).toBe(ACKED);
    expect(transport.counters["recordsDrained"]).toBe(1_003);
  });

  it("says with a null that an address is none, and counts it", async () => {
    const { native, transport } = await scene();
    native.openAnswer = -20;
    expect(transport.connect("nowhere", { progress() {}, ended() {} })).toBeNull();
    expect(transport.counters["connectErrors"]).toBe(1);
  });

  it("tells what the engine gave up, and of one that has stopped what it had", async () => {
    const { native, transport } = await scene();
    native.counters = [9, 8, 7, 6, 5, 4];
    const known = { recordsLost: 7, datagramsDropped: 6, datagramsRefused: 5, panics: 4 };
    expect(transport.losses?.()).toEqual({ ...NO_LOSSES, ...known });
    native.counters = [9, 8, 8, 6, 5, 4];
    await transport.stop();
    native.counters = [0, 0, 0, 0, 0, 0];
    expect(transport.losses?.()).toEqual({ ...NO_LOSSES, ...known, recordsLost: 8 });
  });

  it("refuses to start when the engine does, and stops once", async () => {
    const { native, transport } = await scene();
    await transport.stop();
    await transport.stop();
    expect(native.stops).toBe(1);
    native.startAnswer = -1000 - constants.errno.EADDRINUSE;
    await expect(transport.start()).rejects.toThrow("EADDRINUSE");
    native.startAnswer = -13;
    await expect(transport.start()).rejects.toThrow("certificate");
    native.startAnswer = -99;
    await expect(transport.start()).rejects.toThrow("-99");
  });
});

describe("the native transport of fronts", () => {
  it("tells before and after each batch, so that their copies are known", async () => {
    const routes = new SharedRoutes(new SharedArrayBuffer(SHARED_ROUTES_BYTES));
    const { native, connection, told } = await admitted(128, routes);
    const order: unknown[] = [];
    routes.beforeDrain = () => {
      order.push("before");
      connection.shared?.adopt(4, false);
    };
    routes.afterDrain = () => order.push(connection.fate(4), told.length);
    native.tell({ kind: "acked", tag: 4, tx: 2 ** 40 });
    expect(order).toEqual(["before", ACKED, 1]);
  });

  it("says that news are being taken while a front's record may be too late", async () => {
    const memory = new SharedArrayBuffer(SHARED_ROUTES_BYTES);
    const routes = new SharedRoutes(memory);
    const { native } = await admitted(128, routes);
    const front = new RouteTable(memory);
    const takings = [front.takings];
    routes.beforeDrain = () => takings.push(front.takings);
    routes.giveWay = () => takings.push(front.takings);
    routes.afterDrain = () => takings.push(front.takings);
    const news = (_: unknown, tag: number) => ({ kind: "acked", tag }) as const;
    native.tell(...Array.from({ length: NEWS_A_TURN }, news));
    const [before = 1] = takings;
    expect(before % 2).toBe(0);
    expect(takings.map((taking) => taking - before)).toEqual([0, 1, 1, 2]);
  });

  it("takes everything when asked to, and while it does not run what fronts sent", async () => {
    const routes = new SharedRoutes(new SharedArrayBuffer(SHARED_ROUTES_BYTES));
    const { native, transport, connection } = await admitted(128, routes);
    let adopted = 0;
    routes.beforeDrain = () => {
      adopted += 1;
      connection.shared?.adopt(4, false);
    };
    native.happen({ kind: "acked", tag: 4, tx: 2 ** 40 });
    expect(adopted).toBe(0);
    transport.settle?.();
    expect([connection.fate(4), adopted]).toEqual([ACKED, 1]);
    await transport.stop();
    transport.settle?.();
    expect(adopted).toBe(2);
  });

  it("lets fronts have their turn after every few news", async () => {
    const routes = new SharedRoutes(new SharedArrayBuffer(SHARED_ROUTES_BYTES));
    const { native } = await admitted(128, routes);
    let ways = 0;
    routes.giveWay = () => {
      ways += 1;
    };
    const count = 2 * NEWS_A_TURN + 1;
    native.tell(...Array.from({ length: count }, (_, tag) => ({ kind: "acked", tag }) as const));
    expect(ways).toBe(2);
  });

  it("lends a cell to each connection until its end, and its engine until it stops", async () => {
    const memory = new SharedArrayBuffer(SHARED_ROUTES_BYTES);
    const routes = new SharedRoutes(memory);
    const { native, transport, connection } = await admitted(128, routes);
    const front = new RouteTable(memory);
    expect([front.refresh(), front.engine, front.count]).toEqual([true, ENGINE, 0]);
    const events = { progress() {}, ended() {} };
    native.openAnswer = PEER + 1;
    expect([connection, transport.connect("10.0.0.1:1", events)].map(cellOf)).toEqual([0, 1]);
    native.tell({ kind: "closed" });
    native.openAnswer = PEER + 2;
    expect(cellOf(transport.connect("10.0.0.2:1", events))).toBe(0);
    await transport.stop();
    expect([front.refresh(), front.engine, routes.takeCell()]).toEqual([true, 0, 0]);
  });
});

function cellOf(connection: Connection | null): number | undefined {
  return connection?.shared?.cell;
}
