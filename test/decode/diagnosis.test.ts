import { describe, expect, it } from "vitest";
import { DECODE_ERROR } from "../../src/core/decode-errors.ts";
import type { Rejected } from "../../src/core/flow.ts";
import { diagnose } from "../../src/decode/diagnosis.ts";
import { memo } from "../support/transactions.ts";
import { tipped, validationOf } from "../support/validations.ts";

const VERSIONS = [-1, 0, 1] as const;
const ascii = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));

describe.each(VERSIONS)("diagnosis of version %i", (version) => {
  const built = tipped({ version, sign: true });

  it("reports the encoding of text", () => {
    const hex = Buffer.from(built.bytes).toString("hex");
    expect(validationOf(ascii(built.base64))).toBe("text_base64");
    expect(validationOf(ascii(built.base58))).toBe("text_base58");
    expect(validationOf(ascii(hex))).toBe("text_hex");
    expect(validationOf(ascii(`0x${hex}`))).toBe("text_hex");
    expect(validationOf(ascii(`${built.base64}\n`))).toBe("text_base64");
  });

  it("reports JSON, whatever it contains", () => {
    const call = { jsonrpc: "2.0", id: 1, method: "sendTransaction", params: [built.base64] };
    expect(validationOf(ascii(JSON.stringify(call)))).toBe("text_json");
    expect(validationOf(ascii(`\r\n ${JSON.stringify(call, null, 2)}`))).toBe("text_json");
    expect(validationOf(ascii(JSON.stringify([...built.bytes])))).toBe("text_json");
    expect(validationOf(ascii(JSON.stringify(built.base64)))).toBe("text_json");
  });

  it("reports a message without signatures", () => {
    expect(validationOf(built.message)).toBe("message_only");
    expect(validationOf(built.message.subarray(1))).not.toBe("message_only");
    expect(validationOf(built.message.subarray(0, -1))).not.toBe("message_only");
  });

  it("reports text longer than any transaction", () => {
    const long = tipped({ version, extraInstructions: [memo(new Uint8Array(900))] });
    expect(long.base64.length).toBeGreaterThan(1232);
    expect(validationOf(ascii(long.base64))).toBe("text_base64");
    expect(validationOf(ascii("Az".repeat(8_000)))).toBe("text_base58");
  });
});

describe("other text", () => {
  it("is reported as plain text", () => {
    expect(validationOf(ascii("hello"))).toBe("text_other");
    expect(
      validationOf(ascii("a sentence of some length, with spaces, that encodes nothing")),
    ).toBe("text_other");
    expect(validationOf(ascii("   "))).toBe("text_other");
  });

  it("is not reported for bytes that only start like text", () => {
    expect(validationOf(Uint8Array.of(0x41, 0x42, 0x00))).toBe("signatures_too_many");
    expect(validationOf(Uint8Array.of(0x41, 0x7f))).toBe("signatures_too_many");
    expect(validationOf(Uint8Array.of(0x41, 0xff))).toBe("signatures_too_many");
  });
});

describe("text that could encode something", () => {
  it("is at least as long as a signature", () => {
    expect(validationOf(ascii("Az".repeat(31)))).toBe("text_other");
    expect(validationOf(ascii(`${"Az".repeat(31)}A`))).toBe("text_other");
    expect(validationOf(ascii("Az".repeat(32)))).toBe("text_base58");
  });
});

describe("a diagnosis", () => {
  it("is made only for undecodable bytes", () => {
    const text = ascii("{}");
    const low: Rejected = {
      kind: "rejected",
      errorCode: DECODE_ERROR.tip_too_low,
      found: 1,
      needed: 2,
    };
    const wrong: Rejected = {
      kind: "rejected",
      errorCode: DECODE_ERROR.signature_wrong,
      found: 0,
      needed: 1,
    };
    expect(diagnose(text, low)).toBe(low);
    expect(diagnose(text, wrong)).toBe(wrong);
  });

  it("leaves an empty body as empty", () => {
    expect(validationOf(new Uint8Array(0))).toBe("empty");
  });
});
