import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Submit } from "../../src/http/submit/submission.ts";
import { testIngressEngine } from "../support/test-ingress.ts";
import { until } from "../support/wait.ts";
import {
  accept,
  again,
  connectRaw,
  type Fixture,
  once,
  post,
  RAW,
  type RawClient,
  RPC,
  SIGNATURE,
  sendCall,
  startFixture,
  WITH_KEY,
} from "./http-fixture.ts";

const BYTES = Uint8Array.from({ length: 300 }, (_, i) => i % 251);
const CHUNKED = "5\r\nhello\r\n0\r\n\r\n";
const FOLLOW_UP = post(RAW, BYTES, [WITH_KEY]).toString("latin1");

let edge: Fixture;
let client: RawClient;
beforeAll(async () => {
  edge = await startFixture();
});
afterAll(() => edge.stop());
beforeEach(async () => {
  edge.submit = accept;
  edge.submitted.length = 0;
  client = await connectRaw(edge.port);
});
afterEach(() => client.close());

const sha = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const head = (...lines: string[]) => `${lines.join("\r\n")}\r\n\r\n`;

describe("Transfer-Encoding", () => {
  const values = ["chunked", "Chunked", "xchunked", "gzip, chunked", "identity", ""];
  const paths = [RAW, RPC, "/", "/ping", "/api/v1/tip", "/nowhere"];

  for (const value of values) {
    it(`is rejected with 411 as "${value}", and what follows it is not executed`, async () => {
      client.write(
        Buffer.from(
          head(`POST ${RAW} HTTP/1.1`, "Host: x", WITH_KEY, `Transfer-Encoding: ${value}`) +
            CHUNKED +
            FOLLOW_UP,
          "latin1",
        ),
      );
      const response = await client.response();
      expect(response.status).toBe(411);
      expect(response.headers.get("connection")).toBe("close");
      expect(JSON.parse(response.body)).toMatchObject({
        success: false,
        reason: "length_required",
      });
      expect(await client.ended()).toBe("");
      expect(edge.submitted).toHaveLength(0);
    });
  }

  for (const path of paths) {
    it(`is rejected on ${path} for any method, with or without a body after it`, async () => {
      const methods = ["POST", "GET", "OPTIONS", "PUT"];
      for (const method of methods) {
        const other = await connectRaw(edge.port);
        other.write(head(`${method} ${path} HTTP/1.1`, "Host: x", "Transfer-Encoding: chunked"));
        expect((await other.response()).status).toBe(411);
        expect(await other.ended()).toBe("");
      }
    });
  }

  it("keeps JSON-RPC's format on its endpoint", async () => {
    client.write(head(`POST ${RPC} HTTP/1.1`, "Host: x", WITH_KEY, "Transfer-Encoding: chunked"));
    const { error, id } = JSON.parse((await client.response()).body);
    expect({ code: error.code, reason: error.data.reason, id }).toEqual({
      code: -32600,
      reason: "length_required",
      id: null,
    });
  });

  it("is found next to a Content-Length and a second header", async () => {
    const tricks = [
      ["Transfer-Encoding:", "Content-Length: 5"],
      ["Transfer-Encoding:", "Transfer-Encoding: chunked"],
      ["Content-Length: 5", "Transfer-Encoding: chunked"],
      ["Transfer-Encoding: chunked", "Content-Length: 5"],
      ["Transfer-Encoding : chunked"],
      ["X: y\r\n Transfer-Encoding: chunked"],
    ];
    for (const trick of tricks) {
      const other = await connectRaw(edge.port);
      const start = head(`POST ${RAW} HTTP/1.1`, "Host: x", WITH_KEY, ...trick);
      other.write(Buffer.from(`${start}hello${FOLLOW_UP}`, "latin1"));
      const text = await other.ended();
      expect(text).toMatch(/^HTTP\/1\.1 4(00|11) /);
      expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    }
    expect(edge.submitted).toHaveLength(0);
  });

  it("is rejected after valid requests in the same segment, which are answered", async () => {
    const start = head(`POST ${RAW} HTTP/1.1`, "Host: x", WITH_KEY, "Transfer-Encoding: chunked");
    client.write(Buffer.from(FOLLOW_UP + FOLLOW_UP + start + CHUNKED + FOLLOW_UP, "latin1"));
    expect((await client.response()).status).toBe(200);
    expect((await client.response()).status).toBe(200);
    expect((await client.response()).status).toBe(411);
    expect(await client.ended()).toBe("");
    expect(edge.submitted).toHaveLength(2);
  });

  it("does not affect other connections that send at the same time", async () => {
    const others = await Promise.all(Array.from({ length: 20 }, () => connectRaw(edge.port)));
    const start = head(`POST ${RAW} HTTP/1.1`, "Host: x", WITH_KEY, "Transfer-Encoding: chunked");
    client.write(start + CHUNKED);
    for (const other of others) other.write(Buffer.from(FOLLOW_UP, "latin1"));
    expect((await client.response()).status).toBe(411);
    for (const other of others) {
      expect((await other.response()).status).toBe(200);
      other.close();
    }
  });
});

