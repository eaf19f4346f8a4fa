import { describe, expect, it } from "vitest";
import { REJECTIONS, type Rejection, type RejectionReason } from "../../src/core/errors.ts";
import {
  keepAliveLine,
  LIBRARY_IDLE_MS,
  NO_EXTRAS,
  rawRejected,
  rejectionHeaders,
  rejectionStatus,
  rpcRejected,
} from "../../src/http/response.ts";

const rejection = (reason: RejectionReason, message = "s"): Rejection => ({
  reason,
  message,
  data: { found: 1 },
});

describe("refusals", () => {
  it("are JSON for every reason, whatever the message holds", () => {
    const message = 'a "quote", a \\ and \u0000 \u2028 😀';
    // The keys of the table are the reasons.
    for (const reason of Object.keys(REJECTIONS) as RejectionReason[]) {
      expect(JSON.parse(rawRejected(rejection(reason, message)))).toEqual({
        success: false,
        error: message,
        reason,
      });
      expect(JSON.parse(rpcRejected("7", rejection(reason, message)))).toEqual({
        jsonrpc: "2.0",
        error: {
          code: REJECTIONS[reason].rpcCode,
          message: message,
          data: { reason, retryable: REJECTIONS[reason].retryable, message, found: 1 },
        },
        id: 7,
      });
    }
  });

  it("never let a data field replace the reason", () => {
    const hostile: Rejection = { reason: "internal", message: "s", data: { reason: "x" } };
    expect(JSON.parse(rpcRejected("1", hostile)).error.data.reason).toBe("internal");
  });

  it("have a title for every status", () => {
    for (const row of Object.values(REJECTIONS)) {
      expect(rejectionStatus(row.status, rejection("internal"))).not.toContain("Refused");
    }
  });

  it("keep line breaks out of the status line, and cut a long message there", () => {
    const line = rejectionStatus(400, rejection("internal", `a\r\nb\tü${"x".repeat(1_000)}`));
    expect(line).toMatch(/^400 Bad Request: a\?\?b\?\?x+$/);
    expect(line.length).toBeLessThan(300);
  });

  it("have Retry-After with 503 and 429, and not with 400", () => {
    expect(rejectionHeaders(rejection("no_leader"), NO_EXTRAS)).toContain("\r\nretry-after: 1");
    expect(rejectionHeaders(rejection("rate_limited"), NO_EXTRAS)).toContain("\r\nretry-after: 1");
    expect(rejectionHeaders(rejection("tip_missing"), NO_EXTRAS)).not.toContain("retry-after: ");
  });

  it("describe the plan's limit in the fields of the draft", () => {
    const headers = (name: string, ratePerSecond: number) =>
      rejectionHeaders(rejection("rate_limited"), {
        retryAfterSeconds: 3,
        plan: { name, ratePerSecond, burst: 9, shared: false },
        allow: null,
      });
    expect(headers("Beta", 50)).toContain('\r\nratelimit-policy: "Beta";q=50;w=1\r\n');
    expect(headers("Beta", 50)).toContain('\r\nratelimit: "Beta";r=0;t=3');
    expect(headers("Slow", 0.3)).toContain('ratelimit-policy: "Slow";q=1;w=4');
    expect(headers('a"\r\nb', 1)).toContain('ratelimit-policy: "a___b";q=1;w=1');
  });
});

it("answers promise an idle connection less than its shortest life", () => {
  for (const [idleTimeoutMs, line] of [
    [LIBRARY_IDLE_MS, "\r\nkeep-alive: timeout=7"],
    [75_000, "\r\nkeep-alive: timeout=74"],
    [75_999, "\r\nkeep-alive: timeout=74"],
    [2_000, "\r\nkeep-alive: timeout=1"],
    [500, "\r\nkeep-alive: timeout=1"],
  ] as const) {
    expect(keepAliveLine(idleTimeoutMs)).toBe(line);
  }
  expect(LIBRARY_IDLE_MS).toBeLessThanOrEqual(1_000 * IDLE_S_LEAST);
});

/** 10 s are three scans of 4 s, the first of which comes at an arbitrary time. */
const IDLE_S_LEAST = 8;
