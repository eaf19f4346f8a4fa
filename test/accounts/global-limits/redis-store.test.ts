import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "iovalkey";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  createLimitStore,
  type RedisLimitStore,
} from "../../../src/accounts/global-limits/redis-store.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { untilResponse } from "../../support/flow.ts";
import { program, title } from "../../support/limit-server.ts";
import { freePort } from "../../support/ports.ts";
import { silent } from "../../support/postgres.ts";
import { until } from "../../support/wait.ts";

let server: ChildProcess | null = null;
let folder = "";
let url = "";
let store: RedisLimitStore | null = null;
/** Direct access to the data in the store. */
let direct: Redis | null = null;

beforeAll(async () => {
  if (program === undefined) return;
  folder = mkdtempSync(join(tmpdir(), "touchdown-limits-"));
  const port = await freePort();
  url = `redis://127.0.0.1:${port}`;
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder];
  server = spawn(program, args, { stdio: "ignore" });
  const first = createLimitStore({ clock: systemClock, log: silent }, url);
  first.start();
  store = first;
  let responds = false;
  const stop = systemClock.every(20, () => {
    first.spend([{ account: "probe", count: 0, intervalNs: 1, ageNs: 0 }]).then(
      () => {
        responds = true;
      },
      () => undefined,
    );
  });
  await until("the store responds", () => responds);
  stop.cancel();
  direct = new Redis(url);
});
afterAll(async () => {
  direct?.disconnect();
  store?.stop();
  const ended = new Promise((resolve) => server?.once("exit", resolve));
  if (server?.kill("SIGKILL") === true) await ended;
  if (folder !== "") rmSync(folder, { recursive: true, force: true });
});

const spend = (account: string, count: number, intervalNs = 1_000_000_000) =>
  store?.spend([{ account, count, intervalNs, ageNs: 0 }]) ?? Promise.resolve([]);

/** A cost of one request at which a pause of the machine does not change the result. */
const HOUR_US = 3_600_000_000;
const HOUR_NS = HOUR_US * 1_000;
const DAY_US = HOUR_US * 24;

