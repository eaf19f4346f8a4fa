import { describe, expect, it } from "vitest";
import { type DeliveryReason, END_REASONS, type EndReason } from "../../src/core/errors.ts";
import {
  ACKED,
  DROPPED,
  endReasonNumber,
  FAILED,
  IN_FLIGHT,
  NONE,
  reasonNumber,
  SENT,
  STATE_DROPPED,
  STATE_EXPIRED,
  STATE_LANDED,
  STATE_PROCESSED,
} from "../../src/receipts/columns.ts";
import { recordDelivery } from "../../src/receipts/states.ts";
import { ReceiptStore } from "../../src/receipts/store.ts";
import { type Receipt, receiptOf } from "../../src/receipts/view.ts";

const RECEIVED_NS = 5_000_000_000;

interface DeliverySpec {
  readonly state: number;
  readonly reason?: DeliveryReason | null;
  readonly sentUs?: number;
  readonly endedUs?: number;
  readonly rttUs?: number;
  readonly ageMs?: number;
  readonly resend?: number;
  readonly identity?: string;
}

interface RowSpec {
  readonly version?: -1 | 0 | 1;
  readonly leftOut?: number;
  readonly landing?: number;
  readonly reason?: EndReason;
  readonly error?: string;
  readonly slot?: number;
}

/** The view of one receipt with these deliveries, at a fixed wall time. */
function viewOf(deliveries: readonly DeliverySpec[], spec: RowSpec = {}): Receipt {
  const { version = 0, leftOut = 0, landing = IN_FLIGHT, reason: end = null, slot = NONE } = spec;
  const store = new ReceiptStore(4);
  const row = store.open(new Uint8Array(64).fill(9), 0);
  const { rows } = store;
  rows.receivedNs[row] = RECEIVED_NS;
  rows.receivedUnixMs[row] = 1_790_000_000_123.4;
  rows.receivedSlot[row] = 390;
  rows.landing[row] = landing;
  rows.landingSlot[row] = slot;
  rows.landingNs[row] = RECEIVED_NS + 400_000_050;
  rows.endReason[row] = endReasonNumber(end);
  rows.error[row] = store.errors.take(spec.error ?? null);
  rows.decodedNs[row] = RECEIVED_NS + 12_340;
  rows.tipLamports[row] = 1_000_000;
  rows.priorityFeeLamports[row] = 2 ** 40;
  rows.priorityLamports[row] = 500_000;
  rows.version[row] = version;
  rows.submissions[row] = 3;
  rows.deliveriesOmitted[row] = leftOut;
  for (const { state, reason = null, sentUs = 0, endedUs = 0, rttUs = 0, ...more } of deliveries) {
    const delivery = store.addDelivery(row);
    const identity = more.identity ?? `leader ${delivery}`;
    store.deliveries.leader[delivery] = store.numberOfLeader(identity, "10.0.0.1:8009");
    store.deliveries.connectionAgeMs[delivery] = more.ageMs ?? Number.NaN;
    store.deliveries.resend[delivery] = more.resend ?? 0;
    store.deliveries.slot[delivery] = 400 + delivery;
    store.deliveries.state[delivery] = state;
    store.deliveries.reason[delivery] = reasonNumber(reason);
    store.deliveries.sentNs[delivery] = RECEIVED_NS + sentUs * 1000;
    store.deliveries.endedNs[delivery] = RECEIVED_NS + endedUs * 1000;
    store.deliveries.rttUs[delivery] = rttUs;
    if (state !== DROPPED) recordDelivery(store, row, "sent");
    if (state === DROPPED) recordDelivery(store, row, "dropped");
  }
  for (const { state } of deliveries) {
    if (state === ACKED) recordDelivery(store, row, "acked");
    if (state === FAILED) recordDelivery(store, row, "failed");
  }
  return receiptOf(store, row, "Sig");
}

