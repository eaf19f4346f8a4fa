import { describe, expect, it } from "vitest";
import type { Answer } from "../../src/core/flow.ts";
import { type Elsewhere, NO_ROOM } from "../../src/ingress/elsewhere.ts";
import { Exchange } from "../../src/ingress/exchange.ts";
import { createFrontAdmission } from "../../src/ingress/front-admission.ts";
import type { Gate } from "../../src/ingress/gate.ts";
import type { MovedHead } from "../../src/ingress/moved.ts";
import type { FrontSubmission } from "../../src/ingress/submit.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { keyOwner } from "../support/owners.ts";
import { stub } from "../support/stub.ts";
import { deskOn, fakeWire } from "./fake-wire.ts";

type Door = "raw" | "rpc" | "open";
const PLAN = { name: "P", ratePerSecond: 1, burst: 1, shared: false };
const BODY = Uint8Array.of(1, 2, 3);
const size = (bytes: number) => ({ "content-length": String(bytes) });
/** When the clock of the tests begins. */
const receivedNs = createFakeClock().nowNs();
const key = { "api-x-token": "good" };

interface Options {
  readonly draining?: boolean;
  readonly waitNs?: number;
  /** What the stage behind answers; declined when not given. */
  readonly answer?: Answer;
  /** Whether the body is a call of the usual form. */
  readonly isUsual?: boolean;
  /** What a moved request is refused with at once. */
  readonly noRoom?: boolean;
}

/** Sends a request through one entrance: what it is answered, and what is moved. */
function enter(door: Door, headers: Readonly<Record<string, string>>, options: Options = {}) {
  const clock = createFakeClock();
  const refused: (readonly [string, string, number])[] = [];
  const desk = deskOn(clock, [], null, ({ account }, { reason }, bytes) =>
    refused.push([account, reason, bytes]),
  );
  desk.draining = options.draining ?? false;
  const gate = stub<Gate>({
    find: (token) => (token === "good" ? keyOwner("a", PLAN) : null),
    charge: () => options.waitNs ?? 0,
  });
  const submissions: FrontSubmission[] = [];
  const moved: { readonly head: MovedHead; readonly body: readonly number[] | null }[] = [];
  const elsewhere: Elsewhere = {
    counters: { moved: 0, open: 0, refused: 0 },
    move(_, exchange, head, body) {
      moved.push({ head, body: body && [...body] });
      if (options.noRoom) exchange.refuse(NO_ROOM);
    },
  };
  const call = { kind: "send", id: "7", bytes: Uint8Array.of(9), maxRetries: 4 } as const;
  const admission = createFrontAdmission({
    clock,
    desk,
    gate,
    elsewhere,
    calls: { read: () => (options.isUsual ? call : null) },
    submit(submission) {
      submissions.push(submission);
      return options.answer ?? "leaders";
    },
  });
  const wire = fakeWire();
  const exchange = new Exchange(wire, desk, door === "raw" ? "raw" : "rpc");
  admission[door](exchange, {
    forEach(visit) {
      for (const [name, value] of Object.entries(headers)) visit(name, value);
    },
  });
  if (wire.calls.includes("onData")) wire.chunk(BODY, true);
  const status = wire.calls.find((text) => text.startsWith("status"))?.slice(7, 10) ?? null;
  const end = wire.calls.find((text) => text.startsWith("end")) ?? null;
  return { status, end, moved, submissions, refused };
}

