import { describe, expect, it } from "vitest";
import { createRequestChecks } from "../../src/http/request-checks.ts";
import { RequestContext } from "../../src/http/request-context.ts";
import { ALWAYS_READY } from "../../src/http/routes.ts";
import type { AccessControl } from "../../src/limits/access-control.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { testPrincipal } from "../support/principals.ts";
import { stub } from "../support/stub.ts";
import { fakeResponse, trackerOn } from "./fake-response.ts";

type Door = "raw" | "rpc";

/** Sends headers through one entry point; returns the status, null when the body is read. */
function enter(
  door: Door,
  headers: Readonly<Record<string, string>>,
  options: {
    readonly draining?: boolean;
    readonly waitNs?: number;
    /** Its notifications and queries, in order. */
    readonly steps?: string[];
    /** The calls on the response, in order. */
    readonly calls?: string[];
  } = {},
): string | null {
  const clock = createFakeClock();
  const tracker = trackerOn(clock);
  tracker.draining = options.draining ?? false;
  const plan = { name: "P", ratePerSecond: 1, burst: 1, shared: false };
  const access = stub<AccessControl>({
    authenticate: (token) => (token === "good" ? testPrincipal("a", plan) : null),
    charge() {
      options.steps?.push("charge");
      return options.waitNs ?? 0;
    },
    limitedBy: "account",
    rejectionOf: () => ({ reason: "unauthorized", message: "no", data: {} }),
  });
  const submit = (): void => {
    throw new Error("nothing is submitted before the body is here");
  };
  const response = fakeResponse();
  const context = new RequestContext(response, tracker, door === "raw" ? "raw" : "rpc");
  createRequestChecks({
    clock,
    access,
    submit,
    tracker,
    submitCall: null,
    forwardedHeader: "x-0a",
    health: ALWAYS_READY,
    info: { tipAccounts: [], version: "" },
  })[door](context, {
    getQuery: () => "",
    forEach(visit) {
      for (const [key, value] of Object.entries(headers)) visit(key, value);
    },
  });
  options.calls?.push(...response.calls);
  if (response.calls.includes("onData")) return null;
  return response.calls.find((call) => call.startsWith("status"))?.slice(7, 10) ?? "none";
}

const size = (bytes: number) => ({ "content-length": String(bytes) });
const key = { "api-x-token": "good" };

describe("admission", () => {
  it("reads the body of a request with a good key, up to the bound of its endpoint", () => {
    for (const [door, max] of [
      ["raw", 16_384],
      ["rpc", 131_072],
    ] as const) {
      expect(enter(door, { ...key, ...size(0) })).toBeNull();
      expect(enter(door, { ...key, ...size(max) })).toBeNull();
      expect(enter(door, { ...key, ...size(max + 1) })).toBe("413");
    }
  });

  it("reads a body without a key only where it may be getHealth, and is small", () => {
    expect(enter("raw", size(1))).toBe("401");
    expect(enter("rpc", size(256))).toBeNull();
    expect(enter("rpc", size(257))).toBe("401");
  });

  it("names the first of several faults: framing, draining, key, limit, size", () => {
    const limited = { waitNs: 1 };
    const all = { ...key, ...size(200_000) };
    expect(enter("raw", all)).toBe("413");
    expect(enter("raw", all, limited)).toBe("429");
    expect(enter("raw", size(200_000), limited)).toBe("401");
    expect(enter("raw", size(200_000), { ...limited, draining: true })).toBe("503");
    expect(enter("raw", { ...all, "transfer-encoding": "chunked" })).toBe("411");
  });

  it("reads the large body of a limited request no further: the connection is cut", () => {
    const isCut = (bytes: number): boolean => {
      const calls: string[] = [];
      enter("rpc", { ...key, ...size(bytes) }, { waitNs: 1, calls });
      return calls.at(-1) === "close";
    };
    expect([131_072, 131_073].map(isCut)).toEqual([false, true]);
  });

  it("judges a request that an ingress thread proxied like every other", () => {
    const proxied = { ...key, "x-0a": "10.0.0.1" };
    const steps: string[] = [];
    expect(enter("raw", { ...proxied, ...size(16_384) }, { steps })).toBeNull();
    expect(enter("raw", { ...proxied, ...size(16_385) }, { steps })).toBe("413");
    expect(enter("rpc", { ...proxied, ...size(300) }, { steps, waitNs: 1 })).toBe("429");
    expect(steps).toEqual(["charge", "charge", "charge"]);
    expect(enter("raw", { ...proxied, ...size(1) }, { draining: true })).toBe("503");
  });

  it("reads a small body while draining, with a key too, because it may be getHealth", () => {
    for (const headers of [size(256), { ...key, ...size(256) }]) {
      expect(enter("rpc", headers, { draining: true })).toBeNull();
      expect(enter("raw", headers, { draining: true })).toBe("503");
    }
    expect(enter("rpc", { ...key, ...size(257) }, { draining: true })).toBe("503");
  });
});
