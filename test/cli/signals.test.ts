import { describe, expect, it } from "vitest";
import type { Signal } from "../../src/cli/command.ts";
import { STOP_MS_MAX } from "../../src/cli/limits.ts";
import { untilStopped, whileStarting } from "../../src/cli/signals.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeIo } from "../support/fake-io.ts";

function createDeferred() {
  let resolve = (): void => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<void>((onDone, onError) => {
    resolve = onDone;
    reject = onError;
  });
  return { promise, resolve: () => resolve(), reject: (error: Error) => reject(error) };
}

/** A service whose `stop` ends when the test triggers it. */
function setUp(graceMs: number, ...reload: readonly (() => unknown)[]) {
  const clock = createFakeClock();
  const io = createFakeIo(clock);
  const steps: string[] = [];
  const stopped = createDeferred();
  const service = {
    drain: () => void steps.push("drain"),
    disableKeepAlive: () => void steps.push("disable keep-alive"),
    stop: () => {
      steps.push("stop");
      return stopped.promise;
    },
  };
  const code = untilStopped({ io, service, graceMs, reload: reload.length > 0 ? reload : null });
  return { clock, io, steps, stopped, code };
}

describe("a signal to stop", () => {
  it.each(["SIGTERM", "SIGINT"] as const)(
    "%s drains, and stops after the grace period",
    async (signal) => {
      const { clock, io, steps, stopped, code } = setUp(5_000);
      io.emit(signal);
      clock.advance(4_999);
      expect(steps).toEqual(["drain", "disable keep-alive"]);
      clock.advance(1);
      expect(steps).toEqual(["drain", "disable keep-alive", "stop"]);
      stopped.resolve();
      expect(await code).toBe(0);
      expect(clock.pending).toBe(0);
    },
  );

  it.each([
    [4_000, 2_000],
    [75_000, 70_000],
  ])("of a grace of %d ms connections are kept for %d", (graceMs, keptMs) => {
    const { clock, io, steps } = setUp(graceMs);
    io.emit("SIGTERM");
    clock.advance(keptMs - 1);
    expect(steps).toEqual(["drain"]);
    clock.advance(1);
    expect(steps).toEqual(["drain", "disable keep-alive"]);
  });

  it("stops immediately when received again while connections are closed", async () => {
    const { clock, io, steps, code } = setUp(5_000);
    io.emit("SIGTERM");
    clock.advance(3_000);
    io.emit("SIGTERM");
    expect(await code).toBe(1);
    clock.advance(10_000);
    expect(steps).toEqual(["drain", "disable keep-alive"]);
    expect(clock.pending).toBe(0);
  });

  it("stops immediately without a grace period", async () => {
    const { io, steps, stopped, code } = setUp(0);
    io.emit("SIGINT");
    expect(steps).toEqual(["drain", "stop"]);
    stopped.resolve();
    expect(await code).toBe(0);
  });

  it("stops immediately when received twice during the grace period", async () => {
    const { clock, io, steps, code } = setUp(5_000);
    io.emit("SIGTERM");
    io.emit("SIGINT");
    expect(await code).toBe(1);
    clock.advance(10_000);
    expect(steps).toEqual(["drain"]);
  });

  it("stops immediately when received twice while pending work is finished", async () => {
    const { io, code } = setUp(0);
    io.emit("SIGTERM");
    io.emit("SIGTERM");
    expect(await code).toBe(1);
  });

  it.each([
    [1, 0],
    [2, 1],
  ])("received %d times while a replaced process stops, ends it with %d", async (times, exit) => {
    const io = createFakeIo(createFakeClock());
    const [stopped, finished] = [createDeferred(), createDeferred()];
    const calls: string[] = [];
    const service = {
      drain: () => void calls.push("drain"),
      stop: () => {
        calls.push("stop");
        return stopped.promise;
      },
    };
    const upgrade = { start() {}, abort() {}, isRetiring: true, finished: finished.promise };
    const code = untilStopped({ io, service, graceMs: 5_000, reload: null, upgrade });
    finished.resolve();
    await finished.promise;
    // The first one finds it writing what it has counted.
    for (let count = 0; count < times; count += 1) io.emit("SIGTERM");
    stopped.resolve();
    expect(await code).toBe(exit);
    expect(calls).toEqual(["stop"]);
  });

  it("does not wait forever for pending work", async () => {
    const { clock, io, code } = setUp(0);
    io.emit("SIGTERM");
    clock.advance(STOP_MS_MAX);
    expect(await code).toBe(1);
    expect(io.errLines.join()).toContain("did not end");
  });

  it("reports a stop that fails", async () => {
    const { io, stopped, code } = setUp(0);
    io.emit("SIGTERM");
    stopped.reject(new Error("the socket is gone"));
    expect(await code).toBe(1);
    expect(io.errLines.join()).toContain("the socket is gone");
  });

  it("leaves no handler behind", async () => {
    const { io, stopped, code } = setUp(0, () => {});
    expect(io.listeners("SIGTERM") + io.listeners("SIGINT") + io.listeners("SIGHUP")).toBe(3);
    io.emit("SIGTERM");
    stopped.resolve();
    await code;
    expect(io.listeners("SIGTERM") + io.listeners("SIGINT") + io.listeners("SIGHUP")).toBe(0);
  });
});

