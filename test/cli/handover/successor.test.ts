import { describe, expect, it } from "vitest";
import type { ToSuccessor } from "../../../src/cli/handover/messages.ts";
import { createUpgrade } from "../../../src/cli/handover/successor.ts";
import { RETIRING_LOOK_MS, RETIRING_MS_MAX, SUCCESSOR_KILL_MS } from "../../../src/cli/limits.ts";
import { newUpgradeCounts } from "../../../src/edge/handover.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const TIMEOUT_MS = 60_000;
const PID = 815;

/** A successor that does what the test says. */
function fakeProcess(leave: () => void) {
  const sent: ToSuccessor[] = [];
  const signals: string[] = [];
  let onMessage: (message: unknown) => void = () => {};
  let onExit: (how: string) => void = () => {};
  return {
    sent,
    signals,
    tell: (message: unknown) => onMessage(message),
    exit: (how: string) => onExit(how),
    process: {
      pid: PID,
      send: async (message: ToSuccessor) => void sent.push(message),
      kill: (signal: string) => void signals.push(signal),
      onMessage: (act: (message: unknown) => void) => {
        onMessage = act;
      },
      onExit: (act: (how: string) => void) => {
        onExit = act;
      },
      leave: async () => leave(),
    },
  };
}

function setUp(spawnError: Error | null = null) {
  const clock = createFakeClock();
  const steps: string[] = [];
  const errors: string[] = [];
  const processes: ReturnType<typeof fakeProcess>[] = [];
  const hand = { connections: 3, transactions: 2, hasPredecessor: false };
  const faults = {
    release: null as Error | null,
    takeBack: null as Error | null,
    /** How long the admin listener takes to close. */
    releasing: Promise.resolve(),
  };
  const receipts = { sent: Promise.resolve() };
  const alone = { waitMs: 0 };
  const counts = newUpgradeCounts();
  const step = (name: string) => (): void => void steps.push(name);
  const failing = (name: "release" | "takeBack") => async (): Promise<void> => {
    steps.push(name);
    const fault = faults[name];
    if (fault !== null) throw fault;
  };
  const upgrade = createUpgrade(
    {
      clock,
      err: (line) => void errors.push(line),
      edge: {
        waitMs: () => alone.waitMs,
        listener: () => ({ socket: 4, port: 1, quicSockets: null }),
        lend: step("lend"),
        async release() {
          await failing("release")();
          await faults.releasing;
        },
        takeBack: failing("takeBack"),
        retire: step("retire"),
        inHand: () => hand,
        receipts: {
          start: () => receipts.sent,
          asked: (number) => void steps.push(`asked ${number}`),
          stop: () => {},
          finish: async () => {},
        },
      },
      systemd: {
        ready: (status) => void steps.push(`READY ${status}`),
        reloading: step("RELOADING"),
        stopping: step("STOPPING"),
        follow: (pid) => void steps.push(`MAINPID=${pid}`),
      },
      counts,
      async spawn() {
        if (spawnError !== null) throw spawnError;
        processes.push(fakeProcess(step("leave")));
        return latest().process;
      },
    },
    TIMEOUT_MS,
  );
  const latest = () => {
    const process = processes.at(-1);
    if (process === undefined) throw new Error("no successor was started");
    return process;
  };
  let isFinished = false;
  void upgrade.finished.then(() => {
    isFinished = true;
  });
  const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const finished = (): boolean => isFinished;
  const parts = { clock, steps, errors, hand, faults, receipts, counts, alone };
  return { ...parts, upgrade, latest, pause, finished };
}

