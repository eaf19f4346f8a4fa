import { expect, it } from "vitest";
import { RECEIPT_STATES } from "../../src/core/receipt-state.ts";
import { IN_FLIGHT, NONE, STATE_LANDED, STATE_PROCESSED } from "../../src/receipts/columns.ts";
import { recordDelivery, setError, setLanding } from "../../src/receipts/states.ts";
import { ReceiptStore } from "../../src/receipts/store.ts";

function setup() {
  const store = new ReceiptStore(4);
  const row = store.open(new Uint8Array(64), 0);
  return {
    store,
    row,
    deliveries: (...kinds: Parameters<typeof recordDelivery>[2][]) => {
      for (const kind of kinds) recordDelivery(store, row, kind);
    },
    landing: (state: number, slot = NONE) => setLanding(store, row, state, slot, 0),
    state: () => RECEIPT_STATES[store.stateOf(row)],
    /** The states that it changed to, in order. */
    changes: () => {
      const { changes } = store;
      const numbers = Array.from({ length: changes.next - 1 }, (_, index) => index + 1);
      return numbers.map((number) => RECEIPT_STATES[changes.stateOf(number) ?? NONE]);
    },
  };
}

it("follows the deliveries, and records each change once", () => {
  const { deliveries, state, changes } = setup();
  deliveries("sent", "sent", "dropped", "failed");
  expect(state()).toBe("sent");
  deliveries("acked", "sent", "failed");
  expect(state()).toBe("acknowledged");
  expect(changes()).toEqual(["sent", "acknowledged"]);
});

it("fails with the last delivery in flight, and is sent again by a resend", () => {
  const { deliveries, state, changes } = setup();
  deliveries("dropped");
  expect(state()).toBe("accepted");
  deliveries("sent", "sent", "failed", "failed");
  expect(state()).toBe("failed");
  deliveries("sent", "acked");
  expect(changes()).toEqual(["sent", "failed", "sent", "acknowledged"]);
});

it("hides deliveries behind the landing, and shows them after a rollback", () => {
  const { deliveries, landing, state, changes } = setup();
  deliveries("sent");
  landing(STATE_PROCESSED, 400);
  deliveries("acked");
  landing(STATE_PROCESSED, 401);
  expect(state()).toBe("processed");
  landing(IN_FLIGHT);
  expect(state()).toBe("acknowledged");
  landing(STATE_LANDED, 402);
  deliveries("sent");
  expect(changes()).toEqual(["sent", "processed", "acknowledged", "landed"]);
});

it("logs what changes no state while a successor follows, and not otherwise", () => {
  const { store, deliveries, landing, changes } = setup();
  store.changes.isFollowed = true;
  deliveries("sent", "sent", "acked");
  landing(STATE_PROCESSED, 400);
  landing(STATE_PROCESSED, 401);
  deliveries("acked");
  const states = ["sent", undefined, "acknowledged", "processed", undefined, undefined];
  expect(changes()).toEqual(states);
  store.changes.isFollowed = false;
  deliveries("sent");
  landing(STATE_PROCESSED, 402);
  expect(changes()).toEqual(states);
});

it("holds one error at a time", () => {
  const { store, row } = setup();
  setError(store, row, '"A"');
  setError(store, row, '"A"');
  setError(store, row, '"B"');
  expect(store.errors.size).toBe(1);
  store.evict();
  expect(store.errors.size).toBe(0);
});