describe("Content-Length", () => {
  const faults: readonly (readonly [string, readonly string[]])[] = [
    ["two that differ", ["Content-Length: 5", "Content-Length: 6"]],
    ["two that differ in writing", ["Content-Length: 5", "Content-Length: 05"]],
    ["an empty one", ["Content-Length:"]],
    ["a sign", ["Content-Length: +5"]],
    ["a negative one", ["Content-Length: -5"]],
    ["hexadecimal", ["Content-Length: 0x5"]],
    ["a list", ["Content-Length: 5, 5"]],
    ["one beyond all bounds", ["Content-Length: 99999999999999999999"]],
    ["one empty and one good", ["Content-Length:", "Content-Length: 5"]],
  ];
  for (const [name, lines] of faults) {
    it(`is rejected with 400, and the connection is closed: ${name}`, async () => {
      const start = head(`POST ${RAW} HTTP/1.1`, "Host: x", WITH_KEY, ...lines);
      client.write(Buffer.from(`${start}hello${FOLLOW_UP}`, "latin1"));
      const response = await client.response();
      expect(response.status).toBe(400);
      expect(JSON.parse(response.body)).toMatchObject({ reason: "invalid_request" });
      expect(await client.ended()).toBe("");
      expect(edge.submitted).toHaveLength(0);
    });
  }

  it("may be repeated with the same value", async () => {
    const lines = ["Content-Length: 5", "Content-Length: 5"];
    client.write(`${head(`POST ${RAW} HTTP/1.1`, "Host: x", WITH_KEY, ...lines)}hello`);
    expect((await client.response()).status).toBe(200);
  });

  it("may be missing without a body: the key is checked first, then the length", async () => {
    client.write(Buffer.from(head(`POST ${RAW} HTTP/1.1`, "Host: x")));
    expect((await client.response()).status).toBe(401);
    client.write(Buffer.from(head(`POST ${RAW} HTTP/1.1`, "Host: x", WITH_KEY)));
    expect((await client.response()).status).toBe(200);
    expect(edge.submitted.map(({ bytes }) => bytes.length)).toEqual([0]);
  });

  it("above the cap closes the connection, and what follows the body is ignored", async () => {
    const big = post(RAW, Buffer.alloc(17_000), [WITH_KEY]).toString("latin1");
    client.write(Buffer.from(big + FOLLOW_UP, "latin1"));
    expect((await client.response()).status).toBe(413);
    expect(await client.ended()).toBe("");
    expect(edge.submitted).toHaveLength(0);
  });
});

describe("a body in several segments", () => {
  it("is assembled unchanged, however it is split", async () => {
    const whole = post(RAW, BYTES, [WITH_KEY]);
    for (const cuts of [[80], [whole.length - 300], [whole.length - 1], [20, 150, 151, 400]]) {
      const before = edge.submitted.length;
      let from = 0;
      for (const cut of [...cuts, whole.length]) {
        client.write(whole.subarray(from, cut));
        from = cut;
        // Each piece leaves before the next one, so that they do not share a segment.
        for (let i = 0; i < 20; i += 1) await new Promise<void>((next) => setImmediate(next));
      }
      expect((await client.response()).status).toBe(200);
      expect(sha(edge.submitted[before]?.bytes ?? new Uint8Array())).toBe(sha(BYTES));
    }
  });

  it("is reported even when it is empty", async () => {
    for (const path of [RAW, RPC, "/"]) {
      const whole = post(path, "", [WITH_KEY]);
      for (const cut of [1, 20, whole.length - 1]) {
        client.write(whole.subarray(0, cut));
        for (let i = 0; i < 20; i += 1) await new Promise<void>((next) => setImmediate(next));
        client.write(whole.subarray(cut));
        expect((await client.response()).status).toBe(200);
      }
    }
  });

  it("works for single bytes", async () => {
    for (const byte of post(RPC, sendCall(BYTES), [WITH_KEY])) {
      client.write(Uint8Array.of(byte));
      await new Promise<void>((next) => setImmediate(next));
    }
    expect((await client.response()).status).toBe(200);
    expect(sha(edge.submitted[0]?.bytes ?? new Uint8Array())).toBe(sha(BYTES));
  });

  it("stays intact when its bytes are kept and read after the callback", async () => {
    const kept: Uint8Array[] = [];
    edge.submit = (submission, done) => {
      kept.push(submission.bytes);
      accept(submission, done);
    };
    const whole = post(RAW, BYTES, [WITH_KEY]);
    client.write(whole);
    await client.response();
    client.write(whole.subarray(0, whole.length - 10));
    await until("the request", () => edge.clients.requestsOpen > 0);
    client.write(whole.subarray(whole.length - 10));
    await client.response();
    // The view of a one-piece body is detached; an assembled body is our own memory. An ingress
    // thread proxies a body of this size in one piece.
    expect(kept.map((bytes) => bytes.length)).toEqual([0, edge.ingress === null ? 300 : 0]);
  });
});

