import { describe, expect, it } from "vitest";
import { der, pem } from "../../src/core/der.ts";

describe("DER", () => {
  it("has the length of an element in one, two or three bytes", () => {
    const headOf = (size: number) => [...der(0x04, new Uint8Array(size))].slice(0, 4);
    expect(headOf(0x7f)).toEqual([0x04, 0x7f, 0, 0]);
    expect(headOf(0x80)).toEqual([0x04, 0x81, 0x80, 0]);
    expect(headOf(0xff)).toEqual([0x04, 0x81, 0xff, 0]);
    expect(headOf(0x1234)).toEqual([0x04, 0x82, 0x12, 0x34]);
  });

  it("joins the parts of an element", () => {
    expect([...der(0x30, der(0x02, [1]), der(0x02, [2]))]).toEqual([
      ...[0x30, 6, 0x02, 1, 1, 0x02, 1, 2],
    ]);
  });
});

describe("PEM", () => {
  it("has lines of 64 characters between its labels", () => {
    const text = pem("CERTIFICATE", new Uint8Array(49));
    const line = "A".repeat(64);
    expect(text).toBe(`-----BEGIN CERTIFICATE-----\n${line}\nAA==\n-----END CERTIFICATE-----\n`);
  });
});
