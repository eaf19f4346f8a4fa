/** How the pipeline records what ingress threads did. */

import { describe, expect, it } from "vitest";
import { NS_PER_MS, systemClock } from "../../src/core/clock.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { newSendRecord } from "../../src/send/native/send-record.ts";
import { DECODER } from "../support/packets.ts";
import { bytesOf, newRig, signatureOf } from "../support/pipeline-rig.ts";

describe("what a front has sent", () => {
  const DELAY_NS = 50 * NS_PER_MS;

  function adoptNew(all: ReturnType<typeof newRig>, id: number, account = "acme") {
    const { clock, pipeline } = all;
    const bytes = bytesOf(id);
    const accepted = createDecoder(DECODER).decode(bytes);
    if (accepted.kind !== "accepted") throw new Error("a good one is needed");
    const receivedNs = clock.nowNs();
    const times = { receivedNs, decodedNs: receivedNs + 10, sentNs: receivedNs + 20 };
    const receivedUnixMs = clock.unixMs();
    clock.advance(DELAY_NS / NS_PER_MS);
    const packet = { id: 0, bytes, account, receivedNs, maxRetries: null, priorityLamports: 7 };
    pipeline.recordSend(packet, "k", accepted, { ...times, send: newSendRecord() });
    return { bytes, receivedUnixMs, ...times };
  }

  it("is in all the books afterwards, as if it had been sent here when it was sent there", () => {
    const all = newRig();
    const { rig, receipts, landing, pipeline } = all;
    const { bytes, receivedUnixMs, sentNs } = adoptNew(all, 1);
    expect(rig.calls).toEqual(["suspend", "recordSend", "receipt.open", "track", "flush"]);
    expect(rig.recorded).toMatchObject([{ packet: { id: 1 }, sentNs }]);
    expect(rig.counted).toEqual(["1 k"]);
    expect(pipeline.validations.accepted).toBe(1);
    expect(landing.inFlight).toBe(1);
    const receipt = receipts.find(signatureOf(bytes), "acme");
    expect(receipt).toMatchObject({ received_at: new Date(receivedUnixMs).toISOString() });
  });

  it("shares ids with what is sent here", () => {
    const all = newRig();
    all.submit(bytesOf(1));
    adoptNew(all, 2);
    all.submit(bytesOf(3));
    expect([...all.rig.sent, ...all.rig.recorded.map(({ packet }) => packet)]).toMatchObject([
      { id: 1 },
      { id: 3 },
      { id: 2 },
    ]);
  });

  it("joins the one in flight where two fronts had it, and is one transaction", () => {
    const all = newRig();
    const { bytes } = adoptNew(all, 1);
    adoptNew(all, 1, "other");
    expect(all.landing.inFlight).toBe(1);
    expect(all.landing.counters.accepted).toBe(1);
    expect(all.rig.counted).toEqual(["1 k"]);
    for (const account of ["acme", "other"]) {
      expect(all.receipts.find(signatureOf(bytes), account)).toMatchObject({ submissions: 2 });
    }
  });

  it("is shared by whoever a front answered a repetition to", () => {
    const all = newRig();
    const { bytes } = adoptNew(all, 1);
    all.pipeline.recordDuplicate({ bytes, account: "other", maxRetries: null }, 1);
    expect(all.receipts.find(signatureOf(bytes), "other")).toMatchObject({ submissions: 2 });
  });

  it("is shared also where the word of the repetition came before its own", () => {
    const all = newRig(true);
    for (const account of ["other", "third"]) {
      all.pipeline.recordDuplicate({ bytes: bytesOf(1), account, maxRetries: null }, 1);
    }
    const { bytes } = adoptNew(all, 1);
    for (const account of ["acme", "other", "third"]) {
      expect(all.receipts.find(signatureOf(bytes), account)).toMatchObject({ submissions: 3 });
    }
    expect(all.landing.counters).toMatchObject({ accepted: 1, duplicatesMerged: 2 });
  });

  it("is shared also by who was answered while a front had it that left it to this one", () => {
    const all = newRig(true);
    all.pipeline.recordDuplicate({ bytes: bytesOf(1), account: "other", maxRetries: null }, 1);
    all.submit(bytesOf(1));
    expect(all.receipts.find(signatureOf(bytesOf(1)), "other")).toMatchObject({ submissions: 2 });
  });

  it("answers for nothing while it is not sent: who comes meanwhile is sent for himself", () => {
    const { rig, dedup, submit } = newRig(true);
    dedup.reserve(bytesOf(1), 1, rig.clock.nowNs());
    rig.taken = 0;
    submit(bytesOf(1));
    expect(rig.results).toMatchObject([{ kind: "refused", rejection: { reason: "no_leader" } }]);
    rig.taken = 1;
    submit(bytesOf(1));
    expect(rig.results[1]).toMatchObject({ kind: "accepted" });
    expect(rig.sent).toHaveLength(1);
    // The reservation belongs to the other thread.
    expect(rig.calls).not.toContain("dedup.rollback");
    expect(rig.calls).not.toContain("dedup.commit");
  });

  it("is waited for while the front is interrupted with it, so that no leader has it twice", () => {
    const { rig, dedup, submit } = newRig(true);
    const untilNs = systemClock.nowNs() + 4 * NS_PER_MS;
    dedup.reserve(bytesOf(1), 1, rig.clock.nowNs());
    rig.onReserve = () => {
      if (systemClock.nowNs() > untilNs) dedup.commit(bytesOf(1), 1);
    };
    submit(bytesOf(1));
    expect(rig.results).toEqual([{ kind: "accepted", signature: signatureOf(bytesOf(1)) }]);
    expect(rig.sent).toEqual([]);
  });
});
