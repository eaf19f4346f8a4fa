import { once } from "node:events";
import { createServer } from "node:http";
import { MessageChannel } from "node:worker_threads";
import { afterEach, describe, expect, it, vi } from "vitest";
import { CLUSTER_COUNTERS } from "../../../src/cluster/counters.ts";
import {
  BUSY,
  CONTROL_WORDS,
  type FromClusterThread,
  type ToClusterThread,
} from "../../../src/cluster/thread/messages.ts";
import { serveCluster } from "../../../src/cluster/thread/serve.ts";
import { countersMemory, sharedCounters } from "../../../src/runtime/shared-counters.ts";
import { startFakeGeyser } from "../../support/fake-geyser.ts";
import { listenOnLoopback } from "../../support/loopback.ts";

const WAIT = { timeout: 60_000, interval: 5 };
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanups.splice(0).reverse()) await end();
});

/** A node that responds with these results, and with an error to other methods. */
async function startNode(results: Readonly<Record<string, unknown>>) {
  const methods: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const method = /"method":"(\w+)"/.exec(body)?.[1] ?? "";
    methods.push(method);
    const result = results[method];
    const error = { code: -32601, message: "Method not found" };
    const answer = result === undefined ? { error } : { result };
    response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, ...answer }));
  });
  const at = await listenOnLoopback(server, cleanups);
  return { urls: { rpcUrl: `http://${at}`, wsUrl: `ws://${at}` }, methods };
}

/** Serves on this thread; the other end of its port is the test's. */
async function serve(results: Readonly<Record<string, unknown>>, options: object = {}) {
  const { urls, methods } = await startNode(results);
  const { port1, port2 } = new MessageChannel();
  const received: FromClusterThread[] = [];
  port2.on("message", (message: FromClusterThread) => received.push(message));
  const counters = countersMemory(CLUSTER_COUNTERS.length);
  const control = new SharedArrayBuffer(4 * CONTROL_WORDS);
  await serveCluster(port1, { options: { ...urls, ...options }, counters, control });
  const post = (message: ToClusterThread): void => port2.postMessage(message);
  cleanups.push(async () => {
    post({ kind: "stop" });
    // It closes its end.
    await once(port2, "close");
  });
  const words = new Int32Array(control);
  return { post, received, methods, words, counters: sharedCounters(CLUSTER_COUNTERS, counters) };
}

describe("the cluster thread's side", () => {
  it("starts, responds to status requests, and reports whether the node has statuses", async () => {
    const value = [{ slot: 5, confirmationStatus: "confirmed", err: null }, null];
    const results = { getSignatureStatuses: { context: { slot: 9 }, value } };
    const { post, received, counters } = await serve(results);
    post({ kind: "statuses", id: 3, signatures: new Uint8Array(128) });
    await vi.waitFor(() => expect(received.map(({ kind }) => kind)).toContain("statuses"), WAIT);
    expect(received.find(({ kind }) => kind === "statuses")).toEqual({
      kind: "statuses",
      id: 3,
      slot: 9,
      slots: Float64Array.of(5, -1),
      confirmed: Uint8Array.of(1, 0),
      errors: [],
    });
    // Before the response that proves it, so that the response is read with that knowledge.
    const kinds = received.map(({ kind }) => kind);
    expect(kinds.indexOf("reporting")).toBeLessThan(kinds.indexOf("statuses"));
    expect(kinds).toContain("started");
    expect(counters.statusFetches).toBe(1);
  });

  it("reports the reason for a request that failed", async () => {
    const { post, received } = await serve({});
    post({ kind: "statuses", id: 4, signatures: new Uint8Array(64) });
    await vi.waitFor(() => {
      expect(received.find(({ kind }) => kind === "requestFailed")).toEqual({
        kind: "requestFailed",
        id: 4,
        reason: "getSignatureStatuses: Method not found",
      });
    }, WAIT);
    expect(received).toContainEqual({ kind: "reporting", reporting: "no" });
  });

  it("passes on slot polls, heights and blockhashes, which it rereads when wanted", async () => {
    const { post, received, methods, words } = await serve(
      {
        getSlot: 70,
        getEpochInfo: { absoluteSlot: 69, blockHeight: 60, transactionCount: 4 },
        getLatestBlockhash: {
          value: {
            blockhash: "4sGjMW1sUnHzSxGspuhpqLDx6wiyjNtZAMdL4VZHirAn",
            lastValidBlockHeight: 210,
          },
        },
      },
      { heightMs: 5, idleHeightMs: 5, blockhashesMs: 1 },
    );
    Atomics.store(words, BUSY, 1);
    const complete = () =>
      received.filter((each) => each.kind === "blockhashes" && each.isComplete).length;
    await vi.waitFor(() => expect(complete()).toBeGreaterThan(0), WAIT);
    expect(received).toContainEqual({ kind: "slot", event: "polled", slot: 70, source: "polling" });
    expect(received).toContainEqual(expect.objectContaining({ kind: "height", height: 60 }));
    expect(received).toContainEqual({ kind: "quietRange", range: { first: 69, last: 69 } });
    const before = complete();
    const requests = methods.length;
    post({ kind: "wantBlockhashes" });
    await vi.waitFor(() => expect(complete()).toBeGreaterThan(before), WAIT);
    expect(methods.length).toBeGreaterThan(requests);
  });

  it("rereads the addresses when a leader is unreachable", async () => {
    const { post, counters } = await serve({});
    post({ kind: "pollContactsNow" });
    await vi.waitFor(() => expect(counters.contactsEarlyRefreshes).toBe(1), WAIT);
  });

  it("passes on landings and confirmations over gRPC, where it is configured", async () => {
    const server = await startFakeGeyser();
    cleanups.push(() => server.stop());
    const { received } = await serve({}, { grpcUrl: server.url, grpcToken: null });
    await vi.waitFor(() => expect(server.streams).toBe(1), WAIT);
    const signature = new Uint8Array(64).fill(3);
    server.say({ transaction_status: { slot: 7, signature, bank_id: 30 } });
    server.say({ slot: { slot: 7, status: 1, bank_id: 31 } });
    await vi.waitFor(() => expect(received.map(({ kind }) => kind)).toContain("confirmed"), WAIT);
    const kinds = received.map(({ kind }) => kind);
    expect(kinds).toContain("forgetBanks");
    expect(kinds.indexOf("forgetBanks")).toBeLessThan(kinds.indexOf("processed"));
    expect(kinds.indexOf("processed")).toBeLessThan(kinds.indexOf("confirmed"));
    expect(received.find(({ kind }) => kind === "processed")).toEqual({
      kind: "processed",
      signatures: signature,
      slots: Float64Array.of(7),
      banks: Float64Array.of(30),
      errors: [null],
    });
    expect(received).toContainEqual({ kind: "confirmed", slot: 7, bank: 31 });
  });
});
