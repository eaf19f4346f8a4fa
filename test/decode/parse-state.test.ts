import { describe, expect, it } from "vitest";
import {
  createParseState,
  finish,
  sameKey,
  startParse,
  u32At,
  u64At,
} from "../../src/decode/parse-state.ts";
import { fc } from "../support/properties.ts";
import { u32, u64 } from "../support/transactions.ts";

describe("numbers in bytes", () => {
  it("are read as little-endian, unsigned", () => {
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 32 - 1 }), (value) => {
        expect(u32At(Buffer.concat([Buffer.alloc(3), u32(value)]), 3)).toBe(value);
      }),
      { seed: 1 },
    );
    expect(u32At(u32(2 ** 32 - 1), 0)).toBe(2 ** 32 - 1);
  });

  it("are exact up to 2^53 - 1 and capped above", () => {
    const max = Number.MAX_SAFE_INTEGER;
    for (const value of [0n, 1n, 2n ** 32n - 1n, 2n ** 32n, BigInt(max) - 1n, BigInt(max)]) {
      expect(u64At(u64(value), 0)).toBe(Number(value));
    }
    for (const value of [2n ** 53n, 2n ** 63n, 2n ** 64n - 1n]) {
      expect(u64At(u64(value), 0)).toBe(max);
    }
  });
});

describe("keys", () => {
  it("are equal only where all 32 bytes are", () => {
    const left = new Uint8Array(40).fill(7);
    for (let at = 0; at < 32; at += 1) {
      const right = new Uint8Array(33).fill(7);
      expect(sameKey(left, 5, right, 1)).toBe(true);
      right[1 + at] = 8;
      expect(sameKey(left, 5, right, 1)).toBe(false);
    }
  });
});

describe("the parse state", () => {
  it("releases the bytes when it is finished", () => {
    const state = createParseState();
    startParse(state, new Uint8Array(8));
    expect(state.bytes).toHaveLength(8);
    finish(state);
    expect(state.bytes).toHaveLength(0);
  });
});