describe("a client that leaves", () => {
  it("in the middle of the body is harmless", async () => {
    const whole = post(RAW, BYTES, [WITH_KEY]);
    const before = edge.clients.aborted;
    client.write(whole.subarray(0, whole.length - 10));
    await until("the request", () => edge.clients.requestsOpen > 0);
    client.close();
    await until("its end", () => edge.clients.aborted === before + 1);
    expect(edge.submitted).toHaveLength(0);
    expect((await once(edge.port, whole)).status).toBe(200);
  });

  it("while its response is pending is harmless when the response comes", async () => {
    let late: Parameters<Submit>[1] | null = null;
    edge.submit = (_, done) => {
      late = done;
    };
    for (const request of [post(RAW, BYTES, [WITH_KEY]), post(RPC, sendCall(BYTES), [WITH_KEY])]) {
      const before = edge.server.counters.aborted;
      const other = await connectRaw(edge.port);
      late = null;
      other.write(request);
      await until("the request", () => late !== null);
      other.close();
      await until("its end", () => edge.server.counters.aborted === before + 1);
      (late as Parameters<Submit>[1] | null)?.({ kind: "accepted", signature: SIGNATURE });
    }
    expect(edge.server.counters.requestsOpen).toBe(0);
    expect(edge.errors).toHaveLength(0);
  });

  it("may be answered twice by mistake, and the second response is dropped", async () => {
    edge.submit = (submission, done) => {
      accept(submission, done);
      accept(submission, done);
    };
    client.write(post(RAW, BYTES, [WITH_KEY]));
    expect((await client.response()).status).toBe(200);
    client.write(post(RAW, BYTES, [WITH_KEY]));
    expect((await client.response()).status).toBe(200);
    expect(edge.errors).toHaveLength(0);
  });
});

describe("several requests on one connection", () => {
  it("are served one after the other", async () => {
    for (let i = 0; i < 5; i += 1) {
      client.write(post(RAW, BYTES, [WITH_KEY]));
      expect((await client.response()).status).toBe(200);
    }
  });

  it("are served when they arrive in one segment and are answered immediately", async () => {
    client.write(Buffer.from(FOLLOW_UP.repeat(5), "latin1"));
    for (let i = 0; i < 5; i += 1) expect((await client.response()).status).toBe(200);
    expect(edge.submitted).toHaveLength(5);
  });

  // An ingress thread processes the second request once the first is answered.
  it.runIf(testIngressEngine !== null)(
    "are answered in order when the first is still pending",
    async () => {
      const waiting: Parameters<Submit>[1][] = [];
      edge.submit = (_, done) => void waiting.push(done);
      client.write(Buffer.from(FOLLOW_UP.repeat(2), "latin1"));
      for (const [index, signature] of ["first", "second"].entries()) {
        await until("the request", () => waiting.length === index + 1);
        expect(edge.server.counters.requestsOpen).toBe(1);
        waiting[index]?.({ kind: "accepted", signature });
        expect(JSON.parse((await client.response()).body)).toEqual({ success: true, signature });
      }
      expect(edge.server.counters.requestsOpen).toBe(0);
    },
  );

  it.skipIf(testIngressEngine !== null)(
    "close the connection when the first is still pending",
    async () => {
      const waiting: Parameters<Submit>[1][] = [];
      edge.submit = (_, done) => void waiting.push(done);
      client.write(Buffer.from(FOLLOW_UP.repeat(2), "latin1"));
      expect(await client.ended()).toBe("");
      expect(waiting).toHaveLength(1);
      waiting[0]?.({ kind: "accepted", signature: SIGNATURE });
      edge.submit = accept;
      expect((await once(edge.port, post(RAW, BYTES, [WITH_KEY]))).status).toBe(200);
      expect(edge.server.counters.requestsOpen).toBe(0);
    },
  );
});

