import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Rejection } from "../../src/core/errors.ts";
import { testIngressEngine } from "../support/test-ingress.ts";
import {
  accept,
  again,
  BROKEN_KEY,
  connectRaw,
  type Fixture,
  KEY,
  once,
  post,
  RAW,
  type RawResponse,
  RPC,
  refuse,
  SIGNATURE,
  SLOW_KEY,
  sendCall,
  startFixture,
  WITH_KEY,
} from "./http-fixture.ts";

const BYTES = Uint8Array.from({ length: 300 }, (_, i) => i % 251);

let edge: Fixture;
beforeAll(async () => {
  edge = await startFixture();
});
afterAll(() => edge.stop());
beforeEach(() => {
  edge.submit = accept;
  edge.submitted.length = 0;
});

const sendRaw = (body: string | Uint8Array = BYTES, headers: readonly string[] = [WITH_KEY]) =>
  once(edge.port, post(RAW, body, headers));
const sendRpc = (body: string | Uint8Array = sendCall(BYTES), headers = [WITH_KEY]) =>
  once(edge.port, post(RPC, body, headers));

function expectRaw(response: RawResponse, status: number, reason: string): string {
  const body = JSON.parse(response.body);
  expect({ status: response.status, reason: body.reason }).toEqual({ status, reason });
  expect(Object.keys(body)).toEqual(["success", "error", "reason"]);
  expect(body.success).toBe(false);
  expectJsonWithCors(response);
  return body.error;
}

function expectRpc(
  response: RawResponse,
  status: number,
  code: number,
  reason: string,
  id: unknown,
) {
  const body = JSON.parse(response.body);
  expect({ status: response.status, code: body.error.code, id: body.id }).toEqual({
    status,
    code,
    id,
  });
  expect(body.jsonrpc).toBe("2.0");
  expect(body.error.data.reason).toBe(reason);
  expect(typeof body.error.data.retryable).toBe("boolean");
  expect(typeof body.error.message).toBe("string");
  expectJsonWithCors(response);
  return body.error;
}

function expectJsonWithCors(response: RawResponse): void {
  expect(response.headers.get("content-type")).toBe("application/json");
  expect(response.headers.get("access-control-allow-origin")).toBe("*");
  if (response.status === 200) return;
  expect(response.headers.get("access-control-expose-headers")).toContain("retry-after");
}

describe("an accepted transaction", () => {
  it("returns only success and signature on the binary endpoint", async () => {
    const response = await sendRaw();
    expect(response.status).toBe(200);
    expect(JSON.parse(response.body)).toEqual({ success: true, signature: SIGNATURE });
    expectJsonWithCors(response);
    const [submission] = edge.submitted;
    expect(submission).toMatchObject({ account: "acme", maxRetries: null });
    expect(Buffer.from(submission?.bytes ?? [])).toEqual(Buffer.from(BYTES));
  });

  it("returns the signature as the JSON-RPC result", async () => {
    const response = await sendRpc();
    expect(response.status).toBe(200);
    expect(JSON.parse(response.body)).toEqual({ jsonrpc: "2.0", result: SIGNATURE, id: 1 });
    expect(Buffer.from(edge.submitted[0]?.bytes ?? [])).toEqual(Buffer.from(BYTES));
  });

  it("may be answered later", async () => {
    edge.submit = (_, done) => void setImmediate(() => done({ kind: "accepted", signature: "s" }));
    expect(JSON.parse((await sendRaw()).body)).toEqual({ success: true, signature: "s" });
    expect(JSON.parse((await sendRpc()).body).result).toBe("s");
  });

  it("does not need a content type", async () => {
    const response = await sendRaw(BYTES, [WITH_KEY, "Content-Type: text/plain"]);
    expect(response.status).toBe(200);
    const rpc = await sendRpc(sendCall(BYTES), [WITH_KEY, "Content-Type: text/plain"]);
    expect(rpc.status).toBe(200);
  });

  it("does not expose the library's name", async () => {
    expect([...(await sendRaw()).headers.keys()]).not.toContain("uwebsockets");
  });
});

