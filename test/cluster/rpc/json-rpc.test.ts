import { describe, expect, it } from "vitest";
import { createCaller, RpcError } from "../../../src/cluster/rpc/json-rpc.ts";

interface NodeResponse {
  readonly status?: number;
  readonly body: unknown;
}

/** A node that returns these responses in order: strings unchanged, all other bodies as JSON. */
function setUp(...responses: readonly NodeResponse[]) {
  const sent: unknown[] = [];
  const remaining = [...responses];
  const caller = createCaller({
    async post(body) {
      sent.push(JSON.parse(body));
      const [next] = remaining.splice(0, 1);
      if (next === undefined) throw new Error("unavailable");
      const text = typeof next.body === "string" ? next.body : JSON.stringify(next.body);
      return { status: next.status ?? 200, retryAfterMs: 0, body: Buffer.from(text) };
    },
  });
  return { ...caller, sent };
}

const CALLS = [
  { method: "a", params: [1] },
  { method: "b", params: [] },
];

describe("JSON-RPC call", () => {
  it("sends a JSON-RPC 2.0 request and returns the result", async () => {
    const { call, sent } = setUp({ body: { jsonrpc: "2.0", id: 1, result: null } });
    expect(await call("getSlot", [7])).toBeNull();
    expect(sent).toEqual([{ jsonrpc: "2.0", id: 1, method: "getSlot", params: [7] }]);
  });

  it.each([
    [{ body: { error: { message: "behind" } } }, "a: behind"],
    [{ body: { error: { message: "no key" } }, status: 403 }, "a: no key"],
    [{ body: { id: 1, result: null, error: { message: "none" } } }, "a: none"],
    [{ body: {} }, "a: no result"],
    [{ body: { error: "Invalid API key" } }, "a: Invalid API key"],
    [{ body: { error: "" } }, "a: no result"],
    [{ body: { error: { code: -32005 } } }, "a: an error without a word"],
    [{ body: { id: 7, result: 7 } }, "a: the answer is to something else"],
    [{ body: [] }, "a: the answer is no JSON-RPC"],
    [{ body: "<html>" }, "a: the answer is no JSON"],
    [{ body: "<html>", status: 502 }, "a: HTTP 502 Bad Gateway"],
    [{ body: "{}", status: 429 }, "a: HTTP 429 Too Many Requests"],
  ])("rejects the response %j", async (response, message) => {
    await expect(setUp(response).call("a", [])).rejects.toThrow(message);
  });
});

describe("JSON-RPC batch", () => {
  it("matches results to calls by id, in any order", async () => {
    const { batch, sent } = setUp({
      body: [{ id: 1, error: { message: "no" } }, { id: 9, result: 9 }, null, { id: 0, result: 5 }],
    });
    expect(await batch(CALLS)).toEqual([{ result: 5 }, { error: new RpcError(0, "b: no") }]);
    expect(sent).toEqual([
      [
        { jsonrpc: "2.0", id: 0, method: "a", params: [1] },
        { jsonrpc: "2.0", id: 1, method: "b", params: [] },
      ],
    ]);
  });

  it("names a call that has no response in the batch", async () => {
    const { batch } = setUp({ body: [{ id: 0, result: 5 }] });
    const [, second] = await batch(CALLS);
    expect(second).toEqual({ error: new Error("b: no answer in the batch") });
  });

  it.each([
    { body: { id: null, error: { message: "batches are not supported" } } },
    { body: [{ id: null, error: { message: "no batches" } }] },
    { body: [0, 1].map((id) => ({ id, error: { message: "not in a batch" } })) },
    { body: [] },
    { body: "Forbidden", status: 403 },
    { body: { error: { message: "too many calls" } }, status: 413 },
  ])("switches to single requests permanently if the node responds %j", async (response) => {
    const { batch, sent } = setUp(
      response,
      { body: { id: 1, result: 1 } },
      { body: { error: { message: "no" } } },
      { body: { id: 1, result: 3 } },
      { body: { id: 1, result: 4 } },
    );
    expect(await batch(CALLS)).toEqual([{ result: 1 }, { error: new RpcError(0, "b: no") }]);
    expect(await batch(CALLS)).toEqual([{ result: 3 }, { result: 4 }]);
    expect(sent.map(Array.isArray)).toEqual([true, false, false, false, false]);
  });

  it("fails but keeps sending batches if the node is down or rate limits them", async () => {
    const { batch, sent } = setUp(
      { body: "{}", status: 429 },
      { body: "{}", status: 503 },
      { body: [{ id: 0, result: 1 }] },
    );
    await expect(batch(CALLS)).rejects.toThrow("HTTP 429");
    await expect(batch(CALLS)).rejects.toThrow("HTTP 503");
    expect((await batch(CALLS))[0]).toEqual({ result: 1 });
    await expect(batch(CALLS)).rejects.toThrow("unavailable");
    expect(sent.every(Array.isArray)).toBe(true);
  });

  it.each([
    [0, 1].map((id) => ({ id, error: { code: 429, message: "slow down" } })),
    [{ id: 0, error: { code: -32429, message: "slow down" } }],
    { id: null, error: { code: 429, message: "slow down" } },
  ])("fails but keeps sending batches if the node limits their rate by %j", async (body) => {
    const { batch, sent } = setUp({ body }, { body: [{ id: 0, result: 1 }] });
    await expect(batch(CALLS)).rejects.toThrow("batch: slow down");
    expect((await batch(CALLS))[0]).toEqual({ result: 1 });
    expect(sent.map(Array.isArray)).toEqual([true, true]);
  });

  it("returns the results of a batch in which the node limits some calls", async () => {
    const limited = { id: 1, error: { code: 429, message: "slow down" } };
    const { batch, sent } = setUp({ body: [{ id: 0, result: 1 }, limited] });
    expect(await batch(CALLS)).toEqual([
      { result: 1 },
      { error: new RpcError(429, "b: slow down") },
    ]);
    expect(sent).toHaveLength(1);
  });

  it("treats a null error next to a result as no error", async () => {
    const { batch } = setUp({ body: [{ id: 0, result: 5, error: null }] });
    expect((await batch(CALLS))[0]).toEqual({ result: 5 });
  });

  it("fails if no single request has a result either, then sends a batch again", async () => {
    const { batch, sent } = setUp(
      { body: { error: { message: "over the limit" } } },
      { body: { error: { message: "over the limit" } } },
      { body: { error: { message: "over the limit" } } },
      { body: [{ id: 0, result: 1 }] },
    );
    await expect(batch(CALLS)).rejects.toThrow("over the limit");
    expect((await batch(CALLS))[0]).toEqual({ result: 1 });
    expect(sent.map(Array.isArray)).toEqual([true, false, false, true]);
  });
});
