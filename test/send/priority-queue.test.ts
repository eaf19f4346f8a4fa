import { describe, expect, it } from "vitest";
import { PriorityQueue } from "../../src/send/priority-queue.ts";
import { fc } from "../support/properties.ts";

const target = { identity: "id", address: "10.0.0.1:1", slot: 1 };
const BYTES = Uint8Array.of(1, 2);

const newQueue = (capacity: number, landedShareOf = (_account: string) => 1): PriorityQueue =>
  new PriorityQueue(capacity, landedShareOf);

const offering = (id: number, offeredLamports: number, account = "a", bytes = BYTES) => ({
  ...{ id, bytes, account, offeredLamports },
});

/** A queue of deliveries with these priorities; their ids and times count up from 1. */
function queueOf(priorities: readonly number[], capacity = 8): PriorityQueue {
  const queue = newQueue(capacity);
  for (const [index, lamports] of priorities.entries()) {
    queue.push(offering(index + 1, lamports), target, index + 1);
  }
  return queue;
}

function idsOf(queue: PriorityQueue): number[] {
  const ids: number[] = [];
  queue.clear((delivery) => ids.push(delivery.packetId));
  return ids;
}

describe("the queued deliveries", () => {
  it("leave in priority order, and in arrival order when equal", () => {
    expect(idsOf(queueOf([5, 9, 5, 0, 9]))).toEqual([2, 5, 1, 3, 4]);
  });

  it("own their bytes, which are released with the row", () => {
    const queue = newQueue(2);
    const lent = Uint8Array.of(1, 2);
    queue.push(offering(1, 0, "a", lent), target, 5);
    lent.fill(0);
    const row = queue.first();
    expect(row?.bytes).toEqual(Uint8Array.of(1, 2));
    queue.drop();
    expect(row?.bytes.length).toBe(0);
  });

  it("are rejected above the bound", () => {
    const queue = queueOf([1, 2], 2);
    expect(queue.push(offering(3, 9), target, 3)).toBe(false);
    expect(queue.size).toBe(2);
  });

  it("need room only for as many as wait, however high the bound", () => {
    const queue = newQueue(Number.MAX_SAFE_INTEGER);
    expect(queue.push(offering(1, 9), target, 1)).toBe(true);
    expect(idsOf(queue)).toEqual([1]);
  });

  it("return the one to evict for a better one, the newest of several", () => {
    const queue = queueOf([5, 3, 3, 8]);
    expect(queue.least(3)).toBeNull();
    expect(queue.least(4)?.packetId).toBe(3);
    queue.dropLeast();
    expect(idsOf(queue)).toEqual([4, 1, 2]);
    expect(newQueue(1).least(1)).toBeNull();
  });

  it("are removed once they expired, whatever their priority", () => {
    const queue = queueOf([7, 1, 9, 2, 8]);
    const ended: number[] = [];
    queue.expire(0, (delivery) => ended.push(delivery.packetId));
    expect(ended).toEqual([]);
    queue.expire(3, (delivery) => ended.push(delivery.packetId));
    expect(ended.sort()).toEqual([1, 2, 3]);
    expect(idsOf(queue)).toEqual([5, 4]);
  });

  it("leave by offer times landed share", () => {
    const queue = newQueue(8, (account) => (account === "lands" ? 0.9 : 0.02));
    queue.push(offering(1, 1_000_000, "never"), target, 1);
    queue.push(offering(2, 20_000, "lands"), target, 2);
    queue.push(offering(3, 30_000, "lands"), target, 3);
    expect(queue.priorityOf(offering(4, 1_000_000, "never"))).toBe(20_000);
    expect(queue.least(20_000)?.packetId).toBe(2);
    expect(idsOf(queue)).toEqual([3, 1, 2]);
  });

  it("leave within an account by offer, however its share changes while they wait", () => {
    const shares = new Map<string, number>();
    const step = fc.record({
      act: fc.constantFrom("push", "push", "push", "drop", "share"),
      account: fc.constantFrom("a", "b"),
      lamports: fc.integer({ min: 2_000_000, max: 2_000_009 }),
      share: fc.double({ min: 0.02, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const queue = newQueue(20, (account) => shares.get(account) ?? 0.5);
        shares.clear();
        const offers = new Map<number, { readonly account: string; readonly lamports: number }>();
        for (const [id, { act, account, lamports, share }] of steps.entries()) {
          if (act === "push") {
            if (queue.push(offering(id, lamports, account), target, id)) {
              offers.set(id, { account, lamports });
            }
          } else if (act === "drop") {
            offers.delete(queue.first()?.packetId ?? -1);
            queue.drop();
          } else {
            shares.set(account, share);
            queue.rank();
          }
        }
        const rankOf = (id: number): number => {
          const { account, lamports } = offers.get(id) ?? { account: "", lamports: 0 };
          return lamports * (shares.get(account) ?? 0.5);
        };
        const ranked = [...offers.keys()].sort((a, b) => rankOf(b) - rankOf(a) || a - b);
        expect(idsOf(queue)).toEqual(ranked);
      }),
    );
  });

  it("keep their order through any mix of pushes and drops", () => {
    const step = fc.record({
      act: fc.constantFrom("push", "push", "push", "drop", "dropLeast", "expire"),
      lamports: fc.nat(4),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const queue = newQueue(10);
        let model: { id: number; lamports: number }[] = [];
        for (const [now, { act, lamports }] of steps.entries()) {
          model.sort((a, b) => b.lamports - a.lamports || a.id - b.id);
          if (act === "push") {
            const taken = queue.push(offering(now, lamports), target, now);
            expect(taken).toBe(model.length < 10);
            if (taken) model.push({ id: now, lamports });
          } else if (act === "drop") {
            queue.drop();
            model.shift();
          } else if (act === "dropLeast") {
            queue.dropLeast();
            model.pop();
          } else {
            queue.expire(now - 12, () => {});
            model = model.filter((it) => it.id > now - 12);
          }
          expect(queue.size).toBe(model.length);
        }
        model.sort((a, b) => b.lamports - a.lamports || a.id - b.id);
        expect(idsOf(queue)).toEqual(model.map((it) => it.id));
      }),
    );
  });
});
