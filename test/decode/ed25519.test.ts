import { describe, expect, it } from "vitest";
import { DECODE_ERROR } from "../../src/core/decode-errors.ts";
import type { Accepted } from "../../src/core/flow.ts";
import { isUnsafePoint, signatureErrorCode } from "../../src/decode/ed25519.ts";

const hex = (text: string) => new Uint8Array(Buffer.from(text, "hex"));
const L = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
const BASE_POINT = `58${"66".repeat(31)}`;

const ONE: Accepted = {
  kind: "accepted",
  version: -1,
  signatureOffset: 0,
  signatureCount: 1,
  messageOffset: 96,
  messageSize: 0,
  keysOffset: 64,
  blockhashOffset: 0,
  durableNonce: false,
  tipLamports: 0,
  priorityFeeLamports: 0,
};

describe("an unsafe point", () => {
  it("is each of the eight points of small order, with either sign bit", () => {
    const small = [
      "00".repeat(32),
      `01${"00".repeat(31)}`,
      `ec${"ff".repeat(30)}7f`,
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    ];
    for (const text of small) {
      const bytes = hex(text);
      expect(isUnsafePoint(bytes, 0)).toBe(true);
      bytes[31] = (bytes[31] ?? 0) | 0x80;
      expect(isUnsafePoint(bytes, 0)).toBe(true);
    }
  });

  it("is every y from 2^255 - 19 to 2^255 - 1", () => {
    for (let first = 0xed; first <= 0xff; first += 1) {
      for (const last of ["7f", "ff"]) {
        const bytes = hex(`${first.toString(16)}${"ff".repeat(30)}${last}`);
        expect(isUnsafePoint(bytes, 0)).toBe(true);
      }
    }
  });

  it("does not match when one byte differs", () => {
    expect(isUnsafePoint(hex(BASE_POINT), 0)).toBe(false);
    expect(isUnsafePoint(hex(`02${"00".repeat(31)}`), 0)).toBe(false);
    expect(isUnsafePoint(hex(`eb${"ff".repeat(30)}7f`), 0)).toBe(false);
    for (const text of [`00${"00".repeat(31)}`, `ed${"ff".repeat(30)}7f`]) {
      for (let i = 1; i < 32; i += 1) {
        const bytes = hex(text);
        bytes[i] = (bytes[i] ?? 0) ^ 0x10;
        expect(isUnsafePoint(bytes, 0)).toBe(false);
      }
    }
  });

  it("is checked at the offset", () => {
    expect(isUnsafePoint(hex(`${BASE_POINT}${"00".repeat(32)}`), 32)).toBe(true);
    expect(isUnsafePoint(hex(`${"00".repeat(32)}${BASE_POINT}`), 32)).toBe(false);
  });
});

describe("the error of a bad signature", () => {
  const one = `01${"00".repeat(31)}`;
  const cases = [
    ["signature_missing", "00".repeat(64), one],
    ["signer_key_malformed", `${BASE_POINT}${one}`, `ee${"ff".repeat(30)}7f`],
    ["signer_key_malformed", `${one}${L}`, one],
    ["signature_malformed", `${one}${one}`, BASE_POINT],
    ["signature_malformed", `${BASE_POINT}${L}`, BASE_POINT],
    ["signature_malformed", `${BASE_POINT}${"ff".repeat(32)}`, BASE_POINT],
    ["signature_wrong", `${BASE_POINT}ec${L.slice(2)}`, BASE_POINT],
    ["signature_wrong", `${BASE_POINT}${one}`, BASE_POINT],
  ] as const;
  for (const [name, signature, key] of cases) {
    it(`is ${name} for …${signature.slice(56, 72)}… by ${key.slice(0, 8)}…`, () => {
      expect(signatureErrorCode(hex(signature + key), ONE, 0)).toBe(DECODE_ERROR[name]);
    });
  }
});
