import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { createClusterCounters } from "../../../src/cluster/counters.ts";
import { createNativeRpcHttpClient } from "../../../src/cluster/rpc/native-http-client.ts";
import { createRpc, type Rpc } from "../../../src/cluster/rpc/rpc.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { encodeSignatures } from "../../../src/core/encoding.ts";
import { native } from "../../native/addon.ts";

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const end of cleanups.splice(0).reverse()) end();
});

/** Starts a node that returns this response to every request. */
async function startNode(respond: (body: string) => { status?: number; text: string }) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const { status = 200, text } = respond(body);
    response.writeHead(status).end(text);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => server.close().closeAllConnections());
  // A TCP server's address is always an AddressInfo.
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

function statusesText(value: unknown, more: object = {}): string {
  const result = { context: { apiVersion: "4.2.2", slot: 99 }, value };
  return JSON.stringify({ jsonrpc: "2.0", result, id: 1, ...more });
}

const STATUS = { slot: 7, confirmations: 3, err: null, confirmationStatus: "confirmed" };
const ERROR = { InstructionError: [0, { Custom: 1 }] };

/** Nested deeper than `JSON.stringify` supports before Node 26, where such a response fails. */
const DEEP = "[".repeat(100_000) + "]".repeat(100_000);

/** Responses for two signatures: those that the engine parses, and those returned unchanged. */
const RESPONSES: readonly { readonly text: string; readonly status?: number }[] = [
  { text: statusesText([null, null]) },
  { text: statusesText([STATUS, { ...STATUS, confirmationStatus: "processed", slot: 0 }]) },
  { text: statusesText([{ ...STATUS, err: ERROR, status: { Err: ERROR } }, null]) },
  {
    text: statusesText([
      { ...STATUS, err: "AccountInUse" },
      { ...STATUS, err: "Ünïcödé \n \u0000" },
    ]),
  },
  {
    text: statusesText([
      { slot: 1, confirmations: null },
      { slot: 2, confirmations: 4 },
    ]),
  },
  { text: statusesText([{ slot: 1 }, { slot: 2, confirmations: null, confirmationStatus: null }]) },
  {
    text: statusesText([
      { ...STATUS, confirmationStatus: 'new"er' },
      { ...STATUS, extra: [{}] },
    ]),
  },
  { text: JSON.stringify(JSON.parse(statusesText([STATUS, { ...STATUS, err: ERROR }])), null, 2) },
  { text: statusesText([null, null], { error: null }) },
  { text: statusesText([null]) },
  { text: statusesText([null, null, null]) },
  { text: statusesText([STATUS, 7]) },
  { text: statusesText([STATUS, { ...STATUS, slot: 1.5 }]) },
  { text: statusesText([STATUS, { ...STATUS, slot: 2 ** 53 }]) },
  { text: statusesText([null, null], { id: 2 }) },
  { text: statusesText([null, null], { error: { code: -32005, message: "behind" } }) },
  { text: JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32601, message: "no" } }) },
  { text: statusesText([[7, null, null, "confirmed"], null]) },
  { text: `[1,{"context":{"slot":9},"value":[null,null]},null]` },
  { text: `{"id":1,"result":[{"slot":9},[null,null]]}` },
  { text: `{"id":1,"result":{"context":[9],"value":[null,null]}}` },
  { text: statusesText([STATUS, STATUS]).replace('"err":null', `"err":${DEEP}`) },
  { text: statusesText([STATUS, STATUS]).replace('"err":null', '"err":1e999,"x":"\\ud800"') },
  { text: statusesText([STATUS, STATUS]).replace('"slot":7', '"slot":1,"slot":7') },
  { text: `\ufeff${statusesText([null, null])}` },
  { text: "<html>" },
  { text: "" },
  { text: statusesText([null, null]), status: 502 },
  { text: "busy", status: 429 },
];

