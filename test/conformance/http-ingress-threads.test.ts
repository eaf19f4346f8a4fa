/**
 * A client of an ingress thread sees the same as one of the main thread's server, byte for byte:
 * the same bytes go to a bare server and to an ingress thread in front of a server, and both must
 * respond identically. The thread answers submissions itself, and proxies every other request.
 */

import { connect } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rejectionOf } from "../../src/core/decode-errors.ts";
import { encodeBase58 } from "../../src/core/encoding.ts";
import { NO_LEADER_REJECTION, REJECTION_NAMES } from "../../src/core/errors.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import type { Submit } from "../../src/http/submit/submission.ts";
import { sumOf } from "../../src/runtime/shared-counters.ts";
import { native } from "../native/addon.ts";
import { isTunneled, LAMPORTS_MIN, TIP_ACCOUNT } from "../support/test-ingress.ts";
import { buildTransaction } from "../support/transactions.ts";
import {
  type Fixture,
  KEY,
  NARROW_KEY,
  plainPost as post,
  RAW,
  RPC,
  SIGNATURE,
  sendCall,
  startFixture,
  WITH_KEY,
} from "./http-fixture.ts";

const BYTES = Uint8Array.from({ length: 300 }, (_, i) => i % 251);
const CALL = sendCall(BYTES);
const tipped = (lamports: number) => buildTransaction({ tips: [{ to: TIP_ACCOUNT, lamports }] });
const GOOD = tipped(LAMPORTS_MIN).bytes;
const POOR = tipped(LAMPORTS_MIN - 1).bytes;
/** With a wrong signature. */
const FORGED = Uint8Array.from(GOOD, (byte, at) => (at === 9 ? byte ^ 1 : byte));
const CLOSING = "GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

const head = (...lines: readonly string[]) => `${lines.join("\r\n")}\r\n\r\n`;
const get = (path: string, ...lines: readonly string[]) =>
  head(`GET ${path} HTTP/1.1`, "Host: x", ...lines);
const raw = (...lines: readonly string[]) => post(RAW, BYTES, lines).toString("latin1");
/** The same in a form that is proxied. */
const twice = (...lines: readonly string[]) => raw(...lines, "Content-Length: 300");
const many = (count: number) => Array.from({ length: count }, (_, i) => `x-${i}: ${i}`);
/** A request head of `size` bytes. */
const sized = (size: number) => {
  const bare = get("/ping", "x-pad: ").length;
  return get("/ping", `x-pad: ${"a".repeat(size - bare)}`);
};
const sizedRaw = (size: number, form = raw, key = WITH_KEY) => {
  const bare = form(key, "x-pad: ").length - BYTES.length;
  return form(`x-pad: ${"a".repeat(size - bare)}`, key);
};

/** A preamble of the PROXY protocol, version 2. */
const PREAMBLE = "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\x0a\0\0\x01\x0a\0\0\x02\0\x01\0\x02";

const health = (id: string, more = "") =>
  `{"jsonrpc":"2.0","id":${id},"method":"getHealth"${more}}`;
const HEALTH_BODIES = [
  health("0"),
  health('"a b"'),
  health("null", ',"params":[]'),
  health("123456789012345", ', "params" : [ ] '),
  health("12345678901234567890"),
  health("-1"),
  health("01"),
  health("1.0"),
  health('"\\u0041"'),
  health('"\xc3\xa9"'),
  health("{}"),
  health("1", ',"params":{}'),
  health("1", ',"params":[1]'),
  health("1", ',"params":null'),
  health("1", ',"id":2'),
  health("1", ',"more":2'),
  health("1").replace("2.0", "1.0"),
  health("1").replace("Health", "Slot"),
  `${health("1")}x`,
  `[${health("1")}]`,
  health("1").padEnd(256),
  health("1").padEnd(257),
];
/** Each body on both paths, without a key and with some. */
const KEYLESS_BODIES = [
  ...["getTipAccounts", "getVersion", "rpc.discover", "sendBundle", "getBundleStatuses"],
].flatMap((method) => {
  const body = health('"x"').replace("getHealth", method);
  return [body, `[${body},${health("2")}]`];
});
const HEALTH_CASES = HEALTH_BODIES.flatMap((body) =>
  ["/", RPC].flatMap((path) =>
    [[], [WITH_KEY], ["api-x-token: nobody"], ["api-x-token:"]].map((lines) => {
      const bytes = post(path, Buffer.from(body, "latin1"), lines).toString("latin1");
      return [`${body.trim()} of ${body.length} bytes on ${path}, ${lines.join()}`, bytes];
    }),
  ),
);

