import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ClusterCounters } from "../../../src/cluster/counters.ts";
import { RPC_RESPONSE_BYTES_MAX } from "../../../src/cluster/limits.ts";
import { RpcError } from "../../../src/cluster/rpc/json-rpc.ts";
import { createRpc, type Rpc } from "../../../src/cluster/rpc/rpc.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { encodeKey } from "../../../src/core/encoding.ts";

const WAIT = { timeout: 30_000, interval: 10 };
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanups.splice(0).reverse()) await end();
});

interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

type JsonRpcRequest = Call & { readonly id: number };

const hash = (fill: number) => new Uint8Array(32).fill(fill);

/** The base64 data of the recent blockhashes sysvar account. */
function sysvarData(...fills: number[]): string {
  const data = Buffer.alloc(8 + 40 * fills.length);
  data.writeBigUInt64LE(BigInt(fills.length));
  for (const [index, fill] of fills.entries()) data.set(hash(fill), 8 + 40 * index);
  return data.toString("base64");
}

/** A node that responds to each method with its configured result. */
async function setUp(results: Record<string, unknown> = {}, timeoutMs = 60_000) {
  const calls: Call[] = [];
  let override: ((response: ServerResponse) => void) | null = null;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    if (override !== null) {
      calls.push({ method: "", params: [] });
      return override(response);
    }
    const message = JSON.parse(body) as JsonRpcRequest | JsonRpcRequest[];
    const responses = (Array.isArray(message) ? message : [message]).map(
      ({ id, method, params }) => {
        calls.push({ method, params });
        const result = results[method];
        const outcome =
          result instanceof RpcError
            ? { error: { code: result.code, message: result.message } }
            : { result };
        return { jsonrpc: "2.0", id, ...outcome };
      },
    );
    response.end(JSON.stringify(Array.isArray(message) ? responses : responses[0]));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const options = { rpcUrl: `http://127.0.0.1:${port}`, wsUrl: `ws://127.0.0.1:${port}` };
  const rpc: Rpc = createRpc(
    { clock: systemClock, counters: new ClusterCounters() },
    { ...options, timeoutMs },
  );
  cleanups.push(() => rpc.close());
  const respondWith = (act: (response: ServerResponse) => void) => {
    override = act;
  };
  return { server, rpc, calls, respondWith };
}

