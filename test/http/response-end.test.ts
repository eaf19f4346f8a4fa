import { describe, expect, it } from "vitest";
import { endWhole, Unread } from "../../src/http/response-end.ts";
import { type FakeWire, fakeWire } from "../ingress/fake-wire.ts";

const deskOf = (bytesMax: number) => ({
  counters: { answersUnread: 0 },
  unread: new Unread(bytesMax),
});

function stalled(): FakeWire {
  const wire = fakeWire();
  wire.stall();
  return wire;
}

it("ends at once, or waits until the client has taken in what came before", () => {
  const desk = deskOf(100);
  const quick = fakeWire();
  endWhole(quick, desk, "añswer");
  expect(quick.calls).toEqual(["end añswer"]);
  expect(desk.counters.answersUnread).toBe(0);
  const slow = stalled();
  endWhole(slow, desk, "añswer");
  expect(desk.counters.answersUnread).toBe(1);
  slow.drain(3);
  expect(slow.calls.at(-1)).toBe("tryEnd");
  slow.drain();
  expect(slow.calls.at(-1)).toBe("end swer");
});

describe("the bytes of all answers that wait", () => {
  it("are bounded: who took in nothing for the longest is closed", () => {
    const desk = deskOf(20);
    const wires = Array.from({ length: 4 }, stalled);
    const [first, second, third, fourth] = wires;
    for (const wire of wires.slice(0, 2)) endWhole(wire, desk, "x".repeat(10));
    expect(desk.unread.counters).toEqual({ bytes: 20, cut: 0 });
    first?.drain(1);
    if (third !== undefined) endWhole(third, desk, "x".repeat(10));
    expect(desk.unread.counters).toEqual({ bytes: 20, cut: 1 });
    expect(wires.map(({ calls }) => calls.at(-1))).toEqual([
      "tryEnd",
      "close",
      "onWritable",
      undefined,
    ]);
    if (fourth !== undefined) endWhole(fourth, desk, "x".repeat(20));
    expect(desk.unread.counters).toEqual({ bytes: 20, cut: 3 });
    expect(second?.calls.filter((call) => call === "close")).toHaveLength(1);
  });

  it("are counted until the end of the answer, or of its connection", () => {
    const desk = deskOf(20);
    const wires = Array.from({ length: 2 }, stalled);
    for (const wire of wires) endWhole(wire, desk, "x".repeat(10));
    wires[0]?.drain(3);
    expect(desk.unread.counters.bytes).toBe(20);
    wires[0]?.drain();
    expect(desk.unread.counters.bytes).toBe(10);
    wires[1]?.abort();
    expect(desk.unread.counters).toEqual({ bytes: 0, cut: 0 });
  });

  it("may be those of one answer alone, however large", () => {
    const desk = deskOf(20);
    const wire = stalled();
    endWhole(wire, desk, "x".repeat(30));
    expect(desk.unread.counters).toEqual({ bytes: 30, cut: 0 });
  });
});