/** Each body on every path, without a key and with one. */
const KEYLESS_CASES = KEYLESS_BODIES.flatMap((body) =>
  ["/", "/fast", RPC].flatMap((path) =>
    [[], [WITH_KEY]].map((lines) => [
      `${body} on ${path}, ${lines.join()}`,
      post(path, body, lines).toString("latin1"),
    ]),
  ),
);

/** The ways to send a key, right and wrong; none of them names another that is given too. */
const KEY_LINES: readonly (readonly string[])[] = [
  [`x-api-key: ${KEY}`],
  [`X-API-Key:  ${KEY} `],
  ["x-api-key:"],
  ["x-api-key: nobody"],
  ["x-api-key: nobody", `x-api-key: ${KEY}`],
  [`authorization: Bearer ${KEY}`],
  [`Authorization: bearer  ${KEY}`],
  [`authorization: ${KEY}`],
  [`authorization: Basic ${KEY}`],
  [`authorization: Bearer ${KEY} x`],
  ["api-x-token: nobody", `x-api-key: ${KEY}`],
  ["api-x-token:", `x-api-key: ${KEY}`, "authorization: Bearer nobody"],
  [`authorization: Bearer ${KEY}`, "x-api-key: nobody"],
];
const KEY_QUERIES = [
  `api-key=${KEY}`,
  `a=b&api-key=&api-key=${KEY}&api-key=nobody`,
  `api-key=${encodeURIComponent(KEY).replace("_", "%5F")}`,
  `api%2Dkey=${KEY}`,
  "api-key=nobody",
  "api-key=a+b",
  "api-key",
  `API-KEY=${KEY}`,
  `x?api-key=${KEY}`,
  `api-key=${KEY}#x`,
];
const RECEIPT = `/api/v1/transactions/${SIGNATURE}`;
const KEY_CASES = [
  ...KEY_LINES.flatMap((lines) => [
    [`a submission with ${lines.join()}`, raw(...lines)],
    [`a call with ${lines.join()}`, post("/fast", CALL, lines).toString("latin1")],
    [`a receipt with ${lines.join()}`, get(RECEIPT, ...lines)],
  ]),
  ...KEY_QUERIES.flatMap((query) => [
    [`a submission with ?${query}`, raw().replace(RAW, `${RAW}?${query}`)],
    [`a call with ?${query}`, post(`/?${query}`, CALL, []).toString("latin1")],
    [`a receipt with ?${query}`, get(`${RECEIPT}?${query}`)],
    [`a waiting receipt with ?${query}`, get(`${RECEIPT}?wait=landed&${query}`)],
    [`HEAD with ?${query}`, get(`${RECEIPT}?${query}`).replace("GET", "HEAD")],
    [
      `a large body with ?${query}`,
      // In a form that is proxied, because the main thread's server pads a response that closes.
      post(`${RAW}?${query}`, "a".repeat(20_000), ["Content-Length: 20000"]).toString("latin1"),
    ],
  ]),
  ["a key in a header, and one in the query", raw(WITH_KEY).replace(RAW, `${RAW}?api-key=nobody`)],
];
const text = (body: string | Uint8Array, type = "text/plain") =>
  post(RAW, body, [WITH_KEY, `Content-Type: ${type}`]).toString("latin1");
