import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Submit } from "../../src/http/submit/submission.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import {
  accept,
  connectRaw,
  type Fixture,
  once,
  post,
  RPC,
  SIGNATURE,
  SLOW_KEY,
  sendCall,
  startFixture,
  WITH_KEY,
} from "./http-fixture.ts";

const BYTES = Uint8Array.from({ length: 300 }, (_, i) => i % 251);
const BASE64 = Buffer.from(BYTES).toString("base64");

let edge: Fixture;
beforeAll(async () => {
  edge = await startFixture();
});
afterAll(() => edge.stop());
beforeEach(() => {
  edge.submit = accept;
  edge.submitted.length = 0;
});

async function call(body: string, headers: readonly string[] = [WITH_KEY], path = RPC) {
  const response = await once(edge.port, post(path, body, headers));
  return { status: response.status, text: response.body, json: JSON.parse(response.body) };
}

const send = (id: string, params: unknown = [BASE64]) =>
  `{"jsonrpc":"2.0","id":${id},"method":"sendTransaction","params":${JSON.stringify(params)}}`;
const health = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"getHealth"}`;

describe("id", () => {
  const ids = [
    ...["1", "0", "-7", "null", '""', '"0"', '"é\\ud800\\n"', '"6f1f6bd2-5d5c-4d9e-a4cb"'],
    ...["9007199254740993", "123456789012345678901234567890", "1e400", "0.1", "-0.5e-3"],
  ];
  for (const id of ids) {
    it(`is echoed with its value and type: ${id}`, async () => {
      const { text } = await call(send(id));
      expect(text).toBe(`{"jsonrpc":"2.0","result":"${SIGNATURE}","id":${id}}`);
    });
  }

  it("is echoed in errors as well", async () => {
    const { text, json } = await call(send("9007199254740993", []));
    expect(text).toMatch(/"id":9007199254740993\}$/);
    expect(json.error.code).toBe(-32602);
  });

  it("is that of the call, not one found elsewhere", async () => {
    const body =
      `{ "params" : ["${BASE64}",{"id":77777777777777777771}], "x" : "\\"id\\":1" , "\\u0069d" :` +
      ' 9007199254740993 ,"jsonrpc":"2.0","method":"sendTransaction"}';
    expect((await call(body)).text).toMatch(/"id":9007199254740993\}$/);
  });

  it("is the last of several, as in JSON", async () => {
    const body = send("9007199254740993").replace("{", '{"id":9007199254740995,');
    expect((await call(body)).text).toMatch(/"id":9007199254740993\}$/);
  });
});

describe("params", () => {
  it("default to base64 when the encoding is absent or null", async () => {
    const configs = [undefined, null, {}, { encoding: null }, { encoding: "base64" }];
    for (const config of configs) {
      const params = config === undefined ? [BASE64] : [BASE64, config];
      expect((await call(send("1", params))).json.result).toBe(SIGNATURE);
    }
    for (const submission of edge.submitted) {
      expect(Buffer.from(submission.bytes).toString("base64")).toBe(BASE64);
    }
    expect(edge.submitted).toHaveLength(configs.length);
  });

  it("accept base58 when that is the encoding", async () => {
    await call(send("1", ["StV1DL6CwTryKyV", { encoding: "base58" }]));
    expect(Buffer.from(edge.submitted[0]?.bytes ?? []).toString()).toBe("hello world");
  });

  it("forward maxRetries and ignore every other key of the config", async () => {
    const config = {
      maxRetries: 3,
      skipPreflight: true,
      preflightCommitment: "confirmed",
      minContextSlot: 1,
      anything: { at: ["all"] },
    };
    await call(send("1", [BASE64, config]));
    await call(send("1", [BASE64, { maxRetries: 0 }]));
    await call(send("1", [BASE64, { maxRetries: null }]));
    expect(edge.submitted.map((submission) => submission.maxRetries)).toEqual([3, 0, null]);
  });
});

describe("a batch", () => {
  it("is answered in order, each call under its own id, in any order of completion", async () => {
    const waiting: Parameters<Submit>[1][] = [];
    edge.submit = (_, done) => {
      waiting.push(done);
      if (waiting.length < 3) return;
      waiting[2]?.({ kind: "accepted", signature: "third" });
      const rejection = { reason: "tip_missing", message: "no tip", data: { found: 0 } } as const;
      waiting[1]?.({ kind: "rejected", rejection });
      setImmediate(() => waiting[0]?.({ kind: "accepted", signature: "first" }));
    };
    const calls = [send("1"), health('"h"'), send("9007199254740993"), send("null"), "7"];
    const { status, text } = await call(`[${calls.join(" , ")}]`);
    expect(status).toBe(200);
    expect(text).toContain('"id":9007199254740993}');
    expect(JSON.parse(text)).toMatchObject([
      { id: 1, result: "first" },
      { id: "h", result: "ok" },
      { error: { code: -32602, message: "no tip", data: { reason: "tip_missing", found: 0 } } },
      { id: null, result: "third" },
      { id: null, error: { code: -32600, data: { reason: "invalid_request" } } },
    ]);
  });

  it("may have 1 to 16 calls; any other count is one invalid_request", async () => {
    for (const size of [1, 16]) {
      const { json } = await call(`[${Array.from({ length: size }, () => send("1")).join()}]`);
      expect(json).toHaveLength(size);
    }
    for (const size of [0, 17]) {
      const body = `[${Array.from({ length: size }, () => send("1")).join()}]`;
      const { status, json } = await call(body);
      expect(status).toBe(200);
      expect(json).toMatchObject({ id: null, error: { code: -32600 } });
      expect(json.error.data).toMatchObject({ reason: "invalid_request", found: size, needed: 16 });
    }
  });

  it("has HTTP 200 even when every call is rejected", async () => {
    const rejection = { reason: "no_leader", message: "none", data: {} } as const;
    edge.submit = (_, done) => done({ kind: "rejected", rejection });
    const { status, json } = await call(`[${send("1")},${send("2")}]`);
    expect(status).toBe(200);
    expect(json.map((part: { error: { code: number } }) => part.error.code)).toEqual([
      -32603, -32603,
    ]);
  });

  it("is charged per call, and a call beyond the limit gets its own -32005", async () => {
    const limited = await startFixture();
    const key = [`api-x-token: ${SLOW_KEY}`];
    const body = `[${send('"a"')},${health('"b"')},${send('"c"')},7]`;
    const response = await once(limited.port, post(RPC, body, key));
    expect(response.status).toBe(200);
    expect(JSON.parse(response.body)).toMatchObject([
      { id: "a", result: SIGNATURE },
      { id: "b", result: "ok" },
      { id: "c", error: { code: -32005, data: { reason: "rate_limited", retryable: true } } },
      { id: null, error: { code: -32005 } },
    ]);
    expect(limited.submitted).toHaveLength(1);
    expect((await once(limited.port, post(RPC, body, key))).status).toBe(429);
    await limited.stop();
  });

  it("is charged once when it is rejected completely", async () => {
    const limited = await startFixture();
    const key = [`api-x-token: ${SLOW_KEY}`];
    await once(limited.port, post(RPC, "[]", key));
    expect((await once(limited.port, post(RPC, sendCall(BYTES), key))).status).toBe(200);
    expect((await once(limited.port, post(RPC, sendCall(BYTES), key))).status).toBe(429);
    await limited.stop();
  });

  it("survives a stage that throws", async () => {
    edge.submit = () => {
      throw new Error("a bug");
    };
    expect((await call(`[${send("1")}]`)).status).toBe(500);
    edge.errors.length = 0;
  });
});

describe("getHealth", () => {
  it("answers ok without a key on / and on the JSON-RPC endpoint", async () => {
    for (const path of ["/", RPC]) {
      for (const headers of [[], ["api-x-token: nobody-has-this-key"], [WITH_KEY]]) {
        const { status, text } = await call(health('"x"'), headers, path);
        expect(status).toBe(200);
        expect(text).toBe('{"jsonrpc":"2.0","result":"ok","id":"x"}');
      }
      const { json } = await call(`[${health("1")},${health("2")}]`, [], path);
      expect(json).toMatchObject([{ result: "ok" }, { result: "ok" }]);
    }
  });

  it("does not admit a transaction in the same request", async () => {
    const small = `[${health("1")},${send("2", ["AA=="])}]`;
    expect(small.length).toBeLessThan(256);
    expect((await call(small, [])).status).toBe(401);
    expect(edge.submitted).toHaveLength(0);
  });

  it("is validated like any call: it is invalid without an id", async () => {
    const { json } = await call('{"jsonrpc":"2.0","method":"getHealth"}', []);
    expect(json.error.code).toBe(-32600);
  });
});

describe("clients of other senders", () => {
  it("send to / and to /fast as to the JSON-RPC endpoint, with a key alone", async () => {
    for (const path of ["/", "/fast", `/fast?swqos_only=true`]) {
      const { status, json } = await call(send("5"), [WITH_KEY], path);
      expect({ status, json }).toEqual({
        status: 200,
        json: { jsonrpc: "2.0", result: SIGNATURE, id: 5 },
      });
      expect((await call(send("5"), [], path)).status).toBe(401);
    }
    expect(edge.submitted).toHaveLength(3);
    expect((await once(edge.port, post("/", Buffer.alloc(20_000), []))).status).toBe(401);
  });

  it("get the tip accounts and the version without a key, in a batch too", async () => {
    const ask = (method: string) => `{"jsonrpc":"2.0","id":3,"method":"${method}","params":[]}`;
    const version = { "solana-core": "4.2.2", "feature-set": 0, touchdown: "1.2.3" };
    for (const path of ["/", "/fast", RPC]) {
      for (const headers of [[], [WITH_KEY]]) {
        const tips = await call(ask("getTipAccounts"), headers, path);
        expect(tips.json).toEqual({ jsonrpc: "2.0", result: ["Tip1111", "Tip2222"], id: 3 });
        expect((await call(ask("getVersion"), headers, path)).json.result).toEqual(version);
        const both = `[${ask("getVersion")},${health("4")}]`;
        expect((await call(both, headers, path)).json).toMatchObject([
          { result: version, id: 3 },
          { result: "ok", id: 4 },
        ]);
      }
    }
  });

  it("are told what to use instead of a bundle", async () => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"sendBundle","params":[["${BASE64}"]]}`;
    const { status, json } = await call(body);
    expect(status).toBe(200);
    expect(json.error).toMatchObject({ code: -32601, data: { reason: "method_not_found" } });
    expect(json.error.message).toMatch(/sendBundle.*bundles are not served.*sendTransaction/);
  });
});

