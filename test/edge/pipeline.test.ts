import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { DECODE_ERROR } from "../../src/core/decode-errors.ts";
import { ALL_FULL } from "../../src/send/sender.ts";
import { expectBalance } from "../support/landing-balance.ts";
import { bytesOf, newRig, signatureOf } from "../support/pipeline-rig.ts";

describe("the order", () => {
  it("of a new transaction: asked, decoded, noted, sent, remembered, answered", () => {
    const { rig, submit } = newRig();
    submit(bytesOf(1));
    expect(rig.calls).toEqual([
      "dedup.query",
      "decode",
      "suspend",
      "send",
      "receipt.open",
      "track",
      "flush",
      "dedup.insert",
      "result",
    ]);
    expect(rig.results).toEqual([{ kind: "accepted", signature: signatureOf(bytesOf(1)) }]);
  });

  it("gives receipt and landing the slot of one moment, so that they count alike", () => {
    const { rig, submit } = newRig();
    // Each clock read returns a different time.
    const stopped = rig.clock.nowNs.bind(rig.clock);
    let looks = 0;
    rig.clock.nowNs = () => {
      looks += 1;
      return stopped() + looks;
    };
    submit(bytesOf(1));
    expect(rig.slotsAsked).toHaveLength(2);
    expect(rig.slotsAsked[0]).toBe(rig.slotsAsked[1]);
  });

  it("is over before submit returns when nothing waits", () => {
    const { rig, submit } = newRig();
    submit(bytesOf(1));
    expect(rig.results).toHaveLength(1);
    expect(rig.sent[0]?.bytes).toEqual(bytesOf(1));
  });

  it("of a repetition: only asked and shared", () => {
    const { rig, submit } = newRig();
    submit(bytesOf(1));
    rig.calls.length = 0;
    submit(bytesOf(1));
    expect(rig.calls).toEqual(["dedup.query", "receipt.addSubmitter", "mergeDuplicate", "result"]);
    expect(rig.results[1]).toEqual(rig.results[0]);
    expect(rig.sent).toHaveLength(1);
  });

  it("of a refused one: neither noted nor sent nor remembered", () => {
    const { rig, submit, receipts, dedup } = newRig();
    submit(bytesOf(1, 999));
    expect(rig.calls).toEqual(["dedup.query", "decode", "result"]);
    expect(rig.results).toMatchObject([{ kind: "refused", rejection: { reason: "tip_missing" } }]);
    expect(receipts.count()).toBe(0);
    expect(dedup.counters.entries).toBe(0);
  });

  it("hands on what the sender said, with ids that count up", () => {
    const { rig, submit, clock } = newRig();
    submit(bytesOf(1), "acme", 3);
    clock.advance(5);
    submit(bytesOf(2), "other");
    expect(rig.sent).toMatchObject([
      { id: 1, account: "acme", maxRetries: 3, receivedNs: clock.nowNs() - 5 * NS_PER_MS },
      { id: 2, account: "other", maxRetries: null, receivedNs: clock.nowNs() },
    ]);
  });

  it("spends an id only on what a leader took", () => {
    const { rig, submit } = newRig();
    for (const id of [1, 2]) for (const lamports of [999, 1000]) submit(bytesOf(id, lamports));
    expect(rig.sent.map(({ id }) => id)).toEqual([1, 2]);
  });

  it("takes any bytes at all, and asks the decoder about those without a signature", () => {
    const { rig, submit } = newRig();
    const bodies = [new Uint8Array(0), Uint8Array.of(1), Buffer.from("{}"), Buffer.alloc(5000, 1)];
    for (const body of bodies) submit(body);
    expect(rig.results.map((response) => response.kind)).toEqual(bodies.map(() => "refused"));
    expect(rig.sent).toEqual([]);
  });
});

