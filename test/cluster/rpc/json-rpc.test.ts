import { describe, expect, it } from "vitest";
import { createCaller, RpcError } from "../../../src/cluster/rpc/json-rpc.ts";

interface Answer {
  readonly status?: number;
  readonly body: unknown;
}

/** A node that returns these responses in order; strings unchanged, all others as JSON. */
function setUp(...answers: readonly Answer[]) {
  const asked: unknown[] = [];
  const left = [...answers];
  const caller = createCaller({
    async post(body) {
      asked.push(JSON.parse(body));
      const [next] = left.splice(0, 1);
      if (next === undefined) throw new Error("away");
      const text = typeof next.body === "string" ? next.body : JSON.stringify(next.body);
      return { status: next.status ?? 200, retryAfterMs: 0, body: Buffer.from(text) };
    },
  });
  return { ...caller, asked };
}

const CALLS = [
  { method: "a", params: [1] },
  { method: "b", params: [] },
];

describe("a call", () => {
  it("asks in JSON-RPC 2.0 and gives the result", async () => {
    const { call, asked } = setUp({ body: { jsonrpc: "2.0", id: 1, result: null } });
    expect(await call("getSlot", [7])).toBeNull();
    expect(asked).toEqual([{ jsonrpc: "2.0", id: 1, method: "getSlot", params: [7] }]);
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
  ])("fails for %j", async (answer, message) => {
    await expect(setUp(answer).call("a", [])).rejects.toThrow(message);
  });
});

describe("a batch", () => {
  it("gives each call its own result, in whatever order they come", async () => {
    const { batch, asked } = setUp({
      body: [{ id: 1, error: { message: "no" } }, { id: 9, result: 9 }, null, { id: 0, result: 5 }],
    });
    expect(await batch(CALLS)).toEqual([{ result: 5 }, { error: new RpcError(0, "b: no") }]);
    expect(asked).toEqual([
      [
        { jsonrpc: "2.0", id: 0, method: "a", params: [1] },
        { jsonrpc: "2.0", id: 1, method: "b", params: [] },
      ],
    ]);
  });

  it("names a call that has no answer", async () => {
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
  ])("asks one by one from then on where the node answers %j", async (refusal) => {
    const { batch, asked } = setUp(
      refusal,
      { body: { id: 1, result: 1 } },
      { body: { error: { message: "no" } } },
      { body: { id: 1, result: 3 } },
      { body: { id: 1, result: 4 } },
    );
    expect(await batch(CALLS)).toEqual([{ result: 1 }, { error: new RpcError(0, "b: no") }]);
    expect(await batch(CALLS)).toEqual([{ result: 3 }, { result: 4 }]);
    expect(asked.map(Array.isArray)).toEqual([true, false, false, false, false]);
  });

  it("fails, and goes on with batches, where the node is away or limits it", async () => {
    const { batch, asked } = setUp(
      { body: "{}", status: 429 },
      { body: "{}", status: 503 },
      { body: [{ id: 0, result: 1 }] },
    );
    await expect(batch(CALLS)).rejects.toThrow("HTTP 429");
    await expect(batch(CALLS)).rejects.toThrow("HTTP 503");
    expect((await batch(CALLS))[0]).toEqual({ result: 1 });
    await expect(batch(CALLS)).rejects.toThrow("away");
    expect(asked.every(Array.isArray)).toBe(true);
  });

  it("takes an error of null beside a result for none", async () => {
    const { batch } = setUp({ body: [{ id: 0, result: 5, error: null }] });
    expect((await batch(CALLS))[0]).toEqual({ result: 5 });
  });

  it("fails as a whole where no single question has a result, and is tried again", async () => {
    const { batch, asked } = setUp(
      { body: { error: { message: "over the limit" } } },
      { body: { error: { message: "over the limit" } } },
      { body: { error: { message: "over the limit" } } },
      { body: [{ id: 0, result: 1 }] },
    );
    await expect(batch(CALLS)).rejects.toThrow("over the limit");
    expect((await batch(CALLS))[0]).toEqual({ result: 1 });
    expect(asked.map(Array.isArray)).toEqual([true, false, false, true]);
  });
});
