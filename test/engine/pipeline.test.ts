import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { DECODE_ERROR } from "../../src/core/decode-errors.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { DEDUP_KEEP_MS } from "../../src/dedup/limits.ts";
import { ALL_FULL } from "../../src/send/sender.ts";
import { expectBalance } from "../support/landing-balance.ts";
import { DECODER } from "../support/packets.ts";
import { bytesOf, newFixture, signatureOf } from "../support/pipeline-fixture.ts";

describe("the order of steps", () => {
  it("for a new transaction: look up, decode, record, send, store, respond", () => {
    const { fixture, submit } = newFixture();
    submit(bytesOf(1));
    expect(fixture.calls).toEqual([
      "dedup.query",
      "decode",
      "send",
      "receipt.open",
      "track",
      "report",
      "dedup.insert",
      "result",
    ]);
    expect(fixture.results).toEqual([{ kind: "accepted", signature: signatureOf(bytesOf(1)) }]);
  });

  it("gives receipt and landing the same slot", () => {
    const { fixture, submit } = newFixture();
    // Each clock read returns a different time.
    const stopped = fixture.clock.nowNs.bind(fixture.clock);
    let looks = 0;
    fixture.clock.nowNs = () => {
      looks += 1;
      return stopped() + looks;
    };
    submit(bytesOf(1));
    expect(fixture.slotsAsked).toHaveLength(2);
    expect(fixture.slotsAsked[0]).toBe(fixture.slotsAsked[1]);
  });

  it("ends before submit returns when nothing is asynchronous", () => {
    const { fixture, submit } = newFixture();
    submit(bytesOf(1));
    expect(fixture.results).toHaveLength(1);
    expect(fixture.sent[0]?.bytes).toEqual(bytesOf(1));
  });

  it("for a duplicate: look up and share only", () => {
    const { fixture, submit } = newFixture();
    submit(bytesOf(1));
    fixture.calls.length = 0;
    submit(bytesOf(1));
    expect(fixture.calls).toEqual([
      "dedup.query",
      "receipt.addSubmitter",
      "mergeDuplicate",
      "result",
    ]);
    expect(fixture.results[1]).toEqual(fixture.results[0]);
    expect(fixture.sent).toHaveLength(1);
  });

  it("for a rejected one: no record, no send, no dedup entry", () => {
    const { fixture, submit, receipts, dedup } = newFixture();
    submit(bytesOf(1, 999));
    expect(fixture.calls).toEqual(["dedup.query", "decode", "result"]);
    expect(fixture.results).toMatchObject([
      { kind: "rejected", rejection: { reason: "tip_missing" } },
    ]);
    expect(receipts.count()).toBe(0);
    expect(dedup.counters.entries).toBe(0);
  });

  it("forwards the sender's result, with increasing ids", () => {
    const { fixture, submit, clock } = newFixture();
    submit(bytesOf(1), "acme", 3);
    clock.advance(5);
    submit(bytesOf(2), "other");
    expect(fixture.sent).toMatchObject([
      { id: 1, account: "acme", maxRetries: 3, receivedNs: clock.nowNs() - 5 * NS_PER_MS },
      { id: 2, account: "other", maxRetries: null, receivedNs: clock.nowNs() },
    ]);
  });

  it("uses an id only for what a leader accepted", () => {
    const { fixture, submit } = newFixture();
    for (const id of [1, 2]) for (const lamports of [999, 1000]) submit(bytesOf(id, lamports));
    expect(fixture.sent.map(({ id }) => id)).toEqual([1, 2]);
  });

  it("accepts any bytes, and decodes those without a signature", () => {
    const { fixture, submit } = newFixture();
    const bodies = [new Uint8Array(0), Uint8Array.of(1), Buffer.from("{}"), Buffer.alloc(5000, 1)];
    for (const body of bodies) submit(body);
    expect(fixture.results.map((response) => response.kind)).toEqual(bodies.map(() => "rejected"));
    expect(fixture.sent).toEqual([]);
  });
});

