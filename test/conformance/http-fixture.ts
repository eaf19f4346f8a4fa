/**
 * A touchdown HTTP server on loopback with a submit handler controlled by the test, and a client on
 * a plain socket, so that tests control every byte and segment. With ingress threads in
 * TEST_THREADS, clients connect to a native ingress thread in front of the server, which proxies
 * what it does not answer itself: clients must see no difference.
 */

import { createHash } from "node:crypto";
import { connect, type Socket } from "node:net";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import type { Rejection } from "../../src/core/errors.ts";
import type { ReceiptSource } from "../../src/core/receipt-source.ts";
import { createForwardedHeaderName } from "../../src/http/forwarded-header.ts";
import type { HttpCounters } from "../../src/http/request-tracker.ts";
import { createHttpServer, type HttpServer } from "../../src/http/server.ts";
import type { Submission, Submit } from "../../src/http/submit/submission.ts";
import {
  createAccessControl,
  type Principal,
  type RatePlan,
} from "../../src/limits/access-control.ts";
import type { NativeEngine } from "../../src/native/contract.ts";
import { networksOf } from "../../src/runtime/networks.ts";
import { testPrincipal } from "../support/principals.ts";
import { receiptSource } from "../support/receipt-source.ts";
import {
  createTestIngress,
  IDLE_TIMEOUT_MS,
  type TestIngress,
  testIngressEngine,
} from "../support/test-ingress.ts";

export const KEY = "td_test_conformance_key";
export const SLOW_KEY = "td_test_key_of_a_slow_plan";
/** Belongs to an account of the same name; allowed from these networks only. */
export const NARROW_KEY = "td_test_key_of_some_networks";
const NARROW_RANGES = ["203.0.113.0/24", "2001:db8::/32", "127.0.0.1"];
/** Looking up this key throws, as a bug would. */
export const BROKEN_KEY = "td_test_key_that_breaks";
export const SIGNATURE = "5".repeat(88);
export const RAW = "/api/v1/sendRawTransaction";
export const RPC = "/api/v1/sendTransaction";

export interface Fixture {
  readonly server: HttpServer;
  /** What clients connect to; null: they connect to the server itself. */
  readonly ingress: TestIngress | null;
  /** Counters of the component that owns the client connections. */
  readonly clients: Readonly<HttpCounters>;
  readonly port: number;
  readonly url: string;
  /** Copies of what reached the submit handler. */
  readonly submitted: Submission[];
  /** Errors passed to the log. */
  readonly errors: object[];
  /** Rejections shown to accounts, each as account, blank, reason. */
  readonly refused: string[];
  /** Uses of keys from other addresses, as shown to accounts: account, blank, message. */
  readonly violations: string[];
  /** The submit handler; accepts immediately unless a test replaces it. */
  submit: Submit;
  /** Moves a key to another account. */
  moveKey(token: string, account: string): void;
  stop(): Promise<void>;
}

export interface FixtureOptions {
  readonly clock?: Clock;
  readonly connectionsMax?: number;
  readonly plan?: RatePlan;
  readonly receipts?: ReceiptSource;
  readonly flushEvents?: () => void;
  /**
   * Name of the forwarded header of ingress threads that the test simulates; there is no real one
   * then.
   */
  readonly forwardedHeader?: string;
  /** The addon that creates the ingress thread; null for none; default: as TEST_THREADS says. */
  readonly ingressEngine?: NativeEngine | null;
}

export const accept: Submit = (_, done) => done({ kind: "accepted", signature: SIGNATURE });

export function refuse(rejection: Rejection): Submit {
  return (_, done) => done({ kind: "rejected", rejection });
}

