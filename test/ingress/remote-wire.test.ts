import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { REMOTE_CHARS_ON_THE_WAY_MAX } from "../../src/core/limits.ts";
import { Outbox } from "../../src/core/port.ts";
import type { MovedRequest, ToFront } from "../../src/ingress/moved.ts";
import { RemoteWire } from "../../src/ingress/remote-wire.ts";
import { createLine } from "../support/line.ts";

const REQUEST: MovedRequest = {
  kind: "request",
  number: 7,
  door: "raw",
  why: "key",
  isPaid: false,
  token: "",
  bodySize: 3,
  receivedNs: 5,
  page: null,
  remoteAddress: "10.1.2.3",
  body: Uint8Array.of(1, 2, 3).buffer,
};

function setup(request: MovedRequest = REQUEST) {
  const line = createLine<ToFront, never>();
  let ends = 0;
  const wire = new RemoteWire(request, new Outbox<ToFront>(line.port), () => {
    ends += 1;
  });
  return { wire, posted: line.posted, ends: () => ends };
}

it("posts what a turn did in one message, in its order, and nothing behind the end", async () => {
  const { wire, posted, ends } = setup();
  wire.cork(() => {
    wire.writeStatus("404 Not Found");
    wire.writeHeader("a", "b");
    expect(wire.tryEnd("body")).toEqual([true, true]);
  });
  wire.end("again", true);
  wire.close();
  await turn();
  expect(posted).toEqual([
    {
      number: 7,
      acts: [
        ["status", "404 Not Found"],
        ["header", "a", "b"],
        ["tryEnd", "body"],
      ],
    },
  ]);
  expect(ends()).toBe(1);
});

it("knows every way in which an answer ends", async () => {
  for (const [end, act] of [
    [(wire: RemoteWire) => wire.end("x", true), ["end", "x", true]],
    [(wire: RemoteWire) => wire.tryEnd(Buffer.from("ñ")), ["tryEnd", "ñ"]],
    [(wire: RemoteWire) => wire.endWithoutBody(), ["endWithoutBody"]],
    [(wire: RemoteWire) => wire.close(), ["close"]],
  ] as const) {
    const { wire, posted, ends } = setup();
    wire.pause();
    end(wire);
    wire.abort();
    await turn();
    expect(posted).toEqual([{ number: 7, acts: [["pause"], act] }]);
    expect(ends()).toBe(1);
  }
});

it("gives a body that came along to who wants it, and asks for one that did not", async () => {
  const bodies: number[][] = [];
  const take = (chunk: ArrayBuffer, isLast: boolean): void => {
    expect(isLast).toBe(true);
    bodies.push([...new Uint8Array(chunk)]);
  };
  const along = setup();
  along.wire.onData(take);
  along.wire.begin();
  const later = setup({ ...REQUEST, body: null });
  later.wire.onData(take);
  later.wire.begin();
  const unwanted = setup({ ...REQUEST, body: null });
  unwanted.wire.begin();
  await turn();
  expect([along.posted, later.posted, unwanted.posted]).toEqual([
    [],
    [{ number: 7, acts: [["receive"]] }],
    [],
  ]);
  later.wire.deliver(Uint8Array.of(4).buffer);
  expect(bodies).toEqual([[1, 2, 3], [4]]);
});

it("tells its writer to wait while too much is on the way, and when it may go on", () => {
  const { wire } = setup();
  let drained = 0;
  wire.onWritable(() => {
    drained += 1;
    return true;
  });
  const half = "x".repeat(REMOTE_CHARS_ON_THE_WAY_MAX / 2);
  expect([wire.write(half), wire.write(half), wire.write("x")]).toEqual([true, true, false]);
  wire.taken(1);
  expect(drained).toBe(1);
  expect(wire.write("y")).toBe(false);
  wire.taken(half.length);
  expect([drained, wire.write("z")]).toEqual([2, true]);
  // Nobody was told to wait.
  wire.taken(1);
  expect(drained).toBe(2);
});

it("tells its writer to wait while the client takes nothing in, however little that is", () => {
  const { wire } = setup();
  let drained = 0;
  wire.onWritable(() => {
    drained += 1;
    return true;
  });
  expect(wire.write("a")).toBe(true);
  wire.stall();
  expect(wire.write("b")).toBe(false);
  wire.taken(2);
  expect([drained, wire.write("c")]).toEqual([1, true]);
});

it("tells that the client left, once, and never after the end", async () => {
  const { wire, posted } = setup();
  let gone = 0;
  wire.onAborted(() => {
    gone += 1;
  });
  wire.abort();
  wire.abort();
  wire.end("late", false);
  wire.taken(1);
  await turn();
  expect([gone, posted]).toEqual([1, []]);
});

it("has the address of the front's client", () => {
  expect(Buffer.from(setup().wire.getRemoteAddressAsText()).toString()).toBe("10.1.2.3");
});