it("offers tip and priority fee together", () => {
  const { fixture, submit, decide } = newFixture();
  fixture.holds = true;
  submit(bytesOf(1));
  const accepted = createDecoder(DECODER).decode(bytesOf(1, 1_000));
  if (accepted.kind !== "accepted") throw new Error("it is valid");
  decide({ ...accepted, priorityFeeLamports: 234 });
  expect(fixture.sent).toMatchObject([{ offeredLamports: 1_234 }]);
});

describe("the lack of a leader", () => {
  it("is reported as no_leader, and leaves no receipt and no dedup entry", () => {
    const { fixture, submit, receipts, landing } = newFixture();
    fixture.taken = 0;
    submit(bytesOf(1));
    expect(fixture.calls.slice(-2)).toEqual(["send", "result"]);
    expect(landing.counters.accepted).toBe(0);
    expectBalance(landing);
    expect(fixture.results).toMatchObject([
      { kind: "rejected", rejection: { reason: "no_leader" } },
    ]);
    expect(receipts.find(signatureOf(bytesOf(1)), "acme")).toBeNull();
  });

  it("does not block the next attempt", () => {
    const { fixture, submit, receipts } = newFixture();
    fixture.taken = 0;
    submit(bytesOf(1));
    fixture.taken = 2;
    submit(bytesOf(1));
    expect(fixture.results[1]).toEqual({ kind: "accepted", signature: signatureOf(bytesOf(1)) });
    expect(fixture.sent.map(({ id }) => id)).toEqual([1]);
    expect(receipts.find(signatureOf(bytesOf(1)), "acme")).toMatchObject({ submissions: 1 });
  });

  it("keeps the receipt of an earlier send", () => {
    const { fixture, submit, receipts, landing, clock } = newFixture();
    submit(bytesOf(1));
    landing.stop();
    // Longer than the dedup cache remembers.
    clock.advance(10_000);
    fixture.taken = 0;
    submit(bytesOf(1));
    expect(fixture.results[1]).toMatchObject({ rejection: { reason: "no_leader" } });
    expect(receipts.find(signatureOf(bytesOf(1)), "acme")).not.toBeNull();
  });
});

describe("leaders with full queues", () => {
  it("are reported as overloaded, not as no_leader, and leave no state", () => {
    const { fixture, submit, receipts, landing, dedup } = newFixture();
    fixture.taken = ALL_FULL;
    submit(bytesOf(1));
    const rejection = { reason: "overloaded", data: {} };
    expect(fixture.results).toMatchObject([{ kind: "rejected", rejection }]);
    expect(receipts.find(signatureOf(bytesOf(1)), "acme")).toBeNull();
    expect(landing.counters.accepted).toBe(0);
    expect(dedup.counters.entries).toBe(0);
    fixture.taken = 1;
    submit(bytesOf(1));
    expect(fixture.results[1]).toMatchObject({ kind: "accepted" });
  });
});