describe("SIGHUP", () => {
  it("reloads the keys, each time, also while draining", () => {
    let count = 0;
    const { io } = setUp(5_000, () => {
      count += 1;
    });
    io.emit("SIGHUP");
    io.emit("SIGHUP");
    io.emit("SIGTERM");
    io.emit("SIGHUP");
    expect(count).toBe(3);
  });

  it("reports unreadable keys, thrown or rejected, and continues", async () => {
    for (const reload of [
      () => {
        throw new Error("line 3");
      },
      async () => Promise.reject(new Error("line 3")),
    ]) {
      const { io, stopped, code } = setUp(0, reload);
      io.emit("SIGHUP");
      io.emit("SIGTERM");
      stopped.resolve();
      expect(await code).toBe(0);
      await expect.poll(() => io.errLines.join()).toMatch(/before stays: line 3/);
    }
  });

  it("reloads each reloadable part, even when others fail", () => {
    const read: string[] = [];
    const { io } = setUp(
      0,
      () => {
        throw new Error("keys");
      },
      () => read.push("identity"),
    );
    io.emit("SIGHUP");
    expect(read).toEqual(["identity"]);
  });

  it("is ignored when there is nothing to reload", () => {
    expect(setUp(0).io.listeners("SIGHUP")).toBe(0);
  });
});

describe("a signal while the service starts", () => {
  /** A start that ends when the test triggers it. */
  function starting(missed: readonly Signal[] = []) {
    const clock = createFakeClock();
    const io = createFakeIo(clock);
    const start = createDeferred();
    const service = { drain: () => {}, stop: () => Promise.resolve() };
    const started = async () => {
      await start.promise;
      return service;
    };
    const held = whileStarting(io.signals, started, missed);
    const listeners = () =>
      (["SIGTERM", "SIGINT", "SIGHUP"] as const).map((signal) => io.listeners(signal));
    return { io, start, held, listeners };
  }

  it.each(["SIGTERM", "SIGINT"] as const)("%s stops it immediately", async (signal) => {
    const { io, held, listeners } = starting();
    io.emit(signal);
    expect(await held).toBeNull();
    expect(listeners()).toEqual([0, 0, 0]);
  });

  it("SIGHUP ends nothing, and its reload happens once the service runs", async () => {
    const { io, start, held, listeners } = starting();
    io.emit("SIGHUP");
    io.emit("SIGHUP");
    start.resolve();
    const started = await held;
    if (started === null) throw new Error("it was stopped");
    expect(listeners()).toEqual([1, 1, 1]);
    let reloads = 0;
    const reload = [() => (reloads += 1)];
    const { service, signals } = started;
    const code = untilStopped({ io: { ...io, signals }, service, graceMs: 0, reload });
    expect([reloads, ...listeners()]).toEqual([1, 1, 1, 1]);
    io.emit("SIGHUP");
    io.emit("SIGTERM");
    expect([await code, reloads, ...listeners()]).toEqual([0, 2, 0, 0, 0]);
  });

  it("that may have gone to another process counts as one that arrived", async () => {
    const { io, start, held } = starting(["SIGHUP"]);
    start.resolve();
    const started = await held;
    if (started === null) throw new Error("it was stopped");
    let reloads = 0;
    const reload = [() => (reloads += 1)];
    const { service, signals } = started;
    const code = untilStopped({ io: { ...io, signals }, service, graceMs: 0, reload });
    expect(reloads).toBe(1);
    io.emit("SIGTERM");
    expect([await code, reloads]).toEqual([0, 1]);
  });

  it("does not change the error of a failed start", async () => {
    const { start, held, listeners } = starting();
    start.reject(new Error("the port is taken"));
    await expect(held).rejects.toThrow("the port is taken");
    expect(listeners()).toEqual([0, 0, 0]);
  });
});
