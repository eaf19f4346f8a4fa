import { expect, it } from "vitest";
import {
  IN_FLIGHT,
  STATE_ACCEPTED,
  STATE_DROPPED,
  STATE_LANDED,
  STATE_PROCESSED,
} from "../../src/receipts/columns.ts";
import { createNetworkChanges } from "../../src/receipts/network-changes.ts";
import { logOther, setError, setLanding } from "../../src/receipts/states.ts";
import { ReceiptStore } from "../../src/receipts/store.ts";

function setup(rowsMax = 4) {
  const store = new ReceiptStore(rowsMax);
  const read = createNetworkChanges(store);
  return {
    store,
    open(number: number, ...accounts: string[]): number {
      if (store.isFull) store.evict();
      const row = store.open(new Uint8Array(64).fill(number), 0);
      store.rows.receivedNs[row] = 1_000;
      for (const account of accounts) store.submitters.add(row, account);
      store.changes.add(store.sequenceOf(row), STATE_ACCEPTED);
      return row;
    },
    /** The changes as text. */
    read(from = 1, stepsMax = 100, callsMax = 100) {
      const entries: string[] = [];
      const next = read(
        from,
        stepsMax,
        callsMax,
        ({ account, state, signature, slot, hasFailed, afterNs }) => {
          entries.push([account, state, signature[63], slot, hasFailed, afterNs].join(" "));
        },
      );
      return { entries, next };
    },
  };
}

it("reads what the network did, for each account that sent the transaction", () => {
  const { store, open, read } = setup();
  const row = open(7, "acme", "other");
  setLanding(store, row, STATE_PROCESSED, 400, 3_000);
  setError(store, row, '{"InstructionError":[0,"Custom"]}');
  setLanding(store, row, STATE_LANDED, 401, 5_000);
  expect(read().entries).toEqual([
    "acme 4 7 401 true 4000",
    "other 4 7 401 true 4000",
    "acme 5 7 401 true 4000",
    "other 5 7 401 true 4000",
  ]);
});

it("has no slot where none is known", () => {
  const { store, open, read } = setup();
  setLanding(store, open(7, "acme"), 6, -1, 2_000);
  expect(read().entries).toEqual(["acme 6 7  false 1000"]);
});

it("continues where a reader stopped, and checks few changes at a time", () => {
  const { store, open, read } = setup();
  for (const number of [1, 2, 3]) setLanding(store, open(number, "acme"), STATE_LANDED, 9, 2_000);
  const first = read(1, 100, 2);
  expect(first.entries.map((entry) => entry.split(" ")[2])).toEqual(["1", "2"]);
  // Accepted and landed, each of three.
  expect(first.next).toBe(6);
  expect(read(first.next).entries).toEqual(["acme 5 3 9 false 1000"]);
  expect(read(first.next).next).toBe(7);
  expect(read(1, 2)).toEqual({ entries: ["acme 5 1 9 false 1000"], next: 3 });
});

it("stops before a change that does not fit for all of its accounts", () => {
  const { store, open, read } = setup();
  for (const number of [1, 2, 3]) {
    setLanding(store, open(number, "acme", "other"), STATE_LANDED, 9, 2_000);
  }
  const first = read(1, 100, 5);
  expect(first.entries.map((entry) => entry.split(" ")[2])).toEqual(["1", "1", "2", "2"]);
  expect(read(first.next).entries.map((entry) => entry.split(" ")[2])).toEqual(["3", "3"]);
});

it("leaves out an end after which the transaction was accepted again", () => {
  const { store, open, read } = setup();
  const row = open(7, "acme");
  setLanding(store, row, STATE_DROPPED, -1, 2_000);
  setLanding(store, row, IN_FLIGHT, -1, 2_000);
  expect(read().entries).toEqual([]);
  setLanding(store, row, STATE_LANDED, 401, 5_000);
  expect(read().entries).toEqual(["acme 5 7 401 false 4000"]);
});

it("leaves out what is logged for a successor alone", () => {
  const { store, open, read } = setup();
  const row = open(7, "acme");
  setLanding(store, row, STATE_LANDED, 401, 5_000);
  store.changes.isFollowed = true;
  logOther(store, row);
  expect(read()).toEqual({ entries: ["acme 5 7 401 false 4000"], next: 4 });
});

it("leaves out receipts that were evicted", () => {
  const { store, open, read } = setup(1);
  setLanding(store, open(1, "acme"), STATE_LANDED, 9, 2_000);
  open(2, "acme");
  expect(read().entries).toEqual([]);
});