const BASE64 = Buffer.from(BYTES).toString("base64");
const TEXT_CASES = [
  ["text", text(BASE64)],
  ["text with a line break", text(`${BASE64}\r\n`)],
  ["text in lines", text(`${BASE64.replaceAll(/(.{76})/g, "$1\n")}\n`)],
  ["text of a browser", text(BASE64, "text/plain;charset=UTF-8")],
  ["text that is none", text(BYTES)],
  ["text without padding", text("AAA")],
  ["text of nothing", text("")],
  ["text of another type", text(BASE64, "text/html")],
  ["text with a foreign byte", text(`${BASE64}\xff`)],
  ["text of two types", text(BASE64, "text/html\r\nContent-Type: text/plain")],
];

/** Transactions in each form that the endpoints take, alone and in batches. */
const TRANSACTIONS = { valid: GOOD, "without enough tip": POOR, forged: FORGED, invalid: BYTES };
const TRANSACTION_CASES = Object.entries(TRANSACTIONS).flatMap(([name, bytes]) => {
  const base64 = Buffer.from(bytes).toString("base64");
  const base58 = { encoding: "base58" };
  const call = (body: string) => post(RPC, body, [WITH_KEY]).toString("latin1");
  return [
    [`${name}, raw`, post(RAW, bytes, [WITH_KEY]).toString("latin1")],
    [`${name}, text`, text(base64)],
    [`${name}, call`, call(sendCall(bytes))],
    [`${name}, call in base58`, call(sendCall(bytes, base58).replace(base64, encodeBase58(bytes)))],
    [`${name}, call without base58`, call(sendCall(bytes).replace(base64, encodeBase58(bytes)))],
    [`${name}, call with escapes`, call(sendCall(bytes).replace("send", "\\u0073end"))],
    [`${name}, batch`, call(`[${sendCall(bytes)},${health("7")},${sendCall(GOOD)}]`)],
    [
      `${name}, batch and version`,
      call(`[${health("7").replace("Health", "Version")},${sendCall(bytes)}]`),
    ],
  ];
});

