import { describe, expect, it } from "vitest";
import { DELIVERIES_IN_FLIGHT_MAX } from "../../../src/send/limits.ts";
import { StreamResults } from "../../../src/send/native/stream-results.ts";
import { IN_FLIGHT } from "../../../src/send/transport.ts";
import { fc } from "../../support/properties.ts";

describe("the stream results of a connection", () => {
  it("are the last recorded ones, with their time, until a stream is closed", () => {
    const streamResults = new StreamResults(DELIVERIES_IN_FLIGHT_MAX);
    expect([streamResults.of(1), streamResults.endNsOf(1)]).toEqual([-1, 0]);
    streamResults.open(1, 3);
    expect([streamResults.of(1), streamResults.endNsOf(1)]).toEqual([3, 0]);
    streamResults.record(1, IN_FLIGHT, 76);
    expect([streamResults.of(1), streamResults.sentNsOf(1), streamResults.endNsOf(1)]).toEqual([
      IN_FLIGHT,
      76,
      0,
    ]);
    streamResults.record(1, 20, 77);
    expect([streamResults.of(1), streamResults.sentNsOf(1), streamResults.endNsOf(1)]).toEqual([
      20, 76, 77,
    ]);
    streamResults.close(1);
    streamResults.record(1, 1, 78);
    expect([streamResults.of(1), streamResults.sentNsOf(1), streamResults.endNsOf(1)]).toEqual([
      -1, 0, 0,
    ]);
  });

  it("start without the times of the stream whose entry they reuse", () => {
    const streamResults = new StreamResults(DELIVERIES_IN_FLIGHT_MAX);
    streamResults.open(1, 1);
    streamResults.record(1, IN_FLIGHT, 4);
    streamResults.record(1, 1, 5);
    streamResults.close(1);
    streamResults.open(17, 0);
    expect([streamResults.of(17), streamResults.of(1)]).toEqual([0, -1]);
    expect([streamResults.sentNsOf(17), streamResults.endNsOf(17)]).toEqual([0, 0]);
  });

  it("cover the newest streams up to the in-flight bound", () => {
    const streamResults = new StreamResults(DELIVERIES_IN_FLIGHT_MAX);
    const count = 10 * DELIVERIES_IN_FLIGHT_MAX;
    for (let stream = 1; stream <= count; stream += 1) streamResults.open(stream, stream % 8);
    for (let back = 0; back < DELIVERIES_IN_FLIGHT_MAX; back += 1) {
      expect(streamResults.of(count - back)).toBe((count - back) % 8);
    }
    expect(streamResults.of(1)).toBe(-1);
  });

  it("survive the wrap of stream numbers", () => {
    const streamResults = new StreamResults(DELIVERIES_IN_FLIGHT_MAX);
    const last = 2 ** 32 - 1;
    for (const stream of [last - 1, last, 1, 2]) streamResults.open(stream, stream % 8);
    for (const stream of [last - 1, last, 1, 2]) expect(streamResults.of(stream)).toBe(stream % 8);
  });

  it("match a plain map, however far apart the streams end", () => {
    const step = fc.tuple(fc.constantFrom("open", "settle", "close"), fc.nat(90), fc.nat(40));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const streamResults = new StreamResults(DELIVERIES_IN_FLIGHT_MAX);
        const model = new Map<number, { streamResult: number; sentNs: number; endNs: number }>();
        let newest = 0;
        for (const [what, back, streamResult] of steps) {
          const stream = Math.max(1, newest - back);
          if (what === "open") {
            newest += 1;
            streamResults.open(newest, streamResult);
            model.set(newest, { streamResult, sentNs: 0, endNs: 0 });
          } else if (what === "close") {
            streamResults.close(stream);
            model.delete(stream);
          } else {
            streamResults.record(stream, streamResult, stream);
            const known = model.get(stream);
            const times = streamResult === IN_FLIGHT ? { sentNs: stream } : { endNs: stream };
            if (known !== undefined) model.set(stream, { ...known, streamResult, ...times });
          }
        }
        for (let stream = 1; stream <= newest; stream += 1) {
          const known = model.get(stream);
          expect(streamResults.of(stream)).toBe(known?.streamResult ?? -1);
          expect(streamResults.sentNsOf(stream)).toBe(known?.sentNs ?? 0);
          expect(streamResults.endNsOf(stream)).toBe(known?.endNs ?? 0);
        }
      }),
    );
  });
});
