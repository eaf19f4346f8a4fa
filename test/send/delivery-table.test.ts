import { describe, expect, it } from "vitest";
import { type Delivery, DeliveryTable } from "../../src/send/delivery-table.ts";
import { fc } from "../support/properties.ts";

const TARGET = { identity: "id", address: "10.0.0.1:8009", slot: 7 };
const never = (): void => expect.unreachable();

/** Adds the delivery of a packet with this number; `sentNs` 0: it waits. */
function add(
  table: DeliveryTable,
  number: number,
  sentNs: number,
  overflowed: (delivery: Delivery) => void = never,
): void {
  table.add(number, number + 100, TARGET, sentNs, 0, 0, overflowed);
}

function takeAll(table: DeliveryTable): string[] {
  const taken: string[] = [];
  table.clear(({ packetId, sentNs }) => taken.push(`${packetId} ${sentNs}`));
  return taken;
}

function found(table: DeliveryTable, number: number) {
  const delivery = table.find(number);
  if (delivery === null) throw new Error(`there is no ${number}`);
  return delivery;
}

describe("the deliveries of a connection", () => {
  it("are found by their number until they have a result", () => {
    const table = new DeliveryTable(8, 8);
    add(table, 1, 5);
    add(table, 2, 0);
    expect([table.onWire, table.waiting]).toEqual([1, 1]);
    expect(found(table, 1)).toMatchObject({ packetId: 101, sentNs: 5, target: TARGET });
    expect(found(table, 2)).toMatchObject({ packetId: 102, sentNs: 0 });
    for (const number of [1, 2]) table.remove(found(table, number));
    expect([table.find(1), table.find(2), table.onWire, table.waiting]).toEqual([null, null, 0, 0]);
  });

  it("have an oldest one on the wire, and an oldest one that waits", () => {
    const table = new DeliveryTable(8, 8);
    expect([table.oldestOnWire, table.oldestWaiting]).toEqual([null, null]);
    for (const number of [1, 2, 3, 4]) add(table, number, number < 3 ? 0 : number);
    const oldest = (): unknown[] => [table.oldestOnWire?.number, table.oldestWaiting?.number];
    expect(oldest()).toEqual([3, 1]);
    for (const number of [1, 3]) table.remove(found(table, number));
    expect(oldest()).toEqual([4, 2]);
  });

  it("are on the wire once they are put there, after those that were before", () => {
    const table = new DeliveryTable(8, 8);
    for (const number of [1, 2, 3]) add(table, number, number === 3 ? 4 : 0);
    table.putOnWire(found(table, 2), 9, never);
    expect([table.onWire, table.waiting]).toEqual([2, 1]);
    expect(takeAll(table)).toEqual(["103 4", "102 9", "101 0"]);
    expect([takeAll(table), table.onWire]).toEqual([[], 0]);
  });

  it("are bounded, on the wire and while they wait: the oldest makes room", () => {
    const table = new DeliveryTable(1, 3);
    const removed: string[] = [];
    const note = ({ packetId, sentNs }: Delivery): void => {
      removed.push(`${packetId} ${sentNs}`);
    };
    for (let number = 1; number <= 5; number += 1) add(table, number, 0, note);
    expect([removed, table.waiting]).toEqual([["101 0", "102 0"], 3]);
    for (const number of [6, 7]) add(table, number, number, note);
    table.putOnWire(found(table, 3), 8, note);
    expect(removed.slice(2)).toEqual(["106 6", "107 7"]);
    expect([table.onWire, table.waiting]).toEqual([1, 2]);
  });

  it("are kept apart where threads number them alike in the low bits", () => {
    const table = new DeliveryTable(100, 100);
    const numbers = [1, 2 ** 24 + 1, 2 ** 25 + 1, 2 ** 31 - 1];
    for (const number of numbers) add(table, number, number);
    table.remove(found(table, 2 ** 24 + 1));
    expect(table.find(2 ** 24 + 1)).toBeNull();
    expect([1, 2 ** 25 + 1, 2 ** 31 - 1].map((number) => found(table, number).sentNs)).toEqual([
      1,
      2 ** 25 + 1,
      2 ** 31 - 1,
    ]);
  });

  it("are all found, however many there are", () => {
    const table = new DeliveryTable(5_000, 5_000);
    for (let number = 1; number <= 5_000; number += 1) add(table, number, number % 3);
    for (let number = 1; number <= 5_000; number += 1) {
      expect(found(table, number).sentNs).toBe(number % 3);
    }
    expect(table.onWire + table.waiting).toBe(5_000);
  });

  it("are those of a map, in any history", () => {
    const step = fc.record({
      what: fc.constantFrom("add", "add", "queue", "fly", "remove", "remove"),
      number: fc.nat({ max: 60 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const table = new DeliveryTable(30, 30);
        const onWire = new Map<number, number>();
        const waiting = new Map<number, number>();
        let atNs = 0;
        const removed = ({ number, sentNs }: Delivery): void => {
          (sentNs === 0 ? waiting : onWire).delete(number);
        };
        for (const { what, number } of steps) {
          atNs += 1;
          const isKnown = onWire.has(number) || waiting.has(number);
          if (what === "remove" && isKnown) {
            removed(found(table, number));
            table.remove(found(table, number));
          } else if (what === "fly" && waiting.has(number)) {
            waiting.delete(number);
            onWire.set(number, atNs);
            table.putOnWire(found(table, number), atNs, removed);
          } else if ((what === "add" || what === "queue") && !isKnown) {
            const sentNs = what === "add" ? atNs : 0;
            (sentNs === 0 ? waiting : onWire).set(number, sentNs);
            add(table, number, sentNs, removed);
          }
          expect([table.onWire, table.waiting]).toEqual([onWire.size, waiting.size]);
        }
        const expected = [...onWire, ...waiting].map(([number, ns]) => `${number + 100} ${ns}`);
        expect(takeAll(table)).toEqual(expected);
      }),
    );
  });
});
