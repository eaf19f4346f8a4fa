import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { THREADS_READ_MAX } from "../../src/telemetry/limits.ts";
import { createThreadCpuReader } from "../../src/telemetry/thread-cpu.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanups.splice(0)) await end();
});

/** A folder as `/proc/self/task`, of the process 1. */
function setUp() {
  const folder = mkdtempSync(join(tmpdir(), "thread-cpu-"));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const reader = createThreadCpuReader(folder, 1);
  return {
    reader,
    folder,
    /** The thread `id` used that many hundredths of a second, in user and in system mode. */
    set(id: number, name: string, user: number, system = 0, started = 100 + id) {
      mkdirSync(join(folder, String(id)), { recursive: true });
      const before = `S ${"0 ".repeat(10)}`;
      const line = `${id} (${name}) ${before}${user} ${system} 0 0 20 0 1 0 ${started} 0 0\n`;
      writeFileSync(join(folder, String(id), "stat"), line);
    },
    end: (id: number) => rmSync(join(folder, String(id)), { recursive: true }),
    seconds: () =>
      Object.fromEntries(
        reader.read().map(({ thread, number, seconds }) => [`${thread} ${number}`, seconds]),
      ),
  };
}

describe("the processor time of threads", () => {
  it("is by kind and number: the main thread by its id, others by their names", () => {
    const { set, seconds } = setUp();
    set(1, "node", 150, 50);
    set(2, "td-io", 10);
    set(3, "td-ingress", 20);
    set(4, "td-ingress", 30);
    set(5, "td-cluster", 40);
    set(6, "td-decode", 50);
    set(7, "td-keys", 60);
    set(8, "node", 70);
    set(9, "odd) (name", 5, 1);
    expect(seconds()).toEqual({
      ...{ "main 0": 2, "io 0": 0.1, "ingress 0": 0.2, "ingress 1": 0.3, "cluster 0": 0.4 },
      ...{ "decode 0": 0.5, "keys 0": 0.6, "other 0": 0.76 },
    });
  });

  it("continues its sum when a thread ends and another takes its place or its id", () => {
    const { set, end, seconds } = setUp();
    set(1, "node", 0);
    set(2, "td-decode", 100);
    set(3, "td-decode", 200);
    seconds();
    end(2);
    set(3, "td-decode", 250);
    set(4, "td-decode", 7);
    expect(seconds()).toEqual({ "main 0": 0, "decode 0": 1.07, "decode 1": 2.5 });
    set(4, "td-decode", 3, 0, 999);
    expect(seconds()).toEqual({ "main 0": 0, "decode 0": 1.1, "decode 1": 2.5 });
  });

  it("counts what a thread used before it had its name among the others", () => {
    const { set, seconds } = setUp();
    set(2, "node", 10);
    seconds();
    set(2, "td-decode", 15);
    expect(seconds()).toEqual({ "other 0": 0.1, "decode 0": 0.05 });
  });

  it("leaves out lines that it cannot read, and threads beyond the limit", () => {
    const { set, folder, seconds } = setUp();
    set(1, "node", 100);
    mkdirSync(join(folder, "2"));
    mkdirSync(join(folder, "3"));
    writeFileSync(join(folder, "3", "stat"), "nothing of the kind");
    expect(seconds()).toEqual({ "main 0": 1 });
    for (let id = 10; id < 10 + 2 * THREADS_READ_MAX; id += 1) set(id, "td-decode", 1);
    expect(Object.keys(seconds()).length).toBeLessThanOrEqual(THREADS_READ_MAX);
  });

  it("is unknown on a system without such files", () => {
    expect(createThreadCpuReader("/nowhere/task", 1).read()).toEqual([]);
  });

  it("is that of this process on Linux, where a worker thread can name itself", async () => {
    const program = `
      require("node:fs").writeFileSync("/proc/thread-self/comm", "td-cluster");
      const until = process.hrtime.bigint() + 50_000_000n;
      while (process.hrtime.bigint() < until);
      require("node:worker_threads").parentPort.postMessage("");
      setInterval(() => {}, 1_000);`;
    const worker = new Worker(program, { eval: true });
    cleanups.push(() => worker.terminate());
    await new Promise((resolve) => worker.once("message", resolve));
    const read = createThreadCpuReader().read();
    const of = (kind: string) => read.find(({ thread }) => thread === kind)?.seconds;
    expect(of("main")).toBeGreaterThan(0);
    expect(of("cluster")).toBeGreaterThan(0);
  });
});
