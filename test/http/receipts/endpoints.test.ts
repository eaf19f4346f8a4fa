/** Receipts over real sockets, with a manually advanced clock. */

import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { encodeSignature } from "../../../src/core/encoding.ts";
import type { Accepted } from "../../../src/core/flow.ts";
import { RECEIPT_STREAM_STALL_MS_MAX } from "../../../src/http/limits.ts";
import { createReceipts, type Receipts } from "../../../src/receipts/receipts.ts";
import { type Fixture, KEY, SLOW_KEY, startFixture } from "../../conformance/http-fixture.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { until } from "../../support/wait.ts";

// Only what a receipt shows matters here.
const ACCEPTED = { kind: "accepted", version: 0, signatureOffset: 0 } as Accepted;
const LIST = "/api/v1/transactions";
const STREAM = "/api/v1/receipts";

let edge: Fixture | null = null;
afterEach(async () => {
  await edge?.stop();
  edge = null;
});

function signature(number: number): Uint8Array {
  const bytes = new Uint8Array(64).fill(5);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
}

const pathOf = (number: number): string => `${LIST}/${encodeSignature(signature(number))}`;

async function setup() {
  const clock = createFakeClock();
  const receipts: Receipts = createReceipts(
    { clock, slot: () => 390 },
    { keepMs: 600_000, entriesMax: 20_000 },
  );
  /** Events that happened and are not recorded before a flush. */
  const unsettled: (() => void)[] = [];
  const flushEvents = (): void => {
    for (const happens of unsettled.splice(0)) happens();
  };
  const started = await startFixture({ clock, receipts, flushEvents });
  edge = started;
  const submit = (id: number, account = "acme"): void => {
    const receivedNs = clock.nowNs();
    const packet = {
      id,
      bytes: signature(id),
      account,
      receivedNs,
      maxRetries: null,
      offeredLamports: 0,
    };
    receipts.open(packet, ACCEPTED, receivedNs);
  };
  const land = (packetId: number): void =>
    receipts.end(
      {
        packetId,
        kind: "landed",
        slot: 392,
        slotDelta: 2,
        error: null,
        reason: null,
        atNs: clock.nowNs(),
      },
      signature(packetId),
    );
  const ask = (
    path: string,
    { key = KEY, method = "GET", id = "", signal = null as AbortSignal | null } = {},
  ) =>
    fetch(`${started.url}${path}`, {
      method,
      headers: { "api-x-token": key, ...(id === "" ? {} : { "last-event-id": id }) },
      signal,
    });
  /** Sends a request; returns the parsed response. */
  const get = async (path: string, more: Parameters<typeof ask>[1] = {}) => {
    const response = await ask(path, more);
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: JSON.parse(text || "null") };
  };
  const { server, port } = started;
  const { moveKey } = started;
  return { clock, receipts, server, port, unsettled, submit, land, ask, get, moveKey };
}

/** Collects the text of a stream as it arrives. */
function textOf(response: Response) {
  const seen = { text: "", isEnded: false, isWhole: false };
  const decoder = new TextDecoder();
  const read = async (): Promise<void> => {
    for await (const chunk of response.body ?? []) seen.text += decoder.decode(chunk);
    seen.isWhole = true;
  };
  // A stream that is cut ends with an error, which counts as an end.
  read()
    .catch(() => {})
    .finally(() => {
      seen.isEnded = true;
    });
  return seen;
}

