import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  EMPTY_RESPONSES_BURST,
  EMPTY_RESPONSES_PER_SECOND,
  RESPONSES_PER_SLICE_MAX,
} from "../../src/http/limits.ts";
import { RequestContext } from "../../src/http/request-context.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { fakeResponse, trackerOn } from "./fake-response.ts";

describe("an exchange", () => {
  it("attaches its abort handler before anything else", () => {
    const response = fakeResponse();
    new RequestContext(response, trackerOn(createFakeClock()), "raw");
    expect(response.calls).toEqual(["onAborted"]);
  });

  it("does not touch the response after an abort or an answer", () => {
    const tracker = trackerOn(createFakeClock());
    for (const over of ["abort", "answer"]) {
      const response = fakeResponse();
      const context = new RequestContext(response, tracker, "raw");
      if (over === "abort") response.abort();
      else context.respond({ kind: "accepted", signature: "s" });
      const before = response.calls.length;
      context.respond({ kind: "accepted", signature: "s" });
      context.reject({ reason: "internal", message: "s", data: {} });
      context.rejectAndClose({ reason: "too_large", message: "s", data: {} });
      context.send("200 OK", "x", "y");
      context.respondPreflight();
      expect(response.calls).toHaveLength(before);
    }
    expect(tracker.counters).toMatchObject({ requests: 2, requestsOpen: 0, aborted: 1 });
  });

  it("corks a response only outside the library's callbacks", () => {
    const tracker = trackerOn(createFakeClock());
    const answer = { kind: "accepted", signature: "s" } as const;
    const corked = (): boolean => response.calls.includes("cork");
    let response = fakeResponse();
    new RequestContext(response, tracker, "raw").respond(answer);
    expect(corked()).toBe(false);
    response = fakeResponse();
    const inBody = new RequestContext(response, tracker, "raw");
    inBody.receive(1, { handle: (context) => context.respond(answer) });
    inBody.handlerReturned();
    response.chunk(Uint8Array.of(1), true);
    expect(corked()).toBe(false);
    response = fakeResponse();
    const late = new RequestContext(response, tracker, "raw");
    late.receive(1, { handle: () => {} });
    late.handlerReturned();
    response.chunk(Uint8Array.of(1), true);
    late.respond(answer);
    expect(corked()).toBe(true);
  });

  it("hands one chunk on without a copy and puts several together", () => {
    const tracker = trackerOn(createFakeClock());
    const handled: number[][] = [];
    const views: Uint8Array[] = [];
    const handler = {
      handle(_: RequestContext, bytes: Uint8Array) {
        handled.push([...bytes]);
        views.push(bytes);
      },
    };
    const single = fakeResponse();
    new RequestContext(single, tracker, "raw").receive(3, handler);
    single.chunk(Uint8Array.of(1, 2, 3), true);
    const several = fakeResponse();
    new RequestContext(several, tracker, "raw").receive(4, handler);
    several.chunk(Uint8Array.of(1, 2), false);
    several.chunk(Uint8Array.of(), false);
    several.chunk(Uint8Array.of(3), false);
    several.chunk(Uint8Array.of(4), true);
    expect(handled).toEqual([
      [1, 2, 3],
      [1, 2, 3, 4],
    ]);
    expect(views.map((view) => view.length)).toEqual([0, 4]);
  });

  it("responds 500 when the body exceeds its announced size", () => {
    const errors: object[] = [];
    const tracker = trackerOn(createFakeClock(), errors);
    const response = fakeResponse();
    new RequestContext(response, tracker, "raw").receive(2, { handle: () => {} });
    response.chunk(Uint8Array.of(1, 2), false);
    response.chunk(Uint8Array.of(3), true);
    expect(response.calls.some((call) => call.startsWith("status 500"))).toBe(true);
    expect(errors).toHaveLength(1);
  });

  it("does not let a response that throws take the process down", () => {
    const errors: object[] = [];
    const tracker = trackerOn(createFakeClock(), errors);
    const response = {
      ...fakeResponse(),
      cork: () => {
        throw new Error("gone");
      },
    };
    const context = new RequestContext(response, tracker, "raw");
    context.handlerReturned();
    context.respond500(new Error("a bug"));
    expect(errors).toHaveLength(2);
  });

  it("defers its response while the client has unread responses", () => {
    const response = fakeResponse();
    response.stall();
    const tracker = trackerOn(createFakeClock());
    new RequestContext(response, tracker, "raw").send("200 OK", "text/plain", "añswer");
    expect(response.calls.at(-1)).toBe("onWritable");
    expect(tracker.counters.responsesUnread).toBe(1);
    response.drain(1);
    expect(response.calls.at(-1)).toBe("tryEnd");
    response.drain();
    expect(response.calls.at(-1)).toBe("end ñswer");
  });

  it("makes a large body when it is its turn, so that none of those lies in memory", async () => {
    const errors: object[] = [];
    const tracker = trackerOn(createFakeClock(), errors);
    let made = 0;
    const responses = Array.from({ length: 2 * RESPONSES_PER_SLICE_MAX + 1 }, () => fakeResponse());
    for (const [index, response] of responses.entries()) {
      new RequestContext(response, tracker, "raw").sendLazy("200 OK", "text/plain", () => {
        made += 1;
        if (index === RESPONSES_PER_SLICE_MAX) throw new Error("a bug");
        return `list ${index}`;
      });
    }
    expect(made).toBe(RESPONSES_PER_SLICE_MAX);
    responses[RESPONSES_PER_SLICE_MAX + 1]?.abort();
    await turn();
    expect(made).toBe(2 * RESPONSES_PER_SLICE_MAX - 1);
    await turn();
    expect(made).toBe(2 * RESPONSES_PER_SLICE_MAX);
    expect(tracker.counters.responsesDeferred).toBe(RESPONSES_PER_SLICE_MAX + 1);
    expect(responses.at(-1)?.calls.at(-1)).toBe(`end list ${responses.length - 1}`);
    expect(responses[RESPONSES_PER_SLICE_MAX]?.calls.at(-1)).toContain("end");
    expect(responses[RESPONSES_PER_SLICE_MAX]?.calls).toContainEqual(
      expect.stringContaining("status 500"),
    );
    expect(errors).toHaveLength(1);
  });

  it("waits for the next turn with what is too much for one", async () => {
    const tracker = trackerOn(createFakeClock());
    const responses = Array.from({ length: RESPONSES_PER_SLICE_MAX + 3 }, () => fakeResponse());
    const contexts = responses.map((response) => new RequestContext(response, tracker, "raw"));
    const answered = (): boolean[] =>
      responses.map(({ calls }) => calls.at(-1)?.includes("end") ?? false);
    for (const context of contexts.slice(0, -1)) context.send("200 OK", "text/plain", "ok");
    contexts.at(-1)?.respondPreflight();
    expect(answered().lastIndexOf(true)).toBe(RESPONSES_PER_SLICE_MAX - 1);
    responses[RESPONSES_PER_SLICE_MAX]?.abort();
    await turn();
    expect(answered().slice(RESPONSES_PER_SLICE_MAX)).toEqual([false, true, true]);
    const response = fakeResponse();
    new RequestContext(response, tracker, "raw").send("200 OK", "text/plain", "ok");
    expect(response.calls.at(-1)).toBe("end ok");
    expect(tracker.counters).toMatchObject({ requestsOpen: 0, aborted: 1, responsesDeferred: 3 });
  });

  it("holds a small answer for one turn, however many wait", async () => {
    const tracker = trackerOn(createFakeClock());
    const responses = Array.from({ length: 4 * RESPONSES_PER_SLICE_MAX }, () => fakeResponse());
    for (const response of responses)
      new RequestContext(response, tracker, "raw").send("200 OK", "text/plain", "ok");
    await turn();
    expect(responses.filter(({ calls }) => calls.at(-1) !== "end ok")).toEqual([]);
    expect(tracker.counters.responsesDeferred).toBe(3 * RESPONSES_PER_SLICE_MAX);
  });

  it("waits for nothing with what it was accepted, however many there are in a turn", () => {
    const tracker = trackerOn(createFakeClock());
    const responses = Array.from({ length: 2 * RESPONSES_PER_SLICE_MAX }, () => fakeResponse());
    for (const response of responses) {
      new RequestContext(response, tracker, "raw").respond({ kind: "accepted", signature: "s" });
    }
    expect(responses.every(({ calls }) => calls.at(-1)?.startsWith("end "))).toBe(true);
    expect(tracker.counters).toMatchObject({ accepted: responses.length, responsesDeferred: 0 });
  });

  it("counts once while its response is deferred", async () => {
    const tracker = trackerOn(createFakeClock());
    for (let i = 0; i < RESPONSES_PER_SLICE_MAX; i += 1) tracker.allowResponse();
    const response = fakeResponse();
    const context = new RequestContext(response, tracker, "raw");
    context.reject({ reason: "overloaded", message: "late", data: {} });
    context.respond({ kind: "accepted", signature: "s" });
    context.reject({ reason: "overloaded", message: "late", data: {} });
    await turn();
    expect(response.calls.at(-1)).toMatch(/^end .*"overloaded"/);
    expect(tracker.counters.accepted).toBe(0);
    expect(tracker.rejections.overloaded).toBe(1);
  });

  it("ends the connection with one too many of the answers without a body", async () => {
    const clock = createFakeClock();
    const tracker = trackerOn(clock);
    const ends = (act: (context: RequestContext) => void): boolean => {
      const response = fakeResponse();
      act(new RequestContext(response, tracker, "raw"));
      const last = response.calls.at(-1);
      const isTold = response.calls.some((call) => call.startsWith("connection: close\r\n\r\n"));
      expect(last).toBe(isTold ? "close" : "end");
      return last === "close";
    };
    for (let i = 0; i < EMPTY_RESPONSES_BURST; i += 1) {
      expect(ends((context) => context.respondPreflight())).toBe(false);
      if (i % 10 === 0) await turn();
    }
    await turn();
    expect(ends((context) => context.respondPreflight())).toBe(true);
    const head = (context: RequestContext): void => {
      context.withoutBody();
      context.send("200 OK", "text/plain", "ok");
    };
    expect(ends(head)).toBe(true);
    expect(tracker.counters.emptyBodyClosed).toBe(2);
    clock.advance(1_000 / EMPTY_RESPONSES_PER_SECOND);
    expect(ends(head)).toBe(false);
  });
});
