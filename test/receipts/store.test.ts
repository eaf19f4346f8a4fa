import { describe, expect, it } from "vitest";
import { NONE, STATE_LANDED } from "../../src/receipts/columns.ts";
import {
  RECEIPT_DELIVERIES_MAX,
  RECEIPT_DELIVERIES_MEAN,
  RECEIPT_PACKETS_MIN,
} from "../../src/receipts/limits.ts";
import { ReceiptStore } from "../../src/receipts/store.ts";
import { fc } from "../support/properties.ts";

/** 64 bytes unique to transaction `number`; all share what is hashed, and so one bucket. */
function signature(number: number): Uint8Array {
  const bytes = new Uint8Array(64).fill(7);
  new DataView(bytes.buffer).setUint32(60, number);
  return bytes;
}

/** Opens a receipt with one submission by packet `number`. */
function open(store: ReceiptStore, number: number): number {
  const row = store.open(signature(number), 0);
  store.rows.submissions[row] = 1;
  store.bindPacket(number, 0, row);
  return row;
}

/** The deliveries of a row in the order of its list. */
function deliveriesOf(store: ReceiptStore, row: number): number[] {
  const found: number[] = [];
  let delivery = store.rows.firstDelivery[row] ?? NONE;
  for (; delivery !== NONE; delivery = store.deliveries.next[delivery] ?? NONE)
    found.push(delivery);
  return found;
}

describe("the store's rows", () => {
  it("are found by all 64 bytes, at any offset", () => {
    const store = new ReceiptStore(8);
    const rows = [1, 2, 3].map((number) => open(store, number));
    expect([1, 2, 3].map((number) => store.find(signature(number), 0))).toEqual(rows);
    expect(store.find(signature(4), 0)).toBe(NONE);
    const shifted = new Uint8Array(70);
    shifted.set(signature(2), 5);
    expect(store.find(shifted, 5)).toBe(rows[1]);
    expect(store.find(shifted, 4)).toBe(NONE);
  });

  it("are found as fast among many signatures with the same prefix", () => {
    const store = new ReceiptStore(512);
    // A signer that reuses one nonce makes the first half of all its signatures equal.
    const alike = (number: number): Uint8Array => {
      const bytes = new Uint8Array(64).fill(7);
      new DataView(bytes.buffer).setUint32(32, number);
      return bytes;
    };
    for (let number = 0; number < 500; number += 1) store.open(alike(number), 0);
    let compared = 0;
    const watched = new Proxy(alike(0), {
      get(bytes, name) {
        if (name === "0") compared += 1;
        return Reflect.get(bytes, name);
      },
    });
    expect(store.find(watched, 0)).toBe(0);
    expect(compared).toBeGreaterThan(0);
    expect(compared).toBeLessThan(100);
  });

  it("start empty when another receipt used the row", () => {
    const store = new ReceiptStore(1);
    const row = open(store, 1);
    store.submitters.add(row, "acme");
    store.rows.error[row] = store.errors.take("{}");
    store.rows.landing[row] = STATE_LANDED;
    store.rows.deliveriesOmitted[row] = 5;
    store.addDelivery(row);
    store.evict();
    expect(store.open(signature(2), 0)).toBe(row);
    const { submissions, deliveryCount, deliveriesOmitted } = store.rows;
    expect([store.submitters.accounts, store.errors.size, store.stateOf(row)]).toEqual([0, 0, 0]);
    expect([submissions[row], deliveryCount[row], deliveriesOmitted[row]]).toEqual([0, 0, 0]);
    expect(deliveriesOf(store, row)).toEqual([]);
  });

  it("report when they are full, and are released oldest first", () => {
    const store = new ReceiptStore(2);
    const first = open(store, 1);
    expect(store.isFull).toBe(false);
    open(store, 2);
    expect([store.isFull, store.count, store.oldestRow]).toEqual([true, 2, first]);
    store.evict();
    expect([store.isFull, store.count]).toEqual([false, 1]);
    expect(store.find(signature(1), 0)).toBe(NONE);
    expect(store.find(signature(2), 0)).toBe(store.oldestRow);
  });

  it("match a plain list, over any order of opening and releasing", () => {
    const step = fc.constantFrom("open", "open", "evict");
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const store = new ReceiptStore(5);
        const kept: number[] = [];
        let number = 0;
        for (const each of steps) {
          if (each === "open" && !store.isFull) {
            number += 1;
            kept.push(number);
            open(store, number);
          } else if (each === "evict" && kept.length > 0) {
            kept.splice(0, 1);
            store.evict();
          }
        }
        expect(store.count).toBe(kept.length);
        for (let each = 1; each <= number; each += 1) {
          expect(store.find(signature(each), 0) !== NONE).toBe(kept.includes(each));
        }
      }),
    );
  });
});