describe("one receipt", () => {
  it("is a 404 for another account, whether it exists or not", async () => {
    const { submit, get } = await setup();
    submit(1);
    expect((await get(pathOf(1))).body).toMatchObject({ state: "accepted" });
    const theirs = await get(pathOf(1), { key: SLOW_KEY });
    const unknown = await get(pathOf(2), { key: SLOW_KEY });
    expect(theirs.status).toBe(404);
    expect(theirs.body).toEqual(unknown.body);
  });

  it("reports everything up to then, as lists do", async () => {
    const { unsettled, submit, land, get } = await setup();
    unsettled.push(() => submit(1));
    expect((await get(pathOf(1))).body).toMatchObject({ state: "accepted" });
    unsettled.push(() => land(1));
    expect((await get(`${pathOf(1)}?wait=landed`)).body).toMatchObject({ state: "landed" });
    unsettled.push(() => submit(2));
    expect((await get(LIST)).body.transactions).toHaveLength(2);
  });

  it("is held until the transaction has ended", async () => {
    const { clock, server, submit, land, get } = await setup();
    submit(1);
    const answer = get(`${pathOf(1)}?wait=landed&timeout=60s`);
    await until("the wait", () => server.receipts.longPolls.pending === 1);
    clock.advance(30_000);
    expect(server.receipts.longPolls.pending).toBe(1);
    land(1);
    clock.advance(20);
    expect(await answer).toMatchObject({
      status: 200,
      body: { state: "landed", landing: { slot: 392, slots: 2 } },
    });
    expect((await get(`${pathOf(1)}?wait=landed`)).body).toMatchObject({ state: "landed" });
  });

  it("is answered as it is when the time is up", async () => {
    const { clock, server, submit, get } = await setup();
    submit(1);
    const answer = get(`${pathOf(1)}?wait=landed&timeout=250ms`);
    await until("the wait", () => server.receipts.longPolls.pending === 1);
    clock.advance(270);
    expect(await answer).toMatchObject({ status: 200, body: { state: "accepted" } });
    expect(server.receipts.longPolls).toMatchObject({ pending: 0, timedOut: 1 });
  });

  it("is no longer awaited when the client disconnects", async () => {
    const { server, submit, ask } = await setup();
    submit(1);
    const abort = new AbortController();
    const answer = ask(`${pathOf(1)}?wait=landed`, { signal: abort.signal });
    await until("the wait", () => server.receipts.longPolls.pending === 1);
    abort.abort();
    await expect(answer).rejects.toThrow();
    await until("the wait", () => server.receipts.longPolls.left === 1);
    expect(server.receipts.longPolls.pending).toBe(0);
  });

  it("is awaited also if it must first come from the process that is replaced", async () => {
    const { clock, receipts, server, submit, land, get, ask } = await setup();
    const arrivals: (() => void)[] = [];
    receipts.transfer.useCatchUp(() => new Promise((resolve) => void arrivals.push(resolve)));
    const awaited = get(`${pathOf(1)}?wait=landed&timeout=60s`);
    const missing = get(`${pathOf(2)}?wait=landed&timeout=60s`);
    const abort = new AbortController();
    const left = ask(`${pathOf(1)}?wait=landed&timeout=60s`, { signal: abort.signal });
    const plain = get(pathOf(1));
    await until("the requests", () => arrivals.length === 4);
    abort.abort();
    await expect(left).rejects.toThrow();
    await until("the disconnection", () => server.counters.requestsOpen === 3);
    submit(1);
    for (const arrived of arrivals) arrived();
    expect(await plain).toMatchObject({ status: 200, body: { state: "accepted" } });
    expect((await missing).status).toBe(404);
    await until("the wait", () => server.receipts.longPolls.pending === 1);
    land(1);
    clock.advance(20);
    expect(await awaited).toMatchObject({ status: 200, body: { state: "landed" } });
    expect(arrivals).toHaveLength(4);
  });

  it("is answered immediately when the edge drains", async () => {
    const { server, submit, get } = await setup();
    submit(1);
    const answer = get(`${pathOf(1)}?wait=landed`);
    await until("the wait", () => server.receipts.longPolls.pending === 1);
    server.rejectNewWork();
    expect(await answer).toMatchObject({ status: 200, body: { state: "accepted" } });
    expect(await get(`${pathOf(1)}?wait=landed`)).toMatchObject({ body: { state: "accepted" } });
  });
});

