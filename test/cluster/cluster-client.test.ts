import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WebSocketServer } from "ws";
import {
  type ClusterClientOptions,
  createClusterClient,
} from "../../src/cluster/cluster-client.ts";
import { openGeyser } from "../../src/cluster/geyser/stream.ts";
import { decodeBase58 } from "../../src/core/encoding.ts";
import { createRouter } from "../../src/route/router.ts";
import {
  type ClusterOptions,
  type ClusterUrls,
  createSimulatedCluster,
} from "../../src/sandbox/cluster.ts";
import { createBlindLedger } from "../../src/sandbox/ledger.ts";
import { createFakeClock, type FakeClock } from "../support/fake-clock.ts";
import { startFakeGeyser } from "../support/fake-geyser.ts";
import { listenOnLoopback } from "../support/loopback.ts";
import { freePort } from "../support/ports.ts";
import { buildTransaction, newKeypair } from "../support/transactions.ts";
import { pace } from "../support/wait.ts";
import { blocksReceived } from "./blocks/fixture.ts";
import { clientDeps, sinkOf } from "./fixture.ts";
import { createSourceLog } from "./slots/source-log.ts";

const WAIT = { timeout: 30_000, interval: 20 };
const LEADERS = [0, 1, 2, 3, 4].map((index) => ({
  identity: newKeypair(index + 1).address,
  address: `127.0.0.1:${9000 + index}`,
}));

/** The clock of all tests here; child processes have their own. */
let clock: FakeClock;
const cleanups: (() => unknown)[] = [];
beforeEach(() => {
  clock = createFakeClock();
  cleanups.push(pace(clock));
});
afterEach(async () => {
  for (const end of cleanups.splice(0).reverse()) await end();
});

async function startCluster(options: Partial<ClusterOptions> = {}) {
  const cluster = await createSimulatedCluster({
    clock,
    leaders: LEADERS,
    slotMs: 100,
    skipShare: 0,
    epochSlots: 432,
    ledger: createBlindLedger(),
    // Fixed ports: a restarted node listens on the same URLs.
    rpcPort: await freePort(),
    wsPort: await freePort(),
    ...options,
  });
  cleanups.push(() => cluster.stop());
  const urls = await cluster.start();
  return { cluster, urls };
}

const SILENCE_MS = 600;

function startClient(urls: ClusterUrls, options: Partial<ClusterClientOptions> = {}) {
  const router = createRouter({ clock, onPlan: () => undefined }, { leaders: 2, warmWindows: 4 });
  const sourceLog = createSourceLog(clock, SILENCE_MS);
  const blocks = blocksReceived();
  const sink = sinkOf(router, {
    ...blocks.sink,
    slotEvent(kind, slot, source) {
      sourceLog.note(source);
      router.slotEvent(kind, slot, source);
    },
  });
  const deps = clientDeps(clock, sink, openGeyser);
  const { counters } = deps;
  const client = createClusterClient(deps, {
    ...urls,
    silenceMs: SILENCE_MS,
    reconnectMs: 3000,
    pollMs: 100,
    retryMsFirst: 50,
    retryMsMax: 400,
    epochCheckMsMin: 200,
    ...options,
  });
  router.start();
  client.start();
  cleanups.push(() => {
    client.stop();
    router.stop();
  });
  const isConnected = (): boolean => counters.socketsOpened > counters.socketsClosed;
  return { client, counters, router, sourceLog, blocks, isConnected };
}

