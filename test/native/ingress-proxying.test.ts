/**
 * A complete edge with ingress threads: requests proxied to the main thread behave as without them,
 * from the first byte to the last, and each limit is counted once.
 */

import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  FEW,
  type Flow,
  fewKey,
  OTHER_KEY,
  RAW_PATH,
  RPC_PATH,
  slowKey,
  startFlow,
  untilResponse,
  WIDE_KEY,
} from "../support/flow.ts";
import { seriesValue } from "../support/prometheus.ts";
import { until } from "../support/wait.ts";
import { native } from "./addon.ts";

const THREADS = 2;
const STREAM_PATH = "/api/v1/receipts";
/** Transactions with more receipts than the sockets of a client and a proxy buffer. */
const MANY = 6_000;
const AT_ONCE = 16;
/** Each some rounds of a stream later. */
const STILL_LOOKS = 20;

const start = () =>
  startFlow({
    leaderCount: 1,
    edge: { http: { threads: THREADS }, send: { engine: "native", leaders: 1 } },
  });

/** The leader is in this process: where its queue at the edge is full, a client posts again. */
const postUntilThereIsRoom = (flow: Flow) =>
  untilResponse(
    "room in the leader's queue",
    () => flow.postRaw(flow.tipped().bytes),
    ({ json }) => json["reason"] !== "overloaded",
  );

/** The start of a comment that only signals an open stream. */
const SIGN_OF_LIFE = "\n:\nid: ";

interface Stream {
  /** The bytes received so far. */
  text(): string;
  /** Resolves when the edge has ended it. */
  readonly ended: Promise<unknown>;
  leave(): void;
}

async function openStream({ url }: Flow, key = WIDE_KEY): Promise<Stream> {
  const abort = new AbortController();
  const { signal } = abort;
  const response = await fetch(url + STREAM_PATH, { headers: { "api-x-token": key }, signal });
  expect([response.status, response.headers.get("content-type")]).toEqual([
    200,
    "text/event-stream",
  ]);
  let text = "";
  const read = async (): Promise<void> => {
    for await (const bytes of response.body ?? []) text += Buffer.from(bytes).toString();
  };
  return { text: () => text, ended: read().catch(() => {}), leave: () => abort.abort() };
}