describe("a front", () => {
  const accepted = { kind: "accepted", signature: "s" } as const;

  it("answers a transaction with a key that it knows", () => {
    const raw = enter("raw", { ...key, ...size(3) }, { answer: accepted });
    expect(raw).toMatchObject({ status: "200", end: 'end {"success":true,"signature":"s"}' });
    expect(raw.submissions).toMatchObject([{ owner: { account: "a" }, maxRetries: null }]);
    const rpc = enter("rpc", { ...key, ...size(3) }, { answer: accepted, isUsual: true });
    expect(rpc.end).toBe('end {"jsonrpc":"2.0","result":"s","id":7}');
    expect(rpc.submissions).toMatchObject([{ owner: { account: "a" }, maxRetries: 4 }]);
    const refusal = { reason: "undecodable", sentence: "no", data: {} } as const;
    expect(
      enter("raw", { ...key, ...size(3) }, { answer: { kind: "refused", refusal } }),
    ).toMatchObject({ status: "400", moved: [] });
    expect([raw.moved, rpc.moved]).toEqual([[], []]);
  });

  it("moves as paid, with its whole body, what is declined or no usual call", () => {
    for (const [door, isUsual, tried, why] of [
      ["raw", false, 1, "leaders"],
      ["rpc", true, 1, "leaders"],
      ["rpc", false, 0, "other"],
    ] as const) {
      const { status, moved, submissions } = enter(door, { ...key, ...size(3) }, { isUsual });
      const what = { door, why, isPaid: true } as const;
      const head = { ...what, token: "good", bodySize: 3, receivedNs, page: null };
      expect([status, moved]).toEqual([null, [{ head, body: [1, 2, 3] }]]);
      expect(submissions).toHaveLength(tried);
    }
  });

  it("moves unpaid, as it comes, what has no key that it knows or no limit left", () => {
    const limited = { waitNs: 1 };
    for (const [headers, token, why, options] of [
      [{ "api-x-token": "new", ...size(3) }, "new", "key", {}],
      [size(200_000), "", "key", limited],
      [{ ...key, ...size(3) }, "good", "limit", limited],
    ] as const) {
      for (const door of ["raw", "rpc"] as const) {
        const { status, moved } = enter(door, headers, options);
        const bodySize = Number(headers["content-length"]);
        const head = { door, why, isPaid: false, token, bodySize, receivedNs, page: null };
        expect([status, moved]).toEqual([null, [{ head, body: null }]]);
      }
    }
  });

  it("moves as paid what is too large, because the account is told of it there", () => {
    for (const door of ["raw", "rpc"] as const) {
      const { status, moved } = enter(door, { ...key, ...size(200_000) });
      const what = { door, why: "other", isPaid: true } as const;
      const head = { ...what, token: "good", bodySize: 200_000, receivedNs, page: null };
      expect([status, moved]).toEqual([null, [{ head, body: null }]]);
    }
  });

  it("knows whom it refuses for want of room, where it has a pass", () => {
    const tried = [{}, { waitNs: 1 }, { isUsual: true }];
    for (const [index, options] of tried.entries()) {
      const { refused, status } = enter(
        "rpc",
        { ...key, ...size(3) },
        { ...options, noRoom: true },
      );
      expect([status, refused]).toEqual(["503", [["a", "overloaded", index === 1 ? 0 : 3]]]);
    }
    const unknown = enter("raw", { "api-x-token": "new", ...size(3) }, { noRoom: true });
    expect([unknown.status, unknown.refused]).toEqual(["503", []]);
  });

  it("moves JSON-RPC on / with its body, whatever the key", () => {
    const what = { door: "open", why: "other", isPaid: false } as const;
    const head = { ...what, token: "", bodySize: 3, receivedNs, page: null };
    expect(enter("open", { ...key, ...size(3) }).moved).toEqual([{ head, body: [1, 2, 3] }]);
    expect(enter("open", { ...key, ...size(16_385) })).toMatchObject({ status: "413", moved: [] });
  });

  it("refuses framing, and what comes while it drains, by itself", () => {
    const chunked = { ...key, "transfer-encoding": "chunked" };
    for (const door of ["raw", "rpc", "open"] as const) {
      expect(enter(door, chunked)).toMatchObject({ status: "411", moved: [] });
    }
    for (const door of ["raw", "rpc"] as const) {
      const draining = enter(door, { ...key, ...size(3) }, { draining: true });
      expect(draining).toMatchObject({ status: "503", moved: [] });
    }
  });
});
