import { expect, it } from "vitest";
import { endWhole } from "../../src/ingress/whole-answer.ts";
import { fakeWire } from "./fake-wire.ts";

it("ends at once, or waits until the client has taken in what came before", () => {
  const counters = { answersUnread: 0 };
  const quick = fakeWire();
  endWhole(quick, counters, "añswer");
  expect(quick.calls).toEqual(["end añswer"]);
  expect(counters.answersUnread).toBe(0);
  const slow = fakeWire();
  slow.stall();
  endWhole(slow, counters, "añswer");
  expect(counters.answersUnread).toBe(1);
  slow.drain(3);
  expect(slow.calls.at(-1)).toBe("tryEnd");
  slow.drain();
  expect(slow.calls.at(-1)).toBe("end swer");
});
