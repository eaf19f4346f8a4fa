/**
 * What an ingress thread refuses it answers itself, with the bytes that the main thread's server
 * writes, and the main thread accounts for it. Compares an edge with an ingress thread to one
 * without any, over refusals of every kind and thousands of generated and mutated JSON-RPC bodies.
 */

import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIBRARY_IDLE_MS } from "../../src/http/response.ts";
import { KEYLESS_METHODS } from "../../src/http/submit/json-rpc-parse.ts";
import {
  FEW,
  type Flow,
  fewKey,
  RAW_PATH,
  RPC_PATH,
  startFlow,
  untilResponse,
  WIDE_KEY,
} from "../support/flow.ts";
import { createRng, type Rng } from "../support/rng.ts";
import { newKeypair } from "../support/transactions.ts";
import { native } from "./addon.ts";

const BODIES = 4_000;
/** That of both edges: a damaged address in a body is then no tip for either. */
const TIP_ACCOUNT = newKeypair(22).address;

const start = (threads: number) =>
  startFlow({
    leaderCount: 1,
    // Without ingress threads the library keeps an idle connection for 8 s.
    edge: {
      http: { threads, idle_timeout: `${LIBRARY_IDLE_MS}ms` },
      send: { engine: "native", leaders: 1 },
      tip: { accounts: [TIP_ACCOUNT] },
    },
  });

/** Sends one request after another on a connection; on a new one once that was idle for long. */
class Client {
  readonly #url: URL;
  #socket: Socket;
  #text = "";
  #answeredMs = Date.now();
  #wake: () => void = () => {};

  constructor(flow: Flow) {
    this.#url = new URL(flow.url);
    this.#socket = this.#connect();
  }

  #connect(): Socket {
    const { hostname, port } = this.#url;
    const socket = connect(Number(port), hostname).setNoDelay(true);
    socket.on("data", (data) => {
      this.#text += data.toString("latin1");
      this.#wake();
    });
    socket.on("close", () => this.#wake());
    return socket;
  }