describe("Connection: close", () => {
  const last = (option: string) => post(RAW, BYTES, [WITH_KEY, `Connection: ${option}`]);

  it("is answered, and the connection closed", async () => {
    client.write(last("close"));
    expect((await client.response()).status).toBe(200);
    expect(await client.ended()).toBe("");
  });

  for (const lines of [["foo, close"], ["TE,\tCLOSE"], ["keep-alive", "close"]]) {
    it(`in ${JSON.stringify(lines)} is answered, and the connection closed`, async () => {
      const options = lines.map((option) => `Connection: ${option}`);
      client.write(post(RAW, BYTES, [WITH_KEY, ...options]));
      expect((await client.response()).status).toBe(200);
      client.write(FOLLOW_UP);
      expect(await client.ended()).toBe("");
      expect(edge.submitted).toHaveLength(1);
    });
  }

  it("among others is noticed by every route, and by a refusal", async () => {
    const line = "Connection: TE, close";
    for (const [request, status] of [
      [`GET /ping HTTP/1.1\r\nHost: x\r\n${line}\r\n\r\n`, 200],
      [post(RAW, BYTES, [line]), 401],
    ] as const) {
      const other = await connectRaw(edge.port);
      other.write(request);
      expect((await other.response()).status).toBe(status);
      other.write(FOLLOW_UP);
      await other.ended();
    }
    expect(edge.submitted).toEqual([]);
  });

  for (const option of ["close", "Close", "foo, close"]) {
    it(`as "${option}" prevents execution of what follows it in the same segment`, async () => {
      client.write(Buffer.concat([last(option), Buffer.from(FOLLOW_UP, "latin1")]));
      await client.ended();
      expect(edge.submitted).toHaveLength(1);
      expect(edge.server.counters.requestsOpen).toBe(0);
    });
  }
});

describe("a preflight with Connection: close", () => {
  it("executes nothing that follows it in the same segment", async () => {
    const preflight = "OPTIONS / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    client.write(Buffer.from(preflight + FOLLOW_UP, "latin1"));
    await client.ended();
    expect(edge.submitted).toEqual([]);
  });
});

describe("a PROXY preamble", () => {
  it("of version 1 is rejected as invalid HTTP", async () => {
    client.write(`PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n${FOLLOW_UP}`);
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 (400|505)/);
    expect(edge.submitted).toHaveLength(0);
  });

  it("of version 2 changes no client's address or account", async () => {
    const preamble = Buffer.from([
      ...[0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a],
      ...[0x21, 0x11, 0x00, 0x0c, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2],
    ]);
    client.write(Buffer.concat([preamble, post(RAW, BYTES, [])]));
    expect((await client.response()).status).toBe(401);
  });
});

describe("an invalid HTTP/1.1 request", () => {
  const rows: readonly (readonly [string, string])[] = [
    ["HTTP 1.0", "GET /ping HTTP/1.0\r\nHost: x\r\n\r\n"],
    ["no Host", "GET /ping HTTP/1.1\r\n\r\n"],
    ["two Hosts", "GET /ping HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"],
    ["a TLS hello", "\u0016\u0003\u0001\u0000\u0005hello"],
    ["the HTTP 2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["headers beyond 4 KiB", `GET /ping HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(9_000)}\r\n\r\n`],
  ];
  for (const [name, text] of rows) {
    it(`is rejected and its connection closed: ${name}`, async () => {
      client.write(Buffer.from(text, "latin1"));
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 (400|431|505) /);
      expect((await once(edge.port, post(RAW, BYTES, [WITH_KEY]))).status).toBe(200);
    });
  }
});

it("requests a body that the client withholds with Expect", async () => {
  const lines = ["Host: x", WITH_KEY, "Expect: 100-continue", "Content-Length: 300"];
  lines.push(...again("Content-Length: 300"));
  client.write(head(`POST ${RAW} HTTP/1.1`, ...lines));
  expect((await client.response()).status).toBe(100);
  client.write(BYTES);
  expect((await client.response()).status).toBe(200);
});
