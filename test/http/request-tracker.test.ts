import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { Exchange } from "../../src/http/exchange.ts";
import { ANSWERS_A_TURN_MAX } from "../../src/http/limits.ts";
import { deskOn, fakeWire } from "../ingress/fake-wire.ts";
import { createFakeClock } from "../support/fake-clock.ts";

describe("the deadline", () => {
  it("ends those that waited too long, oldest first, and no others", () => {
    const clock = createFakeClock();
    const desk = deskOn(clock);
    desk.start();
    const wires = Array.from({ length: 4 }, () => fakeWire());
    const exchanges = wires.map((wire) => new Exchange(wire, desk, "raw"));
    for (const exchange of exchanges) {
      exchange.receivedNs = clock.nowNs();
      desk.wait(exchange);
      clock.advance(30);
    }
    // At 120 ms: they have waited 120, 90, 60 and 30 ms. The second is answered in time.
    exchanges[1]?.settle({ kind: "accepted", signature: "s" });
    expect(exchanges.map((exchange) => exchange.open)).toEqual([false, false, true, true]);
    clock.advance(45);
    expect(exchanges.map((exchange) => exchange.open)).toEqual([false, false, false, true]);
    clock.advance(1_000);
    expect(desk.counters).toMatchObject({ expired: 3, requestsOpen: 0 });
    expect(desk.refusals.overloaded).toBe(3);
    desk.stop();
    expect(clock.pending).toBe(0);
  });

  it("ends few in a turn where very many are late at once", () => {
    const clock = createFakeClock();
    const desk = deskOn(clock);
    desk.start();
    const count = 3 * ANSWERS_A_TURN_MAX;
    for (let i = 0; i < count; i += 1) {
      const exchange = new Exchange(fakeWire(), desk, "raw");
      exchange.receivedNs = clock.nowNs();
      desk.wait(exchange);
    }
    const inATurn: number[] = [];
    let before = 0;
    const { after } = clock;
    clock.after = (delayMs, act) => {
      inATurn.push(desk.counters.expired - before);
      before = desk.counters.expired;
      return after(delayMs, act);
    };
    clock.advance(1_000);
    expect(desk.counters.expired).toBe(count);
    expect(Math.max(...inATurn)).toBeLessThan(ANSWERS_A_TURN_MAX);
    expect(inATurn.reduce((sum, ended) => sum + ended, 0)).toBe(count);
  });

  it("takes one timer, however many wait", () => {
    const clock = createFakeClock();
    const desk = deskOn(clock);
    desk.start();
    for (let i = 0; i < 100; i += 1) {
      const exchange = new Exchange(fakeWire(), desk, "rpc");
      exchange.receivedNs = clock.nowNs();
      desk.wait(exchange);
    }
    expect(clock.pending).toBe(1);
    desk.stop();
  });

  it("takes no timer while nobody waits", () => {
    const clock = createFakeClock();
    const desk = deskOn(clock);
    desk.start();
    expect(clock.pending).toBe(0);
    const exchange = new Exchange(fakeWire(), desk, "rpc");
    exchange.receivedNs = clock.nowNs();
    desk.wait(exchange);
    clock.advance(60);
    expect(clock.pending).toBe(1);
    exchange.settle({ kind: "accepted", signature: "s" });
    clock.advance(60);
    expect(clock.pending).toBe(0);
    const later = new Exchange(fakeWire(), desk, "rpc");
    later.receivedNs = clock.nowNs();
    desk.wait(later);
    clock.advance(10_000);
    expect(desk.counters.expired).toBe(1);
    desk.stop();
  });

  it("measures from the body to the answer", () => {
    const clock = createFakeClock();
    const measured: number[] = [];
    const desk = deskOn(clock, [], { record: (ns) => void measured.push(ns) });
    const exchange = new Exchange(fakeWire(), desk, "raw");
    exchange.receivedNs = clock.nowNs();
    clock.advance(3);
    exchange.settle({ kind: "accepted", signature: "s" });
    exchange.settle({ kind: "accepted", signature: "s" });
    expect(measured).toEqual([3 * NS_PER_MS]);
  });
});

describe("whenIdle", () => {
  it("waits for every request that came in, also those whose body is on its way", () => {
    const desk = deskOn(createFakeClock());
    const exchanges = [fakeWire(), fakeWire()].map((wire) => new Exchange(wire, desk, "raw"));
    let isIdle = false;
    desk.whenIdle(() => {
      isIdle = true;
    });
    exchanges[0]?.permit();
    expect(isIdle).toBe(false);
    exchanges[1]?.permit();
    expect(isIdle).toBe(true);
  });

  it("is at once when nobody waits", () => {
    const acts: string[] = [];
    deskOn(createFakeClock()).whenIdle(() => void acts.push("idle"));
    expect(acts).toEqual(["idle"]);
  });
});
