import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  base58LengthMax,
  decodeBase58,
  decodeBase64,
  encodeBase58,
  encodeBase64,
  encodeKey,
  encodeSignature,
} from "../../src/core/encoding.ts";
import { toBase58 } from "../support/base58.ts";
import { fc } from "../support/properties.ts";

const runs = { seed: 58, numRuns: 2000 };
const plain = (bytes: Uint8Array | null): number[] | null => (bytes === null ? null : [...bytes]);

/** Bytes that start with zeros or 255s more often than random ones. */
function edged(size: number): fc.Arbitrary<Uint8Array> {
  const body = fc.uint8Array({ minLength: size, maxLength: size });
  const edge = fc.nat({ max: size });
  return fc
    .tuple(body, edge, fc.constantFrom(0, 255), fc.boolean())
    .map(([bytes, n, byte, use]) => {
      return use ? bytes.fill(byte, 0, n) : bytes;
    });
}

describe("base58 of keys and signatures", () => {
  it("encodes known addresses", () => {
    expect(encodeKey(new Uint8Array(32))).toBe("1".repeat(32));
    expect(encodeSignature(new Uint8Array(64))).toBe("1".repeat(64));
    expect(encodeKey(new Uint8Array(32).fill(255))).toBe(
      "JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFG",
    );
  });

  it("matches long division for arbitrary keys and signatures", () => {
    fc.assert(
      fc.property(edged(32), (key) => {
        expect(encodeKey(key)).toBe(toBase58(key));
      }),
      runs,
    );
    fc.assert(
      fc.property(edged(64), (signature) => {
        expect(encodeSignature(signature)).toBe(toBase58(signature));
      }),
      runs,
    );
  });

  it("reads a view at an offset, and throws for an offset out of range", () => {
    const bytes = randomBytes(200);
    const view = bytes.subarray(20);
    expect(encodeKey(view, 11)).toBe(toBase58(bytes.subarray(31, 63)));
    expect(encodeSignature(view, 116)).toBe(toBase58(bytes.subarray(136, 200)));
    expect(() => encodeSignature(view, 117)).toThrow(RangeError);
    expect(() => encodeKey(view, -1)).toThrow(RangeError);
  });

  it("does not depend on the value encoded before", () => {
    encodeSignature(new Uint8Array(64).fill(255));
    const one = new Uint8Array(64);
    one[63] = 1;
    expect(encodeSignature(one)).toBe(`${"1".repeat(63)}2`);
    expect(encodeKey(one)).toBe("1".repeat(32));
  });
});

describe("base58 of arbitrary bytes", () => {
  it("decodes to the encoded bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat({ max: 5 }), (body, zeros) => {
        const bytes = Uint8Array.from([...Array(zeros).fill(0), ...body]);
        const text = encodeBase58(bytes);
        expect(text).toBe(toBase58(bytes));
        expect(plain(decodeBase58(text, bytes.length))).toEqual([...bytes]);
      }),
      { ...runs, numRuns: 500 },
    );
  });

  it("stays within base58LengthMax, and is rejected above the size limit", () => {
    for (const size of [0, 1, 31, 32, 1232, 4096]) {
      const text = encodeBase58(new Uint8Array(size).fill(255));
      expect(text.length).toBeLessThanOrEqual(base58LengthMax(size));
      expect(decodeBase58(text, size)).toHaveLength(size);
      expect(decodeBase58(text, size - 1)).toBeNull();
    }
    expect(decodeBase58("1".repeat(33), 32)).toBeNull();
    expect(decodeBase58("1".repeat(32), 32)).toHaveLength(32);
    expect(decodeBase58("z".repeat(1_000_000), 4096)).toBeNull();
  });

  it("is rejected with a character outside the alphabet", () => {
    for (const letter of ["0", "O", "I", "l", " ", "\n", "-", "é", "\u0131", "😀"]) {
      expect(decodeBase58(`2${letter}2`, 32)).toBeNull();
    }
    expect(plain(decodeBase58("", 32))).toEqual([]);
  });
});

describe("base64", () => {
  it("matches Node's encoder and decodes to the encoded bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const text = encodeBase64(bytes);
        expect(text).toBe(Buffer.from(bytes).toString("base64"));
        expect(plain(decodeBase64(text))).toEqual([...bytes]);
      }),
      runs,
    );
  });

  it("is rejected where Node's lenient decoder accepts it", () => {
    expect(plain(decodeBase64("AQID"))).toEqual([1, 2, 3]);
    expect(plain(decodeBase64("AQI="))).toEqual([1, 2]);
    expect(plain(decodeBase64("AQ=="))).toEqual([1]);
    for (const text of [
      "AQI", // no padding
      "AQ",
      "AQ=",
      "A",
      "A===",
      "====",
      "AQID=", // too much padding
      "AQI==",
      "AQ==AQID", // padding in the middle
      "AQ_-", // the URL-safe alphabet
      "AQ ID",
      "AQID\n",
      " AQID",
      "AQI!",
      "AQI\u0000",
      "AQIé",
      "AR==", // bits set after the last byte
      "AQJ=",
      "\uff21QID",
    ]) {
      expect(decodeBase64(text), JSON.stringify(text)).toBeNull();
    }
  });

  it("is rejected with an invalid character at any position", () => {
    const text = encodeBase64(randomBytes(60));
    for (let at = 0; at < text.length; at += 1) {
      expect(decodeBase64(`${text.slice(0, at)}*${text.slice(at + 1)}`)).toBeNull();
    }
  });
});
