import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createClusterClient } from "../../../src/cluster/cluster-client.ts";
import { ClusterCounters } from "../../../src/cluster/counters.ts";
import type { RpcHttpResponse } from "../../../src/cluster/rpc/http-client.ts";
import { withRetryAfter } from "../../../src/cluster/rpc/retry-after.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { freePort } from "../../support/ports.ts";
import { blocksReceived } from "../blocks/fixture.ts";
import { clientDeps, sinkOf } from "../fixture.ts";

const WAIT = { timeout: 30_000, interval: 10 };
const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const end of cleanups.splice(0).reverse()) end();
});

interface JsonRpcRequest {
  readonly id: number;
  readonly method: string;
}

function setUp(...responses: readonly Partial<RpcHttpResponse>[]) {
  const clock = createFakeClock();
  const counters = new ClusterCounters();
  const remaining = [...responses];
  let sent = 0;
  const next = async (): Promise<RpcHttpResponse> => {
    sent += 1;
    return { status: 200, retryAfterMs: 0, body: Buffer.alloc(0), ...remaining.splice(0, 1)[0] };
  };
  const inner = { post: next, close: () => undefined };
  return {
    clock,
    counters,
    httpClient: withRetryAfter(inner, clock, counters),
    sent: () => sent,
  };
}

describe("a node that sends Retry-After", () => {
  it("receives no request until that time", async () => {
    const { clock, counters, httpClient, sent } = setUp({ status: 429, retryAfterMs: 5_000 });
    expect((await httpClient.post("{}")).status).toBe(429);
    clock.advance(1_000);
    await expect(httpClient.post("{}")).rejects.toThrow("left alone for 4000 ms");
    await expect(httpClient.post("{}")).rejects.toThrow("left alone");
    expect([sent(), counters.requestsSuppressed]).toEqual([1, 2]);
    clock.advance(4_000);
    expect((await httpClient.post("{}")).status).toBe(200);
    expect(counters.requestsSuppressed).toBe(2);
  });

  it("applies a Retry-After for at most 30 s", async () => {
    const { clock, httpClient } = setUp({ status: 429, retryAfterMs: 86_400_000 });
    await httpClient.post("{}");
    clock.advance(29_999);
    await expect(httpClient.post("{}")).rejects.toThrow("left alone");
    clock.advance(1);
    expect((await httpClient.post("{}")).status).toBe(200);
  });

  it("ignores a Retry-After in a successful response", async () => {
    const { httpClient } = setUp({ status: 200, retryAfterMs: 5_000 });
    await httpClient.post("{}");
    expect((await httpClient.post("{}")).status).toBe(200);
  });

  it("still receives status and height requests while it limits heavy methods", async () => {
    const results: Readonly<Record<string, unknown>> = {
      getSignatureStatuses: { context: { slot: 9 }, value: [null] },
      getEpochInfo: { absoluteSlot: 6, blockHeight: 5, transactionCount: 1 },
    };
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += String(chunk);
      if (/getClusterNodes|getVoteAccounts|getEpochSchedule/.test(body)) {
        response.writeHead(429, { "retry-after": "30" }).end();
        return;
      }
      // The cluster client sends single requests and batches.
      const message = JSON.parse(body) as JsonRpcRequest | JsonRpcRequest[];
      const responses = [message].flat().map(({ id, method }) => {
        const result = results[method];
        return result === undefined ? { id, error: { code: -1, message: "no" } } : { id, result };
      });
      response.end(JSON.stringify(Array.isArray(message) ? responses : responses[0]));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    cleanups.push(() => server.close().closeAllConnections());
    // A TCP server's address is always an AddressInfo.
    const { port } = server.address() as AddressInfo;
    const wsUrl = `ws://127.0.0.1:${await freePort()}`;
    const blocks = blocksReceived();
    const deps = clientDeps(systemClock, sinkOf({}, blocks.sink));
    const rpcUrl = `http://127.0.0.1:${port}`;
    const options = { rpcUrl, wsUrl, retryMsFirst: 50, retryMsMax: 400 };
    const client = createClusterClient(deps, options);
    client.start();
    cleanups.push(() => client.stop());
    await vi.waitFor(() => expect(deps.counters.requestsSuppressed).toBeGreaterThan(0), WAIT);
    await vi.waitFor(() => expect(blocks.height()).toBe(5), WAIT);
    expect(await client.fetchStatuses(new Uint8Array(64))).toEqual({ slot: 9, statuses: [null] });
  });
});