/** Cases without a response are left out: a server waits 10 s for more bytes. */
const CASES: Readonly<Record<string, string>> = {
  "a submission": raw(WITH_KEY),
  "a call": post(RPC, CALL, [WITH_KEY]).toString("latin1"),
  "no key": raw(),
  "another key": raw("api-x-token: nobody"),
  "an empty key": raw("api-x-token:"),
  "two keys, the first good": raw(WITH_KEY, "api-x-token: nobody"),
  "two keys, the second good": raw("api-x-token: nobody", WITH_KEY),
  "an empty key and a good one": raw("api-x-token:", WITH_KEY),
  "a key with blanks": raw(`API-X-TOKEN: \t ${WITH_KEY.split(": ")[1]} \t `),
  "a query behind the path": raw(WITH_KEY).replace(RAW, `${RAW}?a=b`),
  "a fragment behind the path": raw(WITH_KEY).replace(RAW, `${RAW}#b`),
  "the absolute form": raw(WITH_KEY).replace(RAW, `http://x${RAW}`),
  "an asterisk": get("*"),
  "no slash": get("ping"),
  "an empty path": get(""),
  "a path of foreign bytes": get("/p\xe9ng"),
  "a path with a blank": get("/a b"),
  "a path with two blanks": get(" /ping"),
  "a path with a zero": get("/a\0b"),
  "a method of lower case": raw(WITH_KEY).replace("POST", "post"),
  "a method of no letters": get("/ping").replace("GET", "G(T"),
  "a long method": get("/ping").replace("GET", "A".repeat(200)),
  CONNECT: head("CONNECT x:1 HTTP/1.1", "Host: x"),
  "CONNECT with a path": head("CONNECT /ping HTTP/1.1", "Host: x"),
  TRACE: head("TRACE /ping HTTP/1.1", "Host: x"),
  "HTTP/1.0": head("GET /ping HTTP/1.0", "Host: x"),
  "HTTP/1.2": head("GET /ping HTTP/1.2", "Host: x"),
  "HTTP/2.0": head("GET /ping HTTP/2.0", "Host: x"),
  "HTTP/1.1 in lower case": head("GET /ping http/1.1", "Host: x"),
  "a tab in the request line": head("GET\t/ping\tHTTP/1.1", "Host: x"),
  "no host": head("GET /ping HTTP/1.1", "x: y"),
  "no headers": head("GET /ping HTTP/1.1"),
  "an empty host": head("GET /ping HTTP/1.1", "Host:"),
  "two hosts": get("/ping", "Host: y"),
  "two hosts of a submission": raw(WITH_KEY, "Host: y"),
  "no host of a submission": raw(WITH_KEY).replace("Host: x\r\n", ""),
  "an empty host of a submission": raw(WITH_KEY).replace("Host: x", "Host:"),
  "bare line feeds": get("/ping").replaceAll("\r\n", "\n"),
  "bare line feeds of a submission": raw(WITH_KEY).replaceAll("\r\n", "\n"),
  "one bare line feed": get("/ping", "a: b\nc: d"),
  "a bare line feed at the end": get("/ping", "a: b").replace("b\r\n\r\n", "b\n\r\n"),
  "a folded line": get("/ping", "a: b\r\n c"),
  "a folded key": raw("api-x-token:\r\n nobody"),
  "a blank before the colon": get("/ping", "a : b"),
  "a blank before a name": get("/ping", " a: b"),
  "no colon": get("/ping", "abc"),
  "no name": get("/ping", ": b"),
  "a zero in a value": get("/ping", "a: b\0c"),
  "a control byte in a value": get("/ping", "a: b\x01c"),
  "a delete in a value": get("/ping", "a: b\x7fc"),
  "a tab in a value": get("/ping", "a: b\tc"),
  "foreign bytes in a value": get("/ping", "a: \xe9\xff"),
  "foreign bytes in a name": get("/ping", "\xe9: b"),
  "a slash in a name": get("/ping", "a/b: c"),
  "31 headers": get("/ping", ...many(30)),
  "40 headers": get("/ping", ...many(39)),
  "40 headers of a submission": raw(WITH_KEY, ...many(37)),
  "97 headers": get("/ping", ...many(96)),
  "98 headers": get("/ping", ...many(97)),
  "99 headers": get("/ping", ...many(98)),
  "100 headers": get("/ping", ...many(99)),
  "101 headers": get("/ping", ...many(100)),
  "98 headers of a submission": raw(WITH_KEY, ...many(95)),
  "99 headers of a submission": raw(WITH_KEY, ...many(96)),
  "a head of 3,900 bytes": sized(3_900),
  "a head of 3,936 bytes": sized(3_936),
  "a head of 3,937 bytes": sized(3_937),
  "a head of 4,000 bytes": sized(4_000),
  "a head of 4,095 bytes": sized(4_095),
  "a head of 4,096 bytes": sized(4_096),
  "a head of 4,097 bytes": sized(4_097),
  "a head of 4,200 bytes": sized(4_200),
  "a head of 20,000 bytes": sized(20_000),
  "a submission behind 4,000 bytes": sizedRaw(4_000),
  "a submission behind 4,096 bytes": sizedRaw(4_096),
  "a submission behind 4,097 bytes": sizedRaw(4_097),
  "a body of a GET": `${get("/ping", "Content-Length: 5")}hello`,
  "a body of a HEAD": `${get("/ping", "Content-Length: 5").replace("GET", "HEAD")}hello`,
  "a body of OPTIONS": `${get("/ping", "Content-Length: 5").replace("GET", "OPTIONS")}hello`,
  "a huge body of a GET": get("/ping", "Content-Length: 900000"),
  "a huge body of a receipt": get(
    `/api/v1/transactions/${SIGNATURE}`,
    WITH_KEY,
    "Content-Length: 200000",
  ),
  HEAD: get("/ping").replace("GET", "HEAD"),
  "a ping with a query": get("/ping?a=b"),
  "a ping with a key": get("/ping", "api-x-token: nobody"),
  "a ping of no bytes": get("/ping", "Content-Length: 0"),
  "two pings": get("/ping") + get("/ping").replace("GET", "HEAD"),
  "HEAD of nothing": get("/nowhere").replace("GET", "HEAD"),
  "HEAD of a submission": raw(WITH_KEY).replace("POST", "HEAD"),
  OPTIONS: get("/ping").replace("GET", "OPTIONS"),
  "PUT with a body": raw(WITH_KEY).replace("POST", "PUT"),
  "a receipt": get(`/api/v1/transactions/${SIGNATURE}`, WITH_KEY),
  "a receipt without a key": get(`/api/v1/transactions/${SIGNATURE}`),
  "a list": get("/api/v1/transactions", WITH_KEY),
  "a bad query": get("/api/v1/transactions?limit=x", WITH_KEY),
  "a length of nothing": raw(WITH_KEY).replace("Content-Length: 300", "Content-Length:"),
  "a length with a sign": raw(WITH_KEY).replace("Content-Length: 300", "Content-Length: +300"),
  "a length with zeros": raw(WITH_KEY).replace("Content-Length: 300", "Content-Length: 000300"),
  "a length of nine digits": raw(WITH_KEY).replace("th: 300", "th: 000000300"),
  "a length of ten digits": raw(WITH_KEY).replace("th: 300", "th: 0000000300"),
  "a length twice": raw(WITH_KEY, "Content-Length: 300"),
  "two lengths": raw(WITH_KEY, "Content-Length: 301"),
  chunks: head(`POST ${RAW} HTTP/1.1`, "Host: x", WITH_KEY, "Transfer-Encoding: chunked", "", "0"),
  "chunks and a length": raw(WITH_KEY, "Transfer-Encoding: chunked"),
  "an empty transfer-encoding": raw(WITH_KEY, "Transfer-Encoding:"),
  "Connection: close": raw(WITH_KEY, "Connection: close"),
  "Connection: Close": raw(WITH_KEY, "Connection: Close"),
  "Connection: keep-alive": raw(WITH_KEY, "Connection: keep-alive"),
  "Connection: close of a GET": get("/ping", "Connection: close"),
  "an upgrade": get("/ping", "Connection: Upgrade", "Upgrade: websocket"),
  "an upgrade to h2c": get(
    "/ping",
    "Connection: Upgrade, HTTP2-Settings",
    "Upgrade: h2c",
    "HTTP2-Settings: AAMAAABkAAQ",
  ),
  "an upgrade of a submission": raw(WITH_KEY, "Connection: Upgrade", "Upgrade: websocket"),
  Expect: raw(WITH_KEY, "Expect: 100-continue"),
  "Expect in other letters": raw(WITH_KEY, "Expect: 100-Continue"),
  "Expect of something else": raw(WITH_KEY, "Expect: more"),
  "Expect of a GET": get("/ping", "Expect: 100-continue"),
  "Expect without a key": raw("Expect: 100-continue"),
  "an empty body": post(RAW, "", [WITH_KEY]).toString("latin1"),
  "no length": head(`POST ${RAW} HTTP/1.1`, "Host: x", WITH_KEY),
  "no length of a call": head(`POST ${RPC} HTTP/1.1`, "Host: x", WITH_KEY),
  "no length and no key": head(`POST ${RAW} HTTP/1.1`, "Host: x"),
  "a body of 16,384 bytes": post(RAW, "a".repeat(16_384), [WITH_KEY]).toString("latin1"),
  // As before, in a form that is proxied.
  "a body of 16,385 bytes": post(RAW, "a".repeat(16_385), [
    WITH_KEY,
    "Content-Length: 16385",
  ]).toString("latin1"),
  "a body of 17,000 bytes without a key": post(RAW, "a".repeat(17_000), []).toString("latin1"),
  "a body of 70,000 bytes without a key": post(RAW, "a".repeat(70_000), []).toString("latin1"),
  "a call of 131,072 bytes": post(RPC, CALL.padEnd(131_072), [WITH_KEY]).toString("latin1"),
  "a call of 131,073 bytes": post(RPC, CALL.padEnd(131_073), [
    WITH_KEY,
    "Content-Length: 131073",
  ]).toString("latin1"),
  "a large body on /": post("/", "a".repeat(20_000), []).toString("latin1"),
  "a health check": post("/", '{"jsonrpc":"2.0","id":1,"method":"getHealth"}', []).toString(
    "latin1",
  ),
  ...Object.fromEntries(HEALTH_CASES),
  ...Object.fromEntries(KEYLESS_CASES),
  ...Object.fromEntries(KEY_CASES),
  ...Object.fromEntries(TEXT_CASES),
  ...Object.fromEntries(TRANSACTION_CASES),
  "a GET of /fast": get("/fast"),
  "OPTIONS of /fast": get("/fast?api-key=x").replace("GET", "OPTIONS"),
  "a batch": post(RPC, `[${CALL},${CALL}]`, [WITH_KEY]).toString("latin1"),
  "no JSON": post(RPC, "{", [WITH_KEY]).toString("latin1"),
  noise: "\x16\x03\x01\x00\x05hello\r\n\r\n",
  "noise without a line": "\x16\x03\x01\x00\x05hello",
  "a preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "a preamble of version 1": `PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n${get("/ping")}`,
  "a preamble of version 2": PREAMBLE + get("/ping"),
  "a preamble of version 2 before a submission": PREAMBLE + raw(WITH_KEY),
  "two requests": get("/ping") + get("/nowhere"),
  "a submission and a GET": raw(WITH_KEY) + get("/nowhere"),
  "a rejected one and a valid one": raw() + raw(WITH_KEY),
  "one with Expect and one behind": raw(WITH_KEY, "Expect: 100-continue") + get("/nowhere"),
  "one with an upgrade and one behind": get("/ping", "Upgrade: x") + get("/nowhere"),
};

