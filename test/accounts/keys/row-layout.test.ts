import { describe, expect, it } from "vitest";
import { KeyLines } from "../../../src/accounts/keys/row-layout.ts";
import { createDice } from "../../support/dice.ts";

const dice = createDice(1);
const digest = () => Buffer.from(dice.bytes(32));
const id = () => Buffer.from(dice.bytes(16)).toString("hex");

function write(lines: KeyLines, line: number, sha256: Buffer, keyId: string, ...rest: Numbers) {
  lines.writeDigest(line, sha256, 0);
  lines.writeIdText(line, keyId);
  lines.writeNumbers(line, ...rest);
}
type Numbers = [number, number, number];

describe("the lines of keys", () => {
  it("hold what was written, over any number of blocks", () => {
    const lines = new KeyLines();
    const written = Array.from({ length: 9_000 }, () => ({ sha256: digest(), keyId: id() }));
    for (const [line, { sha256, keyId }] of written.entries()) {
      write(lines, line, sha256, keyId, line, 2 ** 32 - 1 - line, line * 2);
    }
    for (const [line, { sha256, keyId }] of written.entries()) {
      expect(lines.digestOf(line).equals(sha256) && lines.isOf(line, sha256, 0)).toBe(true);
      expect(lines.idOf(line)).toBe(keyId);
      expect(lines.accountOf(line)).toBe(line);
      expect(lines.planOf(line)).toBe(2 ** 32 - 1 - line);
      expect(lines.restrictionOf(line)).toBe(line * 2);
    }
  });

  it("tell a digest from one that differs in any bit", () => {
    const lines = new KeyLines();
    const sha256 = digest();
    write(lines, 0, sha256, id(), 0, 0, 0);
    for (let bit = 0; bit < 256; bit += 1) {
      const other = Buffer.from(sha256);
      other.writeUInt8(other.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(lines.isOf(0, other, 0)).toBe(false);
    }
  });

  it("take a digest and an id from the midst of other bytes", () => {
    const lines = new KeyLines();
    const bytes = Buffer.from(dice.bytes(80));
    lines.writeDigest(3, bytes, 5);
    lines.writeId(3, bytes, 50);
    expect(lines.digestOf(3)).toEqual(bytes.subarray(5, 37));
    expect(lines.isOf(3, bytes, 5)).toBe(true);
    expect(lines.isOf(3, bytes, 6)).toBe(false);
    expect(lines.idOf(3)).toBe(bytes.toString("hex", 50, 66));
  });

  it("are found by their accounts, up to a count, wherever they were copied to", () => {
    const lines = new KeyLines();
    for (let line = 0; line < 6_000; line += 1) write(lines, line, digest(), id(), line % 7, 0, 0);
    lines.copy(3, 5_995);
    const marks = Uint8Array.from([0, 0, 0, 1, 0, 0, 0]);
    const expected = Array.from({ length: 5_999 }, (_, line) => line).filter(
      (line) => line % 7 === 3 || line === 5_995,
    );
    expect(lines.linesOf(marks, 5_999)).toEqual(expected);
  });

  it("are copied whole, within a block and from one to another", () => {
    const lines = new KeyLines();
    const [sha256, keyId] = [digest(), id()];
    for (const line of [1, 5_000]) write(lines, line, digest(), id(), 0, 0, 0);
    write(lines, 2, sha256, keyId, 7, 8, 9);
    lines.copy(2, 1);
    lines.copy(2, 5_000);
    for (const line of [1, 2, 5_000]) {
      expect(lines.isOf(line, sha256, 0)).toBe(true);
      expect(lines.idOf(line)).toBe(keyId);
      expect([lines.accountOf(line), lines.planOf(line), lines.restrictionOf(line)]).toEqual([
        7, 8, 9,
      ]);
    }
  });
});
