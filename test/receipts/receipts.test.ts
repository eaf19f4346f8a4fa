import { describe, expect, it } from "vitest";
import { encodeSignature } from "../../src/core/encoding.ts";
import type { Outcome, Packet } from "../../src/core/flow.ts";
import {
  RECEIPT_DELIVERIES_MAX,
  RECEIPT_PACKETS_MIN,
  RECEIPT_SUBMITTERS_MAX,
} from "../../src/receipts/limits.ts";
import { createReceipts } from "../../src/receipts/receipts.ts";
import { ACCEPTED } from "../support/accepted.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { fc } from "../support/properties.ts";

const US = 1_000;

/** A transaction's bytes with a unique signature, and that signature as text. */
function transaction(number: number): { bytes: Uint8Array; signature: string } {
  const bytes = new Uint8Array(165);
  new DataView(bytes.buffer).setUint32(1, number);
  bytes[64] = number & 0xff;
  return { bytes, signature: encodeSignature(bytes, 1) };
}

function setup({ entriesMax = 8, keepMs = 1000, slot = 390 as number | null } = {}) {
  const clock = createFakeClock();
  const startNs = clock.nowNs();
  const shares = new Map<string, number>();
  const landedShareOf = (account: string): number => shares.get(account) ?? 1;
  const deps = { clock, slot: () => slot, landedShareOf };
  const receipts = createReceipts(deps, { keepMs, entriesMax });
  let id = 0;
  /** Submits transaction `number` now, decoded 30 us later; returns the packet's id. */
  const submit = (number: number, account = "acme"): number => {
    id += 1;
    const { bytes } = transaction(number);
    const receivedNs = clock.nowNs();
    const packet: Packet = {
      id,
      bytes,
      account,
      receivedNs,
      maxRetries: null,
      offeredLamports: 7_000,
    };
    receipts.open(packet, ACCEPTED, receivedNs + 30 * US);
    bytes.fill(0xee);
    return id;
  };
  const outcome = (packetId: number, kind: Outcome["kind"], more: Partial<Outcome> = {}): void =>
    receipts.record({
      packetId,
      identity: "LeaderA",
      address: "127.0.0.1:8009",
      slot: 400,
      kind,
      reason: null,
      atNs: startNs,
      rttUs: 0,
      connectionAgeMs: Number.NaN,
      resend: 0,
      ...more,
    });
  const find = (number: number, account = "acme") =>
    receipts.find(transaction(number).signature, account);
  return { clock, startNs, receipts, submit, outcome, find, shares };
}

