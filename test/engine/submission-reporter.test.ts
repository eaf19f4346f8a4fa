/** What is reported of each record: the submissions of all threads, in one order. */

import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import type { Packet } from "../../src/core/flow.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { DUPLICATE, REJECTED, SENT, VIOLATED } from "../../src/engine/submission-record.ts";
import { SubmissionReporter } from "../../src/engine/submission-reporter.ts";
import { newSendRecord } from "../../src/send/native/send-record.ts";
import { DECODER } from "../support/packets.ts";
import { bytesOf, kept, newFixture, signatureOf } from "../support/pipeline-fixture.ts";
import { ringRecord } from "../support/ring-record.ts";

const PLANS = ["Beta", "Pro"];
const OWN = { account: "own", keyId: "k7", plan: "Max" };
const NO_ERROR = { kind: "rejected", errorCode: -1, found: 0, needed: 0 } as const;

/** A reporter to one that only lists what it says. */
function listed() {
  const said: string[] = [];
  const packets: Packet[] = [];
  let lastId = 0;
  const reporter = new SubmissionReporter({
    events: {
      get nextId() {
        return lastId + 1;
      },
      opened(packet, _, keyId, plan, nowNs) {
        lastId = packet.id;
        packets.push(kept(packet));
        said.push(`opened ${packet.id} ${packet.account} ${keyId} ${plan} ${nowNs}`);
      },
      duplicate: ({ account, bytes }, offset) =>
        void said.push(`duplicate ${account} ${offset} ${bytes[0]}`),
      valid: () => void said.push("valid"),
      invalid: (errorCode) => void said.push(`invalid ${errorCode}`),
      outcome() {},
      answered: ({ kind }, { account, keyId, plan }) =>
        void said.push(`answered ${kind} ${account} ${keyId} ${plan}`),
    },
    sender: { recordSend: ({ id }, _, sentNs) => void said.push(`sent ${id} ${sentNs}`) },
    planName: (number) => PLANS[number] ?? "?",
    ownSubmitter: (number) => ({ ...OWN, keyId: `k${number}` }),
  });
  return { reporter, said, packets };
}

describe("a record of an ingress thread", () => {
  it("of a send is answered, opened under the next id, and its deliveries are reported", () => {
    const { reporter, said, packets } = listed();
    reporter.report(ringRecord(SENT));
    const all = ["answered 1 other k1 Pro", "valid", "opened 1 other k1 Pro 130", "sent 1 150"];
    expect(said).toEqual(all);
    expect(packets).toMatchObject([
      { id: 1, account: "other", receivedNs: 100, maxRetries: 2, offeredLamports: 1_234 },
    ]);
    expect(reporter.counters).toEqual({ inline: 0, ingress: 1, duplicates: 0, corked: 0 });
  });

  it("of a duplicate is one more submission, without decoding", () => {
    const { reporter, said } = listed();
    reporter.report(ringRecord(DUPLICATE));
    expect(said).toEqual(["answered 2 other k1 Pro", "duplicate other 1 1"]);
    expect(reporter.counters).toEqual({ inline: 0, ingress: 0, duplicates: 1, corked: 0 });
  });

  it("of a rejection is counted as decoded only where the decoder found it", () => {
    const { reporter, said } = listed();
    reporter.report(ringRecord(REJECTED, { validation: NO_ERROR }));
    reporter.report(ringRecord(REJECTED, { validation: { ...NO_ERROR, errorCode: 3 } }));
    // No leader takes it.
    reporter.report(ringRecord(REJECTED));
    reporter.report(ringRecord(VIOLATED));
    const [, second, third, fourth] = [3, 3, 3, 4].map((kind) => `answered ${kind} other k1 Pro`);
    expect(said).toEqual([second, second, "invalid 3", third, "valid", fourth]);
    expect(reporter.counters).toEqual({ inline: 0, ingress: 2, duplicates: 0, corked: 0 });
  });

  it("has the account of its key at that time", () => {
    const { reporter, said } = listed();
    for (const account of ["other", "moved", "moved"]) {
      reporter.report(ringRecord(DUPLICATE, { account, planNumber: 0 }));
    }
    expect(said.filter((it) => it.startsWith("answered"))).toEqual(
      ["other", "moved", "moved"].map((account) => `answered 2 ${account} k1 Beta`),
    );
  });

  it("counts sends that shared a datagram", () => {
    const { reporter } = listed();
    reporter.report(ringRecord(SENT, { send: { ...newSendRecord(), corked: true } }));
    reporter.report(ringRecord(SENT));
    expect(reporter.counters).toMatchObject({ ingress: 2, corked: 1 });
  });
});

describe("a record of the main thread", () => {
  it("belongs to the submission with its number, and is not answered again", () => {
    const { reporter, said } = listed();
    const own = { isOwn: true, keyId: "", account: "", planNumber: 7 };
    reporter.report(ringRecord(SENT, own));
    reporter.report(ringRecord(DUPLICATE, { ...own, planNumber: 8 }));
    const all = ["valid", "opened 1 own k7 Max 130", "sent 1 150", "duplicate own 1 1"];
    expect(said).toEqual(all);
    expect(reporter.counters).toEqual({ inline: 1, ingress: 0, duplicates: 1, corked: 0 });
  });
});

describe("a send that is recorded later", () => {
  const DELAY_NS = 50 * NS_PER_MS;

  function recordNew(all: ReturnType<typeof newFixture>, id: number, account = "acme") {
    const { clock, tracker } = all;
    const recorded: number[] = [];
    const reporter = new SubmissionReporter({
      events: tracker,
      sender: { recordSend: ({ id }) => void recorded.push(id) },
      planName: () => "Beta",
      ownSubmitter: () => OWN,
    });
    const bytes = bytesOf(id);
    const accepted = createDecoder(DECODER).decode(bytes);
    if (accepted.kind !== "accepted") throw new Error("a good one is needed");
    const receivedNs = clock.nowNs();
    const times = { receivedNs, decodedNs: receivedNs + 10, sentNs: receivedNs + 20 };
    const receivedUnixMs = clock.unixMs();
    clock.advance(DELAY_NS / NS_PER_MS);
    const fields = { bytes, account, keyId: "k", maxRetries: null, validation: accepted };
    reporter.report(ringRecord(SENT, { ...fields, ...times }));
    return { bytes, receivedUnixMs, recorded };
  }

  it("is recorded in every stage, as of the time when it was sent", () => {
    const all = newFixture();
    const { fixture, receipts, landing, tracker } = all;
    const { bytes, receivedUnixMs, recorded } = recordNew(all, 1);
    expect(fixture.calls).toEqual(["receipt.open", "track"]);
    expect(recorded).toEqual([1]);
    expect(fixture.counted).toEqual(["1 k"]);
    expect(tracker.validations.accepted).toBe(1);
    expect(landing.inFlight).toBe(1);
    const receipt = receipts.find(signatureOf(bytes), "acme");
    expect(receipt).toMatchObject({ received_at: new Date(receivedUnixMs).toISOString() });
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
});