describe.skipIf(program === undefined)(`global limit store, ${title}`, () => {
  it("sums the spending of all edges", async () => {
    // 1000 s each, so the time between the two calls hardly matters.
    const [first = 0] = await spend("adds", 3, 1e12);
    expect(first).toBe(3e9);
    const [second = 0] = await spend("adds", 2, 1e12);
    expect(second).toBeGreaterThan(4e9);
    expect(second).toBeLessThanOrEqual(5e9);
    expect(await spend("other", 0)).toEqual([0]);
  });

  it("calculates from the time of the requests, not of the report", async () => {
    const spent = { account: "late", count: 3, intervalNs: 1_000_000_000, ageNs: 1_000_000_000 };
    expect(await store?.spend([spent])).toEqual([2_000_000]);
  });

  it("counts a request at its exact cost, which may be a fraction of a microsecond", async () => {
    expect(await spend("fast", 3_600 * 700_000, 1e9 / 700_000)).toEqual([HOUR_US]);
  });

  it("keeps the debt, without an extra wait, when its clock is set back", async () => {
    await spend("back", 3, HOUR_NS);
    // The state that results when the clock was one day ahead until now.
    const key = "touchdown:bucket:back";
    const at = Number(await direct?.hget(key, "at"));
    expect(at).toBeGreaterThan(0);
    await direct?.hset(key, "at", at + DAY_US);
    expect(await spend("back", 1, HOUR_NS)).toEqual([4 * HOUR_US]);
    // From here on time advances again.
    expect(Number(await direct?.hget(key, "at"))).toBeLessThan(at + DAY_US);
    const [behind = 0] = await spend("back", 1, HOUR_NS);
    expect(behind).toBeGreaterThan(4 * HOUR_US);
    expect(behind).toBeLessThanOrEqual(5 * HOUR_US);
    expect(await direct?.pttl(key)).toBeLessThanOrEqual(Math.ceil(behind / 1_000) + 1_000);
  });

  it("forgives at most the debt when its clock is set forward", async () => {
    await spend("forward", 3, HOUR_NS);
    await direct?.hincrby("touchdown:bucket:forward", "at", -DAY_US);
    expect(await spend("forward", 2, HOUR_NS)).toEqual([2 * HOUR_US]);
  });

  it("continues from the state of another version, and keeps its unknown fields", async () => {
    // The format shared by all versions: see "Shared limits" in docs/accounts.md.
    const [seconds = 0] = (await direct?.time()) ?? [];
    const key = "touchdown:bucket:versions";
    await direct?.hset(key, { behind: 3 * HOUR_US, at: Number(seconds) * 1e6, later: "7" });
    const [behind = 0] = await spend("versions", 1, HOUR_NS);
    expect(behind).toBeGreaterThan(3 * HOUR_US);
    expect(behind).toBeLessThanOrEqual(4 * HOUR_US);
    expect(await direct?.hgetall(key)).toEqual({
      behind: String(behind),
      at: expect.stringMatching(/^[0-9]{16}$/),
      later: "7",
    });
    await store?.heartbeat("a", 600_000);
    expect(await direct?.zscore("touchdown:bucket:edges", "a")).toMatch(/^[0-9]{13}$/);
    await direct?.del("touchdown:bucket:edges");
  });

  it("returns the results of many accounts in their order", async () => {
    const spent = [5, 1, 3].map((count) => {
      return { account: `many ${count}`, count, intervalNs: 1_000_000_000, ageNs: 0 };
    });
    expect(await store?.spend(spent)).toEqual([5_000_000, 1_000_000, 3_000_000]);
  });

  it("rejects a request that it executes too late, and does not count it", async () => {
    let nowNs = 10e9;
    const clock = { ...createFakeClock(), nowNs: () => nowNs };
    const slow = createLimitStore({ clock, log: silent }, url);
    slow.start();
    const spent = [{ account: "too late", count: 3, intervalNs: HOUR_NS, ageNs: 0 }];
    await untilResponse(
      "a heartbeat response",
      async () => await slow.heartbeat("slow", 600_000).catch(() => 0),
      (count) => count > 0,
    );
    // The state that results when the store executes the call 5 s after it was sent.
    nowNs -= 5e9;
    await expect(slow.spend(spent)).rejects.toThrow("LATE");
    expect(await direct?.exists("touchdown:bucket:too late")).toBe(0);
    // If the clock was set forward instead, the next heartbeat shows it.
    await slow.heartbeat("slow", 600_000);
    expect(await slow.spend(spent)).toEqual([3 * HOUR_US]);
    slow.stop();
  });

  it("counts the edges with a recent heartbeat", async () => {
    await direct?.del("touchdown:bucket:edges");
    const alive = async (edge: string) => (await store?.heartbeat(edge, 600_000)) ?? 0;
    expect(await alive("one")).toBe(1);
    expect(await alive("two")).toBe(2);
    expect(await alive("one")).toBe(2);
    await untilResponse(
      "the silent edge expires",
      async () => (await store?.heartbeat("two", 1)) ?? 0,
      (count) => count === 1,
    );
  });

  it("says nothing of a loss when it is stopped", async () => {
    const lines: string[] = [];
    const say = (_: object, message: string) => void lines.push(message);
    const other = createLimitStore(
      { clock: systemClock, log: { info: say, warn: say, error: say } },
      url,
    );
    other.start();
    await until("it is connected", () => lines.length > 0);
    other.stop();
    await untilResponse(
      "the server has closed the connection",
      async () =>
        String(await direct?.client("LIST"))
          .split("\n")
          .filter(Boolean).length,
      (count) => count <= 2,
    );
    expect(lines).toEqual(["the store of shared limits answers"]);
  });

  it("expires an edge whose heartbeat came while the clock was ahead", async () => {
    const list = "touchdown:bucket:edges";
    await direct?.del(list);
    const aheadMs = systemClock.unixMs() + 3_600_000;
    await direct?.zadd(list, aheadMs, "gone", aheadMs, "alive");
    expect(await store?.heartbeat("alive", 600_000)).toBe(2);
    expect(Number(await direct?.zscore(list, "gone"))).toBeLessThan(aheadMs);
    await untilResponse(
      "the edge expires",
      async () => (await store?.heartbeat("alive", 1)) ?? 0,
      (count) => count === 1,
    );
  });

  it("fails immediately while the server is unreachable", async () => {
    const unreachable = createLimitStore(
      { clock: systemClock, log: silent },
      "redis://127.0.0.1:1",
    );
    unreachable.start();
    await expect(
      unreachable.spend([{ account: "a", count: 1, intervalNs: 1, ageNs: 0 }]),
    ).rejects.toThrow();
    await expect(unreachable.heartbeat("e", 1_000)).rejects.toThrow();
    unreachable.stop();
  });
});

describe("after a failover", () => {
  it("the store connects until it has the new primary, and logs the loss once", async () => {
    const READONLY = "-READONLY You can't write against a read only replica.\r\n";
    const lines: string[] = [];
    const say = (_: object, message: string) => void lines.push(message);
    let connections = 0;
    // The name of a store, which leads to the old primary for a while, and then to the new one.
    const name = createServer((socket) => {
      connections += 1;
      const answer = connections < 3 ? READONLY : "*2\r\n:1\r\n:1000\r\n";
      // Besides a heartbeat there is the client's question whether the server is ready.
      socket.on("data", (asked) => socket.write(/eval/i.test(`${asked}`) ? answer : "$0\r\n\r\n"));
    });
    const port = await freePort();
    name.listen(port, "127.0.0.1");
    await once(name, "listening");
    const log = { info: say, warn: say, error: say };
    const moved = createLimitStore({ clock: systemClock, log }, `redis://127.0.0.1:${port}`);
    moved.start();
    const edges = () => moved.heartbeat("e", 1_000).catch(() => null);
    await untilResponse("the new primary", edges, (count) => count === 1);
    expect(await edges()).toBe(1);
    moved.stop();
    name.close();
    expect(connections).toBe(3);
    expect(lines).toEqual([ANSWERS, expect.stringContaining("is gone"), ANSWERS]);
  });
});

const ANSWERS = "the store of shared limits answers";
