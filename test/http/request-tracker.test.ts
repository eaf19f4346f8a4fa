import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { RESPONSES_PER_SLICE_MAX } from "../../src/http/limits.ts";
import { RequestContext } from "../../src/http/request-context.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { fakeResponse, trackerOn } from "./fake-response.ts";

describe("the deadline", () => {
  it("ends those that waited too long, oldest first, and no others", () => {
    const clock = createFakeClock();
    const tracker = trackerOn(clock);
    tracker.start();
    const responses = Array.from({ length: 4 }, () => fakeResponse());
    const contexts = responses.map((response) => new RequestContext(response, tracker, "raw"));
    for (const context of contexts) {
      context.receivedNs = clock.nowNs();
      tracker.enqueue(context);
      clock.advance(30);
    }
    // At 120 ms they have waited 120, 90, 60 and 30 ms. The second is answered in time.
    contexts[1]?.respond({ kind: "accepted", signature: "s" });
    expect(contexts.map((context) => context.open)).toEqual([false, false, true, true]);
    clock.advance(45);
    expect(contexts.map((context) => context.open)).toEqual([false, false, false, true]);
    clock.advance(1_000);
    expect(tracker.counters).toMatchObject({ expired: 3, requestsOpen: 0 });
    expect(tracker.rejections.overloaded).toBe(3);
    tracker.stop();
    expect(clock.pending).toBe(0);
  });

  it("times out a bounded number in a turn when very many are late", () => {
    const clock = createFakeClock();
    const tracker = trackerOn(clock);
    tracker.start();
    const count = 3 * RESPONSES_PER_SLICE_MAX;
    for (let i = 0; i < count; i += 1) {
      const context = new RequestContext(fakeResponse(), tracker, "raw");
      context.receivedNs = clock.nowNs();
      tracker.enqueue(context);
    }
    const inATurn: number[] = [];
    let before = 0;
    const { after } = clock;
    clock.after = (delayMs, act) => {
      inATurn.push(tracker.counters.expired - before);
      before = tracker.counters.expired;
      return after(delayMs, act);
    };
    clock.advance(1_000);
    expect(tracker.counters.expired).toBe(count);
    expect(Math.max(...inATurn)).toBeLessThan(RESPONSES_PER_SLICE_MAX);
    expect(inATurn.reduce((sum, ended) => sum + ended, 0)).toBe(count);
  });

  it("uses one timer for any number of requests", () => {
    const clock = createFakeClock();
    const tracker = trackerOn(clock);
    tracker.start();
    for (let i = 0; i < 100; i += 1) {
      const context = new RequestContext(fakeResponse(), tracker, "rpc");
      context.receivedNs = clock.nowNs();
      tracker.enqueue(context);
    }
    expect(clock.pending).toBe(1);
    tracker.stop();
  });

  it("uses no timer while no request waits", () => {
    const clock = createFakeClock();
    const tracker = trackerOn(clock);
    tracker.start();
    expect(clock.pending).toBe(0);
    const context = new RequestContext(fakeResponse(), tracker, "rpc");
    context.receivedNs = clock.nowNs();
    tracker.enqueue(context);
    clock.advance(60);
    expect(clock.pending).toBe(1);
    context.respond({ kind: "accepted", signature: "s" });
    clock.advance(60);
    expect(clock.pending).toBe(0);
    const later = new RequestContext(fakeResponse(), tracker, "rpc");
    later.receivedNs = clock.nowNs();
    tracker.enqueue(later);
    clock.advance(10_000);
    expect(tracker.counters.expired).toBe(1);
    tracker.stop();
  });

  it("measures from the body to the answer", () => {
    const clock = createFakeClock();
    const measured: number[] = [];
    const tracker = trackerOn(clock, [], { record: (ns) => void measured.push(ns) });
    const context = new RequestContext(fakeResponse(), tracker, "raw");
    context.receivedNs = clock.nowNs();
    clock.advance(3);
    context.respond({ kind: "accepted", signature: "s" });
    context.respond({ kind: "accepted", signature: "s" });
    expect(measured).toEqual([3 * NS_PER_MS]);
  });
});

describe("whenIdle", () => {
  it("waits for every received request, also those with an incomplete body", () => {
    const tracker = trackerOn(createFakeClock());
    const contexts = [fakeResponse(), fakeResponse()].map(
      (response) => new RequestContext(response, tracker, "raw"),
    );
    let isIdle = false;
    tracker.whenIdle(() => {
      isIdle = true;
    });
    contexts[0]?.respondPreflight();
    expect(isIdle).toBe(false);
    contexts[1]?.respondPreflight();
    expect(isIdle).toBe(true);
  });

  it("is immediate when no request waits", () => {
    const acts: string[] = [];
    trackerOn(createFakeClock()).whenIdle(() => void acts.push("idle"));
    expect(acts).toEqual(["idle"]);
  });
});
