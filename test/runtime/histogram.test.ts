import { describe, expect, it } from "vitest";
import { createHistogram, LATENCY_BOUNDS_NS } from "../../src/runtime/histogram.ts";

describe("a histogram", () => {
  it("has bounds 1, 2 and 5 of each decade from 10 us to 10 s", () => {
    expect(LATENCY_BOUNDS_NS).toHaveLength(19);
    expect(LATENCY_BOUNDS_NS.slice(0, 4)).toEqual([10_000, 20_000, 50_000, 100_000]);
    expect(LATENCY_BOUNDS_NS.slice(-3)).toEqual([2e9, 5e9, 1e10]);
  });

  it("counts a value in the first bucket whose bound it does not exceed", () => {
    const histogram = createHistogram([10, 20, 50]);
    for (const ns of [0, 9, 10, 11, 20, 21, 50]) histogram.record(ns);
    expect([...histogram.counts]).toEqual([3, 2, 2, 0]);
  });

  it("counts what exceeds every bound in a last bucket", () => {
    const histogram = createHistogram([10, 20, 50]);
    histogram.record(51);
    histogram.record(1e15);
    expect([...histogram.counts]).toEqual([0, 0, 0, 2]);
  });

  it("keeps the sum and the count", () => {
    const histogram = createHistogram();
    expect([histogram.sumNs, histogram.count]).toEqual([0, 0]);
    histogram.record(1500);
    histogram.record(2500.5);
    expect([histogram.sumNs, histogram.count]).toEqual([4000.5, 2]);
  });

  it("counts a negative duration as 0", () => {
    const histogram = createHistogram();
    histogram.record(-256);
    expect(histogram.counts[0]).toBe(1);
    expect(histogram.sumNs).toBe(0);
  });

  it("rejects bounds that do not increase", () => {
    expect(() => createHistogram([1, 3, 3])).toThrow(RangeError);
    expect(() => createHistogram([1, Number.NaN])).toThrow(RangeError);
  });
});
