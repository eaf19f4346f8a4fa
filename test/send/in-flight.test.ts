import { describe, expect, it } from "vitest";
import { InFlight } from "../../src/send/in-flight.ts";

const target = { identity: "id", address: "10.0.0.1:1", slot: 1 };

describe("a ring of deliveries in flight", () => {
  it("returns them in order over many rounds and rejects one above its capacity", () => {
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

  it("keeps the order while it grows, from any head position", () => {
    for (let start = 0; start < 20; start += 1) {
      const ring = new InFlight(100);
      for (let index = 0; index < start; index += 1) {
        ring.push(0, target, 0, 1, 0, 0);
        ring.drop();
      }
      for (let index = 0; index < 100; index += 1) {
        // Every third one stays until it is checked.
        expect(ring.push(index, target, index, index % 3 === 0 ? 0 : 1, 0, 0)).toBe(true);
      }
      expect(ring.push(100, target, 0, 1, 0, 0)).toBe(false);
      const nextUnsent: number[] = [];
      for (let row = ring.nextUnsent(); row !== null; row = ring.nextUnsent()) {
        nextUnsent.push(row.packetId);
        row.sentNs = 1;
      }
      expect(nextUnsent).toEqual(Array.from({ length: 34 }, (_, index) => 3 * index));
      const order: number[] = [];
      for (let row = ring.oldest(); row !== null; row = ring.oldest()) {
        order.push(row.packetId);
        ring.drop();
      }
      expect(order).toEqual(Array.from({ length: 100 }, (_, index) => index));
    }
  });

  it("finds the queued delivery when older ones are gone, and when all are", () => {
    const ring = new InFlight(100);
    let nextId = 0;
    const push = (sentNs: number): void => void ring.push(nextId++, target, 0, sentNs, 0, 0);
    for (const sentNs of [1, 1, 0]) push(sentNs);
    expect(ring.nextUnsent()?.packetId).toBe(2);
    ring.drop();
    expect(ring.nextUnsent()?.packetId).toBe(2);
    ring.drop();
    ring.drop();
    expect(ring.nextUnsent()).toBeNull();
    // More than the initial capacity, and all before the queued one are gone.
    for (let index = 0; index < 20; index += 1) push(1);
    push(0);
    expect(ring.nextUnsent()?.packetId).toBe(23);
    for (let index = 0; index < 20; index += 1) ring.drop();
    for (let index = 0; index < 40; index += 1) push(1);
    expect(ring.nextUnsent()?.packetId).toBe(23);
    ring.drop();
    expect(ring.nextUnsent()).toBeNull();
  });

  it("overwrites dropped rows, and allocates no others", () => {
    const ring = new InFlight(4096);
    const rows = new Set<unknown>();
    for (let index = 0; index < 1000; index += 1) {
      ring.push(index, target, index, 1, 0, 0);
      rows.add(ring.oldest());
      if (ring.size > 10) ring.drop();
    }
    expect(rows.size).toBeLessThanOrEqual(16);
  });
});
