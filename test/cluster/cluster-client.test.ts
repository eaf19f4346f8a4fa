import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WebSocketServer } from "ws";
import {
  type ClusterClient,
  type ClusterClientOptions,
  createClusterClient,
} from "../../src/cluster/cluster-client.ts";
import { openGeyser } from "../../src/cluster/geyser/stream.ts";
import { decodeBase58 } from "../../src/core/encoding.ts";
import { createRouter, type Router } from "../../src/route/router.ts";
import {
  type ClusterOptions,
  type ClusterUrls,
  createSimulatedCluster,
} from "../../src/sandbox/cluster.ts";
import { createBlindLedger } from "../../src/sandbox/ledger.ts";
import { createFakeClock, type FakeClock } from "../support/fake-clock.ts";
import { startFakeGeyser } from "../support/fake-geyser.ts";
import { freePort } from "../support/ports.ts";
import { buildTransaction, newKeypair } from "../support/transactions.ts";
import { pace } from "../support/wait.ts";

const SILENT_LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };
const WAIT = { timeout: 30_000, interval: 20 };
const LEADERS = [0, 1, 2, 3, 4].map((index) => ({
  identity: newKeypair(index + 1).address,
  address: `127.0.0.1:${9000 + index}`,
}));

/** The clock of everything here except started processes. */
let clock: FakeClock;
const endings: (() => unknown)[] = [];
beforeEach(() => {
  clock = createFakeClock();
  endings.push(pace(clock));
});
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function startCluster(options: Partial<ClusterOptions> = {}) {
  const cluster = await createSimulatedCluster({
    clock,
    leaders: LEADERS,
    slotMs: 100,
    skipShare: 0,
    epochSlots: 432,
    ledger: createBlindLedger(),
    // The node may return on its port.
    rpcPort: await freePort(),
    wsPort: await freePort(),
    ...options,
  });
  endings.push(() => cluster.stop());
  const urls = await cluster.start();
  return { cluster, urls };
}

function startClient(
  urls: ClusterUrls,
  options: Partial<ClusterClientOptions> = {},
): { client: ClusterClient; router: Router } {
  const router = createRouter({ clock, onPlan: () => undefined }, { leaders: 2, warmWindows: 4 });
  const client = createClusterClient(
    { openGeyser, native: null, clock, log: SILENT_LOG, router },
    {
      ...urls,
      silenceMs: 600,
      reconnectMs: 3000,
      pollMs: 100,
      retryMsFirst: 50,
      retryMsMax: 400,
      epochCheckMsMin: 200,
      ...options,
    },
  );
  router.start();
  client.start();
  endings.push(() => {
    client.stop();
    router.stop();
  });
  return { client, router };
}

