import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  MOVED_REQUESTS_MAX,
  MOVED_UNASKED_BYTES_MAX,
  REMOTE_CHARS_TOLD,
  RPC_BODY_BYTES_MAX,
} from "../../src/core/limits.ts";
import { createElsewhere } from "../../src/ingress/elsewhere.ts";
import { Exchange } from "../../src/ingress/exchange.ts";
import type { MovedHead, ToFront, ToMain } from "../../src/ingress/moved.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createLine } from "../support/line.ts";
import { deskOn, fakeWire } from "./fake-wire.ts";

const HEAD: MovedHead = {
  door: "raw",
  why: "key",
  isPaid: false,
  token: "k",
  bodySize: 3,
  receivedNs: 5,
  page: null,
};
const PAGE = { method: "GET", path: "/x", query: "", lastEventId: "" };
const REST: MovedHead = { ...HEAD, door: "rest", bodySize: 0, page: PAGE };

function setup() {
  const errors: object[] = [];
  const desk = deskOn(createFakeClock(), errors);
  const line = createLine<ToMain, ToFront>();
  const works: (boolean | number)[] = [];
  const elsewhere = createElsewhere(line.port, (isLong) => {
    works.push(isLong ? line.posted.length : false);
  });
  function move(head: MovedHead, body: Uint8Array | null = null) {
    const wire = fakeWire();
    const exchange = new Exchange(wire, desk, "raw");
    elsewhere.move(desk, exchange, head, body);
    // What the exchange itself does before.
    wire.calls.length = 0;
    return { wire, exchange };
  }
  return { desk, errors, ...line, elsewhere, move, works };
}

describe("a moved request", () => {
  it("goes with what its path needs, and is open until its answer is written", async () => {
    const { desk, posted, tell, elsewhere, move } = setup();
    const { wire, exchange } = move({ ...HEAD, isPaid: true }, Uint8Array.of(1, 2, 3));
    await turn();
    const body = Uint8Array.of(1, 2, 3).buffer;
    expect(posted).toEqual([
      { kind: "request", number: 1, remoteAddress: "127.0.0.1", ...HEAD, isPaid: true, body },
    ]);
    expect(exchange.open).toBe(false);
    expect(desk.counters).toMatchObject({ requests: 0, requestsOpen: 1 });
    let idle = false;
    desk.whenIdle(() => {
      idle = true;
    });
    expect([idle, elsewhere.counters]).toEqual([false, { moved: 1, open: 1, refused: 0 }]);
    const acts = [
      ["status", "400 Bad"],
      ["header", "a", "b"],
      ["tryEnd", "x"],
    ] as const;
    tell({ number: 1, acts }, { number: 1, acts: [["tryEnd", "late"]] }, { number: 9, acts });
    expect(wire.calls).toEqual(["cork", "status 400 Bad", "a: b", "end x"]);
    expect([idle, elsewhere.counters.open]).toEqual([true, 0]);
    expect(desk.counters).toMatchObject({ requests: 0, requestsOpen: 0, aborted: 0 });
  });

  it("is told of before it is moved, whatever it is, and before its answer is", async () => {
    const { posted, tell, move, works } = setup();
    move(HEAD, Uint8Array.of(1));
    move({ ...REST, receivedNs: 0 });
    expect(works).toEqual([false, false]);
    await turn();
    expect([works.at(-1), posted.length]).toEqual([0, 2]);
    const acts = [["tryEnd", "abc"]] as const;
    tell({ number: 1, acts }, { number: 2, acts });
    expect(works.slice(3)).toEqual([false, false]);
  });

  it("is answered like any other: unread answers wait, cut ones close, drained ones too", () => {
    const { desk, tell, move } = setup();
    const unread = move(REST).wire;
    unread.stall();
    tell({ number: 1, acts: [["tryEnd", "abc"]] });
    expect(desk.counters.answersUnread).toBe(1);
    unread.drain(1);
    unread.drain();
    expect(unread.calls).toEqual(["cork", "tryEnd", "onWritable", "tryEnd", "end bc"]);
    const cut = move(REST).wire;
    tell({ number: 2, acts: [["header", "a", "b"], ["close"]] });
    expect(cut.calls).toEqual(["cork", "status 200 OK", "a: b", "close"]);
    const bare = move(REST).wire;
    tell({ number: 3, acts: [["endWithoutBody"]] });
    expect(bare.calls).toEqual(["cork", "end"]);
    const closed = move(REST).wire;
    tell({ number: 4, acts: [["pause"], ["end", "x", true]] });
    expect(closed.calls).toEqual(["cork", "pause", "end x and close"]);
    const drained = move(REST).wire;
    desk.draining = true;
    tell({ number: 5, acts: [["tryEnd", "x"]] });
    expect(drained.calls).toEqual(["cork", "pause", "end x and close"]);
    expect(desk.counters.requestsOpen).toBe(0);
  });

  it("whose client leaves is told of once, and counted by nobody here", async () => {
    const { desk, posted, elsewhere, tell, move } = setup();
    const { wire } = move(REST);
    wire.abort();
    wire.abort();
    tell({ number: 1, acts: [["tryEnd", "late"]] });
    await turn();
    expect(posted.map(({ kind }) => kind)).toEqual(["request", "gone"]);
    expect(desk.counters).toMatchObject({ requestsOpen: 0, aborted: 0, thrown: 0 });
    expect(elsewhere.counters.open).toBe(0);
  });

  it("whose answer cannot be written is closed, and the log is told", () => {
    const { desk, errors, tell, move } = setup();
    const { wire } = move(REST);
    wire.writeStatus = () => {
      throw new Error("a bug");
    };
    tell({
      number: 1,
      acts: [
        ["status", "200 OK"],
        ["tryEnd", "x"],
      ],
    });
    expect(wire.calls).toEqual(["cork", "close"]);
    expect([errors.length, desk.counters.thrown, desk.counters.requestsOpen]).toEqual([1, 1, 0]);
  });
});

