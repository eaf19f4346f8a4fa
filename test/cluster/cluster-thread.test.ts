import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type ClusterThreadDeps, createClusterThread } from "../../src/cluster/cluster-thread.ts";
import {
  REQUESTS_PENDING_MAX,
  THREAD_HEAP_MB_MAX,
  THREAD_STOP_MS_MAX,
  UPDATES_UNREAD_MAX,
} from "../../src/cluster/limits.ts";
import type { ClusterThreadOptions } from "../../src/cluster/thread/messages.ts";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { decodeBase58 } from "../../src/core/encoding.ts";
import { SetupError } from "../../src/core/errors.ts";
import { createRouter } from "../../src/route/router.ts";
import { createSimulatedCluster } from "../../src/sandbox/cluster.ts";
import { ALPENGLOW_DEFAULTS } from "../../src/sandbox/cluster-timeline.ts";
import { createBlindLedger } from "../../src/sandbox/ledger.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { listenOnLoopback } from "../support/loopback.ts";
import { ROOT } from "../support/source-tree.ts";
import { newKeypair } from "../support/transactions.ts";

const WAIT = { timeout: 60_000, interval: 5 };
const STAND_IN = fileURLToPath(new URL("../support/cluster-thread.mjs", import.meta.url));
const ONE_SIGNATURE = new Uint8Array(64).fill(9);
const LEADERS = [0, 1, 2].map((index) => ({
  identity: newKeypair(index + 1).address,
  address: `127.0.0.1:${9000 + index}`,
}));

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanups.splice(0).reverse()) await end();
});

/** A handle of a thread, and what the thread reported. */
function setUp(
  options: ClusterThreadOptions,
  { entry, clock = systemClock }: { readonly entry?: string; readonly clock?: Clock } = {},
) {
  const logged: [object, string][] = [];
  const take = (fields: object, message: string): void => void logged.push([fields, message]);
  const router = createRouter({ clock, onPlan: () => undefined }, { leaders: 2, warmWindows: 4 });
  const busy = vi.fn(() => false);
  const confirmed = vi.fn();
  const landed = vi.fn();
  const forgetBanks = vi.fn();
  const slotEvent = vi.spyOn(router, "slotEvent");
  const stalled = vi.fn();
  const deps: ClusterThreadDeps = {
    clock,
    log: { info: take, warn: take, error: take },
    router,
    processed: (signature, slot, error, bank) => landed(signature[0], slot, error, bank),
    confirmed,
    forgetBanks,
    onConfirmationStalled: stalled,
    onConsensus: (consensus) => router.setAlpenglow(consensus === "alpenglow"),
    busy,
    ...(entry === undefined ? {} : { entry }),
  };
  const thread = createClusterThread(deps, options);
  cleanups.push(() => thread.stop());
  return { thread, router, logged, slotEvent, landed, confirmed, forgetBanks, stalled, busy };
}

/** A thread of test/support/cluster-thread.mjs. */
function standIn(what: string, messages: readonly object[] = [], clock: Clock = systemClock) {
  const rpcUrl = [what, ...messages.map((each) => JSON.stringify(each))].join(" ");
  return setUp({ rpcUrl, wsUrl: "" }, { entry: STAND_IN, clock });
}

async function startCluster() {
  const cluster = await createSimulatedCluster({
    clock: systemClock,
    leaders: LEADERS,
    slotMs: 100,
    skipShare: 0,
    epochSlots: 432,
    ledger: createBlindLedger(),
    consensus: "alpenglow",
    alpenglow: { ...ALPENGLOW_DEFAULTS, stallShare: 0, twoBanksShare: 0, behindShare: 0 },
  });
  cleanups.push(() => cluster.stop());
  return { cluster, urls: await cluster.start() };
}

/** A node that responds to each method as `act` does; without a WebSocket. */
async function startNode(act: (method: string, response: ServerResponse) => void) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    act(/"method":"(\w+)"/.exec(body)?.[1] ?? "", response);
  });
  const at = await listenOnLoopback(server, cleanups);
  return { rpcUrl: `http://${at}`, wsUrl: `ws://${at}` };
}

