import { describe, expect, it } from "vitest";
import { DECODE_ERROR } from "../../src/core/decode-errors.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { DECODER, newPacket } from "../support/packets.ts";
import { fc } from "../support/properties.ts";
import {
  buildTransaction,
  newKeypair,
  serializeTransaction,
  transfer,
} from "../support/transactions.ts";

const decoder = createDecoder(DECODER);
const payer = newKeypair(31);
const second = newKeypair(32);
const tipAccount = DECODER.tipAccounts[0] ?? new Uint8Array(32);
const twoSigners = (version: -1 | 0 | 1, lamports = 1000) =>
  buildTransaction({
    version,
    payer,
    tips: [{ to: tipAccount, lamports }],
    instructions: [transfer(second.publicKey, payer.publicKey, 1)],
    signers: [second],
  });

describe("the decoder", () => {
  for (const version of [-1, 0, 1] as const) {
    it(`accepts a signed, tipped transaction of version ${version}`, () => {
      const { bytes, signatureBytes } = twoSigners(version);
      const validation = decoder.decode(bytes);
      if (validation.kind === "rejected")
        throw new Error(`rejected with error ${validation.errorCode}`);
      expect(validation).toMatchObject({ version, signatureCount: 2, tipLamports: 1000 });
      const at = validation.signatureOffset;
      expect(Buffer.from(bytes.subarray(at, at + 64)).equals(signatureBytes)).toBe(true);
    });

    it(`reports the invalid signature of version ${version}`, () => {
      const { bytes } = twoSigners(version);
      const validation = decoder.decode(bytes);
      if (validation.kind === "rejected") throw new Error("the whole one is accepted");
      for (const index of [0, 1]) {
        const spoiled = bytes.slice();
        const at = validation.signatureOffset + 64 * index + 8;
        spoiled[at] = (spoiled[at] ?? 0) ^ 1;
        expect(decoder.decode(spoiled)).toEqual({
          kind: "rejected",
          errorCode: DECODE_ERROR.signature_wrong,
          found: index,
          needed: 2,
        });
      }
    });
  }

  it("reports a missing signature", () => {
    const { parts } = twoSigners(-1);
    expect(decoder.decode(serializeTransaction(parts, [payer]).bytes)).toEqual({
      kind: "rejected",
      errorCode: DECODE_ERROR.signature_missing,
      found: 1,
      needed: 2,
    });
  });

  it("skips signatures when verification is off", () => {
    const { parts } = twoSigners(-1);
    const trusting = createDecoder({ ...DECODER, verify: false });
    expect(trusting.decode(serializeTransaction(parts, []).bytes).kind).toBe("accepted");
    expect(trusting.decode(new Uint8Array(3)).kind).toBe("rejected");
  });

  it("reports a missing tip before a bad signature", () => {
    const { parts } = twoSigners(-1, 999);
    const validation = decoder.decode(serializeTransaction(parts, []).bytes);
    expect(validation).toMatchObject({ errorCode: DECODE_ERROR.tip_too_low });
  });

  it("rejects every transaction with a changed signed bit", () => {
    const { bytes } = newPacket(1);
    fc.assert(
      fc.property(fc.nat({ max: bytes.length * 8 - 1 }), (bit) => {
        const changed = bytes.slice();
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(decoder.decode(changed).kind).toBe("rejected");
      }),
    );
  });

  it("never throws, also for shared memory", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 1400 }), (bytes) => {
        const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
        shared.set(bytes);
        expect(decoder.decode(shared)).toEqual(decoder.decode(bytes));
      }),
    );
  });
});