describe("no leader", () => {
  it("is answered as such, and leaves no receipt and no memory", () => {
    const { rig, submit, receipts, landing } = newRig();
    rig.taken = 0;
    submit(bytesOf(1));
    expect(rig.calls.slice(-4)).toEqual(["suspend", "send", "flush", "result"]);
    expect(landing.counters.accepted).toBe(0);
    expectBalance(landing);
    expect(rig.results).toMatchObject([{ kind: "refused", rejection: { reason: "no_leader" } }]);
    expect(receipts.find(signatureOf(bytesOf(1)), "acme")).toBeNull();
  });

  it("is not remembered where others share what was seen: the next try is sent", () => {
    const { rig, submit } = newRig(true);
    rig.taken = 0;
    submit(bytesOf(1));
    expect(rig.calls).toContain("dedup.rollback");
    rig.taken = 2;
    submit(bytesOf(1));
    expect(rig.results).toMatchObject([{ kind: "refused" }, { kind: "accepted" }]);
    expect(rig.sent).toHaveLength(1);
  });

  it("does not stand in the way of the next try", () => {
    const { rig, submit, receipts } = newRig();
    rig.taken = 0;
    submit(bytesOf(1));
    rig.taken = 2;
    submit(bytesOf(1));
    expect(rig.results[1]).toEqual({ kind: "accepted", signature: signatureOf(bytesOf(1)) });
    expect(rig.sent.map(({ id }) => id)).toEqual([1]);
    expect(receipts.find(signatureOf(bytesOf(1)), "acme")).toMatchObject({ submissions: 1 });
  });

  it("leaves the receipt of an earlier time, when there were leaders", () => {
    const { rig, submit, receipts, landing, clock } = newRig();
    submit(bytesOf(1));
    landing.stop();
    // Longer than the dedup cache remembers.
    clock.advance(10_000);
    rig.taken = 0;
    submit(bytesOf(1));
    expect(rig.results[1]).toMatchObject({ rejection: { reason: "no_leader" } });
    expect(receipts.find(signatureOf(bytesOf(1)), "acme")).not.toBeNull();
  });
});

describe("leaders that are all full", () => {
  it("are no missing leaders: it is overloaded, and leaves nothing behind", () => {
    const { rig, submit, receipts, landing, dedup } = newRig();
    rig.taken = ALL_FULL;
    submit(bytesOf(1));
    const rejection = { reason: "overloaded", data: {} };
    expect(rig.results).toMatchObject([{ kind: "refused", rejection }]);
    expect(receipts.find(signatureOf(bytesOf(1)), "acme")).toBeNull();
    expect(landing.counters.accepted).toBe(0);
    expect(dedup.counters.entries).toBe(0);
    rig.taken = 1;
    submit(bytesOf(1));
    expect(rig.results[1]).toMatchObject({ kind: "accepted" });
  });
});