function threadNames(): readonly string[] {
  return readdirSync("/proc/self/task").map((task) =>
    readFileSync(`/proc/self/task/${task}/comm`, "utf8").trim(),
  );
}

/** The priorities of this process's threads; 0 is the default, higher is less. */
function niceValues(): number[] {
  return readdirSync("/proc/self/task").map((task) => {
    const stat = readFileSync(`/proc/self/task/${task}/stat`, "utf8");
    // After the name in brackets: field 19.
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
  });
}

describe("the cluster thread", () => {
  it("passes slots in order, schedules, addresses, heights, blockhashes and statuses", async () => {
    const { cluster, urls } = await startCluster();
    const before = niceValues();
    const { thread, router, slotEvent, busy } = setUp({
      ...urls,
      heightMs: 50,
      idleHeightMs: 50,
      blockhashesMs: 50,
    });
    router.start();
    cleanups.push(() => router.stop());
    busy.mockReturnValue(true);
    thread.useIdentity(LEADERS[1]?.identity ?? "");
    await thread.start();
    expect(threadNames()).toContain("td-cluster");
    // One thread more has a lower priority; the others keep theirs.
    const lowered = Math.max(...before) + 10;
    expect(niceValues()).toContain(Math.min(19, lowered));
    await vi.waitFor(() => {
      expect(router.status()).toMatchObject({ epochs: [2, 3], contacts: 3, targets: 2 });
      expect(slotEvent.mock.calls.filter(([kind]) => kind === "start").length).toBeGreaterThan(9);
      expect(thread.blockHeight()).toBeGreaterThan(0);
      expect(thread.contactsAgeMs()).not.toBeNull();
      expect(thread.stakeLamports()).toBe(1_000_000_000);
    }, WAIT);
    thread.useIdentity("unstaked");
    expect(thread.stakeLamports()).toBeNull();
    await vi.waitFor(() => expect(thread.stakeLamports()).toBe(0), WAIT);
    const started = slotEvent.mock.calls.filter(
      ([kind, , source]) => kind === "start" && source === "slotsUpdates",
    );
    const slots = started.map(([, slot]) => slot);
    expect(slots).toEqual(slots.toSorted((a, b) => a - b));
    for (const target of router.plan?.send ?? []) {
      expect(cluster.leaderAt(target.slot)).toBe(target.identity);
    }
    // The lookup of an unknown blockhash reads all valid ones.
    const blockhash = decodeBase58(cluster.latestBlockhash(), 32) ?? new Uint8Array();
    await vi.waitFor(() => expect(thread.lastValidHeight(blockhash)).not.toBeNull(), WAIT);
    const { slot, statuses } = await thread.fetchStatuses(new Uint8Array(2 * 64));
    expect([slot > 0, statuses]).toEqual([true, [null, null]]);
    await expect(thread.fetchStatuses(new Uint8Array(257 * 64))).rejects.toThrow("at most 256");
    const checks = await thread.checkBlockhashes([blockhash, new Uint8Array(32).fill(7)]);
    expect(checks.map((check) => check?.isValid)).toEqual([true, false]);
    expect(checks.map((check) => (check?.slot ?? 0) > 0)).toEqual([true, true]);
    // Nothing lands in this cluster, whose blocks hold no votes either.
    const quietFrom = cluster.currentSlot();
    await vi.waitFor(() => expect(thread.contentOf(quietFrom, quietFrom)).toBe("empty"), WAIT);
    expect(thread.contentOf(quietFrom, quietFrom + 1_000)).toBe("pending");
    expect(thread.counters.statusFetches).toBe(1);
    expect(thread.counters.slotEvents).toBeGreaterThan(9);
    const sinceNs = thread.blockHeightNs();
    expect(sinceNs).toBeGreaterThan(0);
    expect(sinceNs).toBeLessThanOrEqual(systemClock.nowNs());
    thread.pollContactsNow();
    await vi.waitFor(() => expect(thread.counters.contactsEarlyRefreshes).toBe(1), WAIT);
    expect(thread.deaths).toBe(0);
  });

  it("lets this thread turn its event loop while it parses a long response", async () => {
    const long = `{"jsonrpc":"2.0","id":1,"result":[${"[],".repeat(1_000_000)}[]]}`;
    let turns = 0;
    let counting = false;
    const count = (): void => {
      turns += 1;
      if (counting) setImmediate(count);
    };
    const urls = await startNode((method, response) => {
      if (method !== "getClusterNodes") {
        response.writeHead(404).end();
        return;
      }
      response.end(long, () => {
        counting = true;
        count();
      });
    });
    const { thread } = setUp({ ...urls, timeoutMs: 60_000 });
    await thread.start();
    // No node of it takes transactions.
    await vi.waitFor(() => expect(thread.counters.contactFailures).toBe(1), WAIT);
    counting = false;
    // What is still in the sockets' memory takes about a hundred turns.
    expect(turns).toBeGreaterThan(1_000);
  });

  it("reports errors of a bounded size only, and no credentials", async () => {
    const text = "x".repeat(100_000);
    const urls = await startNode((method, response) => {
      const error = { code: -1, message: `${method} ${text}` };
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, error }));
    });
    const rpcUrl = urls.rpcUrl.replace("http://", "http://me:secret@");
    const { thread, logged } = setUp({ ...urls, rpcUrl });
    await thread.start();
    const failure = await thread.fetchStatuses(ONE_SIGNATURE).catch(String);
    expect(String(failure)).toContain("getSignatureStatuses");
    expect(String(failure).length).toBeLessThan(1_000);
    await vi.waitFor(() => expect(logged.length).toBeGreaterThan(2), WAIT);
    for (const entry of logged) {
      expect(JSON.stringify(entry).length).toBeLessThan(1_000);
      expect(JSON.stringify(entry)).not.toContain("secret");
    }
  });

  it("does not keep the process alive", async () => {
    const module = pathToFileURL(join(ROOT, "dist/cluster/cluster-thread.js")).href;
    const clock = pathToFileURL(join(ROOT, "dist/core/clock.js")).href;
    const script = `(async () => {
      const { createClusterThread } = await import("${module}");
      const { systemClock } = await import("${clock}");
      const options = { rpcUrl: "silent", wsUrl: "" };
      const deps = { clock: systemClock, entry: ${JSON.stringify(STAND_IN)}, busy: () => false };
      await createClusterThread(deps, options).start();
      console.log("started");
    })()`;
    const child = spawn(process.execPath, ["--eval", script]);
    cleanups.push(() => child.kill("SIGKILL"));
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        output += String(chunk);
      });
    }
    const [code] = await once(child, "close");
    expect({ code, output }).toEqual({ code: 0, output: "started\n" });
  });

  it("ends with its handle", async () => {
    const { thread } = standIn("echo");
    await thread.start();
    await thread.stop();
    await expect(thread.fetchStatuses(ONE_SIGNATURE)).rejects.toThrow("does not run");
    expect([thread.deaths, thread.requestsRefused]).toEqual([0, 1]);
  });

  it("fails the start with a SetupError when it cannot be loaded, or dies first", async () => {
    const missing = setUp({ rpcUrl: "", wsUrl: "" }, { entry: "/nowhere/worker.js" });
    await expect(missing.thread.start()).rejects.toThrow(SetupError);
    await expect(standIn("throws").thread.start()).rejects.toThrow("could not be started");
  });
});

