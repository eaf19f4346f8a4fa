import { setFlagsFromString } from "node:v8";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { loadNative } from "../../src/native/load.ts";
import { withFastProperties } from "../../src/runtime/fast-object.ts";
import { createHistogram } from "../../src/runtime/histogram.ts";
import { createRing, ringBytes } from "../../src/runtime/ring.ts";

setFlagsFromString("--allow-natives-syntax");
/** V8's own report on an object. */
const isQuick = new Function("object", "return %HasFastProperties(object)");

function counter() {
  let count = 0;
  return {
    name: "counter",
    add() {
      count += 1;
    },
    get count() {
      return count;
    },
  };
}

describe("a fast object", () => {
  it("has fast properties, unlike a literal with a getter", () => {
    expect(isQuick(counter())).toBe(false);
    expect(isQuick(withFastProperties(counter()))).toBe(true);
  });

  it("has them also as the second and third of its kind", () => {
    const records = [1, 2, 3].map(() => withFastProperties(counter()));
    expect(records.map((record) => isQuick(record))).toEqual([true, true, true]);
  });

  it("has the same properties, and its getters return current values", () => {
    const record = withFastProperties(counter());
    record.add();
    record.add();
    expect(record).toEqual({ name: "counter", add: expect.any(Function), count: 2 });
    expect(Object.keys(record)).toEqual(["name", "add", "count"]);
  });

  it("is used on the path of transactions", () => {
    const ring = () => createRing(new SharedArrayBuffer(ringBytes(4, 64)), 0, 4, 64);
    const native = loadNative();
    const histograms = [createHistogram([1]), createHistogram([1, 2])];
    const records: unknown[] = [systemClock, ...histograms, ring(), ring()];
    if (native.kind === "loaded") records.push(native.native);
    expect(records.map((record) => isQuick(record))).toEqual(records.map(() => true));
  });
});