describe("a receipt's view", () => {
  it("shows the row under the documented names", () => {
    expect(viewOf([], { leftOut: 2 })).toEqual({
      signature: "Sig",
      state: "accepted",
      received_at: "2026-09-21T14:13:20.123Z",
      submissions: 3,
      version: 0,
      tip_lamports: 1_000_000,
      priority_fee_lamports: 2 ** 40,
      priority_lamports: 500_000,
      timings: { decoded_us: 12.3, first_sent_us: null, first_acked_us: null },
      leaders: [],
      leaders_omitted: 2,
      received_slot: 390,
      landing: {
        state: "in_flight",
        slot: null,
        slots: null,
        error: null,
        reason: null,
        message: "no block is known to hold it, and it is watched on",
        known_us: null,
      },
    });
  });

  it.each([
    [-1, "legacy"],
    [0, 0],
    [1, 1],
  ] as const)("names version %i %s", (version, name) => {
    expect(viewOf([], { version }).version).toBe(name);
  });

  it.each([
    ["accepted", []],
    ["sent", [SENT]],
    ["sent", [DROPPED, SENT, FAILED]],
    ["acknowledged", [FAILED, ACKED, SENT]],
    ["failed", [FAILED]],
    ["failed", [DROPPED, FAILED]],
    ["accepted", [DROPPED]],
  ] as const)("is %s with deliveries in the states %j", (state, states) => {
    expect(viewOf(states.map((each) => ({ state: each }))).state).toBe(state);
  });

  it("shows only the times that a delivery's state has", () => {
    const times = { sentUs: 10, endedUs: 90.25, rttUs: 850.4 };
    const shown = viewOf([SENT, ACKED, FAILED, DROPPED].map((state) => ({ state, ...times })));
    expect(shown.leaders).toMatchObject([
      { slot: 400, state: "sent", sent_us: 10, acked_us: null, ended_us: null, rtt_us: 850 },
      { slot: 401, state: "acked", sent_us: 10, acked_us: 90.3, ended_us: null },
      { slot: 402, state: "failed", sent_us: 10, acked_us: null, ended_us: 90.3 },
      { slot: 403, state: "dropped", sent_us: null, acked_us: null, ended_us: 90.3 },
    ]);
  });

  it("has the earliest times of all deliveries", () => {
    const { timings } = viewOf([
      { state: ACKED, sentUs: 50, endedUs: 900 },
      { state: ACKED, sentUs: 60, endedUs: 700 },
      { state: FAILED, sentUs: 40, endedUs: 100 },
      { state: DROPPED, endedUs: 5 },
    ]);
    expect(timings).toMatchObject({ first_sent_us: 40, first_acked_us: 700 });
  });

  it("shows each delivery's leader and reason, and no unknown round trip", () => {
    const { leaders } = viewOf([{ state: SENT }, { state: DROPPED, reason: "queue_full" }]);
    expect(leaders).toMatchObject([
      { identity: "leader 0", address: "10.0.0.1:8009", reason: null, rtt_us: null },
      { identity: "leader 1", address: "10.0.0.1:8009", reason: "queue_full" },
    ]);
  });

  it("shows the connection's age, the attempt and the resend of a delivery", () => {
    const { leaders } = viewOf([
      { state: SENT, ageMs: 4_200.26, identity: "A" },
      { state: SENT, ageMs: -3, identity: "B" },
      { state: DROPPED, identity: "A", resend: 1 },
      { state: SENT, ageMs: 0, identity: "C", resend: 1 },
      { state: SENT, ageMs: 0, identity: "A", resend: 2 },
    ]);
    expect(leaders).toMatchObject([
      { identity: "A", connection: "warm", connection_age_ms: 4_200.3, attempt: 1, resend: 0 },
      { identity: "B", connection: "cold", connection_age_ms: null, attempt: 1, resend: 0 },
      { identity: "A", connection: null, connection_age_ms: null, attempt: 2, resend: 1 },
      { identity: "C", attempt: 1, resend: 1 },
      { identity: "A", connection: "warm", connection_age_ms: 0, attempt: 3, resend: 2 },
    ]);
  });
});

describe("the landing in a view", () => {
  it("has its slot, the slots since receipt, and the time it was known", () => {
    const { state, landing } = viewOf([{ state: ACKED }], { landing: STATE_LANDED, slot: 392 });
    expect(state).toBe("landed");
    expect(landing).toEqual({
      state: "landed",
      slot: 392,
      slots: 2,
      error: null,
      reason: null,
      message: "a confirmed block holds it",
      known_us: 400_000.1,
    });
  });

  it("has the network's error as a value, also when it is not JSON", () => {
    const failed = { landing: STATE_LANDED, slot: 391 };
    const error = '{"InstructionError":[2,{"Custom":6001}]}';
    expect(viewOf([], { ...failed, error }).landing).toMatchObject({
      error: { InstructionError: [2, { Custom: 6001 }] },
      message: "a confirmed block holds it, where the network gave the error above",
    });
    expect(viewOf([], { ...failed, error: "odd" }).landing.error).toBe("odd");
  });

  it.each([
    [STATE_EXPIRED, "expired", "blockhash_expired"],
    [STATE_DROPPED, "dropped", "never_sent"],
  ] as const)("has the reason and its message where it is %i", (landing, state, reason) => {
    const view = viewOf([{ state: SENT }], { landing, reason });
    expect(view.state).toBe(state);
    expect(view.landing).toMatchObject({ state, slot: null, slots: null, reason });
    expect(view.landing.message).toBe(END_REASONS[reason]);
  });

  it("is processed until it is final", () => {
    const view = viewOf([{ state: SENT }], { landing: STATE_PROCESSED, slot: 390 });
    expect(view).toMatchObject({ state: "processed", landing: { state: "processed", slots: 0 } });
  });
});