describe("the deadline", () => {
  it("returns overloaded when the pipeline stalls, and drops its late result", async () => {
    const clock = createFakeClock();
    const slow = await startFixture({ clock });
    const waiting: Parameters<Submit>[1][] = [];
    let onSubmit: (() => void) | null = null;
    slow.submit = (_, done) => {
      waiting.push(done);
      if (waiting.length === 3) onSubmit?.();
    };
    const all = new Promise<void>((resolve) => {
      onSubmit = resolve;
    });
    const clients = [];
    for (const body of [send("1"), `[${send("2")},${health("3")},${send("4")}]`]) {
      const client = await connectRaw(slow.port);
      client.write(post(RPC, body, [WITH_KEY]));
      clients.push(client);
    }
    await all;
    clock.advance(900);
    expect(slow.server.counters.requestsOpen).toBe(2);
    clock.advance(150);
    const responses = await Promise.all(clients.map((client) => client.response()));
    expect(responses[0]?.status).toBe(503);
    expect(responses[0]?.headers.get("retry-after")).toBe("1");
    expect(JSON.parse(responses[0]?.body ?? "")).toMatchObject({
      id: 1,
      error: { code: -32603, data: { reason: "overloaded", retryable: true, deadlineMs: 1000 } },
    });
    expect(JSON.parse(responses[1]?.body ?? "")).toMatchObject([
      { id: 2, error: { data: { reason: "overloaded" } } },
      { id: 3, result: "ok" },
      { id: 4, error: { data: { reason: "overloaded" } } },
    ]);
    for (const done of waiting) done({ kind: "accepted", signature: SIGNATURE });
    expect(slow.server.counters).toMatchObject({ requestsOpen: 0, expired: 2, handlerErrors: 0 });
    for (const client of clients) client.close();
    await slow.stop();
  });
});
