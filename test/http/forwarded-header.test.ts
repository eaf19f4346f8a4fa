/** Requests that an ingress thread proxies to the server, over real sockets. */

import { setImmediate as turn } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { createForwardedHeaderName } from "../../src/http/forwarded-header.ts";
import {
  connectRaw,
  NARROW_KEY,
  once,
  post,
  RAW,
  SIGNATURE,
  SLOW_KEY,
  startFixture,
  WITH_KEY,
} from "../conformance/http-fixture.ts";
import { receiptSource } from "../support/receipt-source.ts";

const BYTES = Uint8Array.from({ length: 300 }, (_, i) => i % 251);
const NAME = createForwardedHeaderName();
const NARROW = `api-x-token: ${NARROW_KEY}`;
const SLOW = `api-x-token: ${SLOW_KEY}`;
const WITHIN = "203.0.113.7";

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** A server behind ingress threads. */
async function behind() {
  const receipts = receiptSource({
    find: (signature, account) =>
      signature === SIGNATURE && account === "narrow" ? { signature, status: "landed" } : null,
  });
  const edge = await startFixture({ forwardedHeader: NAME, receipts });
  ends.push(edge.stop);
  return { edge };
}

/** The forwarded header of an ingress thread. */
function forwarded(from = "127.0.0.1"): string {
  return `${NAME}: ${from}`;
}

function ask(path: string, ...headers: readonly string[]): string {
  return `${[`GET ${path} HTTP/1.1`, "Host: x", ...headers].join("\r\n")}\r\n\r\n`;
}

describe("the name of the forwarded header", () => {
  it("is 34 characters in lower case and differs each time", () => {
    const names = Array.from({ length: 100 }, createForwardedHeaderName);
    for (const name of names) expect(name).toMatch(/^x-[0-9a-f]{32}$/);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("a proxied request", () => {
  const withHeader = (header: string, key: string) => post(RAW, BYTES, [header, key]);

  it("has the address that the ingress thread forwards, for restricted keys", async () => {
    const { edge } = await behind();
    const statusOf = async (from: string) =>
      (await once(edge.port, withHeader(forwarded(from), NARROW))).status;
    expect(await statusOf(WITHIN)).toBe(200);
    expect(await statusOf("2001:db8::1")).toBe(200);
    expect(await statusOf("198.51.100.1")).toBe(401);
    const refused = await once(edge.port, withHeader(forwarded("198.51.100.1"), NARROW));
    expect(refused.body).toContain("may not be used from this address");
    expect(edge.violations.at(-1)).toMatch(/^narrow .* came from 198\.51\.100\.1$/);
  });

  it("has that address also for reads", async () => {
    const { edge } = await behind();
    const path = `/api/v1/transactions/${SIGNATURE}`;
    const statusOf = async (...headers: readonly string[]) =>
      (await once(edge.port, ask(path, ...headers, NARROW))).status;
    expect(await statusOf(forwarded(WITHIN))).toBe(200);
    expect(await statusOf(forwarded("198.51.100.1"))).toBe(401);
  });

  it("has no address if its ingress thread could not forward one", async () => {
    const { edge } = await behind();
    const receipt = ask(`/api/v1/transactions/${SIGNATURE}`, NARROW);
    // The connection's own peer is the ingress thread, and its address would be allowed.
    expect((await once(edge.port, withHeader("x-other: y", NARROW))).status).toBe(401);
    expect((await once(edge.port, receipt)).status).toBe(401);
    expect((await once(edge.port, withHeader("x-other: y", WITH_KEY))).status).toBe(200);
  });

  it("is charged", async () => {
    const { edge } = await behind();
    const statuses = [];
    for (let count = 0; count < 3; count += 1) {
      statuses.push((await once(edge.port, withHeader(forwarded(), SLOW))).status);
    }
    expect(statuses).toEqual([200, 200, 429]);
    expect(edge.submitted.map(({ account }) => account)).toEqual(["slow", "slow"]);
  });

  it("is bounded in its size", async () => {
    const { edge } = await behind();
    const head = post(RAW, "", [forwarded(), WITH_KEY]).toString();
    const large = head.replaceAll("Content-Length: 0", "Content-Length: 16385");
    expect((await once(edge.port, large)).status).toBe(413);
  });

  it("is refused like every other while the server drains", async () => {
    const { edge } = await behind();
    edge.server.rejectNewWork();
    const { status, headers } = await once(edge.port, withHeader(forwarded(), WITH_KEY));
    expect([status, headers.get("connection")]).toEqual([503, "close"]);
  });

  it("shares its connection with others, each with its own forwarded header", async () => {
    const { edge } = await behind();
    const client = await connectRaw(edge.port);
    const statuses = [];
    for (const from of [WITHIN, "198.51.100.1", WITHIN]) {
      client.write(withHeader(forwarded(from), NARROW));
      statuses.push((await client.response()).status);
    }
    // Nothing is left of the previous request.
    client.write(withHeader("x-other: y", NARROW));
    statuses.push((await client.response()).status);
    expect(statuses).toEqual([200, 401, 200, 401]);
    client.close();
  });

  it.each([0, 1])("without a body is answered, whole or in pieces: %d", async (pieces) => {
    const { edge } = await behind();
    const client = await connectRaw(edge.port);
    const request = post(RAW, "", [forwarded(), WITH_KEY]);
    const cut = pieces === 0 ? request.length : 60;
    client.write(request.subarray(0, cut));
    for (let i = 0; i < 20; i += 1) await turn();
    if (cut < request.length) client.write(request.subarray(cut));
    expect((await client.response()).status).toBe(200);
    client.close();
  });
});

describe("a forwarded header of a client", () => {
  it("is ignored under another name", async () => {
    const { edge } = await behind();
    const header = forwarded(WITHIN).replace(NAME, createForwardedHeaderName());
    expect((await once(edge.port, post(RAW, BYTES, [header, NARROW]))).status).toBe(401);
    const slow = [];
    for (let count = 0; count < 3; count += 1) {
      slow.push((await once(edge.port, post(RAW, BYTES, [header, SLOW]))).status);
    }
    expect(slow).toEqual([200, 200, 429]);
  });

  it("is ignored after the ingress thread's own header", async () => {
    const { edge } = await behind();
    const headers = [forwarded("198.51.100.1"), forwarded(WITHIN)];
    expect((await once(edge.port, post(RAW, BYTES, [...headers, NARROW]))).status).toBe(401);
    expect((await once(edge.port, post(RAW, BYTES, [...headers, WITH_KEY]))).status).toBe(200);
  });

  it("is ignored without ingress threads: the request has its own address", async () => {
    const edge = await startFixture();
    ends.push(edge.stop);
    const header = forwarded("198.51.100.1");
    expect((await once(edge.port, post(RAW, BYTES, [header, NARROW]))).status).toBe(200);
    const slow = [];
    for (let count = 0; count < 3; count += 1) {
      slow.push((await once(edge.port, post(RAW, BYTES, [header, SLOW]))).status);
    }
    expect(slow).toEqual([200, 200, 429]);
  });
});