describe("a body", () => {
  it("goes along when it comes in the same turn", async () => {
    const { posted, tell, move } = setup();
    const { wire } = move(HEAD);
    wire.chunk(Uint8Array.of(1, 2), false);
    wire.chunk(Uint8Array.of(3), true);
    await turn();
    tell({ number: 1, acts: [["receive"]] });
    await turn();
    expect(posted).toMatchObject([{ kind: "request", body: Uint8Array.of(1, 2, 3).buffer }]);
  });

  it("that comes later is given when it is whole and was asked for, in either order", async () => {
    const { posted, tell, move } = setup();
    const first = move(HEAD).wire;
    const second = move(HEAD).wire;
    await turn();
    first.chunk(Uint8Array.of(1, 2, 3), true);
    tell({ number: 2, acts: [["receive"]] });
    await turn();
    expect(posted).toMatchObject([{ body: null }, { body: null }]);
    tell({ number: 1, acts: [["receive"]] });
    second.chunk(Uint8Array.of(4, 5), false);
    second.chunk(Uint8Array.of(6), true);
    await turn();
    expect(posted.slice(2)).toEqual([
      { kind: "body", number: 1, body: Uint8Array.of(1, 2, 3).buffer },
      { kind: "body", number: 2, body: Uint8Array.of(4, 5, 6).buffer },
    ]);
  });

  it("is not waited for where there is none, and not read where nobody wants it", async () => {
    const { posted, move } = setup();
    const none = move({ ...HEAD, bodySize: 0 }).wire;
    const ignored = move({ ...REST, bodySize: 100 }).wire;
    const tooLarge = move({ ...HEAD, door: "rpc", bodySize: RPC_BODY_BYTES_MAX + 1 }).wire;
    await turn();
    expect(posted).toMatchObject([{ body: new ArrayBuffer() }, { body: null }, { body: null }]);
    for (const wire of [none, ignored, tooLarge]) wire.chunk(new Uint8Array(3), true);
    await turn();
    expect(posted).toHaveLength(3);
  });

  it("has a bound together with all that nobody has asked for yet", async () => {
    const { desk, elsewhere, tell, move } = setup();
    const large: MovedHead = { ...HEAD, door: "rpc", bodySize: RPC_BODY_BYTES_MAX };
    const count = MOVED_UNASKED_BYTES_MAX / RPC_BODY_BYTES_MAX;
    for (let made = 0; made < count; made += 1) expect(move(large).exchange.open).toBe(false);
    await turn();
    const over = move(large);
    expect([elsewhere.counters.refused, desk.refusals.overloaded]).toEqual([1, 1]);
    expect(over.exchange.open).toBe(false);
    tell({ number: 1, acts: [["receive"]] }, { number: 2, acts: [["tryEnd", "no"]] });
    for (let made = 0; made < 2; made += 1) move(large);
    expect(elsewhere.counters.refused).toBe(1);
    move(large);
    expect(elsewhere.counters.refused).toBe(2);
  });
});

describe("an answer in pieces", () => {
  const piece = (text: string) => ({ number: 1, acts: [["write", text]] as const });

  it("tells now and then what was taken in", async () => {
    const { posted, tell, move } = setup();
    const { wire } = move(REST);
    const half = "x".repeat(REMOTE_CHARS_TOLD / 2);
    tell(piece(half));
    await turn();
    expect(posted).toHaveLength(1);
    tell(piece(half));
    await turn();
    expect(posted[1]).toEqual({ kind: "taken", number: 1, chars: REMOTE_CHARS_TOLD });
    tell({ number: 1, acts: [["end", "", false]] });
    expect(wire.calls.at(-1)).toBe("end ");
  });

  it("tells at once that it stalls, and when all was taken in", async () => {
    const { posted, tell, move } = setup();
    const { wire } = move(REST);
    wire.stall();
    tell(piece("abc"), piece("def"));
    await turn();
    expect(posted.slice(1)).toEqual([{ kind: "stalled", number: 1 }]);
    wire.drain(1);
    await turn();
    expect(posted).toHaveLength(2);
    wire.drain();
    await turn();
    expect(posted[2]).toEqual({ kind: "taken", number: 1, chars: 6 });
  });
});

it("has so many requests in hand and refuses the next", async () => {
  const { desk, elsewhere, tell, move } = setup();
  for (let made = 0; made < MOVED_REQUESTS_MAX; made += 1) move(REST);
  const { wire } = move({ ...REST, bodySize: 200_000 });
  expect(wire.calls).toEqual([]);
  expect(elsewhere.counters).toEqual({ moved: 8_192, open: 8_192, refused: 1 });
  expect(desk.counters).toMatchObject({ requests: 1, requestsOpen: 8_192, cut: 1 });
  tell({ number: 5, acts: [["tryEnd", ""]] });
  move(REST);
  expect(elsewhere.counters).toMatchObject({ open: 8_192, refused: 1 });
});