describe("the chain", () => {
  it("gives the router slots, this and the next schedule, and contacts", async () => {
    const { cluster, urls } = await startCluster();
    const { client, router } = startClient(urls);
    await vi.waitFor(() => {
      expect(client.status().slots.source).toBe("slotsUpdates");
      expect(router.status()).toMatchObject({ epochs: [2, 3], contacts: 5, targets: 2 });
    }, WAIT);
    const status = client.status();
    expect(status.slots.connected).toBe(true);
    expect(status.schedule.failures + status.contacts.failures).toBe(0);
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

  it("knows the height, a blockhash's last height, and what became of signatures", async () => {
    const { cluster, urls } = await startCluster({ blockhashAgeMax: 40 });
    const { client } = startClient(urls, { heightMs: 50, blockhashesMs: 50 });
    expect(client.blockHeight()).toBeNull();
    await vi.waitFor(() => expect(client.blockHeight()).toBeGreaterThan(0), WAIT);
    const before = client.blockHeight() ?? 0;
    const seen = decodeBase58(cluster.latestBlockhash(), 32) ?? new Uint8Array();
    await vi.waitFor(() => expect(client.lastValidHeight(seen)).not.toBeNull(), WAIT);
    const left = (client.lastValidHeight(seen) ?? 0) - before;
    expect(left).toBeGreaterThanOrEqual(40);
    expect(left).toBeLessThanOrEqual(60);
    await vi.waitFor(() => expect(client.blockHeight()).toBeGreaterThan(before + 2), WAIT);

    const leader = cluster.leaderAt(cluster.currentSlot());
    const blockhash = decodeBase58(cluster.latestBlockhash(), 32) ?? new Uint8Array();
    const { bytes, signature } = buildTransaction({ payer: newKeypair(77), blockhash });
    cluster.receive(leader, bytes);
    const asked = new Uint8Array(128).fill(9);
    asked.set(decodeBase58(signature, 64) ?? [], 64);
    await vi.waitFor(async () => {
      const { slot, statuses } = await client.fetchStatuses(asked);
      const landed = cluster.statusOf(signature)?.slot;
      expect(slot).toBeGreaterThanOrEqual(landed ?? 0);
      expect(statuses).toEqual([null, { slot: landed, confirmed: true, error: null }]);
    }, WAIT);
    await expect(client.fetchStatuses(new Uint8Array(257 * 64))).rejects.toThrow("at most 256");
    await cluster.stopRpc();
    await expect(client.fetchStatuses(asked)).rejects.toThrow();
    expect(client.counters.statusFailures).toBe(1);
  });

  it("takes slots, landings and blocks over gRPC too, and comes back after a cut", async () => {
    const server = await startFakeGeyser();
    endings.push(() => server.stop());
    const { cluster, urls } = await startCluster();
    const landed: string[] = [];
    const client = createClusterClient(
      {
        openGeyser,
        native: null,
        clock,
        log: SILENT_LOG,
        router: createRouter({ clock, onPlan: () => undefined }, { leaders: 2, warmWindows: 4 }),
        onLanded: (signature, slot, error) => void landed.push(`${signature[0]} ${slot} ${error}`),
      },
      { ...urls, grpcUrl: server.url, grpcToken: "a token", accounts: ["T"], retryMsFirst: 50 },
    );
    client.start();
    endings.push(() => client.stop());
    await vi.waitFor(() => expect(server.requests).toHaveLength(1), WAIT);
    expect(server.tokens).toEqual(["a token"]);
    await vi.waitFor(() => expect(client.blockHeight()).not.toBeNull(), WAIT);
    const slot = cluster.currentSlot();
    const blockhash = "1".repeat(32);
    // Ahead of the node's height by the permitted maximum.
    const height = (client.blockHeight() ?? 0) + 30;
    server.say({ block_meta: { slot, blockhash, block_height: { block_height: height } } });
    server.say({ slot: { slot, status: 1 } });
    server.say({ transaction_status: { slot, signature: Buffer.alloc(64, 5) } });
    await vi.waitFor(() => expect(landed).toEqual([`5 ${slot} null`]), WAIT);
    expect(client.lastValidHeight(new Uint8Array(32))).toBe(height + 150);
    expect(client.blockHeight()).toBeGreaterThanOrEqual(height);
    server.cut();
    await vi.waitFor(() => expect(server.requests).toHaveLength(2), WAIT);
    server.say({ transaction_status: { slot, signature: Buffer.alloc(64, 6) } });
    await vi.waitFor(() => expect(landed).toHaveLength(2), WAIT);
    expect(client.counters).toMatchObject({ geyserOpened: 2, geyserClosed: 1 });
  });

  it("tells the router which leaders are delinquent", async () => {
    const [first, ...others] = LEADERS;
    if (first === undefined) throw new Error("there are five leaders");
    const { urls } = await startCluster({ leaders: [{ ...first, delinquent: true }, ...others] });
    const told: (readonly string[])[] = [];
    const client = createClusterClient(
      {
        openGeyser,
        native: null,
        clock,
        log: SILENT_LOG,
        router: {
          slotEvent: () => undefined,
          setEpoch: () => true,
          setContacts: () => undefined,
          setDelinquent: (identities) => void told.push(identities),
        },
      },
      urls,
    );
    client.start();
    endings.push(() => client.stop());
    await vi.waitFor(() => expect(told).toEqual([[first.identity]]), WAIT);
    expect(client.status().votes.failures).toBe(0);
  });

  it("survives a restart of the RPC node, and shows how stale it is meanwhile", async () => {
    const { cluster, urls } = await startCluster();
    const { client, router } = startClient(urls);
    await vi.waitFor(() => expect(client.status().slots.source).toBe("slotsUpdates"), WAIT);
    await vi.waitFor(() => expect(router.plan?.send.length).toBe(2), WAIT);
    await cluster.stopRpc();
    await vi.waitFor(() => {
      const { source, connected, eventAgeMs } = client.status().slots;
      expect({ source, connected }).toEqual({ source: "none", connected: false });
      expect(eventAgeMs).toBeGreaterThan(600);
      expect(client.counters.slotPollFailures).toBeGreaterThan(0);
    }, WAIT);
    expect(router.status().slotAgeMs).toBeGreaterThan(600);
    // The clock predicts the slots that pass meanwhile.
    expect(router.plan?.send.length).toBe(2);
    expect(await cluster.startRpc()).toEqual(urls);
    await vi.waitFor(() => expect(client.status().slots.source).toBe("slotsUpdates"), WAIT);
    expect(client.counters.socketsOpened).toBeGreaterThanOrEqual(2);
    await vi.waitFor(() => {
      expect(Math.abs((router.currentSlot() ?? 0) - cluster.currentSlot())).toBeLessThanOrEqual(2);
    }, WAIT);
  });

  it("follows another cluster behind the same name, once a connection is there again", async () => {
    const { cluster, urls } = await startCluster();
    const { router } = startClient(urls, { contactsMs: 300 });
    await vi.waitFor(() => expect(router.plan?.send.length).toBe(2), WAIT);
    await cluster.stop();
    // A new cluster, with the same epochs and other leaders.
    const leaders = LEADERS.map(({ address }, index) => {
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

  it("starts before the node does", async () => {
    const { cluster, urls } = await startCluster();
    await cluster.stopRpc();
    const { client, router } = startClient(urls);
    await vi.waitFor(() => expect(client.status().schedule.failures).toBeGreaterThan(1), WAIT);
    expect(router.plan).toBeNull();
    await cluster.startRpc();
    await vi.waitFor(() => {
      expect(client.status().slots.source).toBe("slotsUpdates");
      expect(router.plan?.send.length).toBe(2);
    }, WAIT);
  });

  it.each([
    ["refuses slot updates", { slotsUpdates: "unsupported" }, "slot"],
    ["is silent with slot updates", { slotsUpdates: "silent" }, "slot"],
    ["refuses both feeds", { slotsUpdates: "unsupported", slots: "unsupported" }, "polling"],
    ["is silent with both feeds", { slotsUpdates: "silent", slots: "silent" }, "polling"],
  ] as const)("follows a node that %s", async (_, faults, source) => {
    const { cluster, urls } = await startCluster();
    cluster.behave(faults);
    const { client, router } = startClient(urls);
    await vi.waitFor(() => {
      expect(client.status().slots.source).toBe(source);
      expect(client.counters.slotEvents + client.counters.slotPolls).toBeGreaterThan(8);
      expect(Math.abs((router.currentSlot() ?? 0) - cluster.currentSlot())).toBeLessThanOrEqual(2);
    }, WAIT);
  });

  it("is not led astray by shreds of a far future", async () => {
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

  it("goes over the end of an epoch without a gap", async () => {
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

  it("is not harmed by a node that sends nonsense", async () => {
    const server = createServer((_request, response) => response.end('{"result":7}'));
    const sockets = new WebSocketServer({ server });
    const heard: string[] = [];
    sockets.on("connection", (socket) => {
      socket.on("message", (data) => {
        heard.push(String(data));
        const { id } = JSON.parse(String(data)) as { id: number };
        const update = (result: unknown) =>
          JSON.stringify({ method: "slotsUpdatesNotification", params: { result } });
        socket.send(JSON.stringify({ jsonrpc: "2.0", id, result: 1 }));
        for (const nonsense of [
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
          socket.send(nonsense);
        }
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    endings.push(() => {
      for (const socket of sockets.clients) socket.terminate();
      server.close();
      server.closeAllConnections();
    });
    const { port } = server.address() as AddressInfo;
    const at = `127.0.0.1:${port}`;
    const { client, router } = startClient({ rpcUrl: `http://${at}`, wsUrl: `ws://${at}` });
    await vi.waitFor(() => expect(router.counters.slotEvents).toBeGreaterThan(0), WAIT);
    expect(router.currentSlot()).toBeGreaterThanOrEqual(42);
    // Both subscriptions received the same response.
    await vi.waitFor(() => expect(router.counters.slotEventsInvalid).toBeGreaterThan(5), WAIT);
    await vi.waitFor(() => expect(client.status().contacts.failures).toBeGreaterThan(1), WAIT);
    expect(heard.length).toBeGreaterThan(0);
  });

  it("gives up an answer that does not come in time", async () => {
    const server = createServer(() => undefined);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    endings.push(() => {
      server.close();
      server.closeAllConnections();
    });
    const { port } = server.address() as AddressInfo;
    const at = `127.0.0.1:${port}`;
    const urls = { rpcUrl: `http://${at}`, wsUrl: `ws://${at}` };
    const { client } = startClient(urls, { timeoutMs: 100 });
    await vi.waitFor(() => expect(client.status().contacts.failures).toBeGreaterThan(1), WAIT);
    expect(client.counters.slotPollFailures).toBeGreaterThan(0);
  });

  it.each([
    ["while it runs", "native"],
    ["while it runs", "portable"],
    ["while the node is away", "native"],
    ["while the node is away", "portable"],
  ])("lets the process end after stop, %s, with the %s engine", async (when, engine) => {
    const { cluster, urls } = await startCluster();
    if (when === "while the node is away") await cluster.stopRpc();
    const script = fileURLToPath(new URL("./cluster-client-exit.fixture.ts", import.meta.url));
    const child = spawn(
      process.execPath,
      ["--import", "tsx", script, urls.rpcUrl, urls.wsUrl, when, engine],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    endings.push(() => child.kill("SIGKILL"));
    let said = "";
    child.stdout.on("data", (chunk) => {
      said += String(chunk);
    });
    child.stderr.on("data", (chunk) => {
      said += String(chunk);
    });
    const [code] = (await once(child, "exit")) as [number | null];
    expect({ code, said }).toEqual({ code: 0, said: "stopped\n" });
  });
});