describe("the identity whose stake is reported", () => {
  it("is sent to the thread when it starts, and only its own stake is used", async () => {
    const { thread, logged } = standIn("echo", [
      { kind: "stake", identity: "before", lamports: 5 },
      { kind: "reporting", reporting: "yes" },
    ]);
    thread.useIdentity("now");
    await thread.start();
    await vi.waitFor(() => expect(thread.statusReporting()).toBe("yes"), WAIT);
    expect(thread.stakeLamports()).toBeNull();
    await vi.waitFor(() => expect(logged).toHaveLength(1), WAIT);
    expect(logged[0]?.[0]).toEqual({ kind: "identity", identity: "now" });
  });
});

describe("a cluster thread that dies", () => {
  it("fails its requests and is replaced, each time after twice the delay", async () => {
    const clock = createFakeClock();
    const height = { kind: "height", height: 7, sinceNs: 1 };
    const { thread, logged } = standIn("dies", [height], clock);
    await thread.start();
    await vi.waitFor(() => expect(thread.blockHeight()).toBe(7), WAIT);
    for (const [deaths, restartMs] of [
      [1, 100],
      [2, 200],
      [3, 400],
    ] as const) {
      await expect(thread.fetchStatuses(ONE_SIGNATURE)).rejects.toThrow("thread ended");
      await vi.waitFor(() => expect(thread.deaths).toBe(deaths), WAIT);
      expect(logged.at(-1)?.[0]).toEqual({ error: "Error: the thread threw", restartMs });
      // What was known stays known.
      expect(thread.blockHeight()).toBe(7);
      clock.advance(restartMs - 1);
      await expect(thread.fetchStatuses(ONE_SIGNATURE)).rejects.toThrow("does not run");
      clock.advance(1);
    }
  });

  it("is replaced by one that checks heights against the last known one", async () => {
    const clock = createFakeClock();
    const height = { kind: "height", height: 7, sinceNs: 1 };
    const { thread, logged } = standIn("dies", [height], clock);
    await thread.start();
    await vi.waitFor(() => expect(thread.blockHeight()).toBe(7), WAIT);
    expect(logged).toEqual([]);
    await expect(thread.fetchStatuses(ONE_SIGNATURE)).rejects.toThrow("thread ended");
    clock.advance(100);
    const known = { height: 7, sinceNs: 1 };
    await vi.waitFor(() => expect(logged.at(-1)).toEqual([known, "known"]), WAIT);
  });

  it("is replaced after the first delay again once it lived for a minute", async () => {
    const clock = createFakeClock();
    const { thread, logged } = standIn("dies", [], clock);
    await thread.start();
    for (let time = 0; time < 2; time += 1) {
      clock.advance(60_001);
      await expect(thread.fetchStatuses(ONE_SIGNATURE)).rejects.toThrow("thread ended");
      await vi.waitFor(() => expect(thread.deaths).toBe(time + 1), WAIT);
      expect(logged.at(-1)?.[0]).toMatchObject({ restartMs: 100 });
      clock.advance(100);
    }
  });
});