/** Returns what both engines' RPC clients return for a response, the portable one first. */
async function read(response: { text: string; status?: number }, send: (rpc: Rpc) => unknown) {
  const rpcUrl = await startNode(() => response);
  const outcomes: unknown[] = [];
  for (const engine of [null, native]) {
    const deps = { clock: systemClock, counters: createClusterCounters(), native: engine };
    const rpc = createRpc(deps, { rpcUrl, wsUrl: "ws://127.0.0.1:1", timeoutMs: 60_000 });
    cleanups.push(() => rpc.close());
    outcomes.push(
      await Promise.resolve(send(rpc)).catch((error: unknown) => [error, String(error)]),
    );
  }
  return outcomes;
}

describe.skipIf(native === null)("native status requests", () => {
  const signatures = Buffer.alloc(128, 7).fill(0, 64, 70);

  it("return the same as the portable client for every node response", async () => {
    const expected: unknown[] = [];
    for (const response of RESPONSES) {
      const outcomes = await read(response, (rpc) => rpc.statuses(signatures));
      expect(outcomes[1], response.text.slice(0, 200)).toEqual(outcomes[0]);
      if (!response.text.includes(DEEP)) expected.push(outcomes[0]);
    }
    expect(expected.filter((outcome) => !Array.isArray(outcome))).toHaveLength(11);
  });

  it("send the signatures in base58, at most 256", async () => {
    const bodies: string[] = [];
    const url = await startNode((body) => {
      bodies.push(body);
      return { text: statusesText([null, null]) };
    });
    if (native === null) throw new Error("the native engine is not built");
    const httpClient = createNativeRpcHttpClient(native, {
      url,
      bytesMax: 10_000,
      timeoutMs: 60_000,
    });
    cleanups.push(() => httpClient.close());
    expect(await httpClient.statuses?.(signatures)).toEqual({ slot: 99, statuses: [null, null] });
    expect(bodies.map((body) => JSON.parse(body))).toEqual([
      {
        jsonrpc: "2.0",
        id: 1,
        method: "getSignatureStatuses",
        params: [encodeSignatures(signatures), { searchTransactionHistory: false }],
      },
    ]);
    await expect(httpClient.statuses?.(new Uint8Array(257 * 64))).rejects.toThrow("not taken on");
    await expect(httpClient.statuses?.(new Uint8Array(65))).rejects.toThrow("not taken on");
  });

  it("are rejected above 64 pending requests, and accepted again afterwards", async () => {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const server = createServer(async (request, response) => {
      request.resume();
      await released;
      response.end("{}");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    cleanups.push(() => server.close().closeAllConnections());
    const { port } = server.address() as AddressInfo;
    if (native === null) throw new Error("the native engine is not built");
    const url = `http://127.0.0.1:${port}`;
    const httpClient = createNativeRpcHttpClient(native, { url, bytesMax: 100, timeoutMs: 60_000 });
    cleanups.push(() => httpClient.close());
    const pending = Array.from({ length: 64 }, () => httpClient.post("{}"));
    await expect(httpClient.post("{}")).rejects.toThrow("code -51");
    release();
    const responses = await Promise.all(pending);
    expect(responses.map(({ body }) => String(body))).toEqual(new Array(64).fill("{}"));
    expect((await httpClient.post("{}")).status).toBe(200);
  });

  it("fail if the system cannot start a request thread", async () => {
    const script = fileURLToPath(new URL("./native-http-client.fixture.ts", import.meta.url));
    // The system cannot allocate a stack of this size.
    const env = { ...process.env, RUST_MIN_STACK: String(2 ** 50) };
    const child = spawn(process.execPath, ["--import", "tsx", script], {
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    cleanups.push(() => child.kill("SIGKILL"));
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += String(chunk);
    });
    await once(child, "close");
    expect(output).toBe("Error: the native engine failed to send the request\n".repeat(20));
  });

  it("are rejected after the client is closed", async () => {
    if (native === null) throw new Error("the native engine is not built");
    const url = await startNode(() => ({ text: "{}" }));
    const httpClient = createNativeRpcHttpClient(native, { url, bytesMax: 100, timeoutMs: 60_000 });
    httpClient.close();
    await expect(httpClient.post("{}")).rejects.toThrow("the client was closed");
    await expect(httpClient.statuses?.(signatures)).rejects.toThrow("the client was closed");
    httpClient.close();
  });
});

const NODE = { pubkey: "A", gossip: "1.2.3.4:1", tpuQuic: "1.2.3.4:5", version: "2.3.6" };
const VOTE = { nodePubkey: "A", votePubkey: "V", epochCredits: [[1, 2, 3]] };
const responseText = (result: unknown, more: object = {}): string =>
  JSON.stringify({ jsonrpc: "2.0", result, id: 1, ...more });

describe.skipIf(native === null)("large responses that the native engine shortens", () => {
  const failures = [
    { text: "<html>" },
    { text: responseText([NODE]), status: 503 },
    { text: responseText(null, { error: { code: -32603, message: "no" } }) },
    { text: responseText([NODE], { error: { code: -32603, message: "no" } }) },
    { text: responseText([NODE], { id: 2 }) },
  ];

  it("return the same contacts as the portable client for every node response", async () => {
    const results: readonly unknown[] = [
      [NODE, { ...NODE, pubkey: "B", tpuQuic: null, version: undefined }],
      [{ ...NODE, pubkey: 7 }, { ...NODE, tpuQuic: 7, version: { a: [1] } }, {}],
      [NODE, null, "x", ["A", "1.2.3.4:5", "2.3.6"]],
      [{ ...NODE, pubkey: 'Ünï"cödé\n' }],
      [],
      {},
      null,
    ];
    const responses = [...results.map((result) => ({ text: responseText(result) })), ...failures];
    const repeatedKey = responseText([NODE]).replace('"pubkey":"A"', '"pubkey":"A","pubkey":"B"');
    const [plain, same] = await read({ text: repeatedKey }, (rpc) => rpc.contacts());
    expect(same).toEqual(plain);
    const outcomes = await Promise.all(
      responses.map((each) => read(each, (rpc) => rpc.contacts())),
    );
    for (const [portable, shortened] of outcomes) expect(shortened).toEqual(portable);
    expect(outcomes[0]?.[1]).toHaveLength(2);
  });

  it("return the same delinquent leaders as the portable client", async () => {
    const results: readonly unknown[] = [
      { current: [VOTE], delinquent: [{ ...VOTE, nodePubkey: "B" }, VOTE, {}, null] },
      { current: [VOTE, [1]], delinquent: [{ ...VOTE, nodePubkey: "B" }] },
      { current: [VOTE], delinquent: [{ ...VOTE, nodePubkey: "B" }] },
      { current: [VOTE] },
      [[VOTE], [VOTE]],
    ];
    const responses = [...results.map((result) => ({ text: responseText(result) })), ...failures];
    const outcomes = await Promise.all(
      responses.map((each) => read(each, (rpc) => rpc.delinquent())),
    );
    for (const [portable, shortened] of outcomes) expect(shortened).toEqual(portable);
    expect(outcomes[2]).toEqual([["B"], ["B"]]);
  });

  it("contain only the fields that the client reads", async () => {
    if (native === null) throw new Error("the native engine is not built");
    const url = await startNode(() => ({ text: responseText([NODE]) }));
    const httpClient = createNativeRpcHttpClient(native, {
      url,
      bytesMax: 10_000,
      timeoutMs: 60_000,
    });
    cleanups.push(() => httpClient.close());
    const { body } = await httpClient.post('{"id":1,"method":"getClusterNodes","params":[]}');
    const { gossip: _, ...rest } = NODE;
    expect(JSON.parse(String(body))).toEqual({ id: 1, result: [rest] });
  });
});
