import { describe, expect, it } from "vitest";
import { codeOf, DELIVERY_REASONS, REJECTIONS, SetupError } from "../../src/core/errors.ts";

/** The interface promised to clients: HTTP status, HTTP status and code over JSON-RPC. */
const PROMISED: Readonly<Record<string, readonly [number, number, number]>> = {
  unauthorized: [401, 401, -32000],
  rate_limited: [429, 429, -32005],
  too_large: [413, 413, -32600],
  parse_error: [400, 200, -32700],
  invalid_request: [400, 200, -32600],
  method_not_found: [400, 200, -32601],
  invalid_params: [400, 200, -32602],
  undecodable: [400, 200, -32602],
  tip_missing: [400, 200, -32602],
  signature_invalid: [400, 200, -32003],
  no_leader: [503, 503, -32603],
  overloaded: [503, 503, -32603],
  internal: [500, 500, -32603],
};

describe("rejection table", () => {
  it("keeps every promised status and code", () => {
    const kept = Object.entries(REJECTIONS)
      .filter(([name]) => Object.hasOwn(PROMISED, name))
      .map(([name, row]) => [name, [row.status, row.rpcStatus, row.rpcCode]]);
    expect(Object.fromEntries(kept)).toEqual(PROMISED);
  });

  it("orders reasons by precedence if several apply", () => {
    const order = Object.keys(REJECTIONS).filter((name) => Object.hasOwn(PROMISED, name));
    expect(order).toEqual(Object.keys(PROMISED));
  });

  it("marks as retryable only what may succeed later unchanged", () => {
    const retryable = Object.entries(REJECTIONS).filter(([, row]) => row.retryable);
    expect(retryable.map(([name]) => name)).toEqual([
      "rate_limited",
      "no_leader",
      "overloaded",
      "internal",
    ]);
  });

  it("uses status 200 only for content errors over JSON-RPC", () => {
    for (const row of Object.values(REJECTIONS)) {
      expect(row.status).toBeGreaterThanOrEqual(400);
      if (row.rpcStatus !== row.status) expect([row.status, row.rpcStatus]).toEqual([400, 200]);
    }
  });
});

describe("delivery reasons", () => {
  it("describe when they apply", () => {
    for (const when of Object.values(DELIVERY_REASONS)) expect(when).toMatch(/^[a-z].*[^.]$/);
  });
});

describe("codeOf", () => {
  it("returns the system error code, or null if there is none", () => {
    const systemError = Object.assign(new Error("no such file"), { code: "ENOENT" });
    const others = [new Error("no code"), { code: "ENOENT" }, "ENOENT", null];
    expect([systemError, ...others].map(codeOf)).toEqual(["ENOENT", null, null, null, null]);
  });
});

describe("SetupError", () => {
  it("is an Error with its own name and cause", () => {
    const cause = new Error("why");
    const error = new SetupError("what", { cause });
    expect([error.name, error.message, error.cause]).toEqual(["SetupError", "what", cause]);
    expect(error).toBeInstanceOf(Error);
  });
});