describe("an upgrade", () => {
  it("that fails is counted, with the time that it took", async () => {
    const { clock, upgrade, latest, pause, counts } = setUp();
    upgrade.start();
    await pause();
    clock.advance(2_500);
    latest().tell({ kind: "failed", reason: "no memory" });
    latest().exit("with exit code 1");
    await pause();
    expect(counts).toEqual({ succeeded: 0, failed: 1, lastSeconds: 2.5 });
    const refused = setUp(new Error("EAGAIN"));
    refused.upgrade.start();
    await pause();
    expect(refused.counts).toEqual({ succeeded: 0, failed: 1, lastSeconds: 0 });
  });

  it("is refused while the process before may have QUIC sockets", async () => {
    const { upgrade, steps, errors, alone, pause } = setUp();
    alone.waitMs = 6_200;
    upgrade.start();
    await pause();
    const { state, reason } = upgrade.status;
    expect([state, steps.includes("lend")]).toEqual(["failed", false]);
    expect(reason).toContain("may still have QUIC sockets; try again in 7 s");
    expect(errors).toEqual([`upgrade failed: ${reason}`]);
    alone.waitMs = 0;
    upgrade.start();
    await pause();
    expect(upgrade.status).toMatchObject({ attempt: 2, state: "starting", successor: PID });
  });

  it("lends, releases when the successor is ready, and retires when it serves", async () => {
    const { clock, steps, upgrade, latest, pause, finished, hand } = setUp();
    upgrade.start();
    await pause();
    expect(upgrade.status).toMatchObject({ attempt: 1, state: "starting", successor: PID });
    expect(steps).toEqual(["RELOADING", "lend"]);
    latest().tell({ kind: "waiting", missing: ["live"] });
    latest().tell({ kind: "ready" });
    await pause();
    expect(latest().sent).toEqual([{ kind: "takeOver" }]);
    expect(upgrade.isRetiring).toBe(false);
    latest().tell({ kind: "serving" });
    expect(upgrade.isRetiring).toBe(true);
    await pause();
    const replaced = ["retire", "leave", `MAINPID=${PID}`];
    expect(steps).toEqual(["RELOADING", "lend", "release", ...replaced]);
    clock.advance(TIMEOUT_MS);
    await pause();
    expect(finished()).toBe(false);
    hand.connections = 0;
    clock.advance(RETIRING_LOOK_MS);
    await pause();
    expect(finished()).toBe(false);
    hand.transactions = 0;
    clock.advance(RETIRING_LOOK_MS);
    await pause();
    expect(finished()).toBe(true);
    expect(clock.pending).toBe(0);
    expect(latest().signals).toEqual([]);
  });

  it("does not end this process before the one that it replaced has ended", async () => {
    const { clock, upgrade, latest, pause, finished, hand } = setUp();
    Object.assign(hand, { connections: 0, transactions: 0, hasPredecessor: true });
    upgrade.start();
    await pause();
    latest().tell({ kind: "serving" });
    await pause();
    clock.advance(10 * RETIRING_LOOK_MS);
    await pause();
    expect(finished()).toBe(false);
    hand.hasPredecessor = false;
    clock.advance(RETIRING_LOOK_MS);
    await pause();
    expect(finished()).toBe(true);
  });

  it("does not wait for connections and transactions without a bound", async () => {
    const { clock, errors, upgrade, latest, pause, finished } = setUp();
    upgrade.start();
    await pause();
    latest().tell({ kind: "serving" });
    await pause();
    clock.advance(RETIRING_MS_MAX + RETIRING_LOOK_MS);
    await pause();
    expect(finished()).toBe(true);
    expect(errors.at(-1)).toContain("3 connections and 2 transactions are left");
  });

  it("fails when the successor is not ready in time, with what it waits for", async () => {
    const { clock, steps, errors, upgrade, latest, pause } = setUp();
    upgrade.start();
    await pause();
    latest().tell({ kind: "waiting", missing: ["slot", "live"] });
    clock.advance(TIMEOUT_MS);
    expect(latest().signals).toEqual(["SIGTERM"]);
    // It still has what was left to it.
    expect(steps).not.toContain("takeBack");
    clock.advance(SUCCESSOR_KILL_MS);
    expect(latest().signals).toEqual(["SIGTERM", "SIGKILL"]);
    latest().exit("by SIGKILL");
    await pause();
    expect(steps.slice(2, 3)).toEqual(["takeBack"]);
    const reason = "not ready within 60000 ms; it waits for: slot, live";
    expect(upgrade.status).toEqual({ attempt: 1, state: "failed", reason, successor: null });
    expect(errors.at(-1)).toBe(`upgrade failed: ${reason}`);
    expect(steps.at(-1)).toBe(`READY serving; the last upgrade failed: ${reason}`);
    expect(clock.pending).toBe(0);
  });

  it("is over when the time is up, also for one that then says it serves", async () => {
    const { clock, steps, upgrade, latest, pause } = setUp();
    upgrade.start();
    await pause();
    clock.advance(TIMEOUT_MS);
    expect(latest().signals).toEqual(["SIGTERM"]);
    latest().tell({ kind: "serving" });
    expect(upgrade.isRetiring).toBe(false);
    latest().exit("by SIGTERM");
    await pause();
    expect(upgrade.status.state).toBe("failed");
    expect(steps).not.toContain("retire");
    expect(steps).toContain("takeBack");
  });

  it("lets a successor not listen if the time was up while the admin listener closed", async () => {
    const { clock, faults, upgrade, latest, pause } = setUp();
    let closed = (): void => {};
    faults.releasing = new Promise((resolve) => {
      closed = resolve;
    });
    upgrade.start();
    await pause();
    latest().tell({ kind: "ready" });
    await pause();
    clock.advance(TIMEOUT_MS);
    closed();
    await pause();
    expect([latest().signals, latest().sent]).toEqual([["SIGTERM"], []]);
  });

  it("fails when the successor ends, with its reason, and can be tried again", async () => {
    const { steps, upgrade, latest, pause } = setUp();
    upgrade.start();
    await pause();
    latest().tell({ kind: "failed", reason: "http.listen changed" });
    latest().exit("with exit code 1");
    await pause();
    expect(upgrade.status.reason).toBe("http.listen changed");
    upgrade.start();
    await pause();
    latest().exit("with exit code 1");
    await pause();
    expect(upgrade.status).toMatchObject({ attempt: 2, state: "failed" });
    expect(upgrade.status.reason).toContain("it ended with exit code 1");
    upgrade.start();
    await pause();
    latest().tell({ kind: "ready" });
    await pause();
    latest().exit("by SIGKILL");
    await pause();
    expect(steps.filter((step) => step === "takeBack")).toHaveLength(3);
    expect(upgrade.isRetiring).toBe(false);
  });

  it("fails when no process starts, or the admin listener does not close", async () => {
    const without = setUp(new Error("EAGAIN"));
    without.upgrade.start();
    await without.pause();
    expect(without.upgrade.status).toMatchObject({ state: "failed", successor: null });
    expect(without.upgrade.status.reason).toContain("EAGAIN");

    const { faults, upgrade, latest, pause } = setUp();
    faults.release = new Error("stuck");
    faults.takeBack = new Error("EADDRINUSE");
    upgrade.start();
    await pause();
    latest().tell({ kind: "ready" });
    await pause();
    expect(latest().sent).toEqual([]);
    expect(latest().signals).toEqual(["SIGTERM"]);
    latest().exit("with exit code 0");
    await pause();
    expect(upgrade.status.reason).toMatch(/stuck; and what was left .*EADDRINUSE/);
  });

  it("lets a successor listen once it has all receipts, and answers it later", async () => {
    const { steps, receipts, upgrade, latest, pause } = setUp();
    let done = (): void => {};
    receipts.sent = new Promise((resolve) => {
      done = resolve;
    });
    upgrade.start();
    await pause();
    latest().tell({ kind: "ready" });
    await pause();
    expect(latest().sent).toEqual([]);
    done();
    await pause();
    expect(latest().sent).toEqual([{ kind: "takeOver" }]);
    latest().tell({ kind: "ask", number: 1 });
    latest().tell({ kind: "serving" });
    latest().tell({ kind: "ask", number: 2 });
    expect(steps.filter((name) => name.startsWith("asked"))).toEqual(["asked 1", "asked 2"]);
  });

  it("is not started twice", async () => {
    const { errors, upgrade, latest, pause } = setUp();
    upgrade.start();
    await pause();
    const first = latest();
    upgrade.start();
    await pause();
    expect(latest()).toBe(first);
    first.tell({ kind: "serving" });
    upgrade.start();
    await pause();
    expect(errors.filter((line) => line.includes("started already"))).toHaveLength(2);
  });

  it("is aborted when this process stops, which then takes nothing back", async () => {
    for (const isEarly of [true, false]) {
      const { clock, steps, upgrade, latest, pause } = setUp();
      upgrade.start();
      if (!isEarly) await pause();
      upgrade.abort();
      await pause();
      expect(latest().signals).toEqual(["SIGTERM"]);
      latest().exit("by SIGTERM");
      await pause();
      expect(steps).toEqual(["RELOADING", "lend"]);
      expect(clock.pending).toBe(0);
    }
  });

  it("takes nothing back from a successor that has served, whatever becomes of it", async () => {
    const { steps, upgrade, latest, pause } = setUp();
    upgrade.start();
    await pause();
    latest().tell({ kind: "serving" });
    latest().exit("by SIGKILL");
    await pause();
    expect(upgrade.isRetiring).toBe(true);
    expect(steps).not.toContain("takeBack");
  });

  it("ignores messages that it does not know", async () => {
    const { upgrade, latest, pause } = setUp();
    upgrade.start();
    await pause();
    for (const message of [null, "serving", {}, { kind: "later" }]) latest().tell(message);
    expect(upgrade.status.state).toBe("starting");
  });
});