describe("a cluster thread that does not respond", () => {
  it("holds up nothing here, and is ended by stop after THREAD_STOP_MS_MAX", async () => {
    for (const what of ["busy", "silent"]) {
      const clock = createFakeClock();
      const { thread } = standIn(what, [], clock);
      await thread.start();
      const pending = expect(thread.fetchStatuses(ONE_SIGNATURE)).rejects.toThrow("was stopped");
      expect(thread.blockHeight()).toBeNull();
      const stopped = thread.stop();
      clock.advance(THREAD_STOP_MS_MAX);
      await stopped;
      await pending;
    }
  });

  it("receives at most REQUESTS_PENDING_MAX requests; a further one fails", async () => {
    const clock = createFakeClock();
    const { thread } = standIn("silent", [], clock);
    await thread.start();
    const pending = Array.from({ length: REQUESTS_PENDING_MAX }, () =>
      thread.fetchStatuses(ONE_SIGNATURE).catch(String),
    );
    await expect(thread.fetchStatuses(ONE_SIGNATURE)).rejects.toThrow("too many requests");
    expect(thread.requestsRefused).toBe(1);
    const stopped = thread.stop();
    clock.advance(THREAD_STOP_MS_MAX);
    await stopped;
    expect(new Set(await Promise.all(pending))).toEqual(
      new Set(["Error: the cluster thread was stopped"]),
    );
  });
});