describe("a list", () => {
  it("has the account's own, newest first, and a cursor", async () => {
    const { submit, land, get } = await setup();
    for (const id of [1, 2, 3]) submit(id);
    submit(4, "slow");
    land(1);
    const first = await get(`${LIST}?limit=2`);
    expect(first.body.transactions).toMatchObject(
      [3, 2].map((id) => ({ signature: encodeSignature(signature(id)) })),
    );
    const second = await get(`${LIST}?limit=2&before=${first.body.next}`);
    expect(second.body).toMatchObject({ transactions: [{ state: "landed" }], next: null });
    const landed = await get(`${LIST}?state=landed`);
    expect(landed.body.transactions).toHaveLength(1);
    expect((await get(LIST, { key: SLOW_KEY })).body.transactions).toHaveLength(1);
  });

  it.each([
    [`${LIST}?limit=0`, "limit is"],
    [`${LIST}?status=landed`, 'the query has \\"status\\"'],
    [`${pathOf(1)}?wait=yes`, "wait is"],
    [`${STREAM}?state=gone`, "state has"],
  ])("and every other question is refused where it is wrong: %s", async (path, message) => {
    const { get } = await setup();
    const { status, body } = await get(path);
    expect({ status, reason: body.reason }).toEqual({ status: 400, reason: "invalid_params" });
    expect(JSON.stringify(body.error)).toContain(message);
  });

  it("answers HEAD, and other methods with 405", async () => {
    const { ask, server } = await setup();
    for (const path of [LIST, STREAM]) {
      const head = await ask(path, { method: "HEAD" });
      expect([head.status, await head.text()]).toEqual([200, ""]);
      const put = await ask(path, { method: "PUT" });
      expect([put.status, put.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
      expect((await ask(path, { key: "" })).status).toBe(401);
    }
    expect(server.receipts.streams.opened).toBe(0);
  });
});

it("reading has a limit of its own, as wide as that of sending", async () => {
  const { get, server } = await setup();
  const statuses = [];
  for (const path of [LIST, `${STREAM}?state=x`, LIST]) {
    statuses.push((await get(path, { key: SLOW_KEY })).status);
  }
  expect(statuses).toEqual([200, 400, 429]);
  const refused = await get(LIST, { key: SLOW_KEY });
  expect(refused.headers.get("retry-after")).toBe("1000");
  expect(refused.headers.get("ratelimit-policy")).toContain('"Slow"');
  expect(server.receipts.reads).toMatchObject({ allowed: 2, limited: 2 });
});

it("what is refused of reading is no submission that was refused", async () => {
  const { get } = await setup();
  for (const path of [pathOf(1), `${LIST}?limit=0`, LIST]) await get(path, { key: SLOW_KEY });
  expect(edge?.refused).toEqual([]);
  const raw = "/api/v1/sendRawTransaction";
  for (let sent = 0; sent < 3; sent += 1) await get(raw, { key: SLOW_KEY, method: "POST" });
  const limited = edge?.refused.filter((line) => line.endsWith("rate_limited"));
  expect(limited).toEqual(["slow rate_limited"]);
});

describe("a stream", () => {
  it("reports each change of the account's receipts", async () => {
    const { clock, submit, land, ask } = await setup();
    const response = await ask(STREAM);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    const seen = textOf(response);
    submit(1);
    submit(2, "slow");
    land(1);
    clock.advance(20);
    await until("the text", () => seen.text.includes('"state":"landed"'));
    expect(seen.text).toMatch(/^retry: 1000\n\n/);
    expect(seen.text.match(/^event: receipt$/gm)).toHaveLength(2);
  });

  it("is cut when its key is another account's", async () => {
    const { clock, server, ask, moveKey } = await setup();
    const stream = textOf(await ask(STREAM));
    await until("the server", () => server.receipts.streams.open === 1);
    moveKey(KEY, "other");
    clock.advance(6_000);
    await until("its end", () => stream.isEnded);
    expect(server.receipts.streams).toMatchObject({ open: 0, closedKey: 1 });
  });

  it("continues after Last-Event-ID on a new connection", async () => {
    const { clock, server, submit, land, ask } = await setup();
    const abort = new AbortController();
    const first = textOf(await ask(STREAM, { signal: abort.signal }));
    submit(1);
    clock.advance(20);
    await until("the text", () => first.text.includes("event: receipt"));
    const [, id = ""] = /^id: (.*)$/m.exec(first.text) ?? [];
    abort.abort();
    await until("the server", () => server.receipts.streams.open === 0);
    land(1);
    const second = textOf(await ask(STREAM, { id }));
    clock.advance(20);
    await until("the text", () => second.text.includes("event: receipt"));
    expect(second.text.match(/"state":"\w+"/g)?.[0]).toBe('"state":"landed"');
    expect(second.text).not.toContain("event: gap");
  });

  it("ends when the edge drains, which then waits for no stream", async () => {
    const { server, ask } = await setup();
    const seen = textOf(await ask(STREAM));
    await until("the server", () => server.receipts.streams.open === 1);
    server.rejectNewWork();
    await until("the text", () => seen.isEnded);
    expect(seen.text).toContain(": this edge is draining");
    expect(seen.isWhole).toBe(true);
    expect((await ask(STREAM)).status).toBe(503);
    expect(server.counters.requestsOpen).toBe(0);
  });

  it("stalls while the client reads nothing, continues, and is closed at last", async () => {
    const { clock, receipts, server, port, submit, land } = await setup();
    const socket = connect(port, "127.0.0.1");
    let size = 0;
    socket.on("data", (data) => {
      size += data.length;
    });
    socket.on("error", () => {});
    socket.write(`GET ${STREAM} HTTP/1.1\r\nHost: x\r\napi-x-token: ${KEY}\r\n\r\n`);
    await until("the text", () => size > 0);
    socket.pause();
    const { streams } = server.receipts;
    // Far more than the kernel buffers for one connection.
    for (let id = 1; id <= 20_000; id += 1) {
      submit(id);
      land(id);
    }
    /** Runs rounds until no more is written. */
    const fill = (): number => {
      let before = -1;
      while (streams.events !== before) {
        before = streams.events;
        clock.advance(20);
      }
      return before;
    };
    const stalledAt = fill();
    expect(stalledAt).toBeLessThan(receipts.changes.next - 1);
    socket.resume();
    await until("more events", () => {
      clock.advance(20);
      return streams.events > stalledAt;
    });
    socket.pause();
    expect(fill()).toBeGreaterThan(stalledAt);
    expect(streams.events).toBeLessThan(receipts.changes.next - 1);
    clock.advance(RECEIPT_STREAM_STALL_MS_MAX + 100);
    expect(streams).toMatchObject({ open: 0, closedSlow: 1 });
    socket.destroy();
    await until("the server", () => server.counters.connections === 0);
  });
});