describe.skipIf(native === null)("behind ingress threads", () => {
  let flow: Flow;
  beforeAll(async () => {
    flow = await start();
  });
  afterAll(() => flow?.stop());

  const count = async (name: string, labels: Readonly<Record<string, string>> = {}) =>
    seriesValue(await flow.metrics(), `touchdown_${name}`, labels);
  const refused = (outcome: string) => count("requests_total", { outcome });
  const streams = () => count("receipt_streams");
  const waits = () => count("receipt_long_polls");

  async function rpc(body: unknown, key = WIDE_KEY) {
    const headers = { "api-x-token": key };
    const request = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(flow.url + RPC_PATH, request);
    return { status: response.status, json: JSON.parse(await response.text()) };
  }
  const sendCall = (id: number) => {
    const params = [Buffer.from(flow.tipped().bytes).toString("base64"), { encoding: "base64" }];
    return { jsonrpc: "2.0", id, method: "sendTransaction", params };
  };

  it("say in each response how long an idle connection lives, whoever answers", async () => {
    for (const path of ["/ping", "/", "/api/v1/tip", "/nowhere"]) {
      const response = await fetch(flow.url + path);
      expect([path, response.headers.get("keep-alive")]).toEqual([path, "timeout=74"]);
    }
  });

  it("a stream of receipts reports events when they occur, on any thread", async () => {
    const stream = await openStream(flow);
    for (let sent = 0; sent < 8; sent += 1) {
      const { bytes, signature } = flow.tipped();
      expect((await flow.postRaw(bytes)).status).toBe(200);
      // The next one is sent after this one was reported.
      await until("its receipt", () => stream.text().includes(signature));
    }
    const { bytes, signature } = flow.tipped();
    await flow.postRaw(bytes, OTHER_KEY);
    const own = flow.tipped();
    await flow.postRaw(own.bytes);
    await until("its receipt", () => stream.text().includes(own.signature));
    expect(stream.text()).not.toContain(signature);
    stream.leave();
    await untilResponse("no stream", streams, (open) => open === 0);
  });

  it("a stream closed by its client ends before anything is written to it", async () => {
    const leftBefore = await count("requests_aborted_total");
    // Opened before the others, it receives nothing that long, and then a keep-alive comment.
    const witness = await openStream(flow);
    const all = await Promise.all(Array.from({ length: 4 }, () => openStream(flow, OTHER_KEY)));
    expect(await streams()).toBe(5);
    all[0]?.leave();
    await untilResponse("four streams", streams, (open) => open === 4);
    for (const stream of all) stream.leave();
    await untilResponse("one stream", streams, (open) => open === 1);
    expect(await count("requests_aborted_total")).toBe(leftBefore + 4);
    expect(witness.text()).not.toContain(SIGN_OF_LIFE);
    witness.leave();
    await untilResponse("no stream", streams, (open) => open === 0);
  });

  it("a receipt is held until the awaited status, or until the timeout", async () => {
    const { cluster } = flow.sandbox;
    for (let sent = 0; sent < 4; sent += 1) {
      const bytes = flow.sandbox.transaction();
      const { json } = await flow.postRaw(bytes);
      const ask = (timeout: string) =>
        flow.receipt(`${json["signature"]}?wait=landed&timeout=${timeout}`);
      const late = await ask("300ms");
      expect(late.status).toBe(200);
      expect(late.json["state"]).not.toBe("landed");
      const held = ask("60s");
      await untilResponse("the wait", waits, (count) => count === 1);
      // In this flow only this call reports to the cluster what leaders received.
      cluster.receive(cluster.leaderAt(0), bytes);
      expect(await held).toMatchObject({ status: 200, json: { state: "landed" } });
    }
    expect(await waits()).toBe(0);
  });

  it("batches and health requests are answered", async () => {
    const health = { jsonrpc: "2.0", id: "h", method: "getHealth" };
    expect(await rpc(health, "nobody")).toEqual({
      status: 200,
      json: { jsonrpc: "2.0", result: "ok", id: "h" },
    });
    const { status, json } = await rpc([sendCall(1), health, sendCall(2)]);
    expect([status, json.map(({ id }: { id: unknown }) => id)]).toEqual([200, [1, "h", 2]]);
    for (const index of [0, 2]) expect(json[index].result).toMatch(/^\w{64,88}$/);
  });

  it("a body that is too large is rejected with 413, and its connection ends", async () => {
    const before = await refused("too_large");
    for (const [path, size] of [[RAW_PATH, 16_385] as const, [RPC_PATH, 131_073] as const]) {
      const { hostname, port } = new URL(flow.url);
      const socket = connect(Number(port), hostname);
      let text = "";
      socket.on("data", (data) => {
        text += data.toString("latin1");
      });
      socket.on("error", () => {});
      const ended = new Promise((resolve) => socket.on("close", resolve));
      const lines = [`POST ${path} HTTP/1.1`, "Host: x", `api-x-token: ${WIDE_KEY}`];
      socket.write(`${lines.join("\r\n")}\r\nContent-Length: ${size}\r\n\r\n`);
      socket.write(Buffer.alloc(size));
      await ended;
      expect(text).toMatch(/^HTTP\/1\.1 413 [\s\S]*connection: close/i);
    }
    expect(await refused("too_large")).toBe(before + 2);
  });

  it("an exhausted limit is reported with a retry time, and counted once", async () => {
    const before = await refused("rate_limited");
    const key = slowKey(0);
    expect((await flow.postRaw(flow.tipped().bytes, key)).status).toBe(200);
    for (let asked = 1; asked <= 8; asked += 1) {
      const { status, retryAfter } = await flow.postRaw(flow.tipped().bytes, key);
      expect(status).toBe(429);
      expect(Number(retryAfter)).toBeGreaterThan(900);
      expect(await refused("rate_limited")).toBe(before + asked);
    }
  });

  it("a limit admits exactly its rate, on any thread", async () => {
    const one = flow.tipped();
    const kinds: readonly ((key: string) => Promise<{ readonly status: number }>)[] = [
      (key) => flow.postRaw(flow.tipped().bytes, key),
      // Rejected for its content.
      (key) => flow.postRaw(flow.tipped({ tips: [] }).bytes, key),
      (key) => flow.postRaw(Buffer.from("nonsense"), key),
      // Known by the second time.
      (key) => flow.postRaw(one.bytes, key),
      (key) => rpc(sendCall(1), key),
      (key) => rpc({ ...sendCall(1), method: "getBalance" }, key),
      (key) => rpc([sendCall(1)], key),
      (key) => flow.postRaw(new Uint8Array(17_000), key),
    ];
    for (let run = 0; run < 3; run += 1) {
      const key = fewKey(run);
      const before = await refused("rate_limited");
      const asked = Array.from({ length: 3 * FEW }, (_, at) => kinds[(at + run) % kinds.length]);
      let passed = 0;
      for (let at = 0; at < asked.length; at += 1 + run) {
        const some = asked.slice(at, at + 1 + run);
        const answers = await Promise.all(some.map((ask) => ask?.(key)));
        passed += answers.filter((response) => response?.status !== 429).length;
      }
      expect(passed).toBe(FEW);
      expect(await refused("rate_limited")).toBe(before + 2 * FEW);
    }
  });
});

describe.skipIf(native === null)("a stream of receipts behind ingress threads", () => {
  it("is bounded while it is not read, is then closed, and does not affect others", async () => {
    const flow = await start();
    const metric = async (name: string) => seriesValue(await flow.metrics(), `touchdown_${name}`);
    for (let sent = 0; sent < MANY; sent += AT_ONCE) {
      const some = Array.from({ length: AT_ONCE }, () => postUntilThereIsRoom(flow));
      for (const response of await Promise.all(some)) {
        expect(response).toMatchObject({ status: 200 });
      }
    }
    const { hostname, port } = new URL(flow.url);
    const socket = connect(Number(port), hostname).pause();
    socket.on("error", () => {});
    const lines = [`GET ${STREAM_PATH} HTTP/1.1`, "Host: x", `api-x-token: ${WIDE_KEY}`];
    // Of another edge: it continues with all that is stored.
    socket.write(`${lines.join("\r\n")}\r\nLast-Event-ID: zz-1\r\n\r\n`);
    const events = () => metric("receipt_events_total");
    let last = 0;
    let looks = 0;
    await untilResponse("a stream that stands still", events, (now) => {
      looks = now === last ? looks + 1 : 0;
      last = now;
      return now > 0 && looks === STILL_LOOKS;
    });
    expect(last).toBeLessThan(2 * MANY);
    expect(await metric("receipt_streams")).toBe(1);
    const other = await openStream(flow, OTHER_KEY);
    // By the ingress thread, as the HTTP library does without one: before the main thread's own
    // bound.
    await untilResponse(
      "its end",
      () => metric("receipt_streams"),
      (open) => open === 1,
    );
    const { bytes, signature } = flow.tipped();
    await flow.postRaw(bytes, OTHER_KEY);
    await until("its receipt", () => other.text().includes(signature));
    socket.destroy();
    const stopped = flow.stop();
    await other.ended;
    expect(other.text()).toMatch(/: this edge is draining[^\n]*\n\n$/);
    await stopped;
  });
});