describe("cluster client", () => {
  it("passes slots, the current and the next schedule, and contacts to the router", async () => {
    const { cluster, urls } = await startCluster();
    const { counters, router, sourceLog, isConnected } = startClient(urls);
    await vi.waitFor(() => {
      expect(sourceLog.best()).toBe("slotsUpdates");
      expect(router.status()).toMatchObject({ epochs: [2, 3], contacts: 5, targets: 2 });
    }, WAIT);
    expect(isConnected()).toBe(true);
    expect(counters.scheduleFailures + counters.contactFailures).toBe(0);
    const plan = router.plan;
    for (const target of plan?.warm ?? []) {
      expect(cluster.leaderAt(target.slot)).toBe(target.identity);
      expect(LEADERS).toContainEqual({ identity: target.identity, address: target.address });
    }
    await vi.waitFor(() => {
      expect(Math.abs((router.currentSlot() ?? 0) - cluster.currentSlot())).toBeLessThanOrEqual(1);
      expect(Math.abs(router.status().slotTimeMs - 100)).toBeLessThan(30);
    }, WAIT);
  });

  it("returns the height, a blockhash's last valid height, and signature statuses", async () => {
    const { cluster, urls } = await startCluster({ blockhashAgeMax: 40 });
    const { client, counters, blocks } = startClient(urls, { heightMs: 50, blockhashesMs: 50 });
    expect(blocks.height()).toBeNull();
    await vi.waitFor(() => expect(blocks.height()).toBeGreaterThan(0), WAIT);
    const before = blocks.height() ?? 0;
    const recentBlockhash = decodeBase58(cluster.latestBlockhash(), 32) ?? new Uint8Array();
    await vi.waitFor(() => {
      client.wantBlockhashes();
      expect(blocks.lastValidHeight(recentBlockhash)).not.toBeNull();
    }, WAIT);
    const remaining = (blocks.lastValidHeight(recentBlockhash) ?? 0) - before;
    expect(remaining).toBeGreaterThanOrEqual(40);
    expect(remaining).toBeLessThanOrEqual(60);
    await vi.waitFor(() => expect(blocks.height()).toBeGreaterThan(before + 2), WAIT);

    const leader = cluster.leaderAt(cluster.currentSlot());
    const blockhash = decodeBase58(cluster.latestBlockhash(), 32) ?? new Uint8Array();
    const { bytes, signature } = buildTransaction({ payer: newKeypair(77), blockhash });
    cluster.receive(leader, bytes);
    const queried = new Uint8Array(128).fill(9);
    queried.set(decodeBase58(signature, 64) ?? [], 64);
    await vi.waitFor(async () => {
      const { slot, statuses } = await client.fetchStatuses(queried);
      const landed = cluster.statusOf(signature)?.slot;
      expect(slot).toBeGreaterThanOrEqual(landed ?? 0);
      expect(statuses).toEqual([null, { slot: landed, confirmed: true, error: null }]);
    }, WAIT);
    await cluster.stopRpc();
    await expect(client.fetchStatuses(queried)).rejects.toThrow();
    expect(counters.statusFailures).toBe(1);
  });

  it("checks the first heights against the one that was known before a restart", async () => {
    const { urls } = await startCluster();
    const knownHeight = { height: 1_000_000, sinceNs: clock.nowNs() };
    const { counters, blocks } = startClient(urls, { heightMs: 50, knownHeight });
    await vi.waitFor(() => expect(counters.heightsImplausible).toBeGreaterThan(1), WAIT);
    expect([blocks.height(), counters.heightsAccepted]).toEqual([null, 0]);
  });

  it("receives slots, landings and blocks over gRPC, and reconnects after a cut", async () => {
    const server = await startFakeGeyser();
    cleanups.push(() => server.stop());
    const { cluster, urls } = await startCluster();
    const landed: string[] = [];
    const blocks = blocksReceived();
    const sink = sinkOf(
      createRouter({ clock, onPlan: () => undefined }, { leaders: 2, warmWindows: 4 }),
      {
        ...blocks.sink,
        processed: (signature, slot, error) => void landed.push(`${signature[0]} ${slot} ${error}`),
      },
    );
    const deps = clientDeps(clock, sink, openGeyser);
    const client = createClusterClient(deps, {
      ...urls,
      grpcUrl: server.url,
      grpcToken: "a token",
      accounts: ["T"],
      retryMsFirst: 50,
    });
    client.start();
    cleanups.push(() => client.stop());
    await vi.waitFor(() => expect(server.requests).toHaveLength(1), WAIT);
    expect(server.tokens).toEqual(["a token"]);
    await vi.waitFor(() => expect(blocks.height()).not.toBeNull(), WAIT);
    const slot = cluster.currentSlot();
    const blockhash = "1".repeat(32);
    // Ahead of the node's height by the permitted maximum.
    const height = (blocks.height() ?? 0) + 30;
    server.say({ block_meta: { slot, blockhash, block_height: { block_height: height } } });
    server.say({ slot: { slot, status: 1 } });
    server.say({ transaction_status: { slot, signature: Buffer.alloc(64, 5) } });
    await vi.waitFor(() => expect(landed).toEqual([`5 ${slot} null`]), WAIT);
    expect(blocks.lastValidHeight(new Uint8Array(32))).toBe(height + 150);
    expect(blocks.height()).toBeGreaterThanOrEqual(height);
    server.cut();
    await vi.waitFor(() => expect(server.requests).toHaveLength(2), WAIT);
    server.say({ transaction_status: { slot, signature: Buffer.alloc(64, 6) } });
    await vi.waitFor(() => expect(landed).toHaveLength(2), WAIT);
    expect(deps.counters).toMatchObject({ geyserOpened: 2, geyserClosed: 1 });
  });

  it("reports delinquent leaders to the router", async () => {
    const [first, ...others] = LEADERS;
    if (first === undefined) throw new Error("there are five leaders");
    const { urls } = await startCluster({ leaders: [{ ...first, delinquent: true }, ...others] });
    const reported: (readonly string[])[] = [];
    const sink = sinkOf({ setDelinquent: (identities) => void reported.push(identities) });
    const deps = clientDeps(clock, sink);
    const client = createClusterClient(deps, urls);
    client.start();
    cleanups.push(() => client.stop());
    await vi.waitFor(() => expect(reported).toEqual([[first.identity]]), WAIT);
    expect(deps.counters.voteFailures).toBe(0);
  });

  it("recovers from a restart of the RPC node and reports its slot age meanwhile", async () => {
    const { cluster, urls } = await startCluster();
    const { counters, router, sourceLog, isConnected } = startClient(urls);
    await vi.waitFor(() => expect(sourceLog.best()).toBe("slotsUpdates"), WAIT);
    await vi.waitFor(() => expect(router.plan?.send.length).toBe(2), WAIT);
    await cluster.stopRpc();
    await vi.waitFor(() => {
      expect([sourceLog.best(), isConnected()]).toEqual(["none", false]);
      expect(sourceLog.eventAgeMs()).toBeGreaterThan(600);
      expect(counters.slotPollFailures).toBeGreaterThan(0);
    }, WAIT);
    expect(router.status().slotAgeMs).toBeGreaterThan(600);
    // Meanwhile the router predicts the current slot from the clock.
    expect(router.plan?.send.length).toBe(2);
    expect(await cluster.startRpc()).toEqual(urls);
    await vi.waitFor(() => expect(sourceLog.best()).toBe("slotsUpdates"), WAIT);
    expect(counters.socketsOpened).toBeGreaterThanOrEqual(2);
    await vi.waitFor(() => {
      expect(Math.abs((router.currentSlot() ?? 0) - cluster.currentSlot())).toBeLessThanOrEqual(2);
    }, WAIT);
  });

  it("switches to a different cluster at the same URLs after it reconnects", async () => {
    const { cluster, urls } = await startCluster();
    const { router } = startClient(urls, { contactsMs: 300 });
    await vi.waitFor(() => expect(router.plan?.send.length).toBe(2), WAIT);
    await cluster.stop();
    // A new cluster, with the same epochs and other leaders, of which there are fewer.
    const leaders = LEADERS.slice(0, 2).map(({ address }, index) => {
      return { identity: newKeypair(index + 50).address, address };
    });
    const [rpcPort, wsPort] = [urls.rpcUrl, urls.wsUrl].map((url) => Number(new URL(url).port));
    await startCluster({ leaders, rpcPort: rpcPort ?? 0, wsPort: wsPort ?? 0 });
    await vi.waitFor(() => {
      expect(router.status().epochs).toEqual([2, 3]);
      const identities = router.plan?.send.map(({ identity }) => identity);
      expect(identities).toHaveLength(2);
      expect(leaders.map(({ identity }) => identity)).toEqual(
        expect.arrayContaining(identities ?? []),
      );
    }, WAIT);
  });

  it("starts while the node is down", async () => {
    const { cluster, urls } = await startCluster();
    await cluster.stopRpc();
    const { counters, router, sourceLog } = startClient(urls);
    await vi.waitFor(() => expect(counters.scheduleFailures).toBeGreaterThan(1), WAIT);
    expect(router.plan).toBeNull();
    await cluster.startRpc();
    await vi.waitFor(() => {
      expect(sourceLog.best()).toBe("slotsUpdates");
      expect(router.plan?.send.length).toBe(2);
    }, WAIT);
  });

  it.each([
    ["rejects slot updates", { slotsUpdates: "unsupported" }, "slot"],
    ["sends no slot updates", { slotsUpdates: "silent" }, "slot"],
    ["rejects both methods", { slotsUpdates: "unsupported", slots: "unsupported" }, "polling"],
    ["sends no events at all", { slotsUpdates: "silent", slots: "silent" }, "polling"],
  ] as const)("follows the slots of a node that %s", async (_, faults, source) => {
    const { cluster, urls } = await startCluster();
    cluster.behave(faults);
    const { counters, router, sourceLog } = startClient(urls);
    await vi.waitFor(() => {
      expect(sourceLog.best()).toBe(source);
      expect(counters.slotEvents + counters.slotPolls).toBeGreaterThan(8);
      expect(Math.abs((router.currentSlot() ?? 0) - cluster.currentSlot())).toBeLessThanOrEqual(2);
    }, WAIT);
  });

  it("ignores shred events for slots in the far future", async () => {
    const { cluster, urls } = await startCluster();
    cluster.behave({ bogusSlotsAhead: 1_000_000 });
    const { router } = startClient(urls);
    await vi.waitFor(() => {
      expect(router.counters.slotEventsFarAhead).toBeGreaterThan(3);
    }, WAIT);
    await vi.waitFor(() => {
      expect(Math.abs((router.currentSlot() ?? 0) - cluster.currentSlot())).toBeLessThanOrEqual(2);
    }, WAIT);
  });

  it("covers an epoch boundary without a gap in the schedule", async () => {
    const { urls } = await startCluster({ epochSlots: 24 });
    const { router } = startClient(urls);
    await vi.waitFor(() => expect(router.plan?.send.length).toBe(2), WAIT);
    const gaps: number[] = [];
    await vi.waitFor(() => {
      if (!router.status().scheduleCovers) gaps.push(router.status().slot ?? 0);
      expect(router.status().epochs).toEqual([3, 4, 5]);
    }, WAIT);
    expect(gaps).toEqual([]);
  });

  it("keeps working with a node that sends invalid messages", async () => {
    const server = createServer((_request, response) => response.end('{"result":7}'));
    const sockets = new WebSocketServer({ server });
    const received: string[] = [];
    sockets.on("connection", (socket) => {
      socket.on("message", (data) => {
        received.push(String(data));
        const { id } = JSON.parse(String(data)) as { id: number };
        const update = (result: unknown) =>
          JSON.stringify({ method: "slotsUpdatesNotification", params: { result } });
        socket.send(JSON.stringify({ jsonrpc: "2.0", id, result: 1 }));
        for (const message of [
          "null",
          "7",
          "[]",
          "{",
          '{"notification":"slotNotification"}',
          '{"method":"slotNotification"}',
          '{"method":"slotsUpdatesNotification","params":null}',
          update(null),
          update({ type: "constructor", slot: 4 }),
          update({ type: "somethingNew", slot: 5 }),
          update({ type: "firstShredReceived", slot: "x" }),
          update({ type: "firstShredReceived" }),
          update({ type: "firstShredReceived", slot: 42 }),
        ]) {
          socket.send(message);
        }
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    cleanups.push(() => {
      for (const socket of sockets.clients) socket.terminate();
      server.close();
      server.closeAllConnections();
    });
    const { port } = server.address() as AddressInfo;
    const at = `127.0.0.1:${port}`;
    const { counters, router } = startClient({ rpcUrl: `http://${at}`, wsUrl: `ws://${at}` });
    await vi.waitFor(() => expect(router.counters.slotEvents).toBeGreaterThan(0), WAIT);
    expect(router.currentSlot()).toBeGreaterThanOrEqual(42);
    // Both subscriptions received the same response.
    await vi.waitFor(() => expect(router.counters.slotEventsInvalid).toBeGreaterThan(5), WAIT);
    await vi.waitFor(() => expect(counters.contactFailures).toBeGreaterThan(1), WAIT);
    expect(received.length).toBeGreaterThan(0);
  });

  it("reports a confirmation that stands still, and the consensus", async () => {
    const node = { processed: 1_000, confirmed: 998, certificate: null as object | null };
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += String(chunk);
      // A request that the client ended.
      if (body === "") return;
      const calls = [JSON.parse(body)].flat() as {
        id: number;
        method: string;
        params: unknown[];
      }[];
      const responses = calls.map(({ id, method, params }) => {
        const isConfirmed = JSON.stringify(params).includes("confirmed");
        const slot = isConfirmed ? node.confirmed : node.processed;
        const results: Record<string, unknown> = {
          getSlot: slot,
          getEpochInfo: { epoch: 0, slotIndex: slot, slotsInEpoch: 9_000, absoluteSlot: slot },
          getAgGenesisCert: node.certificate,
        };
        const info = results["getEpochInfo"] as Record<string, unknown>;
        info["blockHeight"] = slot;
        const isKnown = method in results;
        const error = { code: -32601, message: "Method not found" };
        return { jsonrpc: "2.0", id, ...(isKnown ? { result: results[method] } : { error }) };
      });
      response.end(JSON.stringify(body.startsWith("[") ? responses : responses[0]));
    });
    const at = await listenOnLoopback(server, cleanups);
    const [stalled, consensus] = [vi.fn(), vi.fn()];
    const router = createRouter({ clock, onPlan: () => undefined }, { leaders: 2, warmWindows: 4 });
    const slots = clock.every(100, () => {
      node.processed += 1;
    });
    const client = createClusterClient(
      clientDeps(
        clock,
        sinkOf(router, { setConfirmationStalled: stalled, setConsensus: consensus }),
      ),
      { rpcUrl: `http://${at}`, wsUrl: `ws://${at}`, silenceMs: 600, pollMs: 100, heightMs: 100 },
    );
    client.start();
    cleanups.push(() => {
      slots.cancel();
      client.stop();
    });
    await vi.waitFor(() => expect(stalled.mock.calls).toEqual([[true]]), WAIT);
    expect(consensus.mock.calls).toEqual([["tower_bft"]]);
    node.certificate = { slot: 998 };
    node.confirmed = node.processed;
    // The height poll sees it first, or the check.
    await vi.waitFor(() => expect(stalled.mock.calls[1]).toEqual([false]), WAIT);
    await vi.waitFor(() => expect(consensus.mock.calls[1]).toEqual(["alpenglow"]), WAIT);
  });

  it("times out requests without a response of the node", async () => {
    const server = createServer(() => undefined);
    const at = await listenOnLoopback(server, cleanups);
    const urls = { rpcUrl: `http://${at}`, wsUrl: `ws://${at}` };
    const { counters } = startClient(urls, { timeoutMs: 100 });
    await vi.waitFor(() => expect(counters.contactFailures).toBeGreaterThan(1), WAIT);
    expect(counters.slotPollFailures).toBeGreaterThan(0);
  });

  it.each(["while it runs", "while the node is down"])(
    "lets the process exit after stop, %s",
    async (when) => {
      const { cluster, urls } = await startCluster();
      if (when === "while the node is down") await cluster.stopRpc();
      const script = fileURLToPath(new URL("./cluster-client-exit.fixture.ts", import.meta.url));
      const child = spawn(
        process.execPath,
        ["--import", "tsx", script, urls.rpcUrl, urls.wsUrl, when],
        { stdio: ["ignore", "pipe", "pipe"] },
      );
      cleanups.push(() => child.kill("SIGKILL"));
      let output = "";
      child.stdout.on("data", (chunk) => {
        output += String(chunk);
      });
      child.stderr.on("data", (chunk) => {
        output += String(chunk);
      });
      const [code] = (await once(child, "exit")) as [number | null];
      expect({ code, output }).toEqual({ code: 0, output: "stopped\n" });
    },
  );
});