/** Positions at which the bytes are cut into segments; -1 is before the last byte. */
const CUTS: readonly (readonly number[])[] = [[], [1], [20], [60, 100], [-1]];
/** Cases in parallel: few enough that no server defers a response, which is not tested here. */
const AT_ONCE = 8;

/** All that the server sends for these bytes, and for a last request sent once it responded. */
async function said(
  port: number,
  bytes: string,
  cuts: readonly number[],
  localAddress = "127.0.0.1",
): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", localAddress }).setNoDelay(true);
  let text = "";
  const answered = new Promise<void>((resolve) => {
    socket.on("close", () => resolve());
    socket.on("data", (data) => {
      text += data.toString("latin1");
      if (text.includes("\r\n\r\n")) resolve();
    });
  });
  // A server may end a connection by a reset.
  socket.on("error", () => {});
  const ended = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  let from = 0;
  for (const cut of [...cuts.map((at) => (at < 0 ? bytes.length + at : at)), bytes.length]) {
    socket.write(Buffer.from(bytes.slice(from, cut), "latin1"));
    from = cut;
    for (let turns = 0; turns < 20; turns += 1) await turn();
  }
  await answered;
  socket.write(CLOSING);
  await ended;
  return text.replaceAll(/Date: [^\r]*/g, "Date: now");
}