export async function startFixture(options: FixtureOptions = {}): Promise<Fixture> {
  const clock = options.clock ?? systemClock;
  const connectionsMax = options.connectionsMax ?? 1_000;
  const wide: RatePlan = {
    name: "Wide",
    ratePerSecond: 1_000_000,
    burst: 1_000_000,
    shared: false,
  };
  const principals = new Map<string, Principal>([
    [digest(KEY), testPrincipal("acme", options.plan ?? wide)],
    [
      digest(SLOW_KEY),
      testPrincipal("slow", { name: "Slow", ratePerSecond: 0.001, burst: 2, shared: false }),
    ],
    [digest(NARROW_KEY), testPrincipal("narrow", wide, { networks: networksOf(NARROW_RANGES) })],
  ]);
  const submitted: Submission[] = [];
  const errors: object[] = [];
  const refused: string[] = [];
  const violations: string[] = [];
  const forwardedHeader = options.forwardedHeader ?? createForwardedHeaderName();
  const ingressEngine =
    options.ingressEngine === undefined ? testIngressEngine : options.ingressEngine;
  const ingress =
    ingressEngine === null || options.forwardedHeader !== undefined
      ? null
      : createTestIngress(ingressEngine, {
          ...{ forwardedHeader, connectionsMax, principals },
          onRejected: (account, reason) => void refused.push(`${account} ${reason}`),
          onViolated: (account, message) => void violations.push(`${account} ${message}`),
        });
  const hasProxy = ingress !== null || options.forwardedHeader !== undefined;
  let changes = 0;
  function moveKey(token: string, account: string): void {
    principals.set(digest(token), testPrincipal(account, wide));
    changes += 1;
  }
  const log = { info: () => {}, warn: () => {}, error: (fields: object) => errors.push(fields) };
  const server = createHttpServer(
    {
      clock,
      access: createAccessControl({
        clock,
        keys: {
          lookup(sha256) {
            const id = sha256.toString("hex");
            if (id === digest(BROKEN_KEY)) throw new Error("a bug in the look-up");
            return principals.get(id) ?? null;
          },
          get changes() {
            return changes;
          },
        },
        looksMistyped: (token) => token.startsWith("td_"),
        globalLimits: null,
        onPolicyViolation: ({ account }, { message }) =>
          void violations.push(`${account} ${message}`),
      }),
      submit(submission, done) {
        submitted.push({ ...submission, bytes: submission.bytes.slice() });
        fixture.submit(submission, done);
      },
      receipts:
        options.receipts ??
        receiptSource({
          find: (signature, account) =>
            signature === SIGNATURE && account === "acme" ? { signature, status: "landed" } : null,
        }),
      flushEvents: options.flushEvents ?? ((): void => {}),
      tip: { accounts: ["Tip1111", "Tip2222"], lamportsMin: 1_000_000 },
      log,
      latency: null,
      rejected: ({ account }, { reason }) => void refused.push(`${account} ${reason}`),
      ...(hasProxy && { forwardedHeader }),
    },
    {
      host: "127.0.0.1",
      port: 0,
      // By the wall clock no request is ever late; a test of deadlines passes its own clock.
      requestDeadlineMs: options.clock === undefined ? 600_000 : 1_000,
      idleTimeoutMs: IDLE_TIMEOUT_MS,
      version: "1.2.3",
      region: "test",
      connectionsMax,
    },
  );
  const upstream = await server.start();
  const { port } = (await ingress?.start(upstream.port)) ?? upstream;
  const url = `http://127.0.0.1:${port}`;
  const clients = ingress?.ingressThreads.stats[0]?.counters ?? server.counters;
  const observed = { clients, submitted, errors, moveKey };
  async function stop(): Promise<void> {
    // As an edge does: pending requests are answered, then no ingress thread is left.
    if (ingress !== null) server.rejectNewWork();
    await ingress?.stop();
    await server.stop();
  }
  const fixture: Fixture = {
    ...{ server, ingress, port, url, ...observed, submit: accept, stop },
    get refused() {
      ingress?.flushEvents();
      return refused;
    },
    get violations() {
      ingress?.flushEvents();
      return violations;
    },
  };
  return fixture;
}

