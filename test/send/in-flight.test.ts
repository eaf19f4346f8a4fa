import { describe, expect, it } from "vitest";
import { InFlight, type InFlightDelivery } from "../../src/send/in-flight.ts";

const target = { identity: "id", address: "10.0.0.1:1", slot: 1 };

const rowOf = (packetId: number, stream: number): InFlightDelivery => ({
  packetId,
  target,
  stream,
  sentNs: 1,
  endNs: 0,
  ageMs: 0,
  resend: 0,
});

describe("a ring of deliveries in flight", () => {
  it("returns them in order over many rounds and rejects one above its capacity", () => {
    const ring = new InFlight(3);
    for (let round = 0; round < 10; round += 1) {
      for (let index = 0; index < 3; index += 1) {
        expect(ring.push(rowOf(round * 10 + index, index))).toBe(true);
      }
      expect(ring.push(rowOf(99, 9))).toBe(false);
      for (let index = 0; index < 3; index += 1) {
        expect(ring.oldest()).toMatchObject({ packetId: round * 10 + index, stream: index });
        ring.drop();
      }
      expect(ring.oldest()).toBeNull();
      ring.drop();
      expect(ring.size).toBe(0);
    }
  });

  it("keeps the order while it grows, from any head position", () => {
    for (let start = 0; start < 20; start += 1) {
      const ring = new InFlight(100);
      for (let index = 0; index < start; index += 1) {
        ring.push(rowOf(0, 0));
        ring.drop();
      }
      for (let index = 0; index < 100; index += 1) {
        expect(ring.push(rowOf(index, index))).toBe(true);
      }
      expect(ring.push(rowOf(100, 0))).toBe(false);
      const order: number[] = [];
      for (let row = ring.oldest(); row !== null; row = ring.oldest()) {
        order.push(row.packetId);
        ring.drop();
      }
      expect(order).toEqual(Array.from({ length: 100 }, (_, index) => index));
    }
  });

  it("overwrites dropped rows, and allocates no others", () => {
    const ring = new InFlight(4096);
    const rows = new Set<unknown>();
    for (let index = 0; index < 1000; index += 1) {
      ring.push(rowOf(index, index));
      rows.add(ring.oldest());
      if (ring.size > 10) ring.drop();
    }
    expect(rows.size).toBeLessThanOrEqual(16);
  });
});
