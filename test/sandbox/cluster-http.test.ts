import { afterEach, describe, expect, it } from "vitest";
import { toJson } from "../../src/sandbox/cluster-http.ts";
import { newKeypair } from "../support/transactions.ts";
import { endAll, setUpRunning } from "./cluster-fixture.ts";

afterEach(endAll);

describe("the simulated RPC", () => {
  it("answers health, rejects other methods, and does not send transactions", async () => {
    const { rpcUrl, post } = await setUpRunning();
    expect(await (await fetch(`${rpcUrl}/health`)).text()).toBe("ok");
    expect((await fetch(rpcUrl)).status).toBe(405);
    expect((await fetch(`${rpcUrl}/example-transaction`)).status).toBe(404);
    const sent = await post({ jsonrpc: "2.0", id: "x", method: "sendTransaction", params: ["AA"] });
    expect(sent.status).toBe(200);
    expect(JSON.parse(sent.text)).toEqual({
      jsonrpc: "2.0",
      error: { code: -32601, message: "Method not found" },
      id: "x",
    });
    const inherited = await post({ jsonrpc: "2.0", id: 1, method: "constructor" });
    expect(JSON.parse(inherited.text)).toMatchObject({ error: { code: -32601 } });
  });

  it.each([
    ["{", -32700],
    ["[]", -32600],
    ["7", -32600],
    ['{"id":1,"params":[]}', -32600],
    ['{"id":1,"method":"getSlot","params":{}}', -32602],
    ['{"id":1,"method":"getSlot","params":[{"commitment":"soon"}]}', -32602],
    ['{"id":1,"method":"getBalance","params":["abc"]}', -32602],
    ['{"id":1,"method":"getSlotLeaders","params":[0,5001]}', -32602],
    ['{"id":1,"method":"getSlotLeaders","params":[900000,1]}', -32602],
    ['{"id":1,"method":"requestAirdrop","params":["11111111111111111111111111111111",-1]}', -32602],
    ['{"id":1,"method":"getSignatureStatuses","params":[]}', -32602],
  ])("answers %s with an error", async (body, code) => {
    const { post } = await setUpRunning();
    const { status, text } = await post(body);
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({ error: { code } });
  });

  it("answers batches in order, and rejects an oversized body", async () => {
    const { post } = await setUpRunning();
    const { text } = await post([
      { jsonrpc: "2.0", id: "a", method: "getHealth" },
      { jsonrpc: "2.0", id: 2, method: "nothing" },
    ]);
    expect(JSON.parse(text)).toMatchObject([
      { id: "a", result: "ok" },
      { id: 2, error: {} },
    ]);
    expect((await post(`"${"x".repeat(50 * 1024)}"`)).status).toBe(413);
  });

  it("writes integers beyond 2^53 as integers", async () => {
    const { cluster, post } = await setUpRunning();
    const { address: owner } = newKeypair();
    cluster.airdrop(owner, 1_000_000_000n);
    const call = { jsonrpc: "2.0", id: 1, method: "getAccountInfo", params: [owner] };
    expect((await post(call)).text).toContain('"rentEpoch":18446744073709551615');
  });
});

describe("JSON with large integers", () => {
  it("keeps them as integers, and does not change text that looks like one", () => {
    const value = { a: 2n ** 64n - 1n, b: ["12", 3, null], c: "\\u00007" };
    expect(toJson(value)).toBe('{"a":18446744073709551615,"b":["12",3,null],"c":"\\\\u00007"}');
  });
});