function digest(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** One response as received. */
export interface RawResponse {
  readonly status: number;
  readonly reason: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface RawClient {
  /** Writes exactly these bytes. */
  write(data: string | Uint8Array): void;
  /** The next complete response; rejects when the connection ends first or nothing arrives. */
  response(): Promise<RawResponse>;
  /** Waits until the server has closed the connection; returns the unread data. */
  ended(): Promise<string>;
  close(): void;
}

const WAIT_MS = 60_000;

export async function connectRaw(port: number): Promise<RawClient> {
  const socket: Socket = connect(port, "127.0.0.1");
  socket.setNoDelay(true);
  let buffered = "";
  let isEnded = false;
  let wake: (() => void) | null = null;
  const notify = (): void => {
    wake?.();
    wake = null;
  };
  socket.on("data", (data) => {
    buffered += data.toString("latin1");
    notify();
  });
  // A server may end a connection by a reset.
  socket.on("error", () => {});
  socket.on("close", () => {
    isEnded = true;
    notify();
  });
  await new Promise<void>((resolve) => socket.once("connect", resolve));

  async function until<T>(read: () => T | null): Promise<T> {
    const deadline = AbortSignal.timeout(WAIT_MS);
    for (;;) {
      const value = read();
      if (value !== null) return value;
      if (deadline.aborted) throw new Error(`nothing arrived in time; buffered: ${buffered}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
        deadline.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }

  function readResponse(): RawResponse | null {
    const headEnd = buffered.indexOf("\r\n\r\n");
    if (headEnd < 0) {
      if (isEnded) throw new Error(`the connection ended; buffered: ${buffered}`);
      return null;
    }
    const [statusLine = "", ...lines] = buffered.slice(0, headEnd).split("\r\n");
    const headers = new Map<string, string>();
    for (const line of lines) {
      const colon = line.indexOf(":");
      headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
    }
    const size = Number(headers.get("content-length") ?? 0);
    if (buffered.length < headEnd + 4 + size) return null;
    const body = Buffer.from(buffered.slice(headEnd + 4, headEnd + 4 + size), "latin1").toString();
    buffered = buffered.slice(headEnd + 4 + size);
    const [, status = "", reason = ""] = /^HTTP\/1\.1 (\d+) (.*)$/.exec(statusLine) ?? [];
    return { status: Number(status), reason, headers, body };
  }

  return {
    write: (data) => void socket.write(data),
    response: () => until(readResponse),
    ended: () => until(() => (isEnded ? buffered : null)),
    close: () => void socket.destroy(),
  };
}

/** A POST request as bytes; `headers` precede Content-Length, which is added. */
export function plainPost(
  path: string,
  body: string | Uint8Array,
  headers: readonly string[],
): Buffer {
  const bytes = Buffer.from(body);
  const lines = [`POST ${path} HTTP/1.1`, "Host: x", ...headers, `Content-Length: ${bytes.length}`];
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), bytes]);
}

/** The same in the form that reaches the server whose submit handler the test controls. */
export function post(path: string, body: string | Uint8Array, headers: readonly string[]): Buffer {
  return plainPost(path, body, [
    ...headers,
    ...again(`Content-Length: ${Buffer.from(body).length}`),
  ]);
}

/**
 * The header of a body's size once more with TEST_THREADS: an ingress thread answers submissions
 * itself, and proxies this form. An empty list without.
 */
export function again(length: string): readonly string[] {
  return testIngressEngine === null ? [] : [length];
}

export const WITH_KEY = `api-x-token: ${KEY}`;

/** Sends one request on a separate connection. */
export async function once(port: number, data: string | Uint8Array): Promise<RawResponse> {
  const client = await connectRaw(port);
  client.write(data);
  try {
    return await client.response();
  } finally {
    client.close();
  }
}

/** A sendTransaction JSON-RPC call with these bytes. */
export function sendCall(bytes: Uint8Array, config: object | null = null): string {
  const encoded = Buffer.from(bytes).toString("base64");
  const params = config === null ? [encoded] : [encoded, config];
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "sendTransaction", params });
}
