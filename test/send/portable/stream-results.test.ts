import { describe, expect, it } from "vitest";
import { COPIES_IN_FLIGHT_MAX } from "../../../src/send/limits.ts";
import { Fates } from "../../../src/send/portable/stream-results.ts";
import { FLYING } from "../../../src/send/transport.ts";
import { fc } from "../../support/properties.ts";

describe("the fates of a connection's streams", () => {
  it("are what was told last, with the time of it, until a stream is closed", () => {
    const fates = new Fates(COPIES_IN_FLIGHT_MAX);
    expect([fates.of(1), fates.endNsOf(1)]).toEqual([-1, 0]);
    fates.open(1, 3);
    expect([fates.of(1), fates.endNsOf(1)]).toEqual([3, 0]);
    fates.settle(1, FLYING, 76);
    expect([fates.of(1), fates.sentNsOf(1), fates.endNsOf(1)]).toEqual([FLYING, 76, 0]);
    fates.settle(1, 20, 77);
    expect([fates.of(1), fates.sentNsOf(1), fates.endNsOf(1)]).toEqual([20, 76, 77]);
    fates.close(1);
    fates.settle(1, 1, 78);
    expect([fates.of(1), fates.sentNsOf(1), fates.endNsOf(1)]).toEqual([-1, 0, 0]);
  });

  it("begin without the times of the stream whose place they take", () => {
    const fates = new Fates(COPIES_IN_FLIGHT_MAX);
    fates.open(1, 1);
    fates.settle(1, FLYING, 4);
    fates.settle(1, 1, 5);
    fates.close(1);
    fates.open(17, 0);
    expect([fates.of(17), fates.of(1)]).toEqual([0, -1]);
    expect([fates.sentNsOf(17), fates.endNsOf(17)]).toEqual([0, 0]);
  });

  it("are those of the newest as many as a connection may have in flight", () => {
    const fates = new Fates(COPIES_IN_FLIGHT_MAX);
    const count = 10 * COPIES_IN_FLIGHT_MAX;
    for (let stream = 1; stream <= count; stream += 1) fates.open(stream, stream % 8);
    for (let back = 0; back < COPIES_IN_FLIGHT_MAX; back += 1) {
      expect(fates.of(count - back)).toBe((count - back) % 8);
    }
    expect(fates.of(1)).toBe(-1);
  });

  it("outlast the end of the numbers", () => {
    const fates = new Fates(COPIES_IN_FLIGHT_MAX);
    const last = 2 ** 32 - 1;
    for (const stream of [last - 1, last, 1, 2]) fates.open(stream, stream % 8);
    for (const stream of [last - 1, last, 1, 2]) expect(fates.of(stream)).toBe(stream % 8);
  });

  it("are those of a plain map, however far apart the streams end", () => {
    const step = fc.tuple(fc.constantFrom("open", "settle", "close"), fc.nat(90), fc.nat(40));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const fates = new Fates(COPIES_IN_FLIGHT_MAX);
        const model = new Map<number, { fate: number; sentNs: number; endNs: number }>();
        let newest = 0;
        for (const [what, back, fate] of steps) {
          const stream = Math.max(1, newest - back);
          if (what === "open") {
            newest += 1;
            fates.open(newest, fate);
            model.set(newest, { fate, sentNs: 0, endNs: 0 });
          } else if (what === "close") {
            fates.close(stream);
            model.delete(stream);
          } else {
            fates.settle(stream, fate, stream);
            const known = model.get(stream);
            const times = fate === FLYING ? { sentNs: stream } : { endNs: stream };
            if (known !== undefined) model.set(stream, { ...known, fate, ...times });
          }
        }
        for (let stream = 1; stream <= newest; stream += 1) {
          const known = model.get(stream);
          expect(fates.of(stream)).toBe(known?.fate ?? -1);
          expect(fates.sentNsOf(stream)).toBe(known?.sentNs ?? 0);
          expect(fates.endNsOf(stream)).toBe(known?.endNs ?? 0);
        }
      }),
    );
  });
});
