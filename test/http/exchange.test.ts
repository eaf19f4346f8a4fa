import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { Exchange } from "../../src/http/exchange.ts";
import {
  ANSWERS_A_TURN_MAX,
  BODILESS_ANSWERS_BURST,
  BODILESS_ANSWERS_PER_SECOND,
} from "../../src/http/limits.ts";
import { deskOn, fakeWire } from "../ingress/fake-wire.ts";
import { createFakeClock } from "../support/fake-clock.ts";

describe("an exchange", () => {
  it("attaches its abort handler before anything else", () => {
    const wire = fakeWire();
    new Exchange(wire, deskOn(createFakeClock()), "raw");
    expect(wire.calls).toEqual(["onAborted"]);
  });

  it("does not touch the response after an abort or an answer", () => {
    const desk = deskOn(createFakeClock());
    for (const over of ["abort", "answer"]) {
      const wire = fakeWire();
      const exchange = new Exchange(wire, desk, "raw");
      if (over === "abort") wire.abort();
      else exchange.settle({ kind: "accepted", signature: "s" });
      const before = wire.calls.length;
      exchange.settle({ kind: "accepted", signature: "s" });
      exchange.refuse({ reason: "internal", sentence: "s", data: {} });
      exchange.cut({ reason: "too_large", sentence: "s", data: {} });
      exchange.send("200 OK", "x", "y");
      exchange.permit();
      expect(wire.calls).toHaveLength(before);
    }
    expect(desk.counters).toMatchObject({ requests: 2, requestsOpen: 0, aborted: 1 });
  });

  it("gathers an answer by itself only where no callback of the library does", () => {
    const desk = deskOn(createFakeClock());
    const answer = { kind: "accepted", signature: "s" } as const;
    const corked = (): boolean => wire.calls.includes("cork");
    let wire = fakeWire();
    new Exchange(wire, desk, "raw").settle(answer);
    expect(corked()).toBe(false);
    wire = fakeWire();
    const inBody = new Exchange(wire, desk, "raw");
    inBody.receive(1, { take: (exchange) => exchange.settle(answer) });
    inBody.handled();
    wire.chunk(Uint8Array.of(1), true);
    expect(corked()).toBe(false);
    wire = fakeWire();
    const late = new Exchange(wire, desk, "raw");
    late.receive(1, { take: () => {} });
    late.handled();
    wire.chunk(Uint8Array.of(1), true);
    late.settle(answer);
    expect(corked()).toBe(true);
  });

  it("hands one chunk on without a copy and puts several together", () => {
    const desk = deskOn(createFakeClock());
    const taken: number[][] = [];
    const views: Uint8Array[] = [];
    const taker = {
      take(_: Exchange, bytes: Uint8Array) {
        taken.push([...bytes]);
        views.push(bytes);
      },
    };
    const single = fakeWire();
    new Exchange(single, desk, "raw").receive(3, taker);
    single.chunk(Uint8Array.of(1, 2, 3), true);
    const several = fakeWire();
    new Exchange(several, desk, "raw").receive(4, taker);
    several.chunk(Uint8Array.of(1, 2), false);
    several.chunk(Uint8Array.of(), false);
    several.chunk(Uint8Array.of(3), false);
    several.chunk(Uint8Array.of(4), true);
    expect(taken).toEqual([
      [1, 2, 3],
      [1, 2, 3, 4],
    ]);
    expect(views.map((view) => view.length)).toEqual([0, 4]);
  });

  it("answers 500 when more comes than was announced", () => {
    const errors: object[] = [];
    const desk = deskOn(createFakeClock(), errors);
    const wire = fakeWire();
    new Exchange(wire, desk, "raw").receive(2, { take: () => {} });
    wire.chunk(Uint8Array.of(1, 2), false);
    wire.chunk(Uint8Array.of(3), true);
    expect(wire.calls.some((call) => call.startsWith("status 500"))).toBe(true);
    expect(errors).toHaveLength(1);
  });

  it("does not let a response that throws take the process down", () => {
    const errors: object[] = [];
    const desk = deskOn(createFakeClock(), errors);
    const wire = {
      ...fakeWire(),
      cork: () => {
        throw new Error("gone");
      },
    };
    const exchange = new Exchange(wire, desk, "raw");
    exchange.handled();
    exchange.fail(new Error("a bug"));
    expect(errors).toHaveLength(2);
  });

  it("waits with its answer for a client that has not taken in the ones before", () => {
    const wire = fakeWire();
    wire.stall();
    const desk = deskOn(createFakeClock());
    new Exchange(wire, desk, "raw").send("200 OK", "text/plain", "añswer");
    expect(wire.calls.at(-1)).toBe("onWritable");
    expect(desk.counters.answersUnread).toBe(1);
    wire.drain(1);
    expect(wire.calls.at(-1)).toBe("tryEnd");
    wire.drain();
    expect(wire.calls.at(-1)).toBe("end ñswer");
  });

  it("makes a large body when it is its turn, so that none of those lies in memory", async () => {
    const errors: object[] = [];
    const desk = deskOn(createFakeClock(), errors);
    let made = 0;
    const wires = Array.from({ length: 2 * ANSWERS_A_TURN_MAX + 1 }, () => fakeWire());
    for (const [index, wire] of wires.entries()) {
      new Exchange(wire, desk, "raw").sendMade("200 OK", "text/plain", () => {
        made += 1;
        if (index === ANSWERS_A_TURN_MAX) throw new Error("a bug");
        return `list ${index}`;
      });
    }
    expect(made).toBe(ANSWERS_A_TURN_MAX);
    wires[ANSWERS_A_TURN_MAX + 1]?.abort();
    await turn();
    expect(made).toBe(2 * ANSWERS_A_TURN_MAX - 1);
    await turn();
    expect(made).toBe(2 * ANSWERS_A_TURN_MAX);
    expect(desk.counters.answersDeferred).toBe(ANSWERS_A_TURN_MAX + 1);
    expect(wires.at(-1)?.calls.at(-1)).toBe(`end list ${wires.length - 1}`);
    expect(wires[ANSWERS_A_TURN_MAX]?.calls.at(-1)).toContain("end");
    expect(wires[ANSWERS_A_TURN_MAX]?.calls).toContainEqual(expect.stringContaining("status 500"));
    expect(errors).toHaveLength(1);
  });

  it("waits for the next turn with what is too much for one", async () => {
    const desk = deskOn(createFakeClock());
    const wires = Array.from({ length: ANSWERS_A_TURN_MAX + 3 }, () => fakeWire());
    const exchanges = wires.map((wire) => new Exchange(wire, desk, "raw"));
    const answered = (): boolean[] =>
      wires.map(({ calls }) => calls.at(-1)?.includes("end") ?? false);
    for (const exchange of exchanges.slice(0, -1)) exchange.send("200 OK", "text/plain", "ok");
    exchanges.at(-1)?.permit();
    expect(answered().lastIndexOf(true)).toBe(ANSWERS_A_TURN_MAX - 1);
    wires[ANSWERS_A_TURN_MAX]?.abort();
    await turn();
    expect(answered().slice(ANSWERS_A_TURN_MAX)).toEqual([false, true, true]);
    const wire = fakeWire();
    new Exchange(wire, desk, "raw").send("200 OK", "text/plain", "ok");
    expect(wire.calls.at(-1)).toBe("end ok");
    expect(desk.counters).toMatchObject({ requestsOpen: 0, aborted: 1, answersDeferred: 3 });
  });

  it("holds a small answer for one turn, however many wait", async () => {
    const desk = deskOn(createFakeClock());
    const wires = Array.from({ length: 4 * ANSWERS_A_TURN_MAX }, () => fakeWire());
    for (const wire of wires) new Exchange(wire, desk, "raw").send("200 OK", "text/plain", "ok");
    await turn();
    expect(wires.filter(({ calls }) => calls.at(-1) !== "end ok")).toEqual([]);
    expect(desk.counters.answersDeferred).toBe(3 * ANSWERS_A_TURN_MAX);
  });

  it("waits for nothing with what it was accepted, however many there are in a turn", () => {
    const desk = deskOn(createFakeClock());
    const wires = Array.from({ length: 2 * ANSWERS_A_TURN_MAX }, () => fakeWire());
    for (const wire of wires) {
      new Exchange(wire, desk, "raw").settle({ kind: "accepted", signature: "s" });
    }
    expect(wires.every(({ calls }) => calls.at(-1)?.startsWith("end "))).toBe(true);
    expect(desk.counters).toMatchObject({ accepted: wires.length, answersDeferred: 0 });
  });

  it("is one thing to its client and to whoever counts while its answer waits", async () => {
    const desk = deskOn(createFakeClock());
    for (let i = 0; i < ANSWERS_A_TURN_MAX; i += 1) desk.allowAnswer();
    const wire = fakeWire();
    const exchange = new Exchange(wire, desk, "raw");
    exchange.refuse({ reason: "overloaded", sentence: "late", data: {} });
    exchange.settle({ kind: "accepted", signature: "s" });
    exchange.refuse({ reason: "overloaded", sentence: "late", data: {} });
    await turn();
    expect(wire.calls.at(-1)).toMatch(/^end .*"overloaded"/);
    expect(desk.counters.accepted).toBe(0);
    expect(desk.refusals.overloaded).toBe(1);
  });

  it("ends the connection with one too many of the answers without a body", async () => {
    const clock = createFakeClock();
    const desk = deskOn(clock);
    const ends = (act: (exchange: Exchange) => void): boolean => {
      const wire = fakeWire();
      act(new Exchange(wire, desk, "raw"));
      const last = wire.calls.at(-1);
      const isTold = wire.calls.some((call) => call.startsWith("connection: close\r\n\r\n"));
      expect(last).toBe(isTold ? "close" : "end");
      return last === "close";
    };
    for (let i = 0; i < BODILESS_ANSWERS_BURST; i += 1) {
      expect(ends((exchange) => exchange.permit())).toBe(false);
      if (i % 10 === 0) await turn();
    }
    await turn();
    expect(ends((exchange) => exchange.permit())).toBe(true);
    const head = (exchange: Exchange): void => {
      exchange.withoutBody();
      exchange.send("200 OK", "text/plain", "ok");
    };
    expect(ends(head)).toBe(true);
    expect(desk.counters.bodilessCut).toBe(2);
    clock.advance(1_000 / BODILESS_ANSWERS_PER_SECOND);
    expect(ends(head)).toBe(false);
  });
});
