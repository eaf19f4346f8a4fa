import { describe, expect, it } from "vitest";
import { encodeSignature } from "../../src/core/encoding.ts";
import { signatureTextOf } from "../../src/native/signature-text.ts";
import { fc } from "../support/properties.ts";
import { native } from "./addon.ts";

describe("a signature's text", () => {
  it("equals that of the portable encoder, at any offset", () => {
    const textOf = signatureTextOf(native);
    const bytes = fc.uint8Array({ minLength: 64, maxLength: 90 });
    fc.assert(
      fc.property(bytes, fc.nat(26), fc.nat(64), (bytes, offset, zeros) => {
        const at = Math.min(offset, bytes.length - 64);
        bytes.fill(0, at, at + zeros);
        expect(textOf(bytes, at)).toBe(encodeSignature(bytes, at));
      }),
    );
  });

  it("is rejected where there is none", () => {
    for (const each of [native, null]) {
      expect(() => signatureTextOf(each)(new Uint8Array(64), 1)).toThrow(RangeError);
    }
  });
});