  /** The response to a request, byte for byte apart from the date. */
  async post(
    path: string,
    body: string | Uint8Array,
    key: string | readonly string[] = WIDE_KEY,
  ): Promise<string> {
    const bytes = Buffer.from(body);
    const lines = typeof key === "string" ? [`api-x-token: ${key}`] : key;
    const head = [`POST ${path} HTTP/1.1`, "Host: x", ...lines];
    if (this.#socket.closed && Date.now() - this.#answeredMs >= LIBRARY_IDLE_MS) {
      this.#socket = this.#connect();
    }
    this.#socket.write(
      Buffer.concat([
        Buffer.from(`${head.join("\r\n")}\r\nContent-Length: ${bytes.length}\r\n\r\n`),
        bytes,
      ]),
    );
    for (;;) {
      const end = this.#text.indexOf("\r\n\r\n") + 4;
      const size = Number(/\r\ncontent-length: (\d+)/i.exec(this.#text)?.[1]);
      if (end >= 4 && this.#text.length >= end + size) {
        const response = this.#text.slice(0, end + size);
        this.#text = this.#text.slice(end + size);
        this.#answeredMs = Date.now();
        return response.replace(/\r\nDate: [^\r]*/, "\r\nDate: now");
      }
      if (this.#socket.destroyed) throw new Error(`the connection ended: ${this.#text}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}

describe.skipIf(native === null)("a refusal by an ingress thread", () => {
  let plain: Flow;
  let threaded: Flow;
  let clients: readonly Client[] = [];
  beforeAll(async () => {
    plain = await start(0);
    threaded = await start(1);
    clients = [plain, threaded].map((flow) => new Client(flow));
    await known(WIDE_KEY);
  });
  afterAll(async () => {
    for (const client of clients) client.close();
    await plain?.stop();
    await threaded?.stop();
  });

  const total = async (flow: Flow, name: string, labels: Readonly<Record<string, string>> = {}) =>
    ((await flow.metrics()).get(`touchdown_${name}`)?.samples ?? [])
      .filter((sample) => Object.entries(labels).every(([key, it]) => sample.labels[key] === it))
      .reduce((sum, { value }) => sum + value, 0);
  const proxied = () => total(threaded, "ingress_requests_proxied_total");

  /** Until the ingress thread has this key. */
  async function known(key: string): Promise<void> {
    await untilResponse(
      "a request that is not proxied",
      async () => {
        const before = await proxied();
        await clients[1]?.post(RAW_PATH, tipped().bytes, key);
        return (await proxied()) - before;
      },
      (count) => count === 0,
    );
  }

  /** The response of each edge. */
  const both = (path: string, body: string | Uint8Array, key?: string | readonly string[]) =>
    Promise.all(clients.map((client) => client.post(path, body, key)));

  const tipped = (spec: Parameters<Flow["tipped"]>[0] = {}) =>
    plain.tipped({ tips: [{ to: TIP_ACCOUNT, lamports: 1_000_000 }], ...spec });
  const call = (params: unknown, id: unknown = 1) =>
    JSON.stringify({ jsonrpc: "2.0", id, method: "sendTransaction", params });
  const callOf = (bytes: Uint8Array) => call([Buffer.from(bytes).toString("base64")]);
  const damaged = (): Uint8Array => {
    const bytes = Uint8Array.from(tipped().bytes);
    bytes[5] = (bytes[5] ?? 0) ^ 1;
    return bytes;
  };

  const REFUSED: Readonly<Record<string, () => readonly [string, string | Uint8Array, string]>> = {
    "no bytes": () => [RAW_PATH, "", "undecodable"],
    "bytes of no transaction": () => [RAW_PATH, Uint8Array.of(1, 2, 3), "undecodable"],
    "base64 text": () => [RAW_PATH, tipped().base64, "undecodable"],
    "base58 text": () => [RAW_PATH, tipped().base58, "undecodable"],
    "JSON text": () => [RAW_PATH, callOf(tipped().bytes), "undecodable"],
    "a message alone": () => [RAW_PATH, tipped().message, "undecodable"],
    "a tail": () => [RAW_PATH, Buffer.concat([tipped().bytes, Buffer.from("x")]), "undecodable"],
    "no tip": () => [RAW_PATH, tipped({ tips: [] }).bytes, "tip_missing"],
    "a wrong signature": () => [RAW_PATH, damaged(), "signature_invalid"],
    "no signature": () => [RAW_PATH, tipped({ sign: false }).bytes, "signature_invalid"],
    "a call without a tip": () => [RPC_PATH, callOf(tipped({ tips: [] }).bytes), "tip_missing"],
    "a call with a wrong signature": () => [RPC_PATH, callOf(damaged()), "signature_invalid"],
    "a call with base58 text": () => [RPC_PATH, call([tipped().base58]), "invalid_params"],
    "a call without params": () => [RPC_PATH, call(null), "invalid_params"],
    "a call of another method": () => [
      RPC_PATH,
      '{"jsonrpc":"2.0","id":1,"method":"getBalance"}',
      "method_not_found",
    ],
    "another version": () => [RPC_PATH, '{"id":1}', "invalid_request"],
    "an empty batch": () => [RPC_PATH, "[]", "invalid_request"],
    "no JSON": () => [RPC_PATH, "{", "parse_error"],
    "a bundle": () => [
      "/fast",
      '{"jsonrpc":"2.0","id":1,"method":"sendBundle","params":[]}',
      "method_not_found",
    ],
    "a call on /": () => ["/", callOf(damaged()), "signature_invalid"],
    "a call on /fast with a query": () => ["/fast?swqos_only=true", "[]", "invalid_request"],
    "no UTF-8": () => [RPC_PATH, Uint8Array.of(0xff), "parse_error"],
  };

  it.each(Object.entries(REFUSED))("of %s is that of the main thread", async (_, make) => {
    const [path, body, outcome] = make();
    const before = { proxied: await proxied(), counted: [0, 0] };
    const counts = () =>
      Promise.all([plain, threaded].map((flow) => total(flow, "requests_total", { outcome })));
    before.counted = await counts();
    const [expected, response] = await both(path, body);
    expect(response).toBe(expected);
    expect(response).toContain(`"reason":"${outcome}"`);
    expect(await proxied()).toBe(before.proxied);
    expect(await counts()).toEqual(before.counted.map((count) => count + 1));
  });

  /** A submission in the forms of other senders' clients: path, headers, body. */
  const FOREIGN: Readonly<
    Record<string, (bytes: Uint8Array) => readonly [string, readonly string[], string | Uint8Array]>
  > = {
    "x-api-key": (bytes) => [RAW_PATH, [`x-api-key: ${WIDE_KEY}`], bytes],
    "a bearer": (bytes) => ["/", [`Authorization: Bearer ${WIDE_KEY}`], callOf(bytes)],
    "a key in the query": (bytes) => [`/fast?api-key=${WIDE_KEY}`, [], callOf(bytes)],
    "an empty key and another": (bytes) => [
      "/fast?a=b",
      ["api-x-token:", `x-api-key: ${WIDE_KEY}`, "x-api-key: no"],
      callOf(bytes),
    ],
    "text in base64": (bytes) => [
      `${RAW_PATH}?api-key=${WIDE_KEY}`,
      ["content-type: text/plain;charset=UTF-8"],
      `${Buffer.from(bytes).toString("base64")}\n`,
    ],
    "options of others": (bytes) => [
      "/?bundleOnly=true",
      [`api-x-token: ${WIDE_KEY}`],
      call([
        Buffer.from(bytes).toString("base64"),
        {
          encoding: "base64",
          skipPreflight: true,
          preflightCommitment: "confirmed",
          minContextSlot: 1,
        },
      ]),
    ],
  };

  it.each(Object.entries(FOREIGN))(
    "of a submission with %s is its own, and as the main thread's",
    async (_, make) => {
      const before = await proxied();
      for (const [bytes, outcome] of [
        [tipped().bytes, '"'],
        [tipped({ tips: [] }).bytes, '"reason":"tip_missing"'],
      ] as const) {
        const [path, lines, body] = make(bytes);
        const [expected, response] = await both(path, body, lines);
        expect(response).toBe(expected);
        expect(response).toContain(outcome);
        expect(response?.includes("warning: 299")).toBe(path.includes("api-key"));
      }
      expect(await proxied()).toBe(before);
    },
  );

  it("of a batch of more than 16 KiB is its own, and as the main thread's", async () => {
    const before = await proxied();
    const bodies = [
      `[${Array.from({ length: 16 }, () => callOf(tipped().bytes)).join()}]`.padEnd(17_000),
      `[${Array.from({ length: 16 }, () => callOf(damaged())).join()}]`.padEnd(131_072),
      `[${callOf(tipped().bytes)}`.padEnd(20_000),
      `[${"[".repeat(100_000)}`,
    ];
    for (const body of bodies) {
      const [expected, response] = await both(RPC_PATH, body);
      expect(response).toBe(expected);
    }
    expect(await proxied()).toBe(before);
  });

  it("is none for methods that need no key, as of the main thread", async () => {
    const before = await proxied();
    for (const method of KEYLESS_METHODS) {
      const body = `{"jsonrpc":"2.0","id":1,"method":"${method}"}`;
      for (const [path, key] of [
        ["/", []],
        ["/fast", [`x-api-key: ${WIDE_KEY}`]],
      ] as const) {
        const [expected, response] = await both(path, body, key);
        expect(response).toContain('"result":');
        expect(response).toBe(expected);
      }
      const batch = `[${callOf(tipped().bytes)},${body}]`;
      const [, response = ""] = await both("/fast", batch);
      expect(JSON.parse(response.slice(response.indexOf("\r\n\r\n")))).toMatchObject([
        { result: expect.any(String) },
        { result: expect.anything() },
      ]);
    }
    expect(await proxied()).toBe(before);
  });

  it("of text is that of the main thread", async () => {
    const lines = [`api-x-token: ${WIDE_KEY}`, "content-type: text/plain"];
    const { base64, base58 } = tipped();
    const before = await proxied();
    const bodies = [
      base64.slice(1),
      base58,
      `${base58}1`,
      `${base58}11`,
      `${base58}111`,
      "",
      "AAAA",
    ];
    for (const body of [...bodies, `${base64} `, `${base64}\n\r\n`, "\n", tipped().bytes]) {
      const [expected, response] = await both(RAW_PATH, body, lines);
      expect(response).toBe(expected);
    }
    expect(await proxied()).toBe(before);
  });

  it("of a request over the limit is that of the main thread, but for the time", async () => {
    for (const [path, number] of [
      [RAW_PATH, 0],
      [RPC_PATH, 1],
    ] as const) {
      const key = fewKey(number);
      await known(key);
      // A batch, with some calls above the limit.
      const batch = `[${Array(8).fill('{"jsonrpc":"2.0","id":7,"method":"getHealth"}').join()}]`;
      const responses: string[][] = [];
      for (let count = 0; count < FEW; count += 1) responses.push(await both(RPC_PATH, batch, key));
      const before = await proxied();
      const last = await both(path, tipped().bytes, key);
      const plainTime = (text: string) =>
        text
          .replaceAll(/\d+ ms/g, "N ms")
          .replaceAll(/"retryAfterMs":\d+/g, '"retryAfterMs":N')
          .replaceAll(/(retry-after: |;t=|Content-Length: )\d+/g, "$1N");
      expect(plainTime(last[1] ?? "")).toBe(plainTime(last[0] ?? ""));
      expect(last[1]).toMatch(/^HTTP\/1\.1 429 Too Many Requests: the rate limit of plan Few is/);
      const limited = responses.map((pair) => pair.map(plainTime)).at(-1);
      expect(limited?.[1]).toBe(limited?.[0]);
      expect(await proxied()).toBe(before);
    }
  });

  it("is in usage and validation counts as with the main thread's", async () => {
    const results = (flow: Flow) => total(flow, "validations_total", { result: "tip_absent" });
    const before = await Promise.all([plain, threaded].map(results));
    await both(RAW_PATH, tipped({ tips: [] }).bytes);
    const after = await Promise.all([plain, threaded].map(results));
    expect(after).toEqual(before.map((count) => count + 1));
  });

  it(`is that of the main thread for ${BODIES} generated and mutated bodies`, async () => {
    const rng = createRng(20_261_124);
    const bodies = new Bodies(rng, [
      tipped().bytes,
      tipped({ tips: [] }).bytes,
      damaged(),
      Uint8Array.of(),
      Uint8Array.of(9, 9, 9),
    ]);
    const before = await proxied();
    let rejected = 0;
    for (let count = 0; count < BODIES; count += 1) {
      const body = bodies.next();
      const [expected, response] = await both(RPC_PATH, body);
      if (response !== expected) expect([body.toString(), response]).toEqual(["", expected]);
      if (response?.includes('"error"')) rejected += 1;
    }
    expect(rejected).toBeGreaterThan(BODIES / 2);
    expect(await proxied()).toBe(before);
    expect(await total(threaded, "requests_total", { outcome: "parse_error" })).toBe(
      await total(plain, "requests_total", { outcome: "parse_error" }),
    );
  });
});

const IDS = [
  ..."1 0 -0 1.0 1e2 1.50 12345678901234567890 -9007199254740993 1e999 1e-7 null true [] {}".split(
    " ",
  ),
  '"a"',
  '"\\u00e9\\ud800"',
  '"é😀\\n\\/"',
  '"\\"\\\\"',
];
const VALUES = [
  ...["null", "true", "0", "-1", "5", "1.5", "1e21", "1e-7", "9007199254740992", "[]", "[1,2]"],
  ...["{}", '"x"', '"base64"', '"base58"', '"é"', `"${"y".repeat(70)}😀"`, '"a\\ud83d"'],
];
const BLANKS = ["", "", "", " ", "\n\t", "\r"];
const METHODS = [
  ...['"sendBundle"', '"getInflightBundleStatuses"'],
  ...['"sendTransaction"', '"sendTransaction"', '"sendTransaction"', '"send\\u0054ransaction"'],
  ...['"getHealth"', '"getVersion"', '"get\\u0056ersion"', '"rpc.discover"'],
  ...['"getBalance"', "7", `"${"z".repeat(80)}"`],
];

/** JSON-RPC bodies in many forms; some are no JSON. */
class Bodies {
  readonly #rng: Rng;
  readonly #transactions: readonly Uint8Array[];

  constructor(rng: Rng, transactions: readonly Uint8Array[]) {
    this.#rng = rng;
    this.#transactions = transactions;
  }

  next(): Buffer {
    const rng = this.#rng;
    const text = rng.chance(4) ? this.#batch() : this.#call();
    const bytes = Buffer.from(text);
    return rng.chance(4) ? this.#mutated(bytes) : bytes;
  }

  #batch(): string {
    const calls = Array.from({ length: this.#rng.pick([0, 1, 2, 3, 16, 17]) }, () =>
      this.#rng.chance(8) ? this.#rng.pick(VALUES) : this.#call(),
    );
    return `[${calls.join(",")}]`;
  }

  #call(): string {
    const rng = this.#rng;
    const members = [
      ["jsonrpc", rng.chance(12) ? rng.pick(VALUES) : '"2.0"'],
      ["id", rng.pick(IDS)],
      ["method", rng.pick(METHODS)],
      ["params", this.#params()],
    ].filter(() => !rng.chance(24));
    if (rng.chance(6)) members.push([rng.pick(["id", "extra", "__proto__"]), rng.pick(IDS)]);
    if (rng.chance(3)) members.sort(() => rng.below(3) - 1);
    const texts = members.map(([name = "", value]) => {
      const key = rng.chance(12) ? name.replace("d", "\\u0064") : name;
      return `${rng.pick(BLANKS)}"${key}"${rng.pick(BLANKS)}:${rng.pick(BLANKS)}${value}`;
    });
    return `{${texts.join(",")}${rng.pick(BLANKS)}}`;
  }

  #params(): string {
    const rng = this.#rng;
    if (rng.chance(8)) return rng.pick(VALUES);
    const bytes = rng.pick(this.#transactions);
    const base64 = Buffer.from(bytes).toString("base64");
    const text = rng.chance(8) ? base64.replace("A", "\\u0041") : base64;
    const first = rng.chance(8) ? rng.pick([...VALUES, '"AQ"', '"AR=="', '"1"']) : `"${text}"`;
    const options = ["encoding", "maxRetries", "skipPreflight"]
      .filter(() => rng.chance(2))
      .map((name) => `"${name}":${rng.pick(VALUES)}`);
    const config = rng.chance(6) ? rng.pick(VALUES) : `{${options.join(",")}}`;
    const list = [first, config, rng.pick(VALUES)].slice(0, rng.pick([0, 1, 1, 1, 2, 2, 2, 3]));
    return `[${list.join(",")}]`;
  }

  #mutated(bytes: Buffer): Buffer {
    const rng = this.#rng;
    const at = rng.below(Math.max(1, bytes.length));
    switch (rng.below(4)) {
      case 0:
        return bytes.subarray(0, at);
      case 1:
        return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]);
      case 2:
        return Buffer.concat([bytes.subarray(0, at), rng.bytes(1), bytes.subarray(at)]);
      default: {
        const copy = Buffer.from(bytes);
        copy[at] = rng.pick([...Buffer.from('"\\{}[],: 0-.eE\n'), 0, 0x1f, 0xff]);
        return copy;
      }
    }
  }
}