describe("unauthorized", () => {
  it("is 401 on the binary endpoint, for a missing, an unknown and a mistyped key", async () => {
    expect(expectRaw(await sendRaw(BYTES, []), 401, "unauthorized")).toMatch(/no API key/);
    const unknown = await sendRaw(BYTES, ["api-x-token: nobody-has-this-key"]);
    expect(expectRaw(unknown, 401, "unauthorized")).toMatch(/unknown or revoked/);
    const mistyped = await sendRaw(BYTES, ["api-x-token: td_live_nobody-has-this"]);
    expect(expectRaw(mistyped, 401, "unauthorized")).toMatch(/typing error/);
    expect(edge.submitted).toHaveLength(0);
  });

  it("is 401 with code -32000 and no id on the JSON-RPC endpoint", async () => {
    const error = expectRpc(await sendRpc(sendCall(BYTES), []), 401, -32000, "unauthorized", null);
    expect(error.data.retryable).toBe(false);
  });

  // An ingress thread proxies a request of this size once it is complete.
  it.skipIf(testIngressEngine !== null)("is answered before the body is read", async () => {
    for (const path of [RAW, RPC]) {
      const client = await connectRaw(edge.port);
      client.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 400\r\n\r\n`);
      expect((await client.response()).status).toBe(401);
      client.close();
    }
  });

  it("leaves the connection usable", async () => {
    const client = await connectRaw(edge.port);
    client.write(post(RAW, BYTES, []));
    expect((await client.response()).status).toBe(401);
    client.write(post(RAW, BYTES, [WITH_KEY]));
    expect((await client.response()).status).toBe(200);
    client.close();
  });

  it("precedes too_large", async () => {
    expectRaw(await sendRaw(Buffer.alloc(17_000), []), 401, "unauthorized");
  });

  it("is returned also for a small body that is not getHealth", async () => {
    for (const body of ["", "not json", '{"method":"sendTransaction"}', "[]"]) {
      expectRpc(await sendRpc(body, []), 401, -32000, "unauthorized", null);
    }
  });
});

describe("the key", () => {
  const WARNING = 'touchdown "the key is in the query string, where proxies and logs keep it;';
  const rpc = (path: string, headers: readonly string[]) =>
    once(edge.port, post(path, sendCall(BYTES), headers));

  it("is taken from the headers of other senders, without a warning", async () => {
    for (const line of [`x-api-key: ${KEY}`, `Authorization: Bearer ${KEY}`]) {
      for (const response of [await sendRaw(BYTES, [line]), await rpc("/fast", [line])]) {
        expect(response.status).toBe(200);
        expect(response.headers.has("warning")).toBe(false);
      }
    }
    expect(edge.submitted.map(({ account }) => account)).toEqual(Array(4).fill("acme"));
  });

  it("is taken from the query, with a warning in each response", async () => {
    const query = `api-key=${KEY}`;
    const responses = [
      [await once(edge.port, post(`${RAW}?${query}`, BYTES, [])), 200],
      [await rpc(`/?${query}`, []), 200],
      [await rpc("/fast?api-key=nobody", []), 401],
      [await once(edge.port, post(`${RAW}?${query}`, Buffer.alloc(20_000), [])), 413],
      [
        await once(
          edge.port,
          `GET /api/v1/transactions/${SIGNATURE}?${query} HTTP/1.1\r\nHost: x\r\n\r\n`,
        ),
        200,
      ],
    ] as const;
    for (const [response, status] of responses) {
      expect(response.status).toBe(status);
      expect(response.headers.get("warning")).toContain(WARNING);
      expect(response.body).not.toContain(KEY);
    }
  });

  it("is that of the first place that has one, right or wrong", async () => {
    const wrong = "nobody-has-this-key";
    for (const [path, headers, status] of [
      ["/", [`api-x-token: ${wrong}`, `x-api-key: ${KEY}`], 401],
      ["/", [`x-api-key: ${wrong}`, WITH_KEY], 200],
      ["/", [`x-api-key: ${wrong}`, `authorization: Bearer ${KEY}`], 401],
      [`/?api-key=${KEY}`, [`authorization: Bearer ${wrong}`], 401],
      [`/?api-key=${wrong}`, [WITH_KEY], 200],
      ["/", ["api-x-token:", `authorization: Bearer ${KEY}`], 200],
    ] as const) {
      const response = await rpc(path, headers);
      expect([path, headers, response.status]).toEqual([path, headers, status]);
      expect(response.headers.has("warning")).toBe(false);
    }
  });
});

describe("a body of text", () => {
  const asText = (body: string | Uint8Array) =>
    sendRaw(body, [WITH_KEY, "Content-Type: text/plain;charset=UTF-8"]);

  it("is the transaction in base64", async () => {
    const encoded = Buffer.from(BYTES).toString("base64");
    // As the command `base64` prints it: in lines of 76 characters.
    const lines = encoded.replaceAll(/(.{76})/g, "$1\n");
    for (const text of [encoded, `${encoded}\r\n`, `${lines}\n`]) {
      expect((await asText(text)).status).toBe(200);
    }
    const submitted = edge.submitted.map(({ bytes }) => Buffer.from(bytes));
    expect(submitted).toEqual(Array(3).fill(Buffer.from(BYTES)));
  });

  it("is handed on as it is if it is no base64", async () => {
    for (const body of [BYTES, "no base64"]) expect((await asText(body)).status).toBe(200);
    expect(edge.submitted.map(({ bytes }) => bytes.length)).toEqual([BYTES.length, 9]);
  });
});

describe("rate_limited", () => {
  it("is 429 with Retry-After and the RateLimit fields, one limit for both endpoints", async () => {
    const limited = await startFixture();
    const key = [`api-x-token: ${SLOW_KEY}`];
    expect((await once(limited.port, post(RAW, BYTES, key))).status).toBe(200);
    expect((await once(limited.port, post(RPC, sendCall(BYTES), key))).status).toBe(200);

    const raw = await once(limited.port, post(RAW, BYTES, key));
    expectRaw(raw, 429, "rate_limited");
    expect(Number(raw.headers.get("retry-after"))).toBeGreaterThanOrEqual(999);
    expect(raw.headers.get("ratelimit-policy")).toBe('"Slow";q=1;w=1000');
    expect(raw.headers.get("ratelimit")).toMatch(/^"Slow";r=0;t=\d+$/);

    const rpc = await once(limited.port, post(RPC, sendCall(BYTES), key));
    const error = expectRpc(rpc, 429, -32005, "rate_limited", null);
    expect(error.data).toMatchObject({ plan: "Slow", ratePerSecond: 0.001, burst: 2 });
    expect(error.data.retryable).toBe(true);
    expect(Number.isInteger(Number(rpc.headers.get("retry-after")))).toBe(true);
    expect(limited.submitted).toHaveLength(2);
    await limited.stop();
  });

  it("charges a request with rejected content, and an oversized one", async () => {
    const limited = await startFixture();
    const key = [`api-x-token: ${SLOW_KEY}`];
    expect((await once(limited.port, post(RAW, Buffer.alloc(17_000), key))).status).toBe(413);
    expect((await once(limited.port, post(RPC, "not json", key))).status).toBe(200);
    expect((await once(limited.port, post(RAW, BYTES, key))).status).toBe(429);
    await limited.stop();
  });

  it("is answered before the body is read, and precedes too_large", async () => {
    const limited = await startFixture();
    const key = [`api-x-token: ${SLOW_KEY}`];
    for (let i = 0; i < 2; i += 1) await once(limited.port, post(RAW, BYTES, key));
    const client = await connectRaw(limited.port);
    const length = "Content-Length: 90000";
    const lines = [`POST ${RAW} HTTP/1.1`, "Host: x", ...key, length, ...again(length)];
    client.write(`${lines.join("\r\n")}\r\n\r\n`);
    expect((await client.response()).status).toBe(429);
    client.close();
    await limited.stop();
  });
});

describe("too_large", () => {
  it("is 413 above 16 KiB on the binary endpoint, and the connection ends", async () => {
    expect((await sendRaw(Buffer.alloc(16_384))).status).toBe(200);
    const client = await connectRaw(edge.port);
    client.write(post(RAW, Buffer.alloc(16_385), [WITH_KEY]));
    const response = await client.response();
    expect(expectRaw(response, 413, "too_large")).toContain("16385");
    expect(response.headers.get("connection")).toBe("close");
    await client.ended();
  });

  it("is 413 with code -32600 above 128 KiB on the JSON-RPC endpoint", async () => {
    const pad = (size: number) => sendCall(BYTES).padEnd(size, " ");
    expect((await sendRpc(pad(131_072))).status).toBe(200);
    const client = await connectRaw(edge.port);
    client.write(post(RPC, pad(131_073), [WITH_KEY]));
    const response = await client.response();
    const error = expectRpc(response, 413, -32600, "too_large", null);
    expect(error.data).toMatchObject({ found: 131_073, needed: 131_072 });
    expect(response.headers.get("connection")).toBe("close");
    await client.ended();
  });

  it("is answered as soon as the size is declared", async () => {
    const client = await connectRaw(edge.port);
    client.write(`POST ${RAW} HTTP/1.1\r\nHost: x\r\n${WITH_KEY}\r\nContent-Length: 20000\r\n\r\n`);
    expect((await client.response()).status).toBe(413);
    await client.ended();
  });
});

describe("rejections by the pipeline", () => {
  const rows = [
    ["undecodable", 400, 200, -32602, false],
    ["tip_missing", 400, 200, -32602, false],
    ["signature_invalid", 400, 200, -32003, false],
    ["no_leader", 503, 503, -32603, true],
    ["overloaded", 503, 503, -32603, true],
    ["internal", 500, 500, -32603, true],
  ] as const;

  for (const [reason, rawStatus, rpcStatus, code, retryable] of rows) {
    it(`answers ${reason} as in the table, with the numbers`, async () => {
      const rejection: Rejection = {
        reason,
        message: "a tip of 400000 lamports where 1000000 is the minimum",
        data: { found: 400_000, needed: 1_000_000 },
      };
      edge.submit = refuse(rejection);
      const raw = await sendRaw();
      expect(expectRaw(raw, rawStatus, reason)).toBe(rejection.message);
      const rpc = await sendRpc();
      const error = expectRpc(rpc, rpcStatus, code, reason, 1);
      expect(error.message).toBe(rejection.message);
      const message = "a tip of 400000 lamports where 1000000 is the minimum";
      const lamports = { found: 400_000, needed: 1_000_000 };
      expect(error.data).toEqual({ reason, retryable, message, ...lamports });
      const retryAfter = rawStatus === 503 ? "1" : undefined;
      expect(raw.headers.get("retry-after")).toBe(retryAfter);
      expect(rpc.headers.get("retry-after")).toBe(retryAfter);
    });
  }

  it("repeats the message in the status line, where kit shows it to its user", async () => {
    edge.submit = refuse({ reason: "no_leader", message: "kein Führer\r\nX: y", data: {} });
    const response = await sendRpc();
    expect(response.reason).toBe("Service Unavailable: kein F?hrer??X: y");
    expect(response.headers.has("x")).toBe(false);
  });

  it("answers 500 when the pipeline throws, and continues to serve", async () => {
    edge.submit = () => {
      throw new Error("a bug");
    };
    expectRaw(await sendRaw(), 500, "internal");
    expectRpc(await sendRpc(), 500, -32603, "internal", 1);
    expect(edge.errors.splice(0)).toHaveLength(2);
    edge.submit = accept;
    expect((await sendRaw()).status).toBe(200);
  });
});

describe("a throw before the body is read", () => {
  it("is answered 500 on every route that looks up a key, and the process continues", async () => {
    const broken = [`api-x-token: ${BROKEN_KEY}`];
    expectRaw(await sendRaw(BYTES, broken), 500, "internal");
    expectRpc(await sendRpc(sendCall(BYTES), broken), 500, -32603, "internal", null);
    const path = `/api/v1/transactions/${SIGNATURE}`;
    const get = `GET ${path} HTTP/1.1\r\nHost: x\r\n${broken}\r\n\r\n`;
    expectRaw(await once(edge.port, get), 500, "internal");
    expect(edge.errors.splice(0)).toHaveLength(3);
    expect((await sendRaw()).status).toBe(200);
  });
});

describe("errors of a JSON-RPC request", () => {
  it("are parse_error for invalid JSON and for an empty body", async () => {
    for (const body of ["", "{", "[1,", "\u0000", '{"jsonrpc":"2.0"}x', "[".repeat(100_000)]) {
      expectRpc(await sendRpc(body), 200, -32700, "parse_error", null);
    }
  });

  it("are invalid_request for invalid JSON-RPC", async () => {
    const call = { jsonrpc: "2.0", id: 1, method: "sendTransaction", params: ["AA=="] };
    const { id: _id, ...withoutId } = call;
    const rows: [unknown, unknown][] = [
      [1, null],
      ["x", null],
      [null, null],
      [true, null],
      [{}, null],
      [withoutId, null],
      [{ ...call, id: true }, null],
      [{ ...call, id: {} }, null],
      [{ ...call, id: [1] }, null],
      [{ ...call, jsonrpc: "1.0" }, 1],
      [{ ...call, jsonrpc: 2 }, 1],
      [{ id: "a", method: "sendTransaction" }, "a"],
      [{ ...call, method: 7 }, 1],
      [{ jsonrpc: "2.0", id: 1 }, 1],
    ];
    for (const [body, id] of rows) {
      expectRpc(await sendRpc(JSON.stringify(body)), 200, -32600, "invalid_request", id);
    }
  });

  it("are method_not_found for any other method", async () => {
    for (const method of ["getBalance", "sendtransaction", "", "__proto__", "toString"]) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: "m", method });
      expectRpc(await sendRpc(body), 200, -32601, "method_not_found", "m");
    }
  });

  it("are invalid_params with what was found and what is required", async () => {
    const rows: [unknown, string][] = [
      [undefined, "params"],
      [null, "params"],
      [{}, "params"],
      ["AA==", "params"],
      [[], "params"],
      [["AA==", {}, 1], "params"],
      [[1], "params[0]"],
      [[null], "params[0]"],
      [[["AA=="]], "params[0]"],
      [["AA=="].concat(["x"]), "params[1]"],
      [["AA==", []], "params[1]"],
      [["AA==", { encoding: "hex" }], "encoding"],
      [["AA==", { encoding: 1 }], "encoding"],
      [["AA==", { encoding: "base64+zstd" }], "encoding"],
      [["AA==", { maxRetries: -1 }], "maxRetries"],
      [["AA==", { maxRetries: 1.5 }], "maxRetries"],
      [["AA==", { maxRetries: "3" }], "maxRetries"],
      [["AA"], "params[0]"],
      [["A==="], "params[0]"],
      [["AB=="], "params[0]"],
      [["AAAA\n"], "params[0]"],
      [["_-AA"], "params[0]"],
      [["0OIl", { encoding: "base58" }], "params[0]"],
    ];
    for (const [params, param] of rows) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "sendTransaction", params });
      const error = expectRpc(await sendRpc(body), 200, -32602, "invalid_params", 1);
      expect(error.data.param).toBe(param);
      expect(error.message).toContain(error.data.found);
      expect(error.message).toContain(error.data.needed);
    }
    expect(edge.submitted).toHaveLength(0);
  });

  it("include base58 longer than any transaction, which is not decoded", async () => {
    const params = ["z".repeat(6_000), { encoding: "base58" }];
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "sendTransaction", params });
    const error = expectRpc(await sendRpc(body), 200, -32602, "undecodable", 1);
    expect(error.message).toMatch(/^transaction could not be decoded/);
  });

  it("do not include an empty transaction, which the decoder rejects", async () => {
    await sendRpc(sendCall(new Uint8Array()));
    await sendRaw(new Uint8Array());
    expect(edge.submitted.map((submission) => submission.bytes.length)).toEqual([0, 0]);
  });
});

it("matches the key's header name case-insensitively and its value exactly", async () => {
  expect((await sendRaw(BYTES, [`API-X-Token:   ${KEY}  `])).status).toBe(200);
  expect((await sendRaw(BYTES, [`api-x-token: ${KEY.toUpperCase()}`])).status).toBe(401);
});