describe("RPC client", () => {
  it("requests the slot at processed commitment", async () => {
    const { rpc, calls } = await setUp({ getSlot: 42 });
    expect(await rpc.slot()).toBe(42);
    expect(calls).toEqual([{ method: "getSlot", params: [{ commitment: "processed" }] }]);
  });

  it("locates the current and the next epoch, also during epoch warm-up", async () => {
    const { rpc } = await setUp({
      getEpochSchedule: {
        slotsPerEpoch: 8192,
        leaderScheduleSlotOffset: 8192,
        warmup: true,
        firstNormalEpoch: 8,
        firstNormalSlot: 8160,
      },
      getEpochInfo: { absoluteSlot: 40, blockHeight: 1, epoch: 1, slotIndex: 8, slotsInEpoch: 64 },
      getGenesisHash: encodeKey(hash(9)),
    });
    expect(await rpc.epochs()).toEqual({
      slot: 40,
      current: { epoch: 1, firstSlot: 32, slots: 64 },
      next: { epoch: 2, firstSlot: 96, slots: 128 },
      genesis: encodeKey(hash(9)),
    });
  });

  it("requests the epoch schedule each time, and works without a genesis hash", async () => {
    const results: Record<string, unknown> = {
      getEpochSchedule: { slotsPerEpoch: 8192, firstNormalEpoch: 0 },
      getEpochInfo: { absoluteSlot: 40, epoch: 0, slotIndex: 40, slotsInEpoch: 8192 },
      getGenesisHash: new RpcError(-32601, "Method not found"),
    };
    const { rpc } = await setUp(results);
    expect(await rpc.epochs()).toMatchObject({ next: { slots: 8192 }, genesis: null });
    // A node of another cluster at the same URL.
    results["getEpochSchedule"] = { slotsPerEpoch: 32, firstNormalEpoch: 0 };
    for (const invalid of [7, null, "", "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2Ns"]) {
      results["getGenesisHash"] = invalid;
      expect(await rpc.epochs()).toMatchObject({ next: { slots: 32 }, genesis: null });
    }
  });

  it("requests the leader schedule for a slot's epoch, and returns null if unknown", async () => {
    const results: Record<string, unknown> = { getLeaderSchedule: { A: [0, 1], B: [2] } };
    const { rpc, calls } = await setUp(results);
    expect(await rpc.leaders(96)).toEqual(
      new Map([
        ["A", [0, 1]],
        ["B", [2]],
      ]),
    );
    expect(calls).toEqual([{ method: "getLeaderSchedule", params: [96] }]);
    results["getLeaderSchedule"] = null;
    expect(await rpc.leaders(96)).toBeNull();
    results["getLeaderSchedule"] = { A: 7 };
    await expect(rpc.leaders(96)).rejects.toThrow(/no list/);
  });

  it("reads the QUIC addresses of nodes whose other addresses are null or missing", async () => {
    const { rpc } = await setUp({
      getClusterNodes: [
        { pubkey: "A", gossip: null, tpu: null, tpuQuic: "10.0.0.1:8009", version: "4.3.0" },
        { pubkey: "B", tpuQuic: null },
        { pubkey: "C" },
        { tpuQuic: "10.0.0.4:8009" },
        null,
      ],
    });
    expect(await rpc.contacts()).toEqual([
      { identity: "A", address: "10.0.0.1:8009", version: "4.3.0" },
      { identity: "B", address: null, version: null },
      { identity: "C", address: null, version: null },
    ]);
  });

  it("sends the network's requests for height, statuses and vote accounts", async () => {
    const { rpc, calls } = await setUp({
      getEpochInfo: { absoluteSlot: 90, blockHeight: 77, transactionCount: 5 },
      getSignatureStatuses: { context: { slot: 9 }, value: [null] },
      getVoteAccounts: {
        current: [{ nodePubkey: "B", activatedStake: 7 }],
        delinquent: [{ nodePubkey: "A", activatedStake: 5 }],
      },
    });
    expect(await rpc.blockStatus()).toEqual({ slot: 90, height: 77, transactionCount: 5 });
    expect(await rpc.statuses(new Uint8Array(64))).toEqual({ slot: 9, statuses: [null] });
    const stakes = new Map(Object.entries({ A: 5, B: 7 }));
    expect(await rpc.votes()).toEqual({ delinquent: ["A"], stakes });
    expect(calls).toEqual([
      { method: "getEpochInfo", params: [{ commitment: "confirmed" }] },
      {
        method: "getSignatureStatuses",
        params: [["1".repeat(64)], { searchTransactionHistory: false }],
      },
      { method: "getVoteAccounts", params: [] },
    ]);
  });

  it("requests height and blockhashes together, and derives heights from the latest", async () => {
    const latest = { blockhash: encodeKey(hash(9)), lastValidBlockHeight: 227 };
    const results: Record<string, unknown> = {
      getEpochInfo: { absoluteSlot: 90, blockHeight: 77 },
      getLatestBlockhash: { context: { slot: 9 }, value: latest },
      getAccountInfo: { context: { slot: 9 }, value: { data: [sysvarData(10, 9, 8), "base64"] } },
    };
    const { rpc, calls } = await setUp(results);
    const info = await rpc.blockInfo();
    expect(info).toMatchObject({ slot: 90, height: 77, transactionCount: null });
    expect(
      info.blockhashes.map(({ blockhash: [fill], lastValidHeight }) => [fill, lastValidHeight]),
    ).toEqual([
      [10, 228],
      [9, 227],
      [8, 226],
    ]);
    expect(calls[2]?.params[0]).toBe("SysvarRecentB1ockHashes11111111111111111111");
    // A node without the list still returns the latest; without both, the request fails.
    results["getAccountInfo"] = new RpcError(1, "not here");
    const { blockhashes } = await rpc.blockInfo();
    expect(blockhashes.map(({ lastValidHeight }) => lastValidHeight)).toEqual([227]);
    results["getLatestBlockhash"] = new RpcError(1, "behind");
    await expect(rpc.blockInfo()).rejects.toThrow("getLatestBlockhash: behind");
  });

  it("returns a block's signatures, or null for a slot without a block", async () => {
    const results: Record<string, unknown> = { getBlock: { signatures: ["A", "B"] } };
    const { rpc, calls } = await setUp(results);
    expect(await rpc.blockSignatures(7)).toEqual(["A", "B"]);
    const config = { commitment: "confirmed", maxSupportedTransactionVersion: 0 };
    const detail = { transactionDetails: "signatures", rewards: false };
    expect(calls[0]?.params).toEqual([7, { ...config, ...detail }]);
    results["getBlock"] = null;
    expect(await rpc.blockSignatures(7)).toBeNull();
    for (const code of [-32004, -32007, -32009]) {
      results["getBlock"] = new RpcError(code, "Slot 7 was skipped");
      expect(await rpc.blockSignatures(7)).toBeNull();
    }
    results["getBlock"] = new RpcError(-32601, "Method not found");
    await expect(rpc.blockSignatures(7)).rejects.toMatchObject({ code: -32601 });
    results["getBlock"] = { signatures: 7 };
    await expect(rpc.blockSignatures(7)).rejects.toThrow("no signatures");
  });

  it("reads the consensus from the genesis certificate, if the node knows the method", async () => {
    const results: Record<string, unknown> = { getAgGenesisCert: null };
    const { rpc, calls } = await setUp(results);
    expect(await rpc.consensus()).toBe("tower_bft");
    expect(calls).toEqual([{ method: "getAgGenesisCert", params: [] }]);
    results["getAgGenesisCert"] = { slot: 200 };
    expect(await rpc.consensus()).toBe("alpenglow");
    results["getAgGenesisCert"] = new RpcError(-32601, "Method not found");
    expect(await rpc.consensus()).toBe("unknown");
    for (const bad of [new RpcError(-32005, "node is behind"), 7]) {
      results["getAgGenesisCert"] = bad;
      await expect(rpc.consensus()).rejects.toThrow("getAgGenesisCert");
    }
  });

  it.each([
    [-32600, "Unsupported method: getAgGenesisCert"],
    [-32602, "Invalid method"],
    [0, "method not allowed"],
  ])("has an unknown consensus if a gateway refuses the method with %i", async (code, message) => {
    const { rpc } = await setUp({ getAgGenesisCert: new RpcError(code, message) });
    expect(await rpc.consensus()).toBe("unknown");
  });

  it.each([
    [429, "slow down"],
    [-32429, "slow down"],
    [-32603, "internal error"],
    [-32000, "no upstream"],
    [-32099, "no upstream"],
  ])("fails to read the consensus on the temporary error %i", async (code, message) => {
    const { rpc } = await setUp({ getAgGenesisCert: new RpcError(code, message) });
    await expect(rpc.consensus()).rejects.toThrow(message);
  });

  it("reads the slots that the node processed, and that the cluster confirmed", async () => {
    const { rpc, calls } = await setUp({ getSlot: 5 });
    expect([await rpc.slot(), await rpc.confirmedSlot()]).toEqual([5, 5]);
    const commitments = ["processed", "confirmed"].map((commitment) => [{ commitment }]);
    expect(calls.map(({ params }) => params)).toEqual(commitments);
  });

  it("reads by how many slots the finalized slot is below the confirmed one", async () => {
    const { rpc, calls } = await setUp({ getSlot: 5 });
    expect(await rpc.finalizedLag()).toBe(0);
    const commitments = ["confirmed", "finalized"].map((commitment) => [{ commitment }]);
    expect(calls.map(({ params }) => params)).toEqual(commitments);
  });

  it("fails with the node's error message and code", async () => {
    const { rpc } = await setUp({ getClusterNodes: new RpcError(-32005, "node is behind") });
    const text = "getClusterNodes: node is behind";
    await expect(rpc.contacts()).rejects.toMatchObject({ message: text, code: -32005 });
  });

  it("fails immediately without a retry if the node rate limits it", async () => {
    const { rpc, calls, respondWith } = await setUp();
    respondWith((response) => response.writeHead(429).end("slow down"));
    await expect(rpc.slot()).rejects.toThrow(/429/);
    expect(calls).toHaveLength(1);
  });

  it("stops reading a response that exceeds the size limit", async () => {
    const { rpc, respondWith } = await setUp();
    respondWith((response) => {
      const chunk = Buffer.alloc(1024 * 1024, " ");
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
        if (!response.destroyed) response.once("drain", more);
      };
      more();
    });
    await expect(rpc.contacts()).rejects.toThrow(String(RPC_RESPONSE_BYTES_MAX));
  });

  it("reports the timeout of a response that does not come", async () => {
    const { rpc, respondWith } = await setUp({}, 50);
    respondWith((response) => response.write("{"));
    await expect(rpc.contacts()).rejects.toThrow("no answer in 50 ms");
  });

  it("rejects pending requests when it is closed", async () => {
    const { rpc, respondWith } = await setUp();
    let arrived = false;
    respondWith(() => {
      arrived = true;
    });
    const failing = expect(rpc.slot()).rejects.toThrow();
    await vi.waitFor(() => expect(arrived).toBe(true), WAIT);
    rpc.close();
    await failing;
  });
});