describe("the store's deliveries", () => {
  it("are kept in order of adding, and are released with their row", () => {
    const store = new ReceiptStore(2);
    const [first, second] = [open(store, 1), open(store, 2)];
    const added = [first, second, first, second, first].map((row) => store.addDelivery(row));
    expect(deliveriesOf(store, first)).toEqual([added[0], added[2], added[4]]);
    expect(deliveriesOf(store, second)).toEqual([added[1], added[3]]);
    const free = 2 * RECEIPT_DELIVERIES_MEAN - added.length;
    for (let count = 0; count < free; count += 1) expect(store.addDelivery(second)).not.toBe(NONE);
    expect(store.isFullOfDeliveries).toBe(true);
    expect(store.addDelivery(second)).toBe(NONE);
    expect(store.rows.deliveriesOmitted[second]).toBe(1);
    store.evict();
    expect(store.isFullOfDeliveries).toBe(false);
    const again = [1, 2, 3].map(() => store.addDelivery(second));
    expect(again.sort()).toEqual([added[0], added[2], added[4]].sort());
    expect(store.isFullOfDeliveries).toBe(true);
  });

  it("are bounded per row, whatever space is left", () => {
    const store = new ReceiptStore(100);
    const row = open(store, 1);
    for (let count = 0; count < RECEIPT_DELIVERIES_MAX; count += 1) {
      expect(store.addDelivery(row)).not.toBe(NONE);
    }
    expect(store.addDelivery(row)).toBe(NONE);
    expect([store.rows.deliveryCount[row], store.rows.deliveriesOmitted[row]]).toEqual([
      RECEIPT_DELIVERIES_MAX,
      1,
    ]);
    expect(store.isFullOfDeliveries).toBe(false);
  });
});

describe("a packet", () => {
  it("refers to its receipt until that is released", () => {
    const store = new ReceiptStore(3);
    // Enough rounds that rows are reused.
    for (let number = 1; number <= 10; number += 1) {
      if (store.isFull) store.evict();
      const row = open(store, number);
      expect(store.rowOfPlace(store.placeOfPacket(number))).toBe(row);
    }
    const known = [6, 7, 8, 9, 10].map((number) => store.placeOfPacket(number) !== NONE);
    expect(known).toEqual([false, false, true, true, true]);
  });

  it("is forgotten when a later one uses its slot", () => {
    const store = new ReceiptStore(3);
    const row = open(store, 1);
    expect(store.placeOfPacket(1 + RECEIPT_PACKETS_MIN)).toBe(NONE);
    store.bindPacket(1 + RECEIPT_PACKETS_MIN, 0, row);
    expect(store.placeOfPacket(1)).toBe(NONE);
    expect(store.rowOfPlace(store.placeOfPacket(1 + RECEIPT_PACKETS_MIN))).toBe(row);
  });
});

describe("the store's memory", () => {
  it("equals the figure in docs/api.md, and does not grow with use", () => {
    const rowsMax = 200_000;
    const store = new ReceiptStore(rowsMax);
    const emptyBytes = store.bytes;
    expect(emptyBytes / rowsMax).toBeLessThan(440);
    for (let number = 0; number < rowsMax; number += 1) {
      const bytes = new Uint8Array(64);
      new DataView(bytes.buffer).setUint32(0, Math.imul(number, 0x9e3779b1));
      new DataView(bytes.buffer).setUint32(4, number);
      const row = store.open(bytes, 0);
      store.submitters.add(row, `account ${number % 1000}`);
      for (let deliveries = 0; deliveries < RECEIPT_DELIVERIES_MEAN; deliveries += 1) {
        const delivery = store.addDelivery(row);
        store.deliveries.leader[delivery] = store.numberOfLeader("LeaderA", "127.0.0.1:8009");
      }
    }
    expect(store.bytes).toBe(emptyBytes);
    for (let number = 0; number < 1_000; number += 1) {
      store.evict();
      const bytes = new Uint8Array(64).fill(number & 0xff);
      new DataView(bytes.buffer).setUint32(4, number);
      const row = store.open(bytes, 0);
      store.deliveries.leader[store.addDelivery(row)] = store.numberOfLeader("LeaderB", "");
    }
    expect(store.bytes).toBe(emptyBytes);
  });
});
