import { describe, expect, it } from "vitest";
import { createChainCounters } from "../../src/chain/counters.ts";
import { createPatience, patient } from "../../src/chain/patience.ts";
import type { PostAnswer } from "../../src/chain/post.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setUp(...answers: readonly Partial<PostAnswer>[]) {
  const clock = createFakeClock();
  const counters = createChainCounters();
  const left = [...answers];
  let asked = 0;
  const next = async (): Promise<PostAnswer> => {
    asked += 1;
    return { status: 200, retryAfterMs: 0, body: Buffer.alloc(0), ...left.splice(0, 1)[0] };
  };
  const patience = createPatience(clock, counters);
  const made = { post: next, statuses: next, close: () => undefined };
  return { clock, counters, patience, made, poster: patient(made, patience), asked: () => asked };
}

const nobody = new Uint8Array();

describe("a node that wants to be left alone", () => {
  it("is asked nothing until then, by anyone", async () => {
    const { clock, counters, patience, made, poster, asked } = setUp({
      status: 429,
      retryAfterMs: 5_000,
    });
    const other = patient(made, patience);
    expect((await poster.post("{}")).status).toBe(429);
    clock.advance(1_000);
    await expect(other.post("{}")).rejects.toThrow("left alone for 4000 ms");
    await expect(poster.statuses?.(nobody)).rejects.toThrow("left alone");
    expect([asked(), counters.requestsHeldBack]).toEqual([1, 2]);
    clock.advance(4_000);
    expect((await other.post("{}")).status).toBe(200);
    expect(counters.requestsHeldBack).toBe(2);
  });

  it("may say so beside the statuses as well", async () => {
    const { poster } = setUp({ status: 503, retryAfterMs: 1 });
    await poster.statuses?.(nobody);
    await expect(poster.post("{}")).rejects.toThrow("left alone");
  });

  it("is believed for half a minute at the most", async () => {
    const { clock, poster } = setUp({ status: 429, retryAfterMs: 86_400_000 });
    await poster.post("{}");
    clock.advance(29_999);
    await expect(poster.post("{}")).rejects.toThrow("left alone");
    clock.advance(1);
    expect((await poster.post("{}")).status).toBe(200);
  });

  it("says so with a refusal, and not beside a good answer", async () => {
    const { poster } = setUp({ status: 200, retryAfterMs: 5_000 });
    await poster.post("{}");
    expect((await poster.post("{}")).status).toBe(200);
  });

  it("has no statuses of its own where the poster has none", () => {
    const { made, patience } = setUp();
    expect(patient({ post: made.post, close: made.close }, patience).statuses).toBeUndefined();
  });
});
