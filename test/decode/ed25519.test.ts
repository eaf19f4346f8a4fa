import { describe, expect, it } from "vitest";
import { DECODE_ERROR } from "../../src/core/decode-errors.ts";
import type { Accepted } from "../../src/core/flow.ts";
import { signatureErrorCode } from "../../src/decode/ed25519.ts";

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
