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

const endings: (() => unknown)[] = [];
afterEach(() => {
  for (const end of endings.splice(0).reverse()) end();
});

/** A node that returns this response to every request. */
async function nodeThat(answer: (body: string) => { status?: number; text: string }) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const { status = 200, text } = answer(body);
    response.writeHead(status).end(text);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  endings.push(() => server.close().closeAllConnections());
  // A TCP server's address is never a path.
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

function told(value: unknown, more: object = {}): string {
  const result = { context: { apiVersion: "4.2.2", slot: 99 }, value };
  return JSON.stringify({ jsonrpc: "2.0", result, id: 1, ...more });
}

const STATUS = { slot: 7, confirmations: 3, err: null, confirmationStatus: "confirmed" };
const ERROR = { InstructionError: [0, { Custom: 1 }] };

/** Deeper than JavaScript writes. */
const DEEP = "[".repeat(100_000) + "]".repeat(100_000);

/** Responses for two signatures: those that the engine parses, and those returned unchanged. */
const ANSWERS: readonly { readonly text: string; readonly status?: number }[] = [
  { text: told([null, null]) },
  { text: told([STATUS, { ...STATUS, confirmationStatus: "processed", slot: 0 }]) },
  { text: told([{ ...STATUS, err: ERROR, status: { Err: ERROR } }, null]) },
  {
    text: told([
      { ...STATUS, err: "AccountInUse" },
      { ...STATUS, err: "Ünïcödé \n \u0000" },
    ]),
  },
  {
    text: told([
      { slot: 1, confirmations: null },
      { slot: 2, confirmations: 4 },
    ]),
  },
  { text: told([{ slot: 1 }, { slot: 2, confirmations: null, confirmationStatus: null }]) },
  {
    text: told([
      { ...STATUS, confirmationStatus: 'new"er' },
      { ...STATUS, extra: [{}] },
    ]),
  },
  { text: JSON.stringify(JSON.parse(told([STATUS, { ...STATUS, err: ERROR }])), null, 2) },
  { text: told([null, null], { error: null }) },
  { text: told([null]) },
  { text: told([null, null, null]) },
  { text: told([STATUS, 7]) },
  { text: told([STATUS, { ...STATUS, slot: 1.5 }]) },
  { text: told([STATUS, { ...STATUS, slot: 2 ** 53 }]) },
  { text: told([null, null], { id: 2 }) },
  { text: told([null, null], { error: { code: -32005, message: "behind" } }) },
  { text: JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32601, message: "no" } }) },
  { text: told([[7, null, null, "confirmed"], null]) },
  { text: `[1,{"context":{"slot":9},"value":[null,null]},null]` },
  { text: `{"id":1,"result":[{"slot":9},[null,null]]}` },
  { text: `{"id":1,"result":{"context":[9],"value":[null,null]}}` },
  { text: told([STATUS, STATUS]).replace('"err":null', `"err":${DEEP}`) },
  { text: told([STATUS, STATUS]).replace('"err":null', '"err":1e999,"x":"\\ud800"') },
  { text: told([STATUS, STATUS]).replace('"slot":7', '"slot":1,"slot":7') },
  { text: `\ufeff${told([null, null])}` },
  { text: "<html>" },
  { text: "" },
  { text: told([null, null]), status: 502 },
  { text: "busy", status: 429 },
];

/** What both engines' readers return for a response: the portable one first. */
async function read(answer: { text: string; status?: number }, ask: (rpc: Rpc) => unknown) {
  const rpcUrl = await nodeThat(() => answer);
  const outcomes: unknown[] = [];
  for (const engine of [null, native]) {
    const deps = { clock: systemClock, counters: createClusterCounters(), native: engine };
    const rpc = createRpc(deps, { rpcUrl, wsUrl: "ws://127.0.0.1:1", timeoutMs: 60_000 });
    endings.push(() => rpc.close());
    outcomes.push(
      await Promise.resolve(ask(rpc)).catch((error: unknown) => [error, String(error)]),
    );
  }
  return outcomes;
}

