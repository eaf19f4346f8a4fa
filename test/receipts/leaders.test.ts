import { describe, expect, it } from "vitest";
import { ReceiptLeaders } from "../../src/receipts/leaders.ts";
import { fc } from "../support/properties.ts";

const NONE_IN_USE = new Uint32Array(0);

describe("the leaders of receipts", () => {
  it("have one number for each pair of identity and address", () => {
    const leaders = new ReceiptLeaders();
    const pairs = [
      ["a", "1:1"],
      ["a", "2:2"],
      ["b", "1:1"],
    ] as const;
    const numbers = pairs.map(([identity, address]) =>
      leaders.numberOf(identity, address, NONE_IN_USE),
    );
    expect(new Set(numbers).size).toBe(3);
    for (const [index, [identity, address]] of pairs.entries()) {
      const number = numbers[index] ?? -1;
      expect(leaders.numberOf(identity, address, NONE_IN_USE)).toBe(number);
      expect([leaders.identityOf(number), leaders.addressOf(number)]).toEqual([identity, address]);
    }
    expect([leaders.identityOf(99), leaders.addressOf(99), leaders.count]).toEqual(["", "", 3]);
  });

  it("are removed when no delivery uses them and there are many", () => {
    const leaders = new ReceiptLeaders(4);
    for (let n = 0; n < 4; n += 1) leaders.numberOf("a", `${n}:1`, NONE_IN_USE);
    const kept = leaders.numberOf("a", "2:1", NONE_IN_USE);
    const next = leaders.numberOf("a", "new:1", Uint32Array.of(kept, kept));
    expect(leaders.count).toBe(2);
    expect([leaders.addressOf(kept), leaders.addressOf(next)]).toEqual(["2:1", "new:1"]);
    expect(leaders.numberOf("a", "2:1", NONE_IN_USE)).toBe(kept);
  });

  it("are scanned again only when they have doubled", () => {
    const leaders = new ReceiptLeaders(4);
    const used: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      used.push(leaders.numberOf("a", `${n}:1`, Uint32Array.from(used)));
    }
    expect(leaders.count).toBe(8);
    for (let n = 8; n < 16; n += 1) leaders.numberOf("a", `${n}:1`, NONE_IN_USE);
    expect(leaders.count).toBeLessThan(16);
  });

  it("are unchanged while a delivery uses them, in any order of use", () => {
    const pair = fc.record({
      identity: fc.constantFrom("a", "b", "c"),
      address: fc.constantFrom("1:1", "2:2", "3:3", "4:4"),
      place: fc.integer({ min: 0, max: 4 }),
    });
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 100 }), (pairs) => {
        const leaders = new ReceiptLeaders(2);
        const deliveries = new Uint32Array(5);
        const model = new Map<number, readonly [string, string]>();
        for (const { identity, address, place } of pairs) {
          deliveries[place] = leaders.numberOf(identity, address, deliveries);
          model.set(place, [identity, address]);
          for (const [at, expected] of model) {
            const number = deliveries[at] ?? -1;
            expect([leaders.identityOf(number), leaders.addressOf(number)]).toEqual(expected);
          }
        }
      }),
    );
  });
});