describe("a receipt", () => {
  it("has the rank as of the arrival: the offer times the account's landed share", () => {
    const { submit, find, shares } = setup();
    submit(1);
    shares.set("acme", 0.5001);
    submit(2);
    expect(find(1)).toMatchObject({ priority_lamports: 7_000 });
    expect(find(2)).toMatchObject({ priority_lamports: 3_501 });
  });

  it("are ordered although the wall clock has a resolution of 1 ms", () => {
    const clock = createFakeClock();
    const coarse = { ...clock, unixMs: () => Math.floor(clock.unixMs()) };
    const receipts = createReceipts(
      { clock: coarse, slot: () => 1 },
      { keepMs: 1e4, entriesMax: 8 },
    );
    const startNs = clock.nowNs();
    /** Received at `receivedMs`, and known here at `knownMs`. */
    const timeOf = (number: number, receivedMs: number, knownMs: number): number => {
      const { bytes, signature } = transaction(number);
      const receivedNs = startNs + receivedMs * 1000 * US;
      clock.advance(knownMs - (clock.nowNs() - startNs) / (1000 * US));
      const fixed = { account: "acme", maxRetries: null, offeredLamports: 0 };
      receipts.open(
        { id: number, bytes, receivedNs, ...fixed },
        ACCEPTED,
        receivedNs,
        clock.nowNs(),
      );
      return Date.parse(receipts.find(signature, "acme")?.received_at ?? "");
    };
    const first = timeOf(1, 10, 10);
    expect([timeOf(2, 10.4, 60.9), timeOf(3, 12, 61)]).toEqual([first, first + 2]);
  });

  it("follows a transaction from acceptance to acknowledgement", () => {
    const { clock, startNs, receipts, submit, outcome, find } = setup();
    const id = submit(1);
    expect(find(1)).toEqual({
      signature: transaction(1).signature,
      state: "accepted",
      received_at: new Date(clock.unixMs() - 0.03).toISOString(),
      submissions: 1,
      version: 0,
      tip_lamports: 1_000_000,
      priority_fee_lamports: 2_500,
      priority_lamports: 7_000,
      timings: { decoded_us: 30, first_sent_us: null, first_acked_us: null },
      leaders: [],
      leaders_omitted: 0,
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
    outcome(id, "sent", { atNs: startNs + 80 * US, rttUs: 900 });
    expect(find(1)).toMatchObject({ state: "sent", timings: { first_sent_us: 80 } });
    outcome(id, "acked", { atNs: startNs + 1_080.5 * US, rttUs: 1_000 });
    expect(find(1)).toMatchObject({
      state: "acknowledged",
      timings: { decoded_us: 30, first_sent_us: 80, first_acked_us: 1_080.5 },
      leaders: [
        {
          identity: "LeaderA",
          address: "127.0.0.1:8009",
          slot: 400,
          state: "acked",
          reason: null,
          sent_us: 80,
          acked_us: 1_080.5,
          ended_us: null,
          rtt_us: 1_000,
          connection: null,
          connection_age_ms: null,
          attempt: 1,
          resend: 0,
        },
      ],
    });
    const { decode, wire, ack } = receipts.durations;
    expect([decode.count, wire.count, ack.count]).toEqual([1, 1, 1]);
    expect([decode.sumNs, wire.sumNs, ack.sumNs]).toEqual([30 * US, 80 * US, 1_000.5 * US]);
  });

  it("shows each leader's delivery, and why one failed", () => {
    const { startNs, receipts, submit, outcome, find } = setup();
    const id = submit(1);
    outcome(id, "sent", { atNs: startNs + 50 * US });
    outcome(id, "sent", { identity: "LeaderB", slot: 404, atNs: startNs + 60 * US });
    const dropped = { identity: "LeaderC", slot: 408, reason: "queue_full" } as const;
    outcome(id, "dropped", { ...dropped, atNs: startNs + 70 * US });
    const lost = { reason: "connection_lost", atNs: startNs + 90 * US } as const;
    outcome(id, "failed", { identity: "LeaderB", slot: 404, ...lost });
    const receipt = find(1);
    expect(receipt?.state).toBe("sent");
    expect(receipt?.leaders).toMatchObject([
      { identity: "LeaderA", state: "sent", reason: null, sent_us: 50, ended_us: null },
      {
        identity: "LeaderB",
        state: "failed",
        reason: "connection_lost",
        sent_us: 60,
        ended_us: 90,
      },
      { identity: "LeaderC", state: "dropped", reason: "queue_full", sent_us: null, ended_us: 70 },
    ]);
    expect(receipts.durations.wire).toMatchObject({ count: 1, sumNs: 50 * US });
    expect(receipts.durations.ack.count).toBe(0);
  });

  it("is failed once every delivery ended without an acknowledgement", () => {
    const { submit, outcome, find } = setup();
    const id = submit(1);
    outcome(id, "sent");
    outcome(id, "dropped", { identity: "LeaderB", reason: "not_connected" });
    expect(find(1)?.state).toBe("sent");
    outcome(id, "failed", { reason: "stream_stopped" });
    expect(find(1)?.state).toBe("failed");
  });

  it("has no copy of a resend that was never sent", () => {
    const { submit, outcome, find } = setup();
    const id = submit(1);
    outcome(id, "sent");
    outcome(id, "dropped", { identity: "LeaderB", resend: 1, reason: "leader_saturated" });
    expect(find(1)?.leaders.map(({ identity }) => identity)).toEqual(["LeaderA"]);
  });

  it("distinguishes two deliveries to one leader, whichever ends first", () => {
    const { startNs, submit, outcome, find } = setup();
    const id = submit(1);
    outcome(id, "sent", { atNs: startNs + 50 * US });
    outcome(id, "sent", { resend: 1, atNs: startNs + 90 * US });
    // The first used a connection that was replaced meanwhile.
    outcome(id, "acked", { resend: 1, atNs: startNs + 120 * US });
    outcome(id, "failed", { reason: "connection_lost", atNs: startNs + 200 * US });
    expect(find(1)?.leaders).toMatchObject([
      { resend: 0, state: "failed", sent_us: 50, ended_us: 200 },
      { resend: 1, state: "acked", sent_us: 90, acked_us: 120 },
    ]);
  });

  it("is visible only to the accounts that sent the transaction", () => {
    const { submit, find } = setup();
    submit(1, "acme");
    expect(find(1, "acme")).not.toBeNull();
    expect(find(1, "other")).toBeNull();
    expect(find(1, "")).toBeNull();
    submit(1, "other");
    expect(find(1, "acme")?.submissions).toBe(2);
    expect(find(1, "other")).toEqual(find(1, "acme"));
    expect(find(2, "acme")).toBeNull();
  });

  it("is visible to a bounded number of accounts, the first ones", () => {
    const { submit, find } = setup();
    for (let n = 0; n <= RECEIPT_SUBMITTERS_MAX; n += 1) submit(1, `account-${n}`);
    expect(find(1, `account-${RECEIPT_SUBMITTERS_MAX - 1}`)).not.toBeNull();
    expect(find(1, `account-${RECEIPT_SUBMITTERS_MAX}`)).toBeNull();
  });

  it("includes a later submission, with separate outcomes", () => {
    const { clock, startNs, submit, outcome, find, receipts } = setup();
    const first = submit(1);
    outcome(first, "sent", { atNs: startNs + 40 * US });
    clock.advance(500);
    const second = submit(1);
    const laterNs = clock.nowNs();
    outcome(second, "sent", { atNs: laterNs + 60 * US });
    outcome(second, "acked", { atNs: laterNs + 160 * US });
    const receipt = find(1);
    expect(receipt).toMatchObject({ submissions: 2, timings: { first_sent_us: 40 } });
    expect(receipt?.leaders.map((delivery) => delivery.state)).toEqual(["sent", "acked"]);
    expect(receipt?.leaders[1]?.sent_us).toBe(500_060);
    expect(receipts.durations.wire).toMatchObject({ count: 2, sumNs: 100 * US });
    expect(receipts.durations.ack).toMatchObject({ count: 1, sumNs: 100 * US });
    expect(receipts.counters).toMatchObject({ opened: 1, duplicatesMerged: 1 });
    expect(receipts.count()).toBe(1);
  });

  it("is shared by a duplicate in flight, which sends nothing", () => {
    const { submit, find, receipts } = setup();
    submit(1, "acme");
    expect(receipts.addSubmitter(transaction(1).bytes, 1, "other")).toBe(true);
    expect(receipts.addSubmitter(transaction(2).bytes, 1, "other")).toBe(false);
    expect(find(1, "other")).toMatchObject({ submissions: 2, leaders: [] });
    expect(find(2, "other")).toBeNull();
    expect(receipts.count()).toBe(1);
  });

  it("keeps a bounded number of deliveries and counts the rest", () => {
    const { submit, outcome, find, receipts } = setup({ entriesMax: 100 });
    const id = submit(1);
    for (let n = 0; n < RECEIPT_DELIVERIES_MAX + 3; n += 1)
      outcome(id, "sent", { identity: `L${n}` });
    outcome(id, "acked", { identity: `L${RECEIPT_DELIVERIES_MAX + 1}` });
    const receipt = find(1);
    expect(receipt?.leaders).toHaveLength(RECEIPT_DELIVERIES_MAX);
    expect(receipt?.leaders_omitted).toBe(3);
    expect(receipts.counters.untracked).toBe(0);
  });

  it.each(["", "0OIl", "1".repeat(63), "1".repeat(65), "z".repeat(10_000)])(
    "is not found for what is no signature: %j",
    (text) => {
      const { submit, receipts } = setup();
      submit(1);
      expect(receipts.find(text, "acme")).toBeNull();
    },
  );
});

describe("the stored receipts", () => {
  it("are evicted after their retention time", () => {
    const { clock, submit, find, receipts } = setup();
    submit(1);
    clock.advance(600);
    submit(2);
    clock.advance(400);
    expect(find(1)).not.toBeNull();
    clock.advance(0.001);
    expect(find(1)).toBeNull();
    receipts.sweep();
    expect(receipts.count()).toBe(1);
    expect(receipts.counters.evictedExpired).toBe(1);
    expect(find(2)).not.toBeNull();
  });

  it("are scanned on a timer between start and stop", () => {
    const { clock, submit, receipts } = setup();
    submit(1);
    receipts.start();
    clock.advance(3000);
    expect(receipts.count()).toBe(0);
    receipts.stop();
    expect(clock.pending).toBe(0);
  });

  it("keep one time of receipt, even when the wall clock is set", () => {
    const { clock, submit, find } = setup();
    submit(1);
    const first = find(1)?.received_at;
    const { unixMs } = clock;
    Object.assign(clock, { unixMs: () => unixMs() + 5_000 });
    expect(find(1)?.received_at).toBe(first);
  });

  it("are evicted oldest first when the store is full", () => {
    const { submit, find, receipts } = setup({ entriesMax: 3 });
    for (const number of [1, 2, 3, 4]) submit(number);
    expect([1, 2, 3, 4].map((number) => find(number) !== null)).toEqual([false, true, true, true]);
    expect(receipts.counters).toMatchObject({ evictedCapacity: 1, evictedExpired: 0, opened: 4 });
  });

  it("are created anew after the retention time of the first", () => {
    const { clock, submit, find } = setup({ entriesMax: 100 });
    for (let number = 1; number <= 50; number += 1) submit(number);
    clock.advance(2000);
    submit(50);
    expect(find(50)).toMatchObject({
      submissions: 1,
      received_at: new Date(clock.unixMs() - 0.03).toISOString(),
    });
    expect(find(49)).toBeNull();
  });

  it("make room for deliveries by evicting the oldest receipts", () => {
    const { submit, outcome, find, receipts } = setup({ entriesMax: 4 });
    const [first, second] = [submit(1), submit(2)];
    for (let n = 0; n < 10; n += 1) outcome(first, "sent", { identity: `L${n}` });
    for (let n = 0; n < 6; n += 1) outcome(second, "sent", { identity: `L${n}` });
    expect(find(1)?.leaders).toHaveLength(10);
    outcome(second, "sent", { identity: "one more" });
    expect(find(1)).toBeNull();
    expect(find(2)?.leaders).toHaveLength(7);
    expect(receipts.counters.evictedCapacity).toBe(1);
  });

  it("never evict a receipt for its own deliveries", () => {
    const { submit, outcome, find } = setup({ entriesMax: 2 });
    const id = submit(1);
    for (let n = 0; n < 12; n += 1) outcome(id, "sent", { identity: `L${n}` });
    expect(find(1)).toMatchObject({ leaders_omitted: 4 });
  });

  it("count outcomes that match none of them", () => {
    const { submit, outcome, receipts } = setup({ entriesMax: 1 });
    outcome(0, "sent");
    outcome(99, "sent");
    const gone = submit(1);
    const kept = submit(2);
    outcome(gone, "sent");
    outcome(kept, "acked");
    outcome(kept + RECEIPT_PACKETS_MIN, "sent");
    expect(receipts.counters.untracked).toBe(5);
  });

  it("match a plain map, over any order of events", () => {
    const event = fc.record({
      number: fc.integer({ min: 1, max: 12 }),
      deliveries: fc.integer({ min: 0, max: 3 }),
      waitMs: fc.constantFrom(0, 0, 0, 400),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const { clock, submit, outcome, find, receipts } = setup({ entriesMax: 5 });
        const model = new Map<number, { atMs: number; deliveries: number }>();
        for (const { number, deliveries, waitMs } of events) {
          clock.advance(waitMs);
          const nowMs = clock.unixMs();
          for (const [key, { atMs }] of model) if (nowMs - atMs > 1000) model.delete(key);
          receipts.sweep();
          const known = model.get(number);
          if (known === undefined && model.size === 5) model.delete(model.keys().next().value ?? 0);
          const entry = known ?? { atMs: nowMs, deliveries: 0 };
          model.set(number, entry);
          const id = submit(number);
          // Three for each of five receipts stay within the limit of deliveries.
          const room = Math.max(0, 3 - entry.deliveries);
          for (let n = 0; n < Math.min(deliveries, room); n += 1) {
            outcome(id, "sent", { identity: `L${n}` });
            entry.deliveries += 1;
          }
        }
        expect(receipts.count()).toBe(model.size);
        for (let number = 1; number <= 12; number += 1) {
          expect(find(number)?.leaders.length).toBe(model.get(number)?.deliveries);
        }
      }),
      { numRuns: 300 },
    );
  });
});