describe.skipIf(native === null)("statuses that the native engine asks for", () => {
  const signatures = Buffer.alloc(128, 7).fill(0, 64, 70);

  it("are those that are read here, whatever the node says", async () => {
    const wanted: unknown[] = [];
    for (const answer of ANSWERS) {
      const outcomes = await read(answer, (rpc) => rpc.statuses(signatures));
      expect(outcomes[1], answer.text.slice(0, 200)).toEqual(outcomes[0]);
      wanted.push(outcomes[0]);
    }
    expect(wanted.filter((outcome) => !Array.isArray(outcome))).toHaveLength(11);
  });

  it("are asked for by name, 256 at the most", async () => {
    const bodies: string[] = [];
    const url = await nodeThat((body) => {
      bodies.push(body);
      return { text: told([null, null]) };
    });
    if (native === null) throw new Error("the native engine is not built");
    const httpClient = createNativeRpcHttpClient(native, {
      url,
      bytesMax: 10_000,
      timeoutMs: 60_000,
    });
    endings.push(() => httpClient.close());
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

  it("are refused beyond what may be in hand, and taken again after that", async () => {
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
    endings.push(() => server.close().closeAllConnections());
    const { port } = server.address() as AddressInfo;
    if (native === null) throw new Error("the native engine is not built");
    const url = `http://127.0.0.1:${port}`;
    const httpClient = createNativeRpcHttpClient(native, { url, bytesMax: 100, timeoutMs: 60_000 });
    endings.push(() => httpClient.close());
    const asked = Array.from({ length: 64 }, () => httpClient.post("{}"));
    await expect(httpClient.post("{}")).rejects.toThrow("code -51");
    release();
    const answers = await Promise.all(asked);
    expect(answers.map(({ body }) => String(body))).toEqual(new Array(64).fill("{}"));
    expect((await httpClient.post("{}")).status).toBe(200);
  });

  it("fail where the system starts no thread that looks the host up", async () => {
    const script = fileURLToPath(new URL("./native-http-client.fixture.ts", import.meta.url));
    // A stack of that size cannot be allocated.
    const env = { ...process.env, RUST_MIN_STACK: String(2 ** 50) };
    const child = spawn(process.execPath, ["--import", "tsx", script], {
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    endings.push(() => child.kill("SIGKILL"));
    let said = "";
    child.stdout.on("data", (chunk) => {
      said += String(chunk);
    });
    await once(child, "close");
    expect(said).toBe("Error: the native engine failed to send the request\n".repeat(20));
  });

  it("are not asked for once the poster is closed", async () => {
    if (native === null) throw new Error("the native engine is not built");
    const url = await nodeThat(() => ({ text: "{}" }));
    const httpClient = createNativeRpcHttpClient(native, { url, bytesMax: 100, timeoutMs: 60_000 });
    httpClient.close();
    await expect(httpClient.post("{}")).rejects.toThrow("the client was closed");
    await expect(httpClient.statuses?.(signatures)).rejects.toThrow("the client was closed");
    httpClient.close();
  });
});

const NODE = { pubkey: "A", gossip: "1.2.3.4:1", tpuQuic: "1.2.3.4:5", version: "2.3.6" };
const VOTE = { nodePubkey: "A", votePubkey: "V", epochCredits: [[1, 2, 3]] };
const answerOf = (result: unknown, more: object = {}): string =>
  JSON.stringify({ jsonrpc: "2.0", result, id: 1, ...more });

describe.skipIf(native === null)("long answers that the native engine shortens", () => {
  const odd = [
    { text: "<html>" },
    { text: answerOf([NODE]), status: 503 },
    { text: answerOf(null, { error: { code: -32603, message: "no" } }) },
    { text: answerOf([NODE], { error: { code: -32603, message: "no" } }) },
    { text: answerOf([NODE], { id: 2 }) },
  ];

  it("tell of nodes what they told, whatever the node says", async () => {
    const results: readonly unknown[] = [
      [NODE, { ...NODE, pubkey: "B", tpuQuic: null, version: undefined }],
      [{ ...NODE, pubkey: 7 }, { ...NODE, tpuQuic: 7, version: { a: [1] } }, {}],
      [NODE, null, "x", ["A", "1.2.3.4:5", "2.3.6"]],
      [{ ...NODE, pubkey: 'Ünï"cödé\n' }],
      [],
      {},
      null,
    ];
    const answers = [...results.map((result) => ({ text: answerOf(result) })), ...odd];
    const twice = answerOf([NODE]).replace('"pubkey":"A"', '"pubkey":"A","pubkey":"B"');
    const [plain, same] = await read({ text: twice }, (rpc) => rpc.contacts());
    expect(same).toEqual(plain);
    const told = await Promise.all(answers.map((each) => read(each, (rpc) => rpc.contacts())));
    for (const [portable, shortened] of told) expect(shortened).toEqual(portable);
    expect(told[0]?.[1]).toHaveLength(2);
  });

  it("tell who is delinquent", async () => {
    const results: readonly unknown[] = [
      { current: [VOTE], delinquent: [{ ...VOTE, nodePubkey: "B" }, VOTE, {}, null] },
      { current: [VOTE, [1]], delinquent: [{ ...VOTE, nodePubkey: "B" }] },
      { current: [VOTE], delinquent: [{ ...VOTE, nodePubkey: "B" }] },
      { current: [VOTE] },
      [[VOTE], [VOTE]],
    ];
    const answers = [...results.map((result) => ({ text: answerOf(result) })), ...odd];
    const told = await Promise.all(answers.map((each) => read(each, (rpc) => rpc.delinquent())));
    for (const [portable, shortened] of told) expect(shortened).toEqual(portable);
    expect(told[2]).toEqual([["B"], ["B"]]);
  });

  it("come without what nobody reads", async () => {
    if (native === null) throw new Error("the native engine is not built");
    const url = await nodeThat(() => ({ text: answerOf([NODE]) }));
    const httpClient = createNativeRpcHttpClient(native, {
      url,
      bytesMax: 10_000,
      timeoutMs: 60_000,
    });
    endings.push(() => httpClient.close());
    const { body } = await httpClient.post('{"id":1,"method":"getClusterNodes","params":[]}');
    const { gossip: _, ...rest } = NODE;
    expect(JSON.parse(String(body))).toEqual({ id: 1, result: [rest] });
  });
});
