/**
 * What a receipt costs the hot path: opening it, and recording the outcome of one delivery. The
 * store is at its limit, so each new receipt evicts the oldest, as under a lasting load.
 */

import { strict as assert } from "node:assert";
import { Bench } from "tinybench";
import { systemClock } from "../../../src/core/clock.ts";
import { encodeSignature } from "../../../src/core/encoding.ts";
import type { Accepted, Outcome, Packet } from "../../../src/core/flow.ts";
import { createReceipts } from "../../../src/receipts/receipts.ts";

const ENTRIES = 65_536;

const ACCEPTED: Accepted = {
  kind: "accepted",
  version: 0,
  signatureOffset: 1,
  signatureCount: 1,
  messageOffset: 65,
  messageSize: 150,
  keysOffset: 69,
  blockhashOffset: 165,
  durableNonce: false,
  tipLamports: 1_000_000,
  priorityFeeLamports: 0,
};

export async function build(): Promise<Bench> {
  const receipts = createReceipts(
    { clock: systemClock, slot: () => 400 },
    { keepMs: 900_000, entriesMax: ENTRIES },
  );
  const bytes = new Uint8Array(215);
  const view = new DataView(bytes.buffer);
  let id = 0;

  const open = (): void => {
    id += 1;
    view.setUint32(1, Math.imul(id, 0x9e3779b1));
    view.setUint32(5, id);
    const receivedNs = systemClock.nowNs();
    const packet: Packet = {
      id,
      bytes,
      account: "acme",
      receivedNs,
      maxRetries: null,
      offeredLamports: 0,
    };
    receipts.open(packet, ACCEPTED, receivedNs + 30_000);
  };
  const record = (kind: Outcome["kind"], identity: string): void =>
    receipts.record({
      packetId: id,
      identity,
      address: "127.0.0.1:8009",
      slot: 400,
      kind,
      reason: null,
      atNs: systemClock.nowNs(),
      rttUs: 900,
      connectionAgeMs: 4_000,
      resend: 0,
    });
  const whole = (): void => {
    open();
    record("sent", "LeaderA");
    record("sent", "LeaderB");
    record("acked", "LeaderA");
    record("acked", "LeaderB");
  };

  for (let n = 0; n < ENTRIES + 10; n += 1) whole();
  const signature = encodeSignature(bytes, 1);
  const found = receipts.find(signature, "acme");
  assert.equal(found?.state, "acknowledged");
  assert.equal(found.leaders.length, 2);
  assert.equal(receipts.count(), ENTRIES);
  assert.equal(receipts.counters.evictedCapacity, 10);

  return new Bench({ name: "receipts, full", time: 500 })
    .add("clock read alone", () => void systemClock.nowNs())
    .add("open", open)
    .add("open, two copies sent and acknowledged", whole)
    .add("find, with its JSON", () => void JSON.stringify(receipts.find(signature, "acme")));
}
