import { describe, expect, it } from "vitest";
import { createQuicReceipts } from "../../src/edge/quic-receipts.ts";
import type { QuicCounts } from "../../src/native-ingress/thread-counters.ts";
import type { NetworkChange } from "../../src/receipts/network-changes.ts";
import { accountNumber } from "../../src/send/native/account-number.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { stub } from "../support/stub.ts";

const LANDED = 5;

function setup() {
  const clock = createFakeClock();
  const log: NetworkChange[] = [];
  const changes = { first: 0, next: 0 };
  const quic = { followers: 0 };
  const batches: Buffer[] = [];
  const state = { takes: true, flushes: 0 };
  const receipts = createQuicReceipts({
    clock,
    receipts: {
      changes,
      networkChanges(from, stepsMax, callsMax, take) {
        const end = Math.min(log.length, from + stepsMax, from + callsMax);
        for (const change of log.slice(from, end)) take(change);
        return end;
      },
    },
    ingressThreads: {
      quic: stub<QuicCounts>(quic),
      sendReceipts(batch) {
        if (state.takes) batches.push(Buffer.from(batch));
        return state.takes;
      },
    },
    flushEvents() {
      state.flushes += 1;
    },
  });
  const add = (change: Partial<NetworkChange> = {}): void => {
    const signature = new Uint8Array(64).fill(9);
    const rest = { slot: 358_000_123, hasFailed: false, afterNs: 43_999 };
    log.push({ account: "acme", state: LANDED, signature, ...rest, ...change });
    changes.next = log.length;
  };
  receipts.start();
  return { clock, receipts, add, changes, quic, batches, state };
}

/** The third numbers of the signatures of a batch. */
const numbersOf = (batch: Buffer | undefined): number[] =>
  Array.from({ length: (batch?.length ?? 0) / 96 }, (_, index) => batch?.[index * 96 + 34] ?? -1);

describe("receipts for QUIC clients", () => {
  it("are the bytes of a verdict behind the number of the account", () => {
    const { clock, add, quic, batches } = setup();
    quic.followers = 1;
    add({ hasFailed: true });
    clock.advance(250);
    const [batch] = batches;
    expect(batch?.length).toBe(96);
    expect(batch?.readDoubleLE(0)).toBe(accountNumber("acme"));
    // Version 1, state 6: landed, no code; 43 µs, no credit, failed.
    expect(batch?.toString("hex", 8, 24)).toBe("010600002b000000" + "0000000001000000");
    expect(batch?.readBigUInt64LE(24)).toBe(358_000_123n);
    expect(batch?.subarray(32)).toEqual(Buffer.alloc(64, 9));
  });

  it("are not made while no client wants any, nor later those of before", () => {
    const { clock, add, quic, batches, state } = setup();
    add();
    clock.advance(1000);
    expect([batches.length, state.flushes]).toEqual([0, 0]);
    // What happened since the last look may be wanted.
    add({ slot: null, afterNs: 1e15 });
    quic.followers = 1;
    clock.advance(250);
    expect(batches.map((batch) => batch.length)).toEqual([96]);
    expect(batches[0]?.toString("hex", 12, 16)).toBe("ffffffff");
    expect(batches[0]?.readBigUInt64LE(24)).toBe(0n);
  });

  it("have what happened just before the look that found no client", () => {
    const { clock, add, quic, batches } = setup();
    clock.advance(240);
    // It waits already, but its thread has not counted it.
    add();
    clock.advance(10);
    quic.followers = 1;
    clock.advance(250);
    expect(batches.map((batch) => batch.length)).toEqual([96]);
  });

  it("come once, also where no client wants any for a while", () => {
    const { clock, add, quic, batches } = setup();
    quic.followers = 1;
    clock.advance(250);
    add();
    clock.advance(10);
    expect(batches.length).toBe(1);
    quic.followers = 0;
    clock.advance(10);
    quic.followers = 1;
    clock.advance(1000);
    expect(batches.length).toBe(1);
  });

  it("come every 10 ms, in batches", () => {
    const { clock, add, quic, batches } = setup();
    quic.followers = 1;
    clock.advance(250);
    for (let number = 0; number < 1500; number += 1) add();
    clock.advance(10);
    expect(batches.map((batch) => batch.length / 96)).toEqual([1024]);
    clock.advance(10);
    expect(batches.map((batch) => batch.length / 96)).toEqual([1024, 476]);
    clock.advance(100);
    expect(batches.length).toBe(2);
  });

  it("wait while the thread does not take them, and those that the log lost are counted", () => {
    const { clock, receipts, add, changes, quic, batches, state } = setup();
    quic.followers = 1;
    clock.advance(250);
    state.takes = false;
    for (let number = 0; number < 5; number += 1) {
      add({ signature: new Uint8Array(64).fill(number) });
    }
    clock.advance(50);
    expect(batches).toEqual([]);
    changes.first = 2;
    state.takes = true;
    clock.advance(10);
    expect(batches.map(numbersOf)).toEqual([[2, 3, 4]]);
    expect(receipts.counters.missed).toBe(2);
  });

  it("end with the edge", () => {
    const { clock, receipts, add, quic, batches } = setup();
    quic.followers = 1;
    receipts.stop();
    add();
    clock.advance(1000);
    expect(batches).toEqual([]);
  });
});
