import { describe, expect, it } from "vitest";
import { endResponse, Unread } from "../../src/http/response-end.ts";
import { type FakeResponse, fakeResponse } from "./fake-response.ts";

const trackerOf = (bytesMax: number) => ({
  counters: { responsesUnread: 0 },
  unread: new Unread(bytesMax),
});

function stalled(): FakeResponse {
  const response = fakeResponse();
  response.stall();
  return response;
}

it("ends immediately, or waits until the client has read the earlier responses", () => {
  const tracker = trackerOf(100);
  const withFastProperties = fakeResponse();
  endResponse(withFastProperties, tracker, "añswer");
  expect(withFastProperties.calls).toEqual(["end añswer"]);
  expect(tracker.counters.responsesUnread).toBe(0);
  const slow = stalled();
  endResponse(slow, tracker, "añswer");
  expect(tracker.counters.responsesUnread).toBe(1);
  slow.drain(3);
  expect(slow.calls.at(-1)).toBe("tryEnd");
  slow.drain();
  expect(slow.calls.at(-1)).toBe("end swer");
});

describe("the bytes of all answers that wait", () => {
  it("are bounded: who took in nothing for the longest is closed", () => {
    const tracker = trackerOf(20);
    const responses = Array.from({ length: 4 }, stalled);
    const [first, second, third, fourth] = responses;
    for (const response of responses.slice(0, 2)) endResponse(response, tracker, "x".repeat(10));
    expect(tracker.unread.counters).toEqual({ bytes: 20, closed: 0 });
    first?.drain(1);
    if (third !== undefined) endResponse(third, tracker, "x".repeat(10));
    expect(tracker.unread.counters).toEqual({ bytes: 20, closed: 1 });
    expect(responses.map(({ calls }) => calls.at(-1))).toEqual([
      "tryEnd",
      "close",
      "onWritable",
      undefined,
    ]);
    if (fourth !== undefined) endResponse(fourth, tracker, "x".repeat(20));
    expect(tracker.unread.counters).toEqual({ bytes: 20, closed: 3 });
    expect(second?.calls.filter((call) => call === "close")).toHaveLength(1);
  });

  it("are counted until the end of the answer, or of its connection", () => {
    const tracker = trackerOf(20);
    const responses = Array.from({ length: 2 }, stalled);
    for (const response of responses) endResponse(response, tracker, "x".repeat(10));
    responses[0]?.drain(3);
    expect(tracker.unread.counters.bytes).toBe(20);
    responses[0]?.drain();
    expect(tracker.unread.counters.bytes).toBe(10);
    responses[1]?.abort();
    expect(tracker.unread.counters).toEqual({ bytes: 0, closed: 0 });
  });

  it("may be those of one answer alone, however large", () => {
    const tracker = trackerOf(20);
    const response = stalled();
    endResponse(response, tracker, "x".repeat(30));
    expect(tracker.unread.counters).toEqual({ bytes: 30, closed: 0 });
  });
});
