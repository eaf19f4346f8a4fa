import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createClusterClient } from "../../../src/cluster/cluster-client.ts";
import { createClusterCounters } from "../../../src/cluster/counters.ts";
import type { RpcHttpResponse } from "../../../src/cluster/rpc/http-client.ts";
import { createRetryAfter, withRetryAfter } from "../../../src/cluster/rpc/retry-after.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { freePort } from "../../support/ports.ts";

const WAIT = { timeout: 30_000, interval: 10 };
const endings: (() => unknown)[] = [];
afterEach(() => {
  for (const end of endings.splice(0).reverse()) end();
});

interface Question {
  readonly id: number;
  readonly method: string;
}

function setUp(...answers: readonly Partial<RpcHttpResponse>[]) {
  const clock = createFakeClock();
  const counters = createClusterCounters();
  const left = [...answers];
  let asked = 0;
  const next = async (): Promise<RpcHttpResponse> => {
    asked += 1;
    return { status: 200, retryAfterMs: 0, body: Buffer.alloc(0), ...left.splice(0, 1)[0] };
  };
  const retryAfter = createRetryAfter(clock, counters);
  const made = { post: next, statuses: next, close: () => undefined };
  return {
    clock,
    counters,
    retryAfter,
    made,
    httpClient: withRetryAfter(made, retryAfter),
    asked: () => asked,
  };
}

const noSignatures = new Uint8Array();

describe("a node that wants to be left alone", () => {
  it("is asked nothing until then, by anyone", async () => {
    const { clock, counters, retryAfter, made, httpClient, asked } = setUp({
      status: 429,
      retryAfterMs: 5_000,
    });
    const other = withRetryAfter(made, retryAfter);
    expect((await httpClient.post("{}")).status).toBe(429);
    clock.advance(1_000);
    await expect(other.post("{}")).rejects.toThrow("left alone for 4000 ms");
    await expect(httpClient.statuses?.(noSignatures)).rejects.toThrow("left alone");
    expect([asked(), counters.requestsSuppressed]).toEqual([1, 2]);
    clock.advance(4_000);
    expect((await other.post("{}")).status).toBe(200);
    expect(counters.requestsSuppressed).toBe(2);
  });

  it("may say so beside the statuses as well", async () => {
    const { httpClient } = setUp({ status: 503, retryAfterMs: 1 });
    await httpClient.statuses?.(noSignatures);
    await expect(httpClient.post("{}")).rejects.toThrow("left alone");
  });

  it("is believed for half a minute at the most", async () => {
    const { clock, httpClient } = setUp({ status: 429, retryAfterMs: 86_400_000 });
    await httpClient.post("{}");
    clock.advance(29_999);
    await expect(httpClient.post("{}")).rejects.toThrow("left alone");
    clock.advance(1);
    expect((await httpClient.post("{}")).status).toBe(200);
  });

  it("says so with a refusal, and not beside a good answer", async () => {
    const { httpClient } = setUp({ status: 200, retryAfterMs: 5_000 });
    await httpClient.post("{}");
    expect((await httpClient.post("{}")).status).toBe(200);
  });

  it("has no statuses of its own where the poster has none", () => {
    const { made, retryAfter } = setUp();
    expect(
      withRetryAfter({ post: made.post, close: made.close }, retryAfter).statuses,
    ).toBeUndefined();
  });

  it("is asked on for statuses and heights where it limits what is heavy", async () => {
    const results: Readonly<Record<string, unknown>> = {
      getSignatureStatuses: { context: { slot: 9 }, value: [null] },
      getBlockHeight: 5,
    };
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += String(chunk);
      if (/getClusterNodes|getVoteAccounts|getEpoch/.test(body)) {
        response.writeHead(429, { "retry-after": "30" }).end();
        return;
      }
      // The cluster client sends JSON, in batches where requests belong together.
      const asked = JSON.parse(body) as Question | Question[];
      const answers = [asked].flat().map(({ id, method }) => {
        const result = results[method];
        return result === undefined ? { id, error: { code: -1, message: "no" } } : { id, result };
      });
      response.end(JSON.stringify(Array.isArray(asked) ? answers : answers[0]));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    endings.push(() => server.close().closeAllConnections());
    // A TCP server's address is never a path.
    const { port } = server.address() as AddressInfo;
    const wsUrl = `ws://127.0.0.1:${await freePort()}`;
    const router = { slotEvent() {}, setEpoch: () => true, setContacts() {} };
    const log = { info() {}, warn() {}, error() {} };
    const client = createClusterClient(
      { clock: systemClock, log, router, native: null, openGeyser: null },
      { rpcUrl: `http://127.0.0.1:${port}`, wsUrl, retryMsFirst: 50, retryMsMax: 400 },
    );
    client.start();
    endings.push(() => client.stop());
    await vi.waitFor(() => expect(client.counters.requestsSuppressed).toBeGreaterThan(0), WAIT);
    await vi.waitFor(() => expect(client.blockHeight()).toBe(5), WAIT);
    expect(await client.fetchStatuses(new Uint8Array(64))).toEqual({ slot: 9, statuses: [null] });
  });
});
