import { describe, expect, it } from "vitest";
import type { CopyReason } from "../../src/core/errors.ts";
import {
  ACKED,
  DROPPED,
  FAILED,
  ReceiptStore,
  reasonNumber,
  SENT,
} from "../../src/observe/receipt-store.ts";
import { type Receipt, receiptOf } from "../../src/observe/receipt-view.ts";

const RECEIVED_NS = 5_000_000_000;

interface CopySpec {
  readonly state: number;
  readonly reason?: CopyReason | null;
  readonly sentUs?: number;
  readonly endedUs?: number;
  readonly rttUs?: number;
}

interface RowSpec {
  readonly version?: -1 | 0 | 1;
  readonly leftOut?: number;
}

/** The view of one receipt with these copies, at a fixed wall time. */
function viewOf(copies: readonly CopySpec[], { version = 0, leftOut = 0 }: RowSpec = {}): Receipt {
  const store = new ReceiptStore(4);
  const row = store.open(new Uint8Array(64).fill(9), 0);
  const { rows } = store;
  rows.receivedNs[row] = RECEIVED_NS;
  rows.decodedNs[row] = RECEIVED_NS + 12_340;
  rows.tipLamports[row] = 1_000_000;
  rows.priorityFeeLamports[row] = 2 ** 40;
  rows.version[row] = version;
  rows.submissions[row] = 3;
  rows.copiesLeftOut[row] = leftOut;
  for (const { state, reason = null, sentUs = 0, endedUs = 0, rttUs = 0 } of copies) {
    const copy = store.addCopy(row);
    store.copies.identity.set(copy, `leader ${copy}`);
    store.copies.address.set(copy, "10.0.0.1:8009");
    store.copies.slot[copy] = 400 + copy;
    store.copies.state[copy] = state;
    store.copies.reason[copy] = reasonNumber(reason);
    store.copies.sentNs[copy] = RECEIVED_NS + sentUs * 1000;
    store.copies.endedNs[copy] = RECEIVED_NS + endedUs * 1000;
    store.copies.rttUs[copy] = rttUs;
  }
  return receiptOf(store, row, "Sig", 1_790_000_000_123.4);
}

describe("a receipt's view", () => {
  it("shows the row under the names that are promised", () => {
    expect(viewOf([], { leftOut: 2 })).toEqual({
      signature: "Sig",
      state: "accepted",
      received_at: "2026-09-21T14:13:20.123Z",
      submissions: 3,
      version: 0,
      tip_lamports: 1_000_000,
      priority_fee_lamports: 2 ** 40,
      timings: { decoded_us: 12.3, first_sent_us: null, first_acked_us: null },
      leaders: [],
      leaders_left_out: 2,
      landing: "unknown",
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
  ] as const)("is %s with copies in the states %j", (state, states) => {
    expect(viewOf(states.map((each) => ({ state: each }))).state).toBe(state);
  });

  it("tells only the times that a copy's state has", () => {
    const times = { sentUs: 10, endedUs: 90.25, rttUs: 850.4 };
    const shown = viewOf([SENT, ACKED, FAILED, DROPPED].map((state) => ({ state, ...times })));
    expect(shown.leaders).toMatchObject([
      { slot: 400, state: "sent", sent_us: 10, acked_us: null, ended_us: null, rtt_us: 850 },
      { slot: 401, state: "acked", sent_us: 10, acked_us: 90.3, ended_us: null },
      { slot: 402, state: "failed", sent_us: 10, acked_us: null, ended_us: 90.3 },
      { slot: 403, state: "dropped", sent_us: null, acked_us: null, ended_us: 90.3 },
    ]);
  });

  it("takes the first times over all copies, whichever copy has them", () => {
    const { timings } = viewOf([
      { state: ACKED, sentUs: 50, endedUs: 900 },
      { state: ACKED, sentUs: 60, endedUs: 700 },
      { state: FAILED, sentUs: 40, endedUs: 100 },
      { state: DROPPED, endedUs: 5 },
    ]);
    expect(timings).toMatchObject({ first_sent_us: 40, first_acked_us: 700 });
  });

  it("shows each copy's leader, its reason, and no round trip where none is known", () => {
    const { leaders } = viewOf([{ state: SENT }, { state: DROPPED, reason: "queue_full" }]);
    expect(leaders).toMatchObject([
      { identity: "leader 0", address: "10.0.0.1:8009", reason: null, rtt_us: null },
      { identity: "leader 1", address: "10.0.0.1:8009", reason: "queue_full" },
    ]);
  });
});
