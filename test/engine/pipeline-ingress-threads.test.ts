/** How the account of what ingress threads sent and that of the pipeline are one. */

import { describe, expect, it } from "vitest";
import { NS_PER_MS, systemClock } from "../../src/core/clock.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { SENT } from "../../src/native-ingress/record-ring.ts";
import { DECODER } from "../support/packets.ts";
import { bytesOf, newFixture, signatureOf } from "../support/pipeline-fixture.ts";
import { ringRecord } from "../support/ring-record.ts";

describe("a send of an ingress thread", () => {
  const DELAY_NS = 50 * NS_PER_MS;

  function recordNew(all: ReturnType<typeof newFixture>, id: number, account = "acme") {
    const { clock, tracker } = all;
    const bytes = bytesOf(id);
    const accepted = createDecoder(DECODER).decode(bytes);
    if (accepted.kind !== "accepted") throw new Error("a good one is needed");
    const receivedNs = clock.nowNs();
    const times = { receivedNs, decodedNs: receivedNs + 10, sentNs: receivedNs + 20 };
    const receivedUnixMs = clock.unixMs();
    clock.advance(DELAY_NS / NS_PER_MS);
    const fields = { bytes, account, keyId: "k", maxRetries: null, validation: accepted };
    tracker.take(ringRecord(SENT, { ...fields, ...times }));
    return { bytes, receivedUnixMs, ...times };
  }

  it("is recorded in every stage, as a main-thread send of the same time", () => {
    const all = newFixture();
    const { fixture, receipts, landing, tracker } = all;
    const { bytes, receivedUnixMs, sentNs } = recordNew(all, 1);
    expect(fixture.calls).toEqual(["receipt.open", "track", "recordSend"]);
    expect(fixture.recorded).toMatchObject([{ packet: { id: 1 }, sentNs }]);
    expect(fixture.counted).toEqual(["1 k"]);
    expect(tracker.validations.accepted).toBe(1);
    expect(landing.inFlight).toBe(1);
    const receipt = receipts.find(signatureOf(bytes), "acme");
    expect(receipt).toMatchObject({ received_at: new Date(receivedUnixMs).toISOString() });
  });

  it("shares the ids of main-thread sends", () => {
    const all = newFixture();
    all.submit(bytesOf(1));
    recordNew(all, 2);
    all.submit(bytesOf(3));
    expect([
      ...all.fixture.sent,
      ...all.fixture.recorded.map(({ packet }) => packet),
    ]).toMatchObject([{ id: 1 }, { id: 3 }, { id: 2 }]);
  });

  it("merges with the one in flight when two threads sent it", () => {
    const all = newFixture();
    const { bytes } = recordNew(all, 1);
    recordNew(all, 1, "other");
    expect(all.landing.inFlight).toBe(1);
    expect(all.landing.counters.accepted).toBe(1);
    expect(all.fixture.counted).toEqual(["1 k"]);
    for (const account of ["acme", "other"]) {
      expect(all.receipts.find(signatureOf(bytes), account)).toMatchObject({ submissions: 2 });
    }
  });

  it("is shared by each account for which an ingress thread found a duplicate", () => {
    const all = newFixture();
    const { bytes } = recordNew(all, 1);
    all.tracker.duplicate({ bytes, account: "other", maxRetries: null }, 1);
    expect(all.receipts.find(signatureOf(bytes), "other")).toMatchObject({ submissions: 2 });
  });

  it("is recorded before the main thread answers a duplicate of it", () => {
    const all = newFixture(true);
    const { fixture, dedup, clock } = all;
    dedup.insert(bytesOf(1), 1, clock.nowNs());
    fixture.onReconcile = () => {
      recordNew(all, 1);
      fixture.onReconcile = () => {};
    };
    all.submit(bytesOf(1), "other");
    expect(fixture.results).toEqual([{ kind: "accepted", signature: signatureOf(bytesOf(1)) }]);
    for (const account of ["acme", "other"]) {
      expect(all.receipts.find(signatureOf(bytesOf(1)), account)).toMatchObject({ submissions: 2 });
    }
    expect(all.landing.counters).toMatchObject({ accepted: 1, duplicatesMerged: 1 });
  });

  it("is recorded too where the duplicate is found only once it is decoded", () => {
    const all = newFixture(true);
    const { fixture, dedup, clock } = all;
    fixture.onReserve = () => dedup.insert(bytesOf(1), 1, clock.nowNs());
    let reads = 0;
    fixture.onReconcile = () => {
      reads += 1;
      recordNew(all, 1);
    };
    all.submit(bytesOf(1));
    expect([reads, fixture.sent]).toEqual([1, []]);
    expect(all.receipts.find(signatureOf(bytesOf(1)), "acme")).toMatchObject({ submissions: 2 });
  });

  it("answers no duplicate before it is sent: later ones are sent separately", () => {
    const { fixture, dedup, submit } = newFixture(true);
    dedup.reserve(bytesOf(1), 1, fixture.clock.nowNs());
    fixture.taken = 0;
    submit(bytesOf(1));
    expect(fixture.results).toMatchObject([
      { kind: "rejected", rejection: { reason: "no_leader" } },
    ]);
    fixture.taken = 1;
    submit(bytesOf(1));
    expect(fixture.results[1]).toMatchObject({ kind: "accepted" });
    expect(fixture.sent).toHaveLength(1);
    // The reservation belongs to the other thread.
    expect(fixture.calls).not.toContain("dedup.rollback");
    expect(fixture.calls).not.toContain("dedup.commit");
  });

  it("is awaited while the ingress thread is preempted, so no leader gets two", () => {
    const { fixture, dedup, submit } = newFixture(true);
    const untilNs = systemClock.nowNs() + 4 * NS_PER_MS;
    dedup.reserve(bytesOf(1), 1, fixture.clock.nowNs());
    fixture.onReserve = () => {
      if (systemClock.nowNs() > untilNs) dedup.commit(bytesOf(1), 1);
    };
    submit(bytesOf(1));
    expect(fixture.results).toEqual([{ kind: "accepted", signature: signatureOf(bytesOf(1)) }]);
    expect(fixture.sent).toEqual([]);
  });
});
