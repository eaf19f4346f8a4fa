import { describe, expect, it } from "vitest";
import { InFlight } from "../../src/send/rings.ts";

const target = { identity: "id", address: "10.0.0.1:1", slot: 1 };

describe("a ring of copies in flight", () => {
  it("gives them back in order over many rounds and refuses one more than it holds", () => {
    const ring = new InFlight(3);
    for (let round = 0; round < 10; round += 1) {
      for (let index = 0; index < 3; index += 1) {
        expect(ring.push(round * 10 + index, target, index, 1, 0, 0)).toBe(true);
      }
      expect(ring.push(99, target, 9, 1, 0, 0)).toBe(false);
      for (let index = 0; index < 3; index += 1) {
        expect(ring.oldest()).toMatchObject({ packetId: round * 10 + index, stream: index });
        ring.drop();
      }
      expect(ring.oldest()).toBeNull();
      ring.drop();
      expect(ring.size).toBe(0);
    }
  });
});