describe("a duplicate", () => {
  it("from another account shares the receipt, only once accepted", () => {
    const { submit, receipts } = newFixture();
    const signature = signatureOf(bytesOf(1));
    submit(bytesOf(1), "acme");
    expect(receipts.find(signature, "other")).toBeNull();
    submit(bytesOf(1), "other");
    expect(receipts.find(signature, "other")).toMatchObject({ submissions: 2 });
  });

  it("requires equal bytes, not only an equal signature", () => {
    const { fixture, submit } = newFixture();
    submit(bytesOf(1));
    const forged = Uint8Array.from(bytesOf(1));
    forged[forged.length - 1] = (forged[forged.length - 1] ?? 0) ^ 1;
    submit(forged, "other");
    expect(fixture.results[1]).toMatchObject({ rejection: { reason: "signature_invalid" } });
    expect(fixture.sent).toHaveLength(1);
  });

  it("is sent again once its entry expired, and merges with the one in flight", () => {
    const { fixture, submit, clock, receipts, landing } = newFixture();
    submit(bytesOf(1));
    clock.advance(DEDUP_KEEP_MS - 1);
    submit(bytesOf(1));
    expect(fixture.sent).toHaveLength(1);
    clock.advance(2);
    fixture.calls.length = 0;
    submit(bytesOf(1));
    const sent = ["send", "mergeSend", "receipt.open", "report", "dedup.insert", "result"];
    expect(fixture.calls).toEqual(["dedup.query", "decode", ...sent]);
    expect(fixture.sent.map(({ id }) => id)).toEqual([1, 2]);
    expect(fixture.results[2]).toEqual(fixture.results[0]);
    expect(receipts.find(signatureOf(bytesOf(1)), "acme")).toMatchObject({ submissions: 3 });
    expect(landing.counters).toMatchObject({ accepted: 1, duplicatesMerged: 2 });
  });

  it("of an ended transaction is accepted anew", () => {
    const { fixture, submit, clock, landing } = newFixture();
    submit(bytesOf(1));
    landing.stop();
    clock.advance(DEDUP_KEEP_MS + 1);
    submit(bytesOf(1));
    expect(fixture.sent.map(({ id }) => id)).toEqual([1, 2]);
    expect(landing.counters).toMatchObject({ accepted: 2, dropped: 1 });
    expectBalance(landing);
  });

  it("of one pending in a worker is sent once, and both get a response", () => {
    const { fixture, submit, decide, tracker, receipts } = newFixture();
    fixture.holds = true;
    submit(bytesOf(1), "acme");
    submit(bytesOf(1), "other");
    expect(fixture.results).toEqual([]);
    decide();
    const signature = signatureOf(bytesOf(1));
    const accepted = { kind: "accepted", signature };
    expect(fixture.results).toEqual([accepted, accepted]);
    expect(fixture.sent.map(({ id }) => id)).toEqual([1]);
    expect(receipts.find(signature, "other")).toMatchObject({ submissions: 2 });
    expect(tracker.validations.accepted).toBe(2);
  });

  it("of one pending in a worker has its own attempt when the first had no leader", () => {
    const { fixture, submit, decide } = newFixture();
    fixture.holds = true;
    submit(bytesOf(1));
    submit(bytesOf(1));
    const [first, second] = fixture.pending.splice(0);
    if (first === undefined || second === undefined) throw new Error("both should wait");
    fixture.taken = 0;
    fixture.pending.push(first);
    decide();
    fixture.taken = 1;
    fixture.pending.push(second);
    decide();
    expect(fixture.results.map(({ kind }) => kind)).toEqual(["rejected", "accepted"]);
    expect(fixture.sent.map(({ id }) => id)).toEqual([1]);
  });
});

describe("validation results", () => {
  it("are counted by error, each once", () => {
    const { submit, tracker } = newFixture();
    submit(bytesOf(1));
    submit(bytesOf(1));
    submit(bytesOf(2, 999));
    submit(new Uint8Array(0));
    submit(bytesOf(3).subarray(0, 100));
    const forged = Uint8Array.from(bytesOf(4));
    forged[3] = (forged[3] ?? 0) ^ 1;
    submit(forged);
    const { accepted, errorCounts } = tracker.validations;
    expect(accepted).toBe(1);
    expect(errorCounts.reduce((sum, count) => sum + count, 0)).toBe(4);
    expect(errorCounts[DECODE_ERROR.empty]).toBe(1);
    expect(errorCounts[DECODE_ERROR.truncated]).toBe(1);
    expect(errorCounts[DECODE_ERROR.signature_wrong]).toBe(1);
  });

  it("of a full or failed stage become overloaded and internal", () => {
    const { fixture, submit, decide, tracker } = newFixture();
    fixture.holds = true;
    submit(bytesOf(1));
    decide({ kind: "rejected", errorCode: DECODE_ERROR.ring_full, found: 4, needed: 4 });
    submit(bytesOf(1));
    decide({ kind: "rejected", errorCode: DECODE_ERROR.worker_died, found: 0, needed: 0 });
    expect(fixture.results).toMatchObject([
      { rejection: { reason: "overloaded" } },
      { rejection: { reason: "internal" } },
    ]);
    expect(tracker.validations.errorCounts[DECODE_ERROR.ring_full]).toBe(1);
    expect(fixture.sent).toEqual([]);
  });
});