describe("what a cluster thread sends", () => {
  it("is applied in order", async () => {
    const { thread, slotEvent, landed, confirmed } = standIn("echo", [
      { kind: "slot", event: "start", slot: 5, source: "slot" },
      { kind: "slot", event: "end", slot: 5, source: "slotsUpdates" },
      { kind: "confirmed", slot: 4, bank: null },
      { kind: "reporting", reporting: "yes" },
    ]);
    await thread.start();
    await vi.waitFor(() => expect(thread.statusReporting()).toBe("yes"), WAIT);
    expect(slotEvent.mock.calls).toEqual([
      ["start", 5, "slot"],
      ["end", 5, "slotsUpdates"],
    ]);
    expect([confirmed.mock.calls, landed.mock.calls]).toEqual([[[4, null]], []]);
  });

  it("has the banks of landings and confirmations, and when other ids follow", async () => {
    const { thread, landed, confirmed, forgetBanks } = standIn("echo", [
      {
        kind: "processed",
        signatures: new Array(128).fill(3),
        slots: [7, 7],
        banks: [30, -1],
        errors: [null, '"x"'],
      },
      { kind: "forgetBanks" },
      { kind: "confirmed", slot: 7, bank: 40 },
      { kind: "reporting", reporting: "yes" },
    ]);
    await thread.start();
    await vi.waitFor(() => expect(thread.statusReporting()).toBe("yes"), WAIT);
    expect(landed.mock.calls).toEqual([
      [3, 7, null, 30],
      [3, 7, '"x"', null],
    ]);
    expect([forgetBanks.mock.calls, confirmed.mock.calls]).toEqual([[[]], [[7, 40]]]);
    const orderOf = (mock: typeof landed) => mock.mock.invocationCallOrder[0] ?? 0;
    expect(orderOf(landed)).toBeLessThan(orderOf(forgetBanks));
    expect(orderOf(forgetBanks)).toBeLessThan(orderOf(confirmed));
  });

  it("is the cluster's consensus, and whether the confirmation stands still", async () => {
    const { thread, stalled } = standIn("dies", [
      { kind: "consensus", consensus: "alpenglow" },
      { kind: "confirmationStalled", isStalled: true },
      { kind: "confirmationStalled", isStalled: true },
    ]);
    expect([thread.consensus(), thread.isConfirmationStalled]).toEqual(["unknown", false]);
    await thread.start();
    await vi.waitFor(() => expect(thread.isConfirmationStalled).toBe(true), WAIT);
    expect(thread.consensus()).toBe("alpenglow");
    expect(stalled.mock.calls).toEqual([[true]]);
    // A thread that died reports nothing.
    await expect(thread.fetchStatuses(ONE_SIGNATURE)).rejects.toThrow();
    await vi.waitFor(() => expect(stalled.mock.calls.slice(0, 2)).toEqual([[true], [false]]), WAIT);
    expect(thread.consensus()).toBe("alpenglow");
  });

  it("is counted as read, so that the thread may send more", async () => {
    const slot = { kind: "slot", event: "start", slot: 5, source: "slot" };
    const confirmed = { kind: "confirmed", slot: 4, bank: null };
    const others = [confirmed, { kind: "slotTime", slotTimeMs: 400 }];
    const messages = [...new Array(UPDATES_UNREAD_MAX).fill(slot), ...others];
    const { thread, logged, busy, slotEvent } = standIn("reports", messages);
    await thread.start();
    await vi.waitFor(() => {
      thread.pollContactsNow();
      expect(logged.at(-1)?.[0]).toMatchObject({ read: UPDATES_UNREAD_MAX + 1, busy: 0 });
    }, WAIT);
    expect(slotEvent).toHaveBeenCalledTimes(UPDATES_UNREAD_MAX);
    busy.mockReturnValue(true);
    await vi.waitFor(() => {
      thread.pollContactsNow();
      expect(logged.at(-1)?.[0]).toMatchObject({ busy: 1, heapMb: THREAD_HEAP_MB_MAX });
    }, WAIT);
  });

  it("contains each unknown blockhash's request once until all were read", async () => {
    const { thread, logged } = standIn("echo");
    await thread.start();
    for (let time = 0; time < 3; time += 1) {
      expect(thread.lastValidHeight(new Uint8Array(32))).toBeNull();
    }
    thread.pollContactsNow();
    await vi.waitFor(() => expect(logged).toHaveLength(2), WAIT);
    expect(logged.map(([fields]) => fields)).toEqual([
      { kind: "wantBlockhashes" },
      { kind: "pollContactsNow" },
    ]);
  });
});
