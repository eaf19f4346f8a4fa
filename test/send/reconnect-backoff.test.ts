import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import type { CloseReason } from "../../src/send/close-policy.ts";
import { ReconnectBackoff } from "../../src/send/reconnect-backoff.ts";

const options = { reconnectMs: 8_000, reconnectMsMax: 64_000, random: () => 0 };

/** When the next attempt is allowed, in ms, after an attempt at 0 that ended at `endMs`. */
function nextMs(
  name: CloseReason,
  endMs: number,
  liveMs = 0,
  backoff = new ReconnectBackoff(options),
): number {
  backoff.recordAttempt(0);
  backoff.ended(name, liveMs * NS_PER_MS, false, endMs * NS_PER_MS);
  return backoff.nextAttemptNs / NS_PER_MS;
}

describe("the wait before the next attempt", () => {
  it.each([
    ["unanswered", 3_000, 8_000],
    ["local", 3_000, 8_000],
    ["closed", 3_000, 4_000],
    ["evicted", 3_000, 4_000],
    ["evicted", 60_000, 61_000],
    ["disallowed", 3_000, 11_000],
    ["too_many_streams", 3_000, 4_000],
    ["too_many", 3_000, 11_000],
    ["invalid_stream", 3_000, 4_000],
    ["other_code", 3_000, 11_000],
    ["refused", 3_000, 5_000],
    ["transport", 3_000, 11_000],
    ["silent", 3_000, 4_000],
  ] as const)("after %s at %i ms ends at %i ms", (name, endMs, expected) => {
    expect(nextMs(name, endMs)).toBe(expected);
  });

  it("doubles with each consecutive failure up to its bound", () => {
    const backoff = new ReconnectBackoff(options);
    const pauses: number[] = [];
    for (let count = 0; count < 6; count += 1) {
      const startNs = backoff.nextAttemptNs;
      backoff.recordAttempt(startNs);
      backoff.ended("unanswered", 0, false, startNs + 3_000 * NS_PER_MS);
      pauses.push((backoff.nextAttemptNs - startNs) / NS_PER_MS);
    }
    expect(pauses).toEqual([8_000, 16_000, 32_000, 64_000, 64_000, 64_000]);
  });

  it("allows at most eight attempts in the period of eight, however short it is", () => {
    const backoff = new ReconnectBackoff(options);
    const attempts: number[] = [];
    for (let nowMs = 20_000; nowMs < 600_000; nowMs += 50) {
      const nowNs = nowMs * NS_PER_MS;
      if (nowNs < backoff.nextAttemptNs) continue;
      backoff.recordAttempt(nowNs);
      attempts.push(nowMs - 20_000);
      // It claims a long life, so that no wait grows.
      backoff.ended("closed", nowNs - 16_000 * NS_PER_MS, false, nowNs);
    }
    const within = (ms: number) => attempts.filter((it) => it >= ms && it < ms + 60_000).length;
    expect(Math.max(...attempts.map(within))).toBe(8);
    expect(attempts[7]).toBeLessThan(9_000);
    expect(attempts.length).toBeGreaterThan(60);
  });

  it("restarts after a connection that lived", () => {
    const backoff = new ReconnectBackoff(options);
    for (let count = 0; count < 3; count += 1) nextMs("disallowed", 0, 0, backoff);
    expect(nextMs("disallowed", 20_000, 1, backoff)).toBe(28_000);
  });

  it.each([
    ["evicted", true, [1_000, 1_000, 1_000]],
    ["evicted", false, [1_000, 2_000, 4_000]],
    ["closed", true, [1_000, 2_000, 4_000]],
  ] as const)("after connections that ended as %s, used: %s, is %j", (name, used, pauses) => {
    const backoff = new ReconnectBackoff(options);
    const found = pauses.map(() => {
      const liveNs = backoff.nextAttemptNs;
      backoff.recordAttempt(liveNs);
      const endNs = liveNs + 10_000 * NS_PER_MS;
      backoff.ended(name, liveNs, used, endNs);
      return (backoff.nextAttemptNs - endNs) / NS_PER_MS;
    });
    expect(found).toEqual(pauses);
  });

  it("is lengthened by up to a quarter", () => {
    const backoff = new ReconnectBackoff({ ...options, random: () => 0.999 });
    const ms = nextMs("disallowed", 0, 0, backoff);
    expect(ms).toBeGreaterThan(9_900);
    expect(ms).toBeLessThan(10_000);
  });
});