const decoder = createDecoder({
  tipAccounts: [TIP_ACCOUNT],
  lamportsMin: LAMPORTS_MIN,
  verify: true,
  keyCacheSize: 0,
});
/** As an engine without leaders. */
const refuse: Submit = ({ bytes }, done) => {
  const validation = decoder.decode(bytes);
  const isValid = validation.kind === "accepted";
  const rejection = isValid ? NO_LEADER_REJECTION : rejectionOf(validation);
  done({ kind: "rejected", rejection });
};

describe.skipIf(native === null)("a client of an ingress thread", () => {
  let plain: Fixture;
  let fronted: Fixture;
  beforeAll(async () => {
    plain = await startFixture({ ingressEngine: null });
    fronted = await startFixture({ ingressEngine: native });
    for (const edge of [plain, fronted]) edge.submit = refuse;
  });
  afterAll(async () => {
    await plain?.stop();
    await fronted?.stop();
  });

  /** What an edge has counted so far. */
  function countsOf(edge: Fixture): Readonly<Record<string, number>> {
    const { accepted, handlerErrors } = edge.server.counters;
    // The upstream server does not count what an ingress thread answers itself.
    const all =
      edge.ingress === null ? [edge.server] : [edge.server, ...edge.ingress.ingressThreads.stats];
    const requests = all.reduce((sum, { counters }) => sum + counters.requests, 0);
    const rejections = sumOf(
      REJECTION_NAMES,
      all.map((each) => each.rejections),
    );
    return { ...rejections, requests, accepted, handlerErrors };
  }

  /** The response to each case, what accounts see of it, and what was counted. */
  async function ask(edge: Fixture, cuts: readonly number[]) {
    const responses: Record<string, string> = {};
    const before = countsOf(edge);
    const cases = Object.entries(CASES);
    for (let at = 0; at < cases.length; at += AT_ONCE) {
      const some = cases.slice(at, at + AT_ONCE).map(async ([name, bytes]) => {
        // A server may leave it out once it has some of the body (RFC 9110, 10.1.1).
        const text = await said(edge.port, bytes, cuts);
        responses[name] = text.replace("HTTP/1.1 100 Continue\r\n\r\n", "");
      });
      await Promise.all(some);
    }
    edge.submitted.length = 0;
    edge.errors.length = 0;
    const refused = edge.refused.splice(0).sort();
    const counted = Object.entries(countsOf(edge)).map(([name, count]) => [
      name,
      count - (before[name] ?? 0),
    ]);
    return { responses, refused, counted };
  }

  it.each(CUTS.map((cuts) => ({ cuts })))("sees no difference: cut at $cuts", async ({ cuts }) => {
    const [without, through] = await Promise.all([ask(plain, cuts), ask(fronted, cuts)]);
    for (const name of Object.keys(CASES)) {
      expect([name, through.responses[name]]).toEqual([name, without.responses[name]]);
    }
    expect(through).toEqual(without);
    expect(fronted.ingress?.ingressThreads.requests.proxied).toBeGreaterThan(0);
  });

  it("sees no difference while the edge refuses work", async () => {
    const edges = [
      await startFixture({ ingressEngine: null }),
      await startFixture({ ingressEngine: native }),
    ];
    const call = (body: string) => post(RPC, body, [WITH_KEY]).toString("latin1");
    const version = health("1").replace("Health", "Version");
    for (const { server, ingress } of edges) {
      server.rejectNewWork();
      ingress?.ingressThreads.rejectNewWork();
    }
    for (const bytes of [
      raw(WITH_KEY),
      call(CALL),
      call("{"),
      call(version),
      call(`[${version},${version.replace("1", "2")}]`),
      call(`[${version},7]`),
      get("/ping"),
      get("/nowhere"),
    ]) {
      const [without, through] = await Promise.all(edges.map(({ port }) => said(port, bytes, [])));
      expect(bodiesOf(through)).toEqual(bodiesOf(without));
      expect(through).toMatch(/^connection: close/im);
    }
    for (const edge of edges) await edge.stop();
  });

  // The library matches only this single token and keeps the connection when others are present.
  it("has its connection closed when it requests that among other options", async () => {
    for (const lines of [
      ["Connection: keep-alive, close"],
      ["Connection: foo, CLOSE"],
      ["Connection: keep-alive", "Connection: close"],
    ]) {
      const text = await said(fronted.port, get("/ping", ...lines), []);
      expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(1);
    }
  });

  // The library drops a response that is not sent yet when it rejects the bytes that follow.
  it("receives the response to a valid request before that to an invalid one", async () => {
    const good = post(RAW, GOOD, [WITH_KEY]).toString("latin1");
    const chunks = raw(WITH_KEY, "Transfer-Encoding: chunked");
    for (const [bad, status] of [
      [chunks, 400],
      ["\0\0\r\n\r\n", 505],
    ] as const) {
      const text = await said(fronted.port, good + bad + good, []);
      expect(statusesOf(text)).toEqual([503, status]);
      expect(fronted.refused.splice(0)).toEqual(["acme no_leader"]);
    }
  });

  it.skipIf(isTunneled)(
    "is admitted with a network-restricted key by its own address",
    async () => {
      const narrow = `api-x-token: ${NARROW_KEY}`;
      const requests = [
        raw(narrow),
        twice(narrow),
        get(`/api/v1/transactions/${SIGNATURE}`, narrow),
      ];
      for (const [address, statuses] of [
        ["127.0.0.1", [400, 400, 404]],
        ["127.0.0.2", [401, 401, 401]],
      ] as const) {
        for (const [index, bytes] of requests.entries()) {
          const text = await said(fronted.port, bytes, [], address);
          expect(text).toMatch(new RegExp(`^HTTP/1.1 ${statuses[index]} `));
        }
      }
      expect(fronted.submitted.splice(0)).toHaveLength(1);
      expect(fronted.refused.splice(0)).toEqual(new Array(2).fill("narrow undecodable"));
    },
  );

  // Each leaves the connection open, and what follows is a request of the same client.
  it.each(
    Object.entries({
      "a head of 4,096 bytes": sized(4_096),
      "98 headers": get("/ping", ...many(97)),
      CONNECT: head("CONNECT /ping HTTP/1.1", "Host: x"),
      "a method of no letters": get("/ping").replace("GET", "G(T"),
      "a header without a name": get("/ping", ": b"),
      "a delete in a value": get("/ping", "a: b\x7fc"),
    }),
  )("keeps its address, and its ingress thread, after %s", async (_name, bytes) => {
    const ownRequests = () => fronted.ingress?.ingressThreads.stats[0]?.counters.requests ?? 0;
    const before = ownRequests();
    const narrow = twice(`api-x-token: ${NARROW_KEY}`);
    const text = await said(fronted.port, bytes + narrow + get("/ping"), []);
    expect(statusesOf(text).slice(1)).toEqual([400, 200, 200]);
    expect(fronted.submitted.splice(0)).toHaveLength(1);
    // The ingress thread itself answers a ping, and counts it.
    expect(ownRequests()).toBeGreaterThan(before);
  });

  // The library reads no header behind it, and would take the body for the next request.
  it("has its body read behind a header without a name", async () => {
    const body = raw(WITH_KEY);
    const put = head("PUT /ping HTTP/1.1", "Host: x", ": b", `Content-Length: ${body.length}`);
    const text = await said(fronted.port, put + body + get("/ping"), []);
    expect(statusesOf(text)).toEqual([405, 200, 200]);
    expect(fronted.submitted.splice(0)).toEqual([]);
  });

  it("has its address known with a head of up to 4,096 bytes", async () => {
    const narrow = `api-x-token: ${NARROW_KEY}`;
    for (const size of [3_936, 3_937, 4_096]) {
      const text = await said(fronted.port, sizedRaw(size, twice, narrow), [20]);
      expect([size, ...statusesOf(text)]).toEqual([size, 400, 200]);
    }
    expect(fronted.submitted.splice(0)).toHaveLength(3);
  });
});

const statusesOf = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));

/** The status lines and bodies of responses: when work is refused the servers pad differently. */
const bodiesOf = (text: string | undefined) =>
  text?.split(/^(?=HTTP\/1\.1 )/m).map((response) => {
    const [line] = response.split("\r\n", 1);
    return [line, response.slice(response.indexOf("\r\n\r\n")).trimEnd()];
  });