describe("a repetition", () => {
  it("by another account shares the receipt, and only once it was accepted", () => {
    const { submit, receipts } = newRig();
    const signature = signatureOf(bytesOf(1));
    submit(bytesOf(1), "acme");
    expect(receipts.find(signature, "other")).toBeNull();
    submit(bytesOf(1), "other");
    expect(receipts.find(signature, "other")).toMatchObject({ submissions: 2 });
  });

  it("with other bytes behind the same signature is no repetition", () => {
    const { rig, submit } = newRig();
    submit(bytesOf(1));
    const forged = Uint8Array.from(bytesOf(1));
    forged[forged.length - 1] = (forged[forged.length - 1] ?? 0) ^ 1;
    submit(forged, "other");
    expect(rig.results[1]).toMatchObject({ rejection: { reason: "signature_invalid" } });
    expect(rig.sent).toHaveLength(1);
  });

  it("joins the one in flight also when it was forgotten, and is judged once more", () => {
    const { rig, submit, clock, receipts, landing } = newRig();
    submit(bytesOf(1));
    clock.advance(1_999);
    submit(bytesOf(1));
    expect(rig.sent).toHaveLength(1);
    clock.advance(2);
    rig.calls.length = 0;
    submit(bytesOf(1));
    const shared = ["mergeDuplicate", "receipt.addSubmitter", "dedup.insert", "result"];
    expect(rig.calls).toEqual(["dedup.query", "decode", ...shared]);
    expect(rig.sent).toHaveLength(1);
    expect(rig.results[2]).toEqual(rig.results[0]);
    expect(receipts.find(signatureOf(bytesOf(1)), "acme")).toMatchObject({ submissions: 3 });
    expect(landing.counters).toMatchObject({ accepted: 1, duplicatesMerged: 2 });
  });

  it("of one that ended is another acceptance", () => {
    const { rig, submit, clock, landing } = newRig();
    submit(bytesOf(1));
    landing.stop();
    clock.advance(2_001);
    submit(bytesOf(1));
    expect(rig.sent.map(({ id }) => id)).toEqual([1, 2]);
    expect(landing.counters).toMatchObject({ accepted: 2, dropped: 1 });
    expectBalance(landing);
  });

  it("of what a worker still has is sent once, and both are answered", () => {
    const { rig, submit, decide, pipeline, receipts } = newRig();
    rig.holds = true;
    submit(bytesOf(1), "acme");
    submit(bytesOf(1), "other");
    expect(rig.results).toEqual([]);
    decide();
    const signature = signatureOf(bytesOf(1));
    const accepted = { kind: "accepted", signature };
    expect(rig.results).toEqual([accepted, accepted]);
    expect(rig.sent.map(({ id }) => id)).toEqual([1]);
    expect(receipts.find(signature, "other")).toMatchObject({ submissions: 2 });
    expect(pipeline.validations.accepted).toBe(2);
  });

  it("of what a worker still has gets its own try when the first found no leader", () => {
    const { rig, submit, decide } = newRig();
    rig.holds = true;
    submit(bytesOf(1));
    submit(bytesOf(1));
    const [first, second] = rig.pending.splice(0);
    if (first === undefined || second === undefined) throw new Error("both should wait");
    rig.taken = 0;
    rig.pending.push(first);
    decide();
    rig.taken = 1;
    rig.pending.push(second);
    decide();
    expect(rig.results.map(({ kind }) => kind)).toEqual(["refused", "accepted"]);
    expect(rig.sent.map(({ id }) => id)).toEqual([1]);
  });
});

describe("verdicts", () => {
  it("are counted by fault, each once", () => {
    const { submit, pipeline } = newRig();
    submit(bytesOf(1));
    submit(bytesOf(1));
    submit(bytesOf(2, 999));
    submit(new Uint8Array(0));
    submit(bytesOf(3).subarray(0, 100));
    const forged = Uint8Array.from(bytesOf(4));
    forged[3] = (forged[3] ?? 0) ^ 1;
    submit(forged);
    const { accepted, errorCounts } = pipeline.validations;
    expect(accepted).toBe(1);
    expect(errorCounts.reduce((sum, count) => sum + count, 0)).toBe(4);
    expect(errorCounts[DECODE_ERROR.empty]).toBe(1);
    expect(errorCounts[DECODE_ERROR.truncated]).toBe(1);
    expect(errorCounts[DECODE_ERROR.signature_wrong]).toBe(1);
  });

  it("of a stage that is full or dead become overloaded and internal", () => {
    const { rig, submit, decide, pipeline } = newRig();
    rig.holds = true;
    submit(bytesOf(1));
    decide({ kind: "refused", errorCode: DECODE_ERROR.ring_full, found: 4, needed: 4 });
    submit(bytesOf(1));
    decide({ kind: "refused", errorCode: DECODE_ERROR.worker_died, found: 0, needed: 0 });
    expect(rig.results).toMatchObject([
      { rejection: { reason: "overloaded" } },
      { rejection: { reason: "internal" } },
    ]);
    expect(pipeline.validations.errorCounts[DECODE_ERROR.ring_full]).toBe(1);
    expect(rig.sent).toEqual([]);
  });
});
